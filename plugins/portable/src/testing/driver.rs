//! Tests of a driver below the contract, on its first device: programs, streams and memory.

#![expect(unsafe_code, reason = "the tests play the host")]

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{
    Async, Code, Core, HostServices, Memory, MemoryRange, Plugin, PluginError, Result, Stream, abi,
};

use crate::gpu::GpuQueue as _;
use crate::source::source_header;
use crate::{Gpu, GpuDevices, LaunchArgument, LaunchGrid, ProgramStore};

type DriverCase<G> = (&'static str, fn(&GpuDevices<G>));

/// Runs every test. The error says why there is no device.
pub fn check_driver<G: Gpu>() -> Result<()> {
    let gpus = driver_devices::<G>()?;
    let cases: [DriverCase<G>; 8] = [
        ("a source that does not compile is an error with what the compiler says", check_compile_error),
        ("a binary runs like its source and a damaged one is an error", check_binary_reuse),
        ("memory outside of a block and handles that are not alive are refused", check_refusals),
        ("streams that wait for each other work in turn", check_stream_order),
        ("memory that is given back serves what is already in a stream", check_freed_resources),
        ("times between events are known when they have happened", check_event_times),
        ("page-locked memory is copied from and given back once", check_pinned_memory),
        ("a device that was released is readied again by the next call", check_released_memory),
    ];
    for (name, case) in cases {
        // Cargo shows this only if a test fails.
        println!("{name}");
        case(&gpus);
    }
    Ok(())
}

/// Opens the devices of a driver without a plugin around them.
pub fn driver_devices<G: Gpu>() -> Result<GpuDevices<G>> {
    let gpus = GpuDevices::new(&empty_host(), ProgramStore::without_directory());
    gpus.initialize()?;
    Ok(gpus)
}

/// A host without any services.
fn empty_host() -> HostServices {
    static SERVICES: abi::HostTable = abi::HostTable::EMPTY;
    static FOUND: Mutex<Option<HostServices>> = Mutex::new(None);
    fn remember_host(host: &HostServices) -> Result<Plugin> {
        *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = Some(*host);
        Err(PluginError::unavailable("only the host is wanted"))
    }
    let asking = abi::Host {
        contract_major: abi::CONTRACT_MAJOR,
        contract_minor: abi::CONTRACT_MINOR,
        services: &raw const SERVICES,
        ..abi::Host::EMPTY
    };
    let mut answer = abi::Plugin::EMPTY;
    // SAFETY: both structs follow the contract, and the services live forever.
    unsafe { oarlock_sdk::answer_query(&raw const asking, &raw mut answer, remember_host) };
    FOUND.lock().unwrap_or_else(PoisonError::into_inner).expect("a host that was noted")
}

const ELEMENT_COUNT: usize = 256;
// One element more than a launch touches: a wrong offset changes the one that should stay.
const BLOCK_SIZE: u64 = 4 * (ELEMENT_COUNT as u64 + 1);

/// A program that doubles 256 integers, starting at a byte offset.
fn doubling_source<G: Gpu>(gpus: &GpuDevices<G>) -> String {
    let language = gpus.device_session(0).expect("a device").driver_gpu().kernel_language();
    let body = "KERNEL oarlock_kernel(GLOBAL i32 *data_block, u64 data_offset) {
        GLOBAL i32 *data = AT(i32, data_block, data_offset);
        data[LOCAL_X] *= 2;
    }";
    source_header(language, [ELEMENT_COUNT as u32, 1], false, false) + body
}

fn compile_doubling<G: Gpu>(gpus: &GpuDevices<G>) -> G::Program {
    gpus.device_session(0)
        .expect("a device")
        .driver_gpu()
        .compile_program(&doubling_source(gpus), false)
        .expect("a program")
        .program
}

fn launch_doubling<G: Gpu>(
    gpus: &GpuDevices<G>,
    program: &G::Program,
    stream: Stream,
    block: Memory,
    begin: u64,
) -> Result<()> {
    let session = gpus.device_session(0)?;
    let offset = begin.to_ne_bytes();
    let memory = session.block_with_range(MemoryRange {
        memory: block,
        offset: begin,
        size: 4 * ELEMENT_COUNT as u64,
    })?;
    let arguments = [LaunchArgument::Memory(Some(memory)), LaunchArgument::Value(&offset)];
    session.stream_queue(stream)?.launch_program(
        program,
        LaunchGrid { groups: 1, block: [ELEMENT_COUNT as u32, 1] },
        &arguments,
    )
}

fn whole(memory: Memory, size: u64) -> MemoryRange {
    MemoryRange { memory, offset: 0, size }
}

fn read_integers<G: Gpu>(gpus: &GpuDevices<G>, block: Memory) -> Vec<i32> {
    let mut bytes = vec![0; BLOCK_SIZE as usize];
    gpus.memory_copy_d2h(0, &mut bytes, whole(block, BLOCK_SIZE)).expect("a copy");
    bytes.chunks_exact(4).map(|chunk| i32::from_ne_bytes(chunk.try_into().expect("4 bytes"))).collect()
}

fn block_of_ones<G: Gpu>(gpus: &GpuDevices<G>) -> Memory {
    let block = gpus.memory_allocate(0, BLOCK_SIZE).expect("memory");
    let bytes: Vec<u8> = std::iter::repeat_n(1i32.to_ne_bytes(), ELEMENT_COUNT + 1).flatten().collect();
    gpus.memory_copy_h2d(0, whole(block, BLOCK_SIZE), &bytes).expect("a copy");
    block
}

fn check_compile_error<G: Gpu>(gpus: &GpuDevices<G>) {
    // The compiler must name the unknown word, wherever its log mentions it.
    let source = doubling_source(gpus).replace("*= 2", "= missing");
    let error = gpus
        .device_session(0)
        .expect("a device")
        .driver_gpu()
        .compile_program(&source, false)
        .err()
        .expect("an error");
    assert_eq!(error.code(), Code::EXTERNAL);
    assert!(error.message().contains("missing"), "{error}");
}

fn check_binary_reuse<G: Gpu>(gpus: &GpuDevices<G>) {
    let session = gpus.device_session(0).expect("a device");
    let compiled = session.driver_gpu().compile_program(&doubling_source(gpus), true).expect("a program");
    let block = block_of_ones(gpus);
    launch_doubling(gpus, &compiled.program, Stream(0), block, 4).expect("a launch");
    let Some(binary) = compiled.binary else { return };
    let loaded = session.driver_gpu().load_program(&binary).expect("a program");
    launch_doubling(gpus, &loaded, Stream(0), block, 4).expect("a launch");
    let found = read_integers(gpus, block);
    assert_eq!((found[0], &found[1..]), (1, &[4; ELEMENT_COUNT][..]));
    assert!(session.driver_gpu().load_program(b"no binary").is_err());
}

fn check_refusals<G: Gpu>(gpus: &GpuDevices<G>) {
    let (program, block) = (compile_doubling(gpus), block_of_ones(gpus));
    let code = |result: Result<()>| result.err().map(|error| error.code());
    assert_eq!(code(launch_doubling(gpus, &program, Stream(0), block, 8)), Some(Code::OUT_OF_RANGE));
    assert_eq!(code(launch_doubling(gpus, &program, Stream(u64::MAX), block, 0)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_deallocate(0, block, BLOCK_SIZE)), None);
    assert_eq!(code(launch_doubling(gpus, &program, Stream(0), block, 0)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_deallocate(0, block, BLOCK_SIZE)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_allocate(0, u64::MAX).map(drop)), Some(Code::RESOURCE_EXHAUSTED));
    assert_eq!(code(gpus.stream_destroy(0, Stream(0))), Some(Code::INVALID_ARGUMENT));
    assert_eq!(code(gpus.device_init(u32::MAX)), Some(Code::NOT_FOUND));
}

fn check_stream_order<G: Gpu>(gpus: &GpuDevices<G>) {
    let (program, block) = (compile_doubling(gpus), block_of_ones(gpus));
    let streams = [(); 2].map(|()| gpus.stream_create(0, 0).expect("a stream"));
    let event = gpus.event_create(0).expect("an event");
    // Each launch reads what the one before it wrote in the other stream: a wait that is lost loses a factor of two.
    for round in 0..20 {
        let (here, there) = (streams[round % 2], streams[(round + 1) % 2]);
        launch_doubling(gpus, &program, here, block, 0).expect("a launch");
        gpus.event_record(0, here, event).expect("a record");
        gpus.stream_wait_event(0, there, event).expect("a wait");
    }
    streams.iter().for_each(|stream| gpus.stream_synchronize(0, *stream).expect("the work"));
    assert_eq!(read_integers(gpus, block)[..ELEMENT_COUNT], [1 << 20; ELEMENT_COUNT]);
    gpus.event_destroy(0, event).expect("an event");
    streams.iter().for_each(|stream| gpus.stream_destroy(0, *stream).expect("a stream"));
}

fn check_freed_resources<G: Gpu>(gpus: &GpuDevices<G>) {
    let program = compile_doubling(gpus);
    let (block, copy) = (block_of_ones(gpus), gpus.memory_allocate(0, BLOCK_SIZE).expect("memory"));
    let stream = gpus.stream_create(0, 0).expect("a stream");
    launch_doubling(gpus, &program, stream, block, 0).expect("a launch");
    gpus.memory_copy_d2d_async(0, stream, whole(copy, BLOCK_SIZE), whole(block, BLOCK_SIZE)).expect("a copy");
    // The memory is freed while launch and copy may still be waiting in the stream.
    gpus.memory_deallocate_async(0, stream, block, BLOCK_SIZE).expect("memory");
    gpus.stream_synchronize(0, stream).expect("the work");
    assert_eq!(read_integers(gpus, copy)[..ELEMENT_COUNT], [2; ELEMENT_COUNT]);
    gpus.stream_destroy(0, stream).expect("a stream");
}

fn check_event_times<G: Gpu>(gpus: &GpuDevices<G>) {
    // Large enough for any clock to measure the fill.
    const SIZE: u64 = 64 << 20;
    let (start, end) = (gpus.event_create(0).expect("an event"), gpus.event_create(0).expect("an event"));
    let error = gpus.event_elapsed(0, start, end).expect_err("nothing was recorded");
    assert_eq!(error.code(), Code::PRECONDITION_NOT_MET);
    assert_eq!(gpus.event_query(0, end).expect("a state"), 1);
    let stream = gpus.stream_create(0, 0).expect("a stream");
    let block = gpus.memory_allocate(0, SIZE).expect("memory");
    gpus.event_record(0, stream, start).expect("a record");
    gpus.memory_set_async(0, stream, whole(block, SIZE), 7).expect("a fill");
    gpus.event_record(0, stream, end).expect("a record");
    gpus.event_synchronize(0, end).expect("the work");
    assert!(gpus.event_elapsed(0, start, end).expect("a time") > 0);
    gpus.stream_destroy(0, stream).expect("a stream");
    gpus.memory_deallocate(0, block, SIZE).expect("memory");
}

fn check_pinned_memory<G: Gpu>(gpus: &GpuDevices<G>) {
    let (block, pinned) = (block_of_ones(gpus), gpus.host_memory_allocate(0, BLOCK_SIZE).expect("memory"));
    // SAFETY: the memory was just allocated with this size, and nothing else uses it.
    unsafe { pinned.as_ptr().cast::<u8>().write_bytes(1, BLOCK_SIZE as usize) };
    let stream = gpus.stream_create(0, 0).expect("a stream");
    gpus.memory_copy_h2d_async(0, stream, whole(block, BLOCK_SIZE), pinned).expect("a copy");
    gpus.stream_synchronize(0, stream).expect("the work");
    assert_eq!(read_integers(gpus, block), [0x0101_0101; ELEMENT_COUNT + 1]);
    let code = |size| gpus.host_memory_deallocate(0, pinned, size).err().map(|error| error.code());
    assert_eq!(code(BLOCK_SIZE - 1), Some(Code::INVALID_ARGUMENT));
    assert_eq!(code(BLOCK_SIZE), None);
    assert_eq!(code(BLOCK_SIZE), Some(Code::INVALID_ARGUMENT));
    gpus.stream_destroy(0, stream).expect("a stream");
}

fn check_released_memory<G: Gpu>(gpus: &GpuDevices<G>) {
    let block = block_of_ones(gpus);
    gpus.device_deinit(0).expect("a release");
    let error = gpus.memory_deallocate(0, block, BLOCK_SIZE).expect_err("the block went with the device");
    assert_eq!(error.code(), Code::NOT_FOUND);
    assert_eq!(read_integers(gpus, block_of_ones(gpus))[..ELEMENT_COUNT], [1; ELEMENT_COUNT]);
}

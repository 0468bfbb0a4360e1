//! Tests of a driver on its first device, below the contract: programs, and how its streams and memory get along.

#![expect(unsafe_code, reason = "the tests play the host")]

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Async, Code, Core, Error, Host, Memory, Plugin, Result, Stream, abi};

use crate::gpu::Queue as _;
use crate::source::head;
use crate::{Argument, Gpu, Gpus, Grid, Store};

/// One test: its name, and what it does.
type Case<G> = (&'static str, fn(&Gpus<G>));

/// Runs every test. Without a device there is none, and the error says why.
pub fn check_driver<G: Gpu>() -> Result<()> {
    let gpus = devices::<G>()?;
    let cases: [Case<G>; 8] = [
        ("a source that does not compile is an error with what the compiler says", does_not_compile),
        ("a binary runs like its source and a damaged one is an error", binary),
        ("memory outside of a block and handles that are not alive are refused", refused),
        ("streams that wait for each other work in turn", streams),
        ("memory that is given back serves what is already in a stream", given_back),
        ("times between events are known when they have happened", times),
        ("page-locked memory is copied from and given back once", pinned),
        ("a device that was released is readied again by the next call", released),
    ];
    for (name, case) in cases {
        // Shown when one fails.
        println!("{name}");
        case(&gpus);
    }
    Ok(())
}

/// The devices of a driver, without a plugin around them.
pub fn devices<G: Gpu>() -> Result<Gpus<G>> {
    let gpus = Gpus::new(&host(), Store::nowhere());
    gpus.initialize()?;
    Ok(gpus)
}

/// A host of nothing.
fn host() -> Host {
    static SERVICES: abi::HostTable = abi::HostTable::EMPTY;
    static FOUND: Mutex<Option<Host>> = Mutex::new(None);
    fn note(host: &Host) -> Result<Plugin> {
        *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = Some(*host);
        Err(Error::unavailable("only the host is wanted"))
    }
    let asking = abi::Host {
        contract_major: abi::CONTRACT_MAJOR,
        contract_minor: abi::CONTRACT_MINOR,
        services: &raw const SERVICES,
        ..abi::Host::EMPTY
    };
    let mut answer = abi::Plugin::EMPTY;
    // SAFETY: both structs are as the contract says, and the services live for ever.
    unsafe { oarlock_sdk::answer(&raw const asking, &raw mut answer, note) };
    FOUND.lock().unwrap_or_else(PoisonError::into_inner).expect("a host that was noted")
}

const COUNT: usize = 256;
const SIZE: u64 = 4 * (COUNT as u64 + 1);

/// A program that doubles 256 integers from a byte of a block on.
fn double<G: Gpu>(gpus: &Gpus<G>) -> String {
    let language = gpus.session(0).expect("a device").gpu().language();
    let body = "KERNEL oarlock_kernel(GLOBAL i32 *data_block, u64 data_offset) {
        GLOBAL i32 *data = AT(i32, data_block, data_offset);
        data[LOCAL_X] *= 2;
    }";
    head(language, [COUNT as u32, 1], false, false) + body
}

fn compile<G: Gpu>(gpus: &Gpus<G>) -> G::Program {
    gpus.session(0).expect("a device").gpu().compile(&double(gpus), false).expect("a program").program
}

fn launch<G: Gpu>(
    gpus: &Gpus<G>,
    program: &G::Program,
    stream: Stream,
    block: Memory,
    begin: u64,
) -> Result<()> {
    let session = gpus.session(0)?;
    let offset = begin.to_ne_bytes();
    let memory = session.block(block, begin, 4 * COUNT as u64)?;
    let arguments = [Argument::Memory(Some(memory)), Argument::Value(&offset)];
    session.queue(stream)?.launch(program, Grid { groups: 1, block: [COUNT as u32, 1] }, &arguments)
}

fn numbers<G: Gpu>(gpus: &Gpus<G>, block: Memory) -> Vec<i32> {
    let mut bytes = vec![0; SIZE as usize];
    gpus.memory_copy_d2h(0, &mut bytes, block, 0).expect("a copy");
    bytes.chunks_exact(4).map(|chunk| i32::from_ne_bytes(chunk.try_into().expect("4 bytes"))).collect()
}

fn block_of_ones<G: Gpu>(gpus: &Gpus<G>) -> Memory {
    let block = gpus.memory_allocate(0, SIZE).expect("memory");
    let bytes: Vec<u8> = std::iter::repeat_n(1i32.to_ne_bytes(), COUNT + 1).flatten().collect();
    gpus.memory_copy_h2d(0, block, 0, &bytes).expect("a copy");
    block
}

fn does_not_compile<G: Gpu>(gpus: &Gpus<G>) {
    let source = double(gpus).replace("*= 2", "= missing");
    let error = gpus.session(0).expect("a device").gpu().compile(&source, false).err().expect("an error");
    assert_eq!(error.code(), Code::EXTERNAL);
    assert!(error.message().contains("missing"), "{error}");
}

fn binary<G: Gpu>(gpus: &Gpus<G>) {
    let session = gpus.session(0).expect("a device");
    let compiled = session.gpu().compile(&double(gpus), true).expect("a program");
    let block = block_of_ones(gpus);
    launch(gpus, &compiled.program, Stream(0), block, 4).expect("a launch");
    let Some(binary) = compiled.binary else { return };
    let loaded = session.gpu().load(&binary).expect("a program");
    launch(gpus, &loaded, Stream(0), block, 4).expect("a launch");
    let found = numbers(gpus, block);
    assert_eq!((found[0], &found[1..]), (1, &[4; COUNT][..]));
    assert!(session.gpu().load(b"no binary").is_err());
}

fn refused<G: Gpu>(gpus: &Gpus<G>) {
    let (program, block) = (compile(gpus), block_of_ones(gpus));
    let code = |result: Result<()>| result.err().map(|error| error.code());
    assert_eq!(code(launch(gpus, &program, Stream(0), block, 8)), Some(Code::OUT_OF_RANGE));
    assert_eq!(code(launch(gpus, &program, Stream(u64::MAX), block, 0)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_deallocate(0, block, SIZE)), None);
    assert_eq!(code(launch(gpus, &program, Stream(0), block, 0)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_deallocate(0, block, SIZE)), Some(Code::NOT_FOUND));
    assert_eq!(code(gpus.memory_allocate(0, u64::MAX).map(drop)), Some(Code::RESOURCE_EXHAUSTED));
    assert_eq!(code(gpus.stream_destroy(0, Stream(0))), Some(Code::INVALID_ARGUMENT));
    assert_eq!(code(gpus.device_init(u32::MAX)), Some(Code::NOT_FOUND));
}

fn streams<G: Gpu>(gpus: &Gpus<G>) {
    let (program, block) = (compile(gpus), block_of_ones(gpus));
    let streams = [(); 2].map(|()| gpus.stream_create(0, 0).expect("a stream"));
    let event = gpus.event_create(0).expect("an event");
    for round in 0..20 {
        let (here, there) = (streams[round % 2], streams[(round + 1) % 2]);
        launch(gpus, &program, here, block, 0).expect("a launch");
        gpus.event_record(0, here, event).expect("a record");
        gpus.stream_wait_event(0, there, event).expect("a wait");
    }
    streams.iter().for_each(|stream| gpus.stream_synchronize(0, *stream).expect("the work"));
    assert_eq!(numbers(gpus, block)[..COUNT], [1 << 20; COUNT]);
    gpus.event_destroy(0, event).expect("an event");
    streams.iter().for_each(|stream| gpus.stream_destroy(0, *stream).expect("a stream"));
}

fn given_back<G: Gpu>(gpus: &Gpus<G>) {
    let program = compile(gpus);
    let (block, copy) = (block_of_ones(gpus), gpus.memory_allocate(0, SIZE).expect("memory"));
    let stream = gpus.stream_create(0, 0).expect("a stream");
    launch(gpus, &program, stream, block, 0).expect("a launch");
    gpus.memory_copy_d2d_async(0, stream, copy, 0, block, 0, SIZE).expect("a copy");
    gpus.memory_deallocate_async(0, stream, block, SIZE).expect("memory");
    gpus.stream_synchronize(0, stream).expect("the work");
    assert_eq!(numbers(gpus, copy)[..COUNT], [2; COUNT]);
    gpus.stream_destroy(0, stream).expect("a stream");
}

fn times<G: Gpu>(gpus: &Gpus<G>) {
    const SIZE: u64 = 64 << 20;
    let (start, end) = (gpus.event_create(0).expect("an event"), gpus.event_create(0).expect("an event"));
    let error = gpus.event_elapsed(0, start, end).expect_err("nothing was recorded");
    assert_eq!(error.code(), Code::PRECONDITION_NOT_MET);
    assert_eq!(gpus.event_query(0, end).expect("a state"), 1);
    let stream = gpus.stream_create(0, 0).expect("a stream");
    let block = gpus.memory_allocate(0, SIZE).expect("memory");
    gpus.event_record(0, stream, start).expect("a record");
    gpus.memory_set_async(0, stream, block, 0, 7, SIZE).expect("a fill");
    gpus.event_record(0, stream, end).expect("a record");
    gpus.event_synchronize(0, end).expect("the work");
    assert!(gpus.event_elapsed(0, start, end).expect("a time") > 0);
    gpus.stream_destroy(0, stream).expect("a stream");
    gpus.memory_deallocate(0, block, SIZE).expect("memory");
}

fn pinned<G: Gpu>(gpus: &Gpus<G>) {
    let (block, pinned) = (block_of_ones(gpus), gpus.host_memory_allocate(0, SIZE).expect("memory"));
    // SAFETY: the memory is ours, and as large.
    unsafe { pinned.address().cast::<u8>().write_bytes(1, SIZE as usize) };
    let stream = gpus.stream_create(0, 0).expect("a stream");
    gpus.memory_copy_h2d_async(0, stream, block, 0, pinned, SIZE).expect("a copy");
    gpus.stream_synchronize(0, stream).expect("the work");
    assert_eq!(numbers(gpus, block), [0x0101_0101; COUNT + 1]);
    let code = |size| gpus.host_memory_deallocate(0, pinned, size).err().map(|error| error.code());
    assert_eq!(code(SIZE - 1), Some(Code::INVALID_ARGUMENT));
    assert_eq!(code(SIZE), None);
    assert_eq!(code(SIZE), Some(Code::INVALID_ARGUMENT));
    gpus.stream_destroy(0, stream).expect("a stream");
}

fn released<G: Gpu>(gpus: &Gpus<G>) {
    let block = block_of_ones(gpus);
    gpus.device_deinit(0).expect("a release");
    let error = gpus.memory_deallocate(0, block, SIZE).expect_err("the block went with the device");
    assert_eq!(error.code(), Code::NOT_FOUND);
    assert_eq!(numbers(gpus, block_of_ones(gpus))[..COUNT], [1; COUNT]);
}

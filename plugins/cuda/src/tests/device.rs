//! The driver on a device that is there. Without one nothing is tested, which is said.

#![expect(unsafe_code, reason = "the tests play the host")]

use std::io::Write;
use std::sync::Mutex;

use oarlock_portable::{Argument, Gpu, Grid};
use oarlock_sdk::{Async, Code, Core, Dtype, Error, Host, Memory, Plugin, Result, Stream, abi};

use crate::blas::Operands;
use crate::product::Product;
use crate::state::Cuda;

static HOST: Mutex<Option<Host>> = Mutex::new(None);

fn note_host(host: &Host) -> Result<Plugin> {
    *HOST.lock().unwrap() = Some(*host);
    Err(Error::unavailable("only the host is wanted"))
}

/// The plugin with its devices, or none.
fn cuda(test: &str) -> Option<Cuda> {
    static SERVICES: abi::HostTable = abi::HostTable::EMPTY;
    let asking = abi::Host {
        contract_major: abi::CONTRACT_MAJOR,
        contract_minor: abi::CONTRACT_MINOR,
        services: &raw const SERVICES,
        ..abi::Host::EMPTY
    };
    let mut answer = abi::Plugin::EMPTY;
    // SAFETY: both structs are as the contract says, and the services live for ever.
    unsafe { oarlock_sdk::answer(&raw const asking, &raw mut answer, note_host) };
    let host = (*HOST.lock().unwrap()).unwrap();
    let cuda = Cuda::new(&host);
    match cuda.open() {
        Ok(()) => Some(cuda),
        Err(reason) => {
            // Written past the capture of the test harness.
            writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
            None
        }
    }
}

const DOUBLE: &str = "extern \"C\" __global__ void oarlock_kernel(int *data, unsigned long long offset) {
    data[offset / 4 + threadIdx.x] *= 2;
}";

/// Runs a program that doubles 256 integers from a byte of a block on.
fn launch(
    cuda: &Cuda,
    program: &<Cuda as Gpu>::Program,
    stream: Stream,
    block: Memory,
    begin: u64,
) -> Result<()> {
    let offset = begin.to_ne_bytes();
    let arguments = [Argument::Memory { block, begin, end: begin + 1024 }, Argument::Value(&offset)];
    cuda.launch(0, stream, program, Grid { groups: 1, block: [256, 1] }, &arguments)
}

fn numbers(cuda: &Cuda, block: Memory) -> Vec<i32> {
    let mut bytes = vec![0; 1028];
    cuda.memory_copy_d2h(0, &mut bytes, block, 0).unwrap();
    bytes.chunks_exact(4).map(|chunk| i32::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

fn block_of_ones(cuda: &Cuda) -> Memory {
    let block = cuda.memory_allocate(0, 1028).unwrap();
    let bytes: Vec<u8> = std::iter::repeat_n(1i32.to_ne_bytes(), 257).flatten().collect();
    cuda.memory_copy_h2d(0, block, 0, &bytes).unwrap();
    block
}

#[test]
fn a_binary_runs_like_its_source_and_a_damaged_one_is_an_error() {
    let Some(cuda) = cuda("binaries") else { return };
    let compiled = cuda.compile(0, DOUBLE).unwrap();
    let block = block_of_ones(&cuda);
    launch(&cuda, &compiled.program, Stream(0), block, 4).unwrap();
    let Some(binary) = compiled.binary else { return };
    let loaded = cuda.load(0, &binary).unwrap();
    launch(&cuda, &loaded, Stream(0), block, 4).unwrap();
    let found = numbers(&cuda, block);
    assert_eq!((found[0], &found[1..]), (1, &[4; 256][..]));
    assert!(cuda.load(0, b"no binary").is_err());
}

#[test]
fn a_launch_outside_of_its_memory_is_refused() {
    let Some(cuda) = cuda("launching") else { return };
    let program = cuda.compile(0, DOUBLE).unwrap().program;
    let block = block_of_ones(&cuda);
    assert_eq!(launch(&cuda, &program, Stream(0), block, 8).unwrap_err().code(), Code::OUT_OF_RANGE);
    assert_eq!(launch(&cuda, &program, Stream(7), block, 0).unwrap_err().code(), Code::NOT_FOUND);
    cuda.memory_deallocate(0, block, 1028).unwrap();
    assert_eq!(launch(&cuda, &program, Stream(0), block, 0).unwrap_err().code(), Code::NOT_FOUND);
    assert_eq!(cuda.memory_deallocate(0, block, 1028).unwrap_err().code(), Code::NOT_FOUND);
}

#[test]
fn streams_that_wait_for_each_other_work_in_turn() {
    let Some(cuda) = cuda("streams") else { return };
    let program = cuda.compile(0, DOUBLE).unwrap().program;
    let block = block_of_ones(&cuda);
    let streams = [cuda.stream_create(0, 0).unwrap(), cuda.stream_create(0, 0).unwrap()];
    let event = cuda.event_create(0).unwrap();
    for round in 0..20 {
        let (here, there) = (streams[round % 2], streams[(round + 1) % 2]);
        launch(&cuda, &program, here, block, 0).unwrap();
        cuda.event_record(0, here, event).unwrap();
        cuda.stream_wait_event(0, there, event).unwrap();
    }
    streams.iter().for_each(|stream| cuda.stream_synchronize(0, *stream).unwrap());
    assert_eq!(numbers(&cuda, block)[..256], [1 << 20; 256]);
    cuda.event_destroy(0, event).unwrap();
    streams.iter().for_each(|stream| cuda.stream_destroy(0, *stream).unwrap());
}

#[test]
fn times_between_events_are_known_when_they_have_happened() {
    let Some(cuda) = cuda("events") else { return };
    let (start, end) = (cuda.event_create(0).unwrap(), cuda.event_create(0).unwrap());
    assert_eq!(cuda.event_elapsed(0, start, end).unwrap_err().code(), Code::PRECONDITION_NOT_MET);
    let (stream, block) = (cuda.stream_create(0, 0).unwrap(), cuda.memory_allocate(0, 64 << 20).unwrap());
    cuda.event_record(0, stream, start).unwrap();
    cuda.memory_set_async(0, stream, block, 0, 7, 64 << 20).unwrap();
    cuda.event_record(0, stream, end).unwrap();
    cuda.event_synchronize(0, end).unwrap();
    assert!(cuda.event_elapsed(0, start, end).unwrap() > 0);
    cuda.stream_destroy(0, stream).unwrap();
    cuda.memory_deallocate(0, block, 64 << 20).unwrap();
}

#[test]
fn no_context_is_left_current_on_the_thread_of_a_call() {
    let Some(cuda) = cuda("contexts") else { return };
    let block = block_of_ones(&cuda);
    assert_eq!(cudarc::driver::result::ctx::get_current().unwrap(), None);
    cuda.memory_deallocate(0, block, 1028).unwrap();
}

#[test]
fn page_locked_memory_is_copied_from_and_given_back_once() {
    let Some(cuda) = cuda("page-locked memory") else { return };
    let (block, pinned) = (block_of_ones(&cuda), cuda.host_memory_allocate(0, 1028).unwrap());
    // SAFETY: the memory is ours, and as large.
    unsafe { pinned.address().cast::<u8>().write_bytes(1, 1028) };
    let stream = cuda.stream_create(0, 0).unwrap();
    cuda.memory_copy_h2d_async(0, stream, block, 0, pinned, 1028).unwrap();
    cuda.stream_synchronize(0, stream).unwrap();
    assert_eq!(numbers(&cuda, block), [0x0101_0101; 257]);
    cuda.host_memory_deallocate(0, pinned, 1028).unwrap();
    assert_eq!(cuda.host_memory_deallocate(0, pinned, 1028).unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn cublaslt_multiplies_as_numbers_are_written_down() {
    let Some(cuda) = cuda("cuBLASLt") else { return };
    let session = cuda.session(0).unwrap();
    let blas = match session.blas() {
        Ok(blas) => blas,
        Err(reason) => return writeln!(std::io::stderr(), "SKIPPED cuBLASLt: {reason}").unwrap(),
    };
    let upload = |values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let block = cuda.memory_allocate(0, bytes.len() as u64).unwrap();
        cuda.memory_copy_h2d(0, block, 0, &bytes).unwrap();
        block
    };
    // Two matrices of 2 × 3 times one of 3 × 2.
    let (a, b) = ([1., 2., 3., 4., 5., 6., 0., 1., 0., 1., 0., 2.], [1., 2., 3., 4., 5., 6.]);
    let (a, b, y) = (upload(&a), upload(&b), upload(&[0.; 8]));
    let product = Product::new(Dtype::F32, &[2, 2, 3], &[3, 2], &[2, 2, 2]).unwrap();
    let operands = Operands { a: a.0, b: b.0, y: y.0, workspace: (0, 0) };
    let queue = session.queue(Stream(0)).unwrap();
    queue.run(|_, stream| blas.multiply(&product, &operands, stream.cast())).unwrap();
    let mut bytes = [0; 32];
    cuda.memory_copy_d2h(0, &mut bytes, y, 0).unwrap();
    let found: Vec<f32> =
        bytes.chunks_exact(4).map(|chunk| f32::from_ne_bytes(chunk.try_into().unwrap())).collect();
    assert_eq!(found, [22., 28., 49., 64., 3., 4., 11., 14.]);
}

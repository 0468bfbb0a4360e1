//! The driver on a device that is there. Without one nothing is tested, which is said.

#![expect(unsafe_code, reason = "the tests play the host")]

use std::io::Write;
use std::sync::Mutex;

use oarlock_portable::{Argument, ENTRY, Gpu, Grid, Language};
use oarlock_sdk::{Async, Code, Core, Error, Host, Memory, Plugin, Result, Stream, abi};

use crate::state::OpenCl;

static HOST: Mutex<Option<Host>> = Mutex::new(None);

fn note_host(host: &Host) -> Result<Plugin> {
    *HOST.lock().unwrap() = Some(*host);
    Err(Error::unavailable("only the host is wanted"))
}

/// The plugin with its devices, or none.
fn opencl(test: &str) -> Option<OpenCl> {
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
    let opencl = OpenCl::new(&host);
    match opencl.open() {
        Ok(()) => Some(opencl),
        Err(reason) => {
            // Written past the capture of the test harness.
            writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
            None
        }
    }
}

const DOUBLE: &str = "__kernel void oarlock_kernel(__global int *data, ulong offset) {
    data[offset / 4 + get_global_id(0)] *= 2;
}";

/// Runs a program that doubles 256 integers from a byte of a block on.
fn launch(
    opencl: &OpenCl,
    program: &<OpenCl as Gpu>::Program,
    stream: Stream,
    block: Memory,
    begin: u64,
) -> Result<()> {
    let offset = begin.to_ne_bytes();
    let arguments = [Argument::Memory { block, begin, end: begin + 1024 }, Argument::Value(&offset)];
    opencl.launch(0, stream, program, Grid { groups: 1, block: [256, 1] }, &arguments)
}

fn numbers(opencl: &OpenCl, block: Memory) -> Vec<i32> {
    let mut bytes = vec![0; 1028];
    opencl.memory_copy_d2h(0, &mut bytes, block, 0).unwrap();
    bytes.chunks_exact(4).map(|chunk| i32::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

fn block_of_ones(opencl: &OpenCl) -> Memory {
    let block = opencl.memory_allocate(0, 1028).unwrap();
    let bytes: Vec<u8> = std::iter::repeat_n(1i32.to_ne_bytes(), 257).flatten().collect();
    opencl.memory_copy_h2d(0, block, 0, &bytes).unwrap();
    block
}

#[test]
fn a_source_that_does_not_compile_is_an_error_with_what_the_compiler_says() {
    let Some(opencl) = opencl("compiling") else { return };
    let source = format!("__kernel void {ENTRY}(__global int *data) {{ data[0] = missing; }}");
    let error = opencl.compile(0, &source).err().unwrap();
    assert_eq!(error.code(), Code::EXTERNAL);
    assert!(error.message().contains("missing"), "{error}");
}

#[test]
fn a_binary_runs_like_its_source_and_a_damaged_one_is_an_error() {
    let Some(opencl) = opencl("binaries") else { return };
    let compiled = opencl.compile(0, DOUBLE).unwrap();
    let block = block_of_ones(&opencl);
    launch(&opencl, &compiled.program, Stream(0), block, 4).unwrap();
    let Some(binary) = compiled.binary else { return };
    let loaded = opencl.load(0, &binary).unwrap();
    launch(&opencl, &loaded, Stream(0), block, 4).unwrap();
    let found = numbers(&opencl, block);
    assert_eq!((found[0], &found[1..]), (1, &[4; 256][..]));
    assert!(opencl.load(0, b"no binary").is_err());
}

#[test]
fn a_launch_outside_of_its_memory_is_refused() {
    let Some(opencl) = opencl("launching") else { return };
    let program = opencl.compile(0, DOUBLE).unwrap().program;
    let block = block_of_ones(&opencl);
    assert_eq!(launch(&opencl, &program, Stream(0), block, 8).unwrap_err().code(), Code::OUT_OF_RANGE);
    assert_eq!(launch(&opencl, &program, Stream(7), block, 0).unwrap_err().code(), Code::NOT_FOUND);
    opencl.memory_deallocate(0, block, 1028).unwrap();
    assert_eq!(launch(&opencl, &program, Stream(0), block, 0).unwrap_err().code(), Code::NOT_FOUND);
    assert_eq!(opencl.memory_deallocate(0, block, 1028).unwrap_err().code(), Code::NOT_FOUND);
}

#[test]
fn streams_that_wait_for_each_other_work_in_turn() {
    let Some(opencl) = opencl("streams") else { return };
    let program = opencl.compile(0, DOUBLE).unwrap().program;
    let block = block_of_ones(&opencl);
    let streams = [opencl.stream_create(0, 0).unwrap(), opencl.stream_create(0, 0).unwrap()];
    let event = opencl.event_create(0).unwrap();
    for round in 0..20 {
        let (here, there) = (streams[round % 2], streams[(round + 1) % 2]);
        launch(&opencl, &program, here, block, 0).unwrap();
        opencl.event_record(0, here, event).unwrap();
        opencl.stream_wait_event(0, there, event).unwrap();
    }
    streams.iter().for_each(|stream| opencl.stream_synchronize(0, *stream).unwrap());
    assert_eq!(numbers(&opencl, block)[..256], [1 << 20; 256]);
    opencl.event_destroy(0, event).unwrap();
    streams.iter().for_each(|stream| opencl.stream_destroy(0, *stream).unwrap());
}

#[test]
fn memory_that_is_given_back_serves_what_is_already_in_a_stream() {
    let Some(opencl) = opencl("memory") else { return };
    let program = opencl.compile(0, DOUBLE).unwrap().program;
    let (block, copy) = (block_of_ones(&opencl), opencl.memory_allocate(0, 1028).unwrap());
    let stream = opencl.stream_create(0, 0).unwrap();
    launch(&opencl, &program, stream, block, 0).unwrap();
    opencl.memory_copy_d2d_async(0, stream, copy, 0, block, 0, 1028).unwrap();
    opencl.memory_deallocate_async(0, stream, block, 1028).unwrap();
    opencl.stream_synchronize(0, stream).unwrap();
    assert_eq!(numbers(&opencl, copy)[..256], [2; 256]);
}

#[test]
fn sources_with_indices_of_64_bits_compile() {
    let Some(opencl) = opencl("wide indices") else { return };
    let sources = oarlock_portable::testing::sources(Language::OpenCl);
    // Every kernel is run with indices of 32 bits elsewhere; a few of all kinds do here.
    for source in sources.iter().step_by(40) {
        let wide = source.replace("#define INDEX i32", "#define INDEX i64");
        assert_ne!(&wide, source);
        opencl.compile(0, &wide).map(drop).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}

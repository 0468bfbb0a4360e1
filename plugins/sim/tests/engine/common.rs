//! Helpers that several tests share.
#![expect(unsafe_code, reason = "promises that the buffers of tests outlive the copies")]

use oarlock_plugin_sim::{FaultScript, HostSpan, SimEngine};

/// An engine with the given script.
pub(crate) fn start_engine(script: &str) -> SimEngine {
    SimEngine::new(FaultScript::parse_script(script).unwrap()).unwrap()
}

/// A span over a buffer that outlives its engine or a wait for the copy.
pub(crate) fn buffer_span(bytes: &mut [u8]) -> HostSpan {
    // SAFETY: tests keep the buffer until the engine is gone or the copy was waited for, and read a destination only afterwards.
    unsafe { HostSpan::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Allocates device memory on device 0 with these bytes.
pub(crate) fn upload_bytes(engine: &SimEngine, bytes: &[u8]) -> u64 {
    let address = engine.memory_allocate(0, bytes.len() as u64).unwrap();
    engine.memory_copy_h2d(0, address, buffer_span(&mut bytes.to_vec())).unwrap();
    address
}

/// A span over memory that the engine itself tracks.
pub(crate) fn pinned_span(start: *mut u8, length: usize) -> HostSpan {
    // SAFETY: the engine detects every misuse of pinned memory, device addresses and null.
    unsafe { HostSpan::new(start, length) }
}

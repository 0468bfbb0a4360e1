//! Host programs that touch device memory die.
#![expect(unsafe_code, reason = "breaks the rules on purpose, in a process of its own")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use oarlock_plugin_sim::{FaultScript, SimEngine};

const SEGMENTATION_FAULT: i32 = 11;
const CRIME_VARIABLE: &str = "OARLOCK_SIM_TEST_CRIME";

/// Runs the test of that name again in a child process, where it commits the access.
fn run_in_child(test: &str) -> ExitStatus {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", test, "--test-threads=1"]).env(CRIME_VARIABLE, "1");
    child.output().unwrap().status
}

fn is_child() -> bool {
    std::env::var_os(CRIME_VARIABLE).is_some()
}

fn start_engine() -> SimEngine {
    SimEngine::new(FaultScript::parse_script("quota 1MiB").unwrap()).unwrap()
}

#[test]
fn a_host_read_of_device_memory_dies_with_a_segmentation_fault() {
    if is_child() {
        let engine = start_engine();
        let address = engine.memory_allocate(0, 64).unwrap();
        let pointer = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: none; the read must fault, which is the point of the test.
        let byte = unsafe { pointer.read_volatile() };
        println!("read {byte}");
        return;
    }
    let status = run_in_child("a_host_read_of_device_memory_dies_with_a_segmentation_fault");
    assert_eq!(status.signal(), Some(SEGMENTATION_FAULT));
}

#[test]
fn a_host_write_of_device_memory_dies_with_a_segmentation_fault() {
    if is_child() {
        let engine = start_engine();
        let address = engine.memory_allocate(0, 64).unwrap();
        let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: none; the write must fault, which is the point of the test.
        unsafe { pointer.write_volatile(1) };
        return;
    }
    let status = run_in_child("a_host_write_of_device_memory_dies_with_a_segmentation_fault");
    assert_eq!(status.signal(), Some(SEGMENTATION_FAULT));
}

#[test]
fn pinned_memory_works_until_it_is_freed_and_then_dies() {
    if is_child() {
        let engine = start_engine();
        let pointer = engine.host_memory_allocate(0, 64).unwrap();
        engine.host_memory_deallocate(0, pointer, 64).unwrap();
        // SAFETY: none; the read must fault, which is the point of the test.
        let byte = unsafe { pointer.read_volatile() };
        println!("read {byte}");
        return;
    }
    let engine = start_engine();
    let pointer = engine.host_memory_allocate(0, 64).unwrap();
    // SAFETY: the allocation has 64 bytes and is live.
    let bytes = unsafe { std::slice::from_raw_parts_mut(pointer, 64) };
    assert!(bytes.iter().all(|&byte| byte == 0xCD));
    bytes.fill(1);
    assert_eq!(bytes, [1; 64]);
    let status = run_in_child("pinned_memory_works_until_it_is_freed_and_then_dies");
    assert_eq!(status.signal(), Some(SEGMENTATION_FAULT));
}

#[test]
fn a_scripted_abort_aborts() {
    if is_child() {
        let engine = SimEngine::new(FaultScript::parse_script("abort memory_allocate 1").unwrap()).unwrap();
        let _ = engine.memory_allocate(0, 64);
        return;
    }
    assert_eq!(run_in_child("a_scripted_abort_aborts").signal(), Some(6));
}

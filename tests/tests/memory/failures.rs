//! Failures in streams: which op they name, who gets the error, and what remains.

#![expect(unsafe_code, reason = "work in streams is given memory that the tests vouch for")]

use oarlock_core::memory::{MemoryPool, PoolOptions};
use oarlock_core::stream::StreamId;
use oarlock_core::{Error, ErrorKind};
use oarlock_host::LiveHandleCounts;

use crate::{MIB, launch_copy, pool_options, scripted_device, take_memory};

#[test]
fn an_allocation_is_retried_once_and_other_errors_are_reported() {
    let machine = scripted_device("fail memory_allocate 2..3 out-of-memory; fail memory_allocate 5 internal");
    let pool = machine.create_pool(pool_options());
    let first = take_memory(&pool, 3 * MIB, "first");
    let second = take_memory(&pool, 3 * MIB, "second");
    let error = pool.allocate(3 * MIB, StreamId::IMMEDIATE, "third").unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::External, Some("third")), "{error}");
    let third = take_memory(&pool, 3 * MIB, "third");
    assert_eq!(pool.statistics().device_allocations, 3);
    drop((first, second, third, pool));
    assert_eq!(machine.live_handles(), LiveHandleCounts::default());
}

#[test]
fn a_failure_that_is_told_late_names_the_op_that_caused_it() {
    let machine = scripted_device("fail_later memory_copy_h2d_async 2 internal");
    let pool = machine.create_pool(pool_options());
    let stream = pool.streams().create_stream(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    for op in ["Add", "Mul", "Sub"] {
        launch_copy(&stream, &memory, op, &[1; 16]).unwrap();
    }
    let mut bytes = [0; 16];
    // SAFETY: nothing else uses the memory.
    let error = unsafe { memory.read_blocking(&stream, 0, &mut bytes) }.unwrap_err();
    assert_eq!((error.op(), error.device(), error.kind()), (Some("Mul"), Some("sim:0"), ErrorKind::External));
    // SAFETY: nothing else uses the memory.
    unsafe { memory.read_blocking(&stream, 0, &mut bytes) }.expect("it is told once");
}

#[test]
fn without_events_a_failure_names_the_ops_since_the_last_wait() {
    let machine = scripted_device("fail_later memory_copy_h2d_async 3 internal");
    let pool = machine.create_pool(PoolOptions { attribute_errors: false, ..pool_options() });
    let stream = pool.streams().create_stream(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    launch_copy(&stream, &memory, "Add", &[1; 16]).unwrap();
    stream.synchronize().unwrap();
    launch_copy(&stream, &memory, "Mul", &[1; 16]).unwrap();
    launch_copy(&stream, &memory, "Sub", &[1; 16]).unwrap();
    assert_eq!(stream.synchronize().unwrap_err().op(), Some("one of Mul, Sub"));
    assert_eq!(machine.live_handles().events, 0);
}

#[test]
fn a_failure_among_more_launches_than_are_kept_still_has_its_name() {
    let machine = scripted_device("mode eager; fail_later memory_copy_h2d_async 100 internal");
    let pool = machine.create_pool(pool_options());
    let stream = pool.streams().create_stream(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    for launched in 1..=600 {
        launch_copy(&stream, &memory, if launched == 100 { "Bad" } else { "Good" }, &[1; 16]).unwrap();
    }
    assert_eq!(stream.synchronize().unwrap_err().op(), Some("Bad"));
    assert!(machine.live_handles().events <= 256, "{}", machine.live_handles());
}

#[test]
fn a_failure_of_a_stream_that_nobody_waited_for_is_told_by_the_device() {
    let machine = scripted_device("fail_later memory_copy_h2d_async 1 internal");
    let pool = machine.create_pool(pool_options());
    let stream = pool.streams().create_stream(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    launch_copy(&stream, &memory, "Add", &[1; 16]).unwrap();
    drop((memory, stream));
    assert_eq!(pool.streams().synchronize().unwrap_err().op(), Some("Add"));
    assert!(pool.streams().synchronize().is_ok());
}

#[test]
fn a_failure_that_reaches_another_stream_has_the_name_of_where_it_began() {
    for (mode, is_kept) in [("lazy", true), ("lazy", false), ("eager", true), ("random", false)] {
        let machine = scripted_device(&format!("mode {mode}; fail_later memory_copy_h2d_async 2 internal"));
        let pool = machine.create_pool(pool_options());
        let [first, second, third] = [0; 3].map(|priority| pool.streams().create_stream(priority).unwrap());
        let memory = pool.allocate(64, first.id(), "memory").unwrap();
        let [other, last] = [&second, &third].map(|stream| pool.allocate(64, stream.id(), "other").unwrap());
        for op in ["Add", "Mul", "Sub"] {
            launch_copy(&first, &memory, op, &[1; 16]).unwrap();
        }
        second.wait_for_stream(&first).unwrap();
        launch_copy(&second, &other, "Relu", &[1; 16]).unwrap();
        third.wait_for_stream(&second).unwrap();
        launch_copy(&third, &last, "Neg", &[1; 16]).unwrap();
        let kept = is_kept.then_some((first, memory));
        assert_eq!(third.synchronize().unwrap_err().op(), Some("Mul"), "{mode}");
        assert_eq!(second.synchronize().unwrap_err().op(), Some("Mul"), "{mode}");
        drop(kept);
        assert_eq!(pool.streams().synchronize().unwrap_err().op(), Some("Mul"), "{mode}");
    }
}

#[test]
fn a_device_that_is_lost_fails_every_call_with_the_same_reason_and_nothing_leaks() {
    for after in (8..60).step_by(5) {
        let machine = scripted_device(&format!("quota 32MiB; poison off; lose 0 after {after}"));
        let Ok(pool) = MemoryPool::new(machine.device.clone(), pool_options()) else { continue };
        let work = || -> Result<(), Error> {
            let stream = pool.streams().create_stream(0)?;
            let mut held = Vec::new();
            for _ in 0..4 {
                held.push(pool.allocate(3 * MIB, stream.id(), "held")?);
                launch_copy(&stream, &held[held.len() - 1], "Add", &[1; 16])?;
                held[0].mark_used_on(&pool.streams().create_stream(0)?);
            }
            stream.synchronize()
        };
        let failed = (0..20).find_map(|_| work().err());
        let error = failed.expect("it is lost at some point");
        assert!(error.is_device_lost(), "{error}");
        let next = pool.allocate(64, StreamId::IMMEDIATE, "next").expect_err("it stays lost");
        assert_eq!(
            next.plugin_failure().map(|failure| &failure.message),
            error.plugin_failure().map(|failure| &failure.message)
        );
        assert!(pool.streams().create_stream(0).unwrap_err().is_device_lost());
        drop(pool);
        assert_eq!(machine.live_handles(), LiveHandleCounts::default(), "after {after} calls");
    }
}

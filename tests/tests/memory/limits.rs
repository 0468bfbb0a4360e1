//! How much memory a pool allocates and keeps, and its errors when memory runs out.

use oarlock_core::ErrorKind;
use oarlock_core::memory::{AllocatorStrategy, DeviceAllocation, PoolOptions};
use oarlock_core::stream::StreamId;

use crate::{MIB, allocation_place, limited_options, pool_options, scripted_device, take_memory};

#[test]
fn no_bytes_are_no_memory() {
    let machine = scripted_device("quota 1MiB");
    let pool = machine.create_pool(pool_options());
    let nothing = take_memory(&pool, 0, "nothing");
    assert_eq!(
        (nothing.block_handle().0, nothing.requested_size(), pool.statistics().device_allocations),
        (0, 0, 0)
    );
    let error = pool.allocate(u64::MAX, StreamId::IMMEDIATE, "huge").unwrap_err();
    assert_eq!((error.kind(), error.device()), (ErrorKind::ResourceExhausted, Some("sim:0")));
}

#[test]
fn an_out_of_memory_error_lists_the_holders() {
    let machine = scripted_device("quota 16MiB");
    let pool = machine.create_pool(pool_options());
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let small: Vec<DeviceAllocation> =
        names.into_iter().map(|name| take_memory(&pool, 100_000, name)).collect();
    let weights: Vec<DeviceAllocation> = (0..2).map(|_| take_memory(&pool, 4 * MIB, "weights")).collect();
    let error = pool.allocate(64 * MIB, StreamId::IMMEDIATE, "Conv").unwrap_err();
    assert_eq!((error.kind(), error.device()), (ErrorKind::ResourceExhausted, Some("sim:0")));
    let message = error.message();
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("expected 64.0 MiB of memory for `Conv`, found at most "), "{message}");
    assert!(lines[0].contains("6.0 MiB are free on the device"), "{message}");
    assert!(lines[2].contains("8.0 MiB") && lines[2].ends_with("2  weights"), "{message}");
    assert_eq!(lines.len(), 11, "{message}");
    assert!(lines[10].ends_with("3 others"), "{message}");
    assert!(error.advice().is_some());
    drop((small, weights));
    assert!(pool.allocate(12 * MIB, StreamId::IMMEDIATE, "Conv").is_ok(), "what is not used was given back");
}

#[test]
fn a_limit_holds_although_the_device_has_more() {
    let machine = scripted_device("quota 64MiB");
    let pool = machine.create_pool(limited_options(6 * MIB));
    let held = take_memory(&pool, 5 * MIB, "held");
    let error = pool.allocate(2 * MIB, StreamId::IMMEDIATE, "more").unwrap_err();
    assert!(error.message().contains("the limit is 6.0 MiB"), "{error}");
    assert!(error.advice().is_some_and(|hint| hint.contains("raise the memory limit")));
    drop(held);
    assert!(pool.allocate(6 * MIB, StreamId::IMMEDIATE, "all").is_ok());
}

#[test]
fn unused_memory_goes_back_when_it_is_trimmed_and_used_memory_stays() {
    let machine = scripted_device("seed 1");
    let pool = machine.create_pool(pool_options());
    let (kept, dropped) = (take_memory(&pool, 100, "kept"), take_memory(&pool, 5 * MIB, "dropped"));
    drop(dropped);
    assert_eq!((pool.statistics().reserved, machine.live_handles().blocks), (8 * MIB, 2));
    assert_eq!(pool.trim(), 6 * MIB);
    assert_eq!((pool.statistics().reserved, machine.live_handles().blocks), (2 * MIB, 1));
    drop(kept);
    assert_eq!((pool.trim(), machine.live_handles().blocks), (2 * MIB, 0));
}

#[test]
fn peaks_are_kept_until_they_are_reset() {
    let machine = scripted_device("seed 1");
    let pool = machine.create_pool(pool_options());
    drop(take_memory(&pool, 3 * MIB, "large"));
    let held = take_memory(&pool, 256, "held");
    let statistics = pool.statistics();
    assert_eq!((statistics.allocated, statistics.peak_allocated), (256, 3 * MIB));
    assert_eq!((statistics.reserved, statistics.peak_reserved), (6 * MIB, 6 * MIB));
    pool.trim();
    pool.reset_peak();
    let statistics = pool.statistics();
    assert_eq!((statistics.peak_allocated, statistics.peak_reserved), (256, 2 * MIB));
    assert_eq!(
        pool.memory_holders().first().map(|holder| (holder.label.as_str(), holder.count)),
        Some(("held", 1))
    );
    drop(held);
}

#[test]
fn best_fit_takes_one_large_chunk_cuts_it_to_measure_and_lets_it_grow_together() {
    let machine = scripted_device("quota 64MiB");
    let pool = machine.create_pool(PoolOptions {
        strategy: AllocatorStrategy::BestFit,
        initial: Some(8 * MIB),
        ..pool_options()
    });
    let sizes = [MIB, 3 * MIB, MIB / 2, 2 * MIB, 1024];
    let [a, b, c, d, e] = sizes.map(|size| take_memory(&pool, size, "piece"));
    let (large, small) = (allocation_place(&b), allocation_place(&d));
    drop((b, d));
    let fitting = take_memory(&pool, 2 * MIB - 4096, "fitting");
    assert_eq!(allocation_place(&fitting), small, "the smaller of two holes");
    let other = take_memory(&pool, 2 * MIB + 4096, "other");
    assert_eq!(allocation_place(&other), large);
    drop((a, c, e, fitting, other));
    let whole = take_memory(&pool, 8 * MIB, "whole");
    assert_eq!((pool.statistics().device_allocations, whole.offset()), (1, 0));
}

#[test]
fn best_fit_settles_for_less_when_the_device_refuses() {
    let machine = scripted_device("quota 64MiB; lie memory_stats");
    let pool = machine.create_pool(PoolOptions {
        strategy: AllocatorStrategy::BestFit,
        initial: Some(200 * MIB),
        ..pool_options()
    });
    let held = take_memory(&pool, MIB, "held");
    let reserved = pool.statistics().reserved;
    assert!((MIB..=64 * MIB).contains(&reserved), "{reserved}");
    drop(held);
}

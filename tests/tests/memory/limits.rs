//! How much memory a pool takes, what it keeps, and what it says when there is none.

use oarlock_core::ErrorKind;
use oarlock_core::memory::{Allocation, PoolOptions, Strategy};
use oarlock_core::stream::StreamId;

use crate::{MIB, limited, machine, options, place, take};

#[test]
fn no_bytes_are_no_memory() {
    let machine = machine("quota 1MiB");
    let pool = machine.pool(options());
    let nothing = take(&pool, 0, "nothing");
    assert_eq!((nothing.memory().0, nothing.size(), pool.statistics().device_allocations), (0, 0, 0));
    let error = pool.allocate(u64::MAX, StreamId::OWN, "huge").unwrap_err();
    assert_eq!((error.kind(), error.device()), (ErrorKind::ResourceExhausted, Some("sim:0")));
}

#[test]
fn an_error_without_memory_says_who_holds_it() {
    let machine = machine("quota 16MiB");
    let pool = machine.pool(options());
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let small: Vec<Allocation> = names.into_iter().map(|name| take(&pool, 100_000, name)).collect();
    let weights: Vec<Allocation> = (0..2).map(|_| take(&pool, 4 * MIB, "weights")).collect();
    let error = pool.allocate(64 * MIB, StreamId::OWN, "Conv").unwrap_err();
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
    assert!(pool.allocate(12 * MIB, StreamId::OWN, "Conv").is_ok(), "what is not used was given back");
}

#[test]
fn a_limit_holds_although_the_device_has_more() {
    let machine = machine("quota 64MiB");
    let pool = machine.pool(limited(6 * MIB));
    let held = take(&pool, 5 * MIB, "held");
    let error = pool.allocate(2 * MIB, StreamId::OWN, "more").unwrap_err();
    assert!(error.message().contains("the limit is 6.0 MiB"), "{error}");
    assert!(error.advice().is_some_and(|hint| hint.contains("raise the memory limit")));
    drop(held);
    assert!(pool.allocate(6 * MIB, StreamId::OWN, "all").is_ok());
}

#[test]
fn unused_memory_goes_back_when_it_is_trimmed_and_used_memory_stays() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    let (kept, dropped) = (take(&pool, 100, "kept"), take(&pool, 5 * MIB, "dropped"));
    drop(dropped);
    assert_eq!((pool.statistics().reserved, machine.live().blocks), (8 * MIB, 2));
    assert_eq!(pool.trim(), 6 * MIB);
    assert_eq!((pool.statistics().reserved, machine.live().blocks), (2 * MIB, 1));
    drop(kept);
    assert_eq!((pool.trim(), machine.live().blocks), (2 * MIB, 0));
}

#[test]
fn peaks_are_kept_until_they_are_reset() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    drop(take(&pool, 3 * MIB, "large"));
    let held = take(&pool, 256, "held");
    let statistics = pool.statistics();
    assert_eq!((statistics.allocated, statistics.peak_allocated), (256, 3 * MIB));
    assert_eq!((statistics.reserved, statistics.peak_reserved), (6 * MIB, 6 * MIB));
    pool.trim();
    pool.reset_peak();
    let statistics = pool.statistics();
    assert_eq!((statistics.peak_allocated, statistics.peak_reserved), (256, 2 * MIB));
    assert_eq!(pool.holders().first().map(|holder| (holder.label.text(), holder.count)), Some(("held", 1)));
    drop(held);
}

#[test]
fn best_fit_takes_one_large_chunk_cuts_it_to_measure_and_lets_it_grow_together() {
    let machine = machine("quota 64MiB");
    let pool = machine.pool(PoolOptions { strategy: Strategy::BestFit, initial: Some(8 * MIB), ..options() });
    let sizes = [MIB, 3 * MIB, MIB / 2, 2 * MIB, 1024];
    let [a, b, c, d, e] = sizes.map(|size| take(&pool, size, "piece"));
    let (large, small) = (place(&b), place(&d));
    drop((b, d));
    let fitting = take(&pool, 2 * MIB - 4096, "fitting");
    assert_eq!(place(&fitting), small, "the smaller of two holes");
    let other = take(&pool, 2 * MIB + 4096, "other");
    assert_eq!(place(&other), large);
    drop((a, c, e, fitting, other));
    let whole = take(&pool, 8 * MIB, "whole");
    assert_eq!((pool.statistics().device_allocations, whole.offset()), (1, 0));
}

#[test]
fn best_fit_settles_for_less_when_the_device_refuses() {
    let machine = machine("quota 64MiB; lie memory_stats");
    let pool =
        machine.pool(PoolOptions { strategy: Strategy::BestFit, initial: Some(200 * MIB), ..options() });
    let held = take(&pool, MIB, "held");
    let reserved = pool.statistics().reserved;
    assert!((MIB..=64 * MIB).contains(&reserved), "{reserved}");
    drop(held);
}

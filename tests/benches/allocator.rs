//! Cost of pooled memory: allocating a free piece and freeing it again.
//!
//! The allocators take turns within one run. The last row of the table is the system's allocator in the same program.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use oarlock_core::memory::{MemoryPool, PoolOptions};
use oarlock_core::stream::StreamId;
use oarlock_host::{BuiltInPlugin, Host, HostConfig, HostEnvironment, HostOptions, ProcessIdentity};

/// Requests per sample, so that the time to read the clock is negligible.
const REQUESTS_PER_SAMPLE: u32 = 1000;
/// Samples of each allocator.
const SAMPLE_COUNT: usize = 1000;

/// One allocation and its release.
type AllocationStrategy = Box<dyn Fn()>;

fn main() {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = HostOptions::new("bench 1.0", HostConfig::default(), environment);
    options.built_in = vec![BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY }];
    let host = Host::start(&options).unwrap();
    let device = host.device("cpu").unwrap_or_else(|| panic!("no `cpu`: {:#?}", host.report()));
    let pool = MemoryPool::new(device, PoolOptions::default()).unwrap();
    // Other live tensors, as in a real program.
    let _held: Vec<_> = (1..2000u64).map(|size| allocate_from_pool(&pool, size * 8)).collect();
    let ways: [(&str, AllocationStrategy); 5] = [
        ("4 bytes", allocate_one(&pool, 4)),
        ("64 KiB", allocate_one(&pool, 64 << 10)),
        ("16 MiB", allocate_one(&pool, 16 << 20)),
        ("4 bytes, 8 at a time, each", allocate_several(&pool)),
        ("4 bytes of the system", Box::new(|| drop(black_box(Box::new(black_box(1u32)))))),
    ];
    let mut samples = vec![Vec::with_capacity(SAMPLE_COUNT); ways.len()];
    for _ in 0..SAMPLE_COUNT {
        for ((name, way), samples) in ways.iter().zip(&mut samples) {
            samples.push(sample_strategy(way) / if name.ends_with("each") { 8.0 } else { 1.0 });
        }
    }
    println!(
        "{SAMPLE_COUNT} samples of {REQUESTS_PER_SAMPLE} requests each, in turns; nanoseconds to take and give back\n"
    );
    println!("| request | p50 | p99 |\n|---|---|---|");
    for ((name, _), samples) in ways.iter().zip(&mut samples) {
        println!("| {name} | {:.1} | {:.1} |", sample_quantile(samples, 0.5), sample_quantile(samples, 0.99));
    }
    println!("\n{:?}", pool.statistics());
}

fn allocate_from_pool(pool: &Arc<MemoryPool>, size: u64) -> oarlock_core::memory::DeviceAllocation {
    pool.allocate(black_box(size), StreamId::IMMEDIATE, "bench").unwrap()
}

fn allocate_one(pool: &Arc<MemoryPool>, size: u64) -> AllocationStrategy {
    let pool = pool.clone();
    Box::new(move || drop(black_box(allocate_from_pool(&pool, size))))
}

fn allocate_several(pool: &Arc<MemoryPool>) -> AllocationStrategy {
    let pool = pool.clone();
    Box::new(move || drop(black_box([0; 8].map(|_| allocate_from_pool(&pool, 4)))))
}

fn sample_strategy(way: &AllocationStrategy) -> f64 {
    let start = Instant::now();
    for _ in 0..REQUESTS_PER_SAMPLE {
        way();
    }
    start.elapsed().as_nanos() as f64 / f64::from(REQUESTS_PER_SAMPLE)
}

fn sample_quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}

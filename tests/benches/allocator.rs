//! What memory of the pool costs: taking a piece that is at hand and giving it back.
//!
//! Every way is measured in turns within one run. The last row is the system's allocator in the same program.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use oarlock_core::memory::{Pool, PoolOptions};
use oarlock_core::stream::StreamId;
use oarlock_host::{BuiltIn, Config, Environment, Host, HostOptions, Identity};

/// Requests in one sample, so that reading the clock costs little beside them.
const REQUESTS: u32 = 1000;
/// Samples of each way.
const SAMPLES: usize = 1000;

/// A way to take memory and give it back.
type Way = Box<dyn Fn()>;

fn main() {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut options = HostOptions::new("bench 1.0", Config::default(), environment);
    options.built_in = vec![BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY }];
    let host = Host::start(&options).unwrap();
    let device = host.device("cpu").unwrap_or_else(|| panic!("no `cpu`: {:#?}", host.report()));
    let pool = Pool::new(device, PoolOptions::default()).unwrap();
    // Other tensors around, as in a program.
    let _held: Vec<_> = (1..2000u64).map(|size| take(&pool, size * 8)).collect();
    let ways: [(&str, Way); 5] = [
        ("4 bytes", one(&pool, 4)),
        ("64 KiB", one(&pool, 64 << 10)),
        ("16 MiB", one(&pool, 16 << 20)),
        ("4 bytes, 8 at a time, each", several(&pool)),
        ("4 bytes of the system", Box::new(|| drop(black_box(Box::new(black_box(1u32)))))),
    ];
    let mut samples = vec![Vec::with_capacity(SAMPLES); ways.len()];
    for _ in 0..SAMPLES {
        for ((name, way), samples) in ways.iter().zip(&mut samples) {
            samples.push(sample(way) / if name.ends_with("each") { 8.0 } else { 1.0 });
        }
    }
    println!("{SAMPLES} samples of {REQUESTS} requests each, in turns; nanoseconds to take and give back\n");
    println!("| request | p50 | p99 |\n|---|---|---|");
    for ((name, _), samples) in ways.iter().zip(&mut samples) {
        println!("| {name} | {:.1} | {:.1} |", quantile(samples, 0.5), quantile(samples, 0.99));
    }
    println!("\n{:?}", pool.statistics());
}

fn take(pool: &Arc<Pool>, size: u64) -> oarlock_core::memory::Allocation {
    pool.allocate(black_box(size), StreamId::OWN, "bench").unwrap()
}

fn one(pool: &Arc<Pool>, size: u64) -> Way {
    let pool = pool.clone();
    Box::new(move || drop(black_box(take(&pool, size))))
}

fn several(pool: &Arc<Pool>) -> Way {
    let pool = pool.clone();
    Box::new(move || drop(black_box([0; 8].map(|_| take(&pool, 4)))))
}

fn sample(way: &Way) -> f64 {
    let start = Instant::now();
    for _ in 0..REQUESTS {
        way();
    }
    start.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
}

fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}

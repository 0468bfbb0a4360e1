//! Checks that every function may be called on any thread.

use std::thread;

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, expect_bytes, test_pattern};
use crate::device::DeviceUnderTest;
use crate::stream::TestStream;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::core_check(
        "T-1",
        "four threads allocate, fill, read and free memory concurrently",
        memory_from_many_threads,
    ),
    ConformanceCheck::async_check("T-1", "four threads use a stream each at once", streams_from_many_threads),
];

pub(super) const THREADS: u64 = 4;
const ROUNDS: u64 = 16;

/// Runs `work` on several threads at once; returns the first failure.
pub(super) fn run_on_threads(work: impl Fn(u64) -> Verdict + Sync) -> Verdict {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
        let panicked = |_| Err(CheckAbort::failed("a thread of the suite panicked"));
        let verdicts: Vec<Verdict> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        verdicts.into_iter().collect()
    })
}

fn memory_from_many_threads(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        run_on_threads(|number| {
            for round in 0..ROUNDS {
                let data = test_pattern(number * ROUNDS + round, 1000 + 777 * round as usize);
                let block = device.allocate_with(&data)?;
                expect_bytes(format_args!("thread {number}, round {round}"), &data, &block.read_all()?)?;
                device.memory_stats()?;
                block.deallocate()?;
            }
            Ok(())
        })
    })
}

fn streams_from_many_threads(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| run_on_threads(|number| round_trip_on_stream(device, number)))
}

fn round_trip_on_stream(device: DeviceUnderTest<'_>, number: u64) -> Verdict {
    let block = device.allocate(4096)?;
    let queue = TestStream::create_stream(device)?;
    for round in 0..ROUNDS {
        let data = test_pattern(number * ROUNDS + round, 4096);
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, 4096)?;
        queue.synchronize()?;
        expect_bytes(format_args!("thread {number}, round {round}"), &data, &queue.take_download(&arriving))?;
    }
    queue.destroy()?;
    block.deallocate()
}

//! Every function may be called on any thread.

use std::thread;

use super::Check;
use crate::bench::{Bench, Stop, Verdict, expect_bytes, pattern};
use crate::device::Device;
use crate::queue::Queue;

pub(super) const CHECKS: &[Check] = &[
    Check::core("T-1", "four threads take, fill, read and give back memory at once", memory),
    Check::asynchronous("T-1", "four threads use a stream each at once", streams),
];

pub(super) const THREADS: u64 = 4;
const ROUNDS: u64 = 16;

/// Runs something on several threads at once; the first of them that failed.
pub(super) fn at_once(work: impl Fn(u64) -> Verdict + Sync) -> Verdict {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
        let panicked = |_| Err(Stop::failed("a thread of the suite panicked"));
        let verdicts: Vec<Verdict> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        verdicts.into_iter().collect()
    })
}

fn memory(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        at_once(|number| {
            for round in 0..ROUNDS {
                let data = pattern(number * ROUNDS + round, 1000 + 777 * round as usize);
                let block = device.block_of(&data)?;
                expect_bytes(format_args!("thread {number}, round {round}"), &data, &block.read_all()?)?;
                device.stats()?;
                block.give_back()?;
            }
            Ok(())
        })
    })
}

fn streams(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| at_once(|number| on_a_stream(device, number)))
}

fn on_a_stream(device: Device<'_>, number: u64) -> Verdict {
    let block = device.allocate(4096)?;
    let queue = Queue::create(device)?;
    for round in 0..ROUNDS {
        let data = pattern(number * ROUNDS + round, 4096);
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, 4096)?;
        queue.synchronize()?;
        expect_bytes(format_args!("thread {number}, round {round}"), &data, &queue.arrived(&arriving))?;
    }
    queue.destroy()?;
    block.give_back()
}

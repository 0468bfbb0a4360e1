//! Streams: what they do, and in which order.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use std::time::Instant;

use oarlock_abi as abi;

use super::Check;
use super::errors::must_refuse;
use crate::bench::{Bench, Stop, Verdict, ensure, expect_bytes, pattern, slot};
use crate::device::Device;
use crate::queue::Queue;

pub(super) const CHECKS: &[Check] = &[
    Check::asynchronous(
        "R-1",
        "streams are written on success, and live ones are different",
        different_streams,
    ),
    Check::asynchronous(
        "D-2",
        "a device that is not in the list gets no stream and no event, and nothing is written",
        unknown_device,
    ),
    Check::asynchronous("A-3", "a stream that was destroyed or never made is an error", dead_streams),
    Check::asynchronous("M-5", "what was copied in a stream is there after synchronising it", round_trips),
    Check::asynchronous("A-1", "work in one stream happens in the order it was put there", in_order),
    Check::asynchronous("A-1", "a fill in a stream has its place between copies", fills_in_order),
    Check::asynchronous(
        "stream_query",
        "a stream that is asked again and again says at last that it is done",
        query,
    ),
    Check::asynchronous("stream_destroy", "a stream is freed after its work is done", destroy),
    Check::asynchronous(
        "device_synchronize",
        "synchronising a device waits for all of its streams",
        whole_device,
    ),
    Check::asynchronous("memory_allocate_async", "memory taken in a stream can be used in it", allocate),
    Check::asynchronous(
        "memory_deallocate_async",
        "memory given back in a stream serves until then",
        deallocate,
    ),
    Check::asynchronous(
        "memory_copy_p2p_async",
        "a copy in a stream brings bytes to another device",
        between,
    ),
];

/// Many enough bytes that a copy that is not waited for is seen.
pub(super) const SIZE: usize = 1 << 18;

fn different_streams(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let queues: Vec<Queue<'_>> = (0..8).map(|_| Queue::create(device)).collect::<Verdict<_>>()?;
        let mut handles: Vec<u64> = queues.iter().map(|queue| queue.handle.0).collect();
        handles.sort_unstable();
        handles.dedup();
        ensure!(
            handles.len() == queues.len(),
            "expected {} different streams, found {}",
            queues.len(),
            handles.len()
        );
        queues.iter().try_for_each(Queue::destroy)
    })
}

fn unknown_device(bench: &Bench) -> Verdict {
    const UNWRITTEN: u64 = 0xA5A5_A5A5_A5A5_A5A5;
    let (id, table) = (bench.unknown_device(), bench.asynchronous()?);
    let (mut queue, mut point) = (abi::Stream(UNWRITTEN), abi::Event(UNWRITTEN));
    must_refuse("stream_create", slot!(bench, table, stream_create(id, 0, &raw mut queue)))?;
    ensure!(
        queue.0 == UNWRITTEN,
        "expected `stream_create` to write nothing when it fails, found {:#x}",
        queue.0
    );
    must_refuse("event_create", slot!(bench, table, event_create(id, &raw mut point)))?;
    ensure!(
        point.0 == UNWRITTEN,
        "expected `event_create` to write nothing when it fails, found {:#x}",
        point.0
    );
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        must_refuse("stream_synchronize", slot!(bench, table, stream_synchronize(id, queue.handle)))?;
        must_refuse("stream_destroy", slot!(bench, table, stream_destroy(id, queue.handle)))?;
        queue.synchronize()?;
        queue.destroy()
    })
}

fn dead_streams(bench: &Bench) -> Verdict {
    let table = bench.asynchronous()?;
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        queue.destroy()?;
        for (what, handle) in [("was destroyed", queue.handle), ("was never made", abi::Stream(u64::MAX))] {
            let answers = [
                ("stream_synchronize", slot!(bench, table, stream_synchronize(device.id, handle))),
                ("stream_destroy", slot!(bench, table, stream_destroy(device.id, handle))),
            ];
            for (slot, answer) in answers {
                ensure!(answer.is_err(), "expected `{slot}` of a stream that {what} to fail, found success");
            }
        }
        Ok(())
    })
}

fn round_trips(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        Queue::needs_copies(device)?;
        for size in [1, 4097, (1 << 20) + 1] {
            let data = pattern(size as u64, size);
            let block = device.allocate(size + 3)?;
            let queue = Queue::create(device)?;
            queue.upload(&block, 3, data.clone())?;
            let arriving = queue.download(&block, 3, size)?;
            queue.synchronize()?;
            expect_bytes(format_args!("{size} bytes"), &data, &queue.arrived(&arriving))?;
            queue.destroy()?;
            block.give_back()?;
        }
        Ok(())
    })
}

/// Every round overwrites what the one before has copied on, so that any two that change places are seen.
fn in_order(bench: &Bench) -> Verdict {
    const ROUNDS: usize = 16;
    bench.on_each_device(|device| {
        Queue::needs_copies(device)?;
        let size = SIZE / ROUNDS;
        let (stage, all) = (device.allocate(size)?, device.allocate(SIZE)?);
        let queue = Queue::create(device)?;
        let rounds: Vec<Vec<u8>> = (0..ROUNDS as u64).map(|round| pattern(round + 20, size)).collect();
        for (round, data) in rounds.iter().enumerate() {
            queue.upload(&stage, 0, data.clone())?;
            queue.copy(&all, (round * size) as u64, &stage, 0, size as u64)?;
        }
        let arriving = queue.download(&all, 0, SIZE)?;
        queue.synchronize()?;
        let found = queue.arrived(&arriving);
        for (round, (expected, found)) in rounds.iter().zip(found.chunks(size)).enumerate() {
            expect_bytes(format_args!("what round {round} of {ROUNDS} copied on"), expected, found)?;
        }
        queue.destroy()?;
        stage.give_back()?;
        all.give_back()
    })
}

fn fills_in_order(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = pattern(9, SIZE);
        let block = device.allocate(SIZE)?;
        let queue = Queue::create(device)?;
        queue.upload(&block, 0, expected.clone())?;
        queue.fill(&block, 5, 0x11, SIZE as u64 - 10)?;
        queue.upload(&block, 100, pattern(10, 100))?;
        queue.synchronize()?;
        expected[5..SIZE - 5].fill(0x11);
        expected[100..200].copy_from_slice(&pattern(10, 100));
        expect_bytes("the block after a copy, a fill and a copy", &expected, &block.read_all()?)?;
        queue.destroy()?;
        block.give_back()
    })
}

/// Asks until the answer is yes.
pub(super) fn until_done(
    device: Device<'_>,
    what: &str,
    mut is_done: impl FnMut() -> Verdict<bool>,
) -> Verdict {
    let end = Instant::now() + device.bench.patience() / 2;
    while !is_done()? {
        ensure!(
            Instant::now() < end,
            "expected {what} to say 1 at last, found 0 for as long as the suite has patience"
        );
        std::thread::yield_now();
    }
    Ok(())
}

fn query(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate(SIZE)?;
        let queue = Queue::create(device)?;
        until_done(device, "`stream_query` of an empty stream", || queue.is_done())?;
        queue.upload(&block, 0, pattern(11, SIZE))?;
        until_done(device, "`stream_query`", || queue.is_done())?;
        expect_bytes("what was copied", &pattern(11, SIZE), &block.read_all()?)?;
        queue.upload(&block, 0, pattern(12, SIZE))?;
        queue.synchronize()?;
        ensure!(queue.is_done()?, "expected a stream to be done after `stream_synchronize`, found 0");
        queue.destroy()?;
        block.give_back()
    })
}

fn destroy(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.block_of(&vec![0; SIZE])?;
        let queue = Queue::create(device)?;
        queue.upload(&block, 0, pattern(13, SIZE))?;
        queue.destroy()?;
        expect_bytes("what the stream had still to do", &pattern(13, SIZE), &block.read_all()?)?;
        block.give_back()
    })
}

fn whole_device(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let blocks = [device.allocate(SIZE)?, device.allocate(SIZE)?];
        let queues = [Queue::create(device)?, Queue::create(device)?];
        for (seed, (block, queue)) in blocks.iter().zip(&queues).enumerate() {
            queue.upload(block, 0, pattern(seed as u64 + 14, SIZE))?;
        }
        device.synchronize()?;
        for (seed, block) in blocks.iter().enumerate() {
            expect_bytes(
                format_args!("stream {seed}"),
                &pattern(seed as u64 + 14, SIZE),
                &block.read_all()?,
            )?;
        }
        queues.iter().try_for_each(Queue::destroy)?;
        blocks.into_iter().try_for_each(crate::device::Block::give_back)
    })
}

fn allocate(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        let block = queue.allocate(SIZE)?;
        let data = pattern(16, SIZE);
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, SIZE)?;
        queue.synchronize()?;
        expect_bytes("a block taken in the stream", &data, &queue.arrived(&arriving))?;
        queue.destroy()?;
        block.give_back()
    })
}

fn deallocate(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let data = pattern(17, SIZE);
        let block = device.allocate(SIZE)?;
        let queue = Queue::create(device)?;
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, SIZE)?;
        queue.deallocate(block)?;
        queue.synchronize()?;
        expect_bytes("a block until it was given back", &data, &queue.arrived(&arriving))?;
        queue.destroy()
    })
}

fn between(bench: &Bench) -> Verdict {
    if bench.asynchronous()?.memory_copy_p2p_async.is_none() {
        return Err(Stop::empty("memory_copy_p2p_async"));
    }
    let devices = bench.devices()?;
    let [from, .., to] = devices.as_slice() else {
        return Err(Stop::unsupported("there is one device only"));
    };
    let (source, target) = (from.allocate(SIZE)?, to.allocate(SIZE)?);
    let queue = Queue::create(*from)?;
    queue.upload(&source, 0, pattern(18, SIZE))?;
    queue.copy_to_peer(&target, &source, SIZE as u64)?;
    queue.synchronize()?;
    expect_bytes(format_args!("a copy from {from} to {to}"), &pattern(18, SIZE), &target.read_all()?)?;
    queue.destroy()?;
    source.give_back()?;
    target.give_back()
}

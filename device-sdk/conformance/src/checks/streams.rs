//! Checks of streams: their operations and the order of these.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use std::time::Instant;

use oarlock_abi as abi;

use super::ConformanceCheck;
use super::errors::expect_refusal;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, expect_bytes, slot, test_pattern};
use crate::device::DeviceUnderTest;
use crate::stream::TestStream;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::async_check(
        "R-1",
        "streams are written on success, and live ones are different",
        streams_are_distinct,
    ),
    ConformanceCheck::async_check(
        "D-2",
        "a device that is not in the list gets no stream and no event, and nothing is written",
        unknown_device_gets_no_stream,
    ),
    ConformanceCheck::async_check(
        "A-3",
        "a stream that was destroyed or never made is an error",
        dead_streams_are_refused,
    ),
    ConformanceCheck::async_check(
        "M-5",
        "what was copied in a stream is there after synchronizing it",
        async_copies_round_trip,
    ),
    ConformanceCheck::async_check(
        "A-1",
        "work in one stream happens in the order it was put there",
        stream_keeps_order,
    ),
    ConformanceCheck::async_check("A-1", "a fill in a stream has its place between copies", fills_keep_order),
    ConformanceCheck::async_check(
        "stream_query",
        "a stream that is asked again and again says at last that it is done",
        stream_query_completes,
    ),
    ConformanceCheck::async_check(
        "stream_destroy",
        "a stream is freed after its work is done",
        destroyed_stream_finishes,
    ),
    ConformanceCheck::async_check(
        "device_synchronize",
        "synchronizing a device waits for all of its streams",
        device_synchronize_waits,
    ),
    ConformanceCheck::async_check(
        "memory_allocate_async",
        "memory taken in a stream can be used in it",
        async_allocation_is_usable,
    ),
    ConformanceCheck::async_check(
        "memory_deallocate_async",
        "memory given back in a stream serves until then",
        async_deallocation_is_deferred,
    ),
    ConformanceCheck::async_check(
        "memory_copy_p2p_async",
        "a copy in a stream transfers bytes to another device",
        async_peer_copy,
    ),
];

/// Large enough that a missing wait for a copy is noticed.
pub(super) const COPY_SIZE: usize = 1 << 18;

fn streams_are_distinct(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let queues: Vec<TestStream<'_>> =
            (0..8).map(|_| TestStream::create_stream(device)).collect::<Verdict<_>>()?;
        let mut handles: Vec<u64> = queues.iter().map(|queue| queue.handle.0).collect();
        handles.sort_unstable();
        handles.dedup();
        ensure!(
            handles.len() == queues.len(),
            "expected {} different streams, found {}",
            queues.len(),
            handles.len()
        );
        queues.iter().try_for_each(TestStream::destroy)
    })
}

fn unknown_device_gets_no_stream(bench: &TestBench) -> Verdict {
    const UNWRITTEN: u64 = 0xA5A5_A5A5_A5A5_A5A5;
    let (id, table) = (bench.unknown_device(), bench.async_table()?);
    let (mut queue, mut point) = (abi::Stream(UNWRITTEN), abi::Event(UNWRITTEN));
    expect_refusal("stream_create", slot!(bench, table, stream_create(id, 0, &raw mut queue)))?;
    ensure!(
        queue.0 == UNWRITTEN,
        "expected `stream_create` to write nothing when it fails, found {:#x}",
        queue.0
    );
    expect_refusal("event_create", slot!(bench, table, event_create(id, &raw mut point)))?;
    ensure!(
        point.0 == UNWRITTEN,
        "expected `event_create` to write nothing when it fails, found {:#x}",
        point.0
    );
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
        expect_refusal("stream_synchronize", slot!(bench, table, stream_synchronize(id, queue.handle)))?;
        expect_refusal("stream_destroy", slot!(bench, table, stream_destroy(id, queue.handle)))?;
        queue.synchronize()?;
        queue.destroy()
    })
}

fn dead_streams_are_refused(bench: &TestBench) -> Verdict {
    let table = bench.async_table()?;
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
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

fn async_copies_round_trip(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        TestStream::require_async_copies(device)?;
        for size in [1, 4097, (1 << 20) + 1] {
            let data = test_pattern(size as u64, size);
            let block = device.allocate(size + 3)?;
            let queue = TestStream::create_stream(device)?;
            queue.upload(&block, 3, data.clone())?;
            let arriving = queue.download(&block, 3, size)?;
            queue.synchronize()?;
            expect_bytes(format_args!("{size} bytes"), &data, &queue.take_download(&arriving))?;
            queue.destroy()?;
            block.deallocate()?;
        }
        Ok(())
    })
}

/// Every round overwrites what the one before copied, so any two operations out of order are noticed.
fn stream_keeps_order(bench: &TestBench) -> Verdict {
    const ROUNDS: usize = 16;
    bench.on_each_device(|device| {
        TestStream::require_async_copies(device)?;
        let size = COPY_SIZE / ROUNDS;
        let (stage, all) = (device.allocate(size)?, device.allocate(COPY_SIZE)?);
        let queue = TestStream::create_stream(device)?;
        let rounds: Vec<Vec<u8>> = (0..ROUNDS as u64).map(|round| test_pattern(round + 20, size)).collect();
        for (round, data) in rounds.iter().enumerate() {
            queue.upload(&stage, 0, data.clone())?;
            queue.copy_within(&all, (round * size) as u64, &stage, 0, size as u64)?;
        }
        let arriving = queue.download(&all, 0, COPY_SIZE)?;
        queue.synchronize()?;
        let found = queue.take_download(&arriving);
        for (round, (expected, found)) in rounds.iter().zip(found.chunks(size)).enumerate() {
            expect_bytes(format_args!("what round {round} of {ROUNDS} copied on"), expected, found)?;
        }
        queue.destroy()?;
        stage.deallocate()?;
        all.deallocate()
    })
}

fn fills_keep_order(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = test_pattern(9, COPY_SIZE);
        let block = device.allocate(COPY_SIZE)?;
        let queue = TestStream::create_stream(device)?;
        queue.upload(&block, 0, expected.clone())?;
        queue.fill(&block, 5, 0x11, COPY_SIZE as u64 - 10)?;
        queue.upload(&block, 100, test_pattern(10, 100))?;
        queue.synchronize()?;
        expected[5..COPY_SIZE - 5].fill(0x11);
        expected[100..200].copy_from_slice(&test_pattern(10, 100));
        expect_bytes("the block after a copy, a fill and a copy", &expected, &block.read_all()?)?;
        queue.destroy()?;
        block.deallocate()
    })
}

/// Polls until the device reports completion.
pub(super) fn poll_until_done(
    device: DeviceUnderTest<'_>,
    what: &str,
    mut is_done: impl FnMut() -> Verdict<bool>,
) -> Verdict {
    let end = Instant::now() + device.bench.wait_limit() / 2;
    while !is_done()? {
        ensure!(
            Instant::now() < end,
            "expected {what} to return 1 eventually, found 0 until the timeout of the suite"
        );
        std::thread::yield_now();
    }
    Ok(())
}

fn stream_query_completes(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate(COPY_SIZE)?;
        let queue = TestStream::create_stream(device)?;
        poll_until_done(device, "`stream_query` of an empty stream", || queue.is_done())?;
        queue.upload(&block, 0, test_pattern(11, COPY_SIZE))?;
        poll_until_done(device, "`stream_query`", || queue.is_done())?;
        expect_bytes("what was copied", &test_pattern(11, COPY_SIZE), &block.read_all()?)?;
        queue.upload(&block, 0, test_pattern(12, COPY_SIZE))?;
        queue.synchronize()?;
        ensure!(queue.is_done()?, "expected a stream to be done after `stream_synchronize`, found 0");
        queue.destroy()?;
        block.deallocate()
    })
}

fn destroyed_stream_finishes(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate_with(&vec![0; COPY_SIZE])?;
        let queue = TestStream::create_stream(device)?;
        queue.upload(&block, 0, test_pattern(13, COPY_SIZE))?;
        queue.destroy()?;
        expect_bytes("what the stream had still to do", &test_pattern(13, COPY_SIZE), &block.read_all()?)?;
        block.deallocate()
    })
}

fn device_synchronize_waits(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let blocks = [device.allocate(COPY_SIZE)?, device.allocate(COPY_SIZE)?];
        let queues = [TestStream::create_stream(device)?, TestStream::create_stream(device)?];
        for (seed, (block, queue)) in blocks.iter().zip(&queues).enumerate() {
            queue.upload(block, 0, test_pattern(seed as u64 + 14, COPY_SIZE))?;
        }
        device.synchronize()?;
        for (seed, block) in blocks.iter().enumerate() {
            expect_bytes(
                format_args!("stream {seed}"),
                &test_pattern(seed as u64 + 14, COPY_SIZE),
                &block.read_all()?,
            )?;
        }
        queues.iter().try_for_each(TestStream::destroy)?;
        blocks.into_iter().try_for_each(crate::device::TestBlock::deallocate)
    })
}

fn async_allocation_is_usable(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
        let block = queue.allocate(COPY_SIZE)?;
        let data = test_pattern(16, COPY_SIZE);
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, COPY_SIZE)?;
        queue.synchronize()?;
        expect_bytes("a block taken in the stream", &data, &queue.take_download(&arriving))?;
        queue.destroy()?;
        block.deallocate()
    })
}

fn async_deallocation_is_deferred(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let data = test_pattern(17, COPY_SIZE);
        let block = device.allocate(COPY_SIZE)?;
        let queue = TestStream::create_stream(device)?;
        queue.upload(&block, 0, data.clone())?;
        let arriving = queue.download(&block, 0, COPY_SIZE)?;
        queue.deallocate(block)?;
        queue.synchronize()?;
        expect_bytes("a block until it was given back", &data, &queue.take_download(&arriving))?;
        queue.destroy()
    })
}

fn async_peer_copy(bench: &TestBench) -> Verdict {
    if bench.async_table()?.memory_copy_p2p_async.is_none() {
        return Err(CheckAbort::empty_slot("memory_copy_p2p_async"));
    }
    let devices = bench.devices()?;
    let [from, .., to] = devices.as_slice() else {
        return Err(CheckAbort::unsupported("there is one device only"));
    };
    let (source, target) = (from.allocate(COPY_SIZE)?, to.allocate(COPY_SIZE)?);
    let queue = TestStream::create_stream(*from)?;
    queue.upload(&source, 0, test_pattern(18, COPY_SIZE))?;
    queue.copy_to_peer(&target, &source, COPY_SIZE as u64)?;
    queue.synchronize()?;
    expect_bytes(
        format_args!("a copy from {from} to {to}"),
        &test_pattern(18, COPY_SIZE),
        &target.read_all()?,
    )?;
    queue.destroy()?;
    source.deallocate()?;
    target.deallocate()
}

//! Checks of events: points in streams that other streams and the host wait for.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use oarlock_abi as abi;

use super::ConformanceCheck;
use super::streams::{COPY_SIZE, poll_until_done};
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, expect_bytes, slot, test_pattern};
use crate::stream::{TestEvent, TestStream};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::async_check(
        "R-1",
        "events are written on success, and live ones are different",
        events_are_distinct,
    ),
    ConformanceCheck::async_check(
        "A-3",
        "an event that was destroyed or never made is an error",
        dead_events_are_refused,
    ),
    ConformanceCheck::async_check(
        "stream_wait_event",
        "an event that was never recorded has happened",
        unrecorded_event_has_happened,
    ),
    ConformanceCheck::async_check(
        "event_record",
        "an event has happened when the work before it is done",
        recorded_event_happens,
    ),
    ConformanceCheck::async_check(
        "stream_wait_event",
        "a stream that waits for an event works after the other stream did",
        event_orders_streams,
    ),
    ConformanceCheck::async_check(
        "event_destroy",
        "work that waits for an event goes on waiting when it is destroyed",
        destroyed_event_still_waits,
    ),
    ConformanceCheck::async_check(
        "event_elapsed",
        "the time between two events that have happened is known",
        elapsed_time_is_plausible,
    ),
];

fn events_are_distinct(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let events: Vec<TestEvent<'_>> =
            (0..8).map(|_| TestEvent::create_event(device)).collect::<Verdict<_>>()?;
        let mut handles: Vec<u64> = events.iter().map(|event| event.handle.0).collect();
        handles.sort_unstable();
        handles.dedup();
        ensure!(
            handles.len() == events.len(),
            "expected {} different events, found {}",
            events.len(),
            handles.len()
        );
        events.iter().try_for_each(TestEvent::destroy)
    })
}

fn dead_events_are_refused(bench: &TestBench) -> Verdict {
    let table = bench.async_table()?;
    bench.on_each_device(|device| {
        let (queue, event) = (TestStream::create_stream(device)?, TestEvent::create_event(device)?);
        event.destroy()?;
        for (what, handle) in [("was destroyed", event.handle), ("was never made", abi::Event(u64::MAX))] {
            let answers = [
                ("event_synchronize", slot!(bench, table, event_synchronize(device.id, handle))),
                ("event_record", slot!(bench, table, event_record(device.id, queue.handle, handle))),
                ("event_destroy", slot!(bench, table, event_destroy(device.id, handle))),
            ];
            for (slot, answer) in answers {
                ensure!(answer.is_err(), "expected `{slot}` of an event that {what} to fail, found success");
            }
        }
        queue.destroy()
    })
}

fn unrecorded_event_has_happened(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let (queue, event) = (TestStream::create_stream(device)?, TestEvent::create_event(device)?);
        event.synchronize()?;
        queue.wait_for_event(&event)?;
        queue.synchronize()?;
        if bench.async_table()?.event_query.is_some() {
            ensure!(
                event.has_happened()?,
                "expected `event_query` to return 1 for an event that was never recorded, found 0"
            );
        }
        event.destroy()?;
        queue.destroy()
    })
}

fn recorded_event_happens(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate(COPY_SIZE)?;
        let (queue, event) = (TestStream::create_stream(device)?, TestEvent::create_event(device)?);
        queue.upload(&block, 0, test_pattern(30, COPY_SIZE))?;
        queue.record_event(&event)?;
        event.synchronize()?;
        expect_bytes("what stands before the event", &test_pattern(30, COPY_SIZE), &block.read_all()?)?;
        if bench.async_table()?.event_query.is_some() {
            ensure!(
                event.has_happened()?,
                "expected `event_query` to return 1 after `event_synchronize`, found 0"
            );
            queue.upload(&block, 0, test_pattern(31, COPY_SIZE))?;
            queue.record_event(&event)?;
            poll_until_done(device, "`event_query`", || event.has_happened())?;
            expect_bytes(
                "what stands before the second record",
                &test_pattern(31, COPY_SIZE),
                &block.read_all()?,
            )?;
        }
        event.destroy()?;
        queue.destroy()?;
        block.deallocate()
    })
}

fn event_orders_streams(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let (source, target) =
            (device.allocate_with(&vec![0; COPY_SIZE])?, device.allocate_with(&vec![0; COPY_SIZE])?);
        let (first, second, event) = (
            TestStream::create_stream(device)?,
            TestStream::create_stream(device)?,
            TestEvent::create_event(device)?,
        );
        for round in 0..4 {
            let data = test_pattern(40 + round, COPY_SIZE);
            first.upload(&source, 0, data.clone())?;
            first.record_event(&event)?;
            second.wait_for_event(&event)?;
            second.copy_within(&target, 0, &source, 0, COPY_SIZE as u64)?;
            second.synchronize()?;
            expect_bytes(format_args!("round {round}"), &data, &target.read_all()?)?;
        }
        event.destroy()?;
        second.destroy()?;
        first.destroy()?;
        source.deallocate()?;
        target.deallocate()
    })
}

fn destroyed_event_still_waits(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let (source, target) =
            (device.allocate_with(&vec![0; COPY_SIZE])?, device.allocate_with(&vec![0; COPY_SIZE])?);
        let (first, second, event) = (
            TestStream::create_stream(device)?,
            TestStream::create_stream(device)?,
            TestEvent::create_event(device)?,
        );
        let data = test_pattern(50, COPY_SIZE);
        first.upload(&source, 0, data.clone())?;
        first.record_event(&event)?;
        second.wait_for_event(&event)?;
        event.destroy()?;
        second.copy_within(&target, 0, &source, 0, COPY_SIZE as u64)?;
        second.synchronize()?;
        expect_bytes("what the waiting stream copied", &data, &target.read_all()?)?;
        second.destroy()?;
        first.destroy()?;
        source.deallocate()?;
        target.deallocate()
    })
}

fn elapsed_time_is_plausible(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        if bench.async_table()?.event_elapsed.is_none() {
            return Err(CheckAbort::empty_slot("event_elapsed"));
        }
        let block = device.allocate(COPY_SIZE)?;
        let (queue, start, end) = (
            TestStream::create_stream(device)?,
            TestEvent::create_event(device)?,
            TestEvent::create_event(device)?,
        );
        queue.record_event(&start)?;
        queue.upload(&block, 0, test_pattern(60, COPY_SIZE))?;
        queue.record_event(&end)?;
        queue.synchronize()?;
        let day = 24 * 3600 * 1_000_000_000;
        let elapsed = end.nanoseconds_since(&start)?;
        ensure!(
            elapsed < day,
            "expected the nanoseconds of one copy, found {elapsed}, which is more than a day"
        );
        end.destroy()?;
        start.destroy()?;
        queue.destroy()?;
        block.deallocate()
    })
}

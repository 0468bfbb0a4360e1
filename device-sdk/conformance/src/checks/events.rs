//! Events: points in streams that others wait for.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use oarlock_abi as abi;

use super::Check;
use super::asynchronous::{SIZE, until_done};
use crate::bench::{Bench, Stop, Verdict, ensure, expect_bytes, pattern, slot};
use crate::queue::{Event, Queue};

pub(super) const CHECKS: &[Check] = &[
    Check::asynchronous(
        "R-1",
        "events are written on success, and live ones are different",
        different_events,
    ),
    Check::asynchronous("A-3", "an event that was destroyed or never made is an error", dead_events),
    Check::asynchronous("stream_wait_event", "an event that was never recorded has happened", never_recorded),
    Check::asynchronous("event_record", "an event has happened when the work before it is done", recorded),
    Check::asynchronous(
        "stream_wait_event",
        "a stream that waits for an event works after the other stream did",
        across,
    ),
    Check::asynchronous(
        "event_destroy",
        "work that waits for an event goes on waiting when it is destroyed",
        destroyed,
    ),
    Check::asynchronous("event_elapsed", "the time between two events that have happened is known", elapsed),
];

fn different_events(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let events: Vec<Event<'_>> = (0..8).map(|_| Event::create(device)).collect::<Verdict<_>>()?;
        let mut handles: Vec<u64> = events.iter().map(|event| event.handle.0).collect();
        handles.sort_unstable();
        handles.dedup();
        ensure!(
            handles.len() == events.len(),
            "expected {} different events, found {}",
            events.len(),
            handles.len()
        );
        events.iter().try_for_each(Event::destroy)
    })
}

fn dead_events(bench: &Bench) -> Verdict {
    let table = bench.asynchronous()?;
    bench.on_each_device(|device| {
        let (queue, event) = (Queue::create(device)?, Event::create(device)?);
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

fn never_recorded(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let (queue, event) = (Queue::create(device)?, Event::create(device)?);
        event.synchronize()?;
        queue.wait_for(&event)?;
        queue.synchronize()?;
        if bench.asynchronous()?.event_query.is_some() {
            ensure!(
                event.has_happened()?,
                "expected `event_query` to say 1 of an event never recorded, found 0"
            );
        }
        event.destroy()?;
        queue.destroy()
    })
}

fn recorded(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate(SIZE)?;
        let (queue, event) = (Queue::create(device)?, Event::create(device)?);
        queue.upload(&block, 0, pattern(30, SIZE))?;
        queue.record(&event)?;
        event.synchronize()?;
        expect_bytes("what stands before the event", &pattern(30, SIZE), &block.read_all()?)?;
        if bench.asynchronous()?.event_query.is_some() {
            ensure!(
                event.has_happened()?,
                "expected `event_query` to say 1 after `event_synchronize`, found 0"
            );
            queue.upload(&block, 0, pattern(31, SIZE))?;
            queue.record(&event)?;
            until_done(device, "`event_query`", || event.has_happened())?;
            expect_bytes("what stands before the second record", &pattern(31, SIZE), &block.read_all()?)?;
        }
        event.destroy()?;
        queue.destroy()?;
        block.give_back()
    })
}

fn across(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let (source, target) = (device.block_of(&vec![0; SIZE])?, device.block_of(&vec![0; SIZE])?);
        let (first, second, event) = (Queue::create(device)?, Queue::create(device)?, Event::create(device)?);
        for round in 0..4 {
            let data = pattern(40 + round, SIZE);
            first.upload(&source, 0, data.clone())?;
            first.record(&event)?;
            second.wait_for(&event)?;
            second.copy(&target, 0, &source, 0, SIZE as u64)?;
            second.synchronize()?;
            expect_bytes(format_args!("round {round}"), &data, &target.read_all()?)?;
        }
        event.destroy()?;
        second.destroy()?;
        first.destroy()?;
        source.give_back()?;
        target.give_back()
    })
}

fn destroyed(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let (source, target) = (device.block_of(&vec![0; SIZE])?, device.block_of(&vec![0; SIZE])?);
        let (first, second, event) = (Queue::create(device)?, Queue::create(device)?, Event::create(device)?);
        let data = pattern(50, SIZE);
        first.upload(&source, 0, data.clone())?;
        first.record(&event)?;
        second.wait_for(&event)?;
        event.destroy()?;
        second.copy(&target, 0, &source, 0, SIZE as u64)?;
        second.synchronize()?;
        expect_bytes("what the waiting stream copied", &data, &target.read_all()?)?;
        second.destroy()?;
        first.destroy()?;
        source.give_back()?;
        target.give_back()
    })
}

fn elapsed(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        if bench.asynchronous()?.event_elapsed.is_none() {
            return Err(Stop::empty("event_elapsed"));
        }
        let block = device.allocate(SIZE)?;
        let (queue, start, end) = (Queue::create(device)?, Event::create(device)?, Event::create(device)?);
        queue.record(&start)?;
        queue.upload(&block, 0, pattern(60, SIZE))?;
        queue.record(&end)?;
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
        block.give_back()
    })
}

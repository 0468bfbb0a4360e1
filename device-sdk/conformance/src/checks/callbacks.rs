//! Functions that are called when a stream gets there.

use super::Check;
use super::asynchronous::SIZE;
use crate::bench::{Bench, Verdict, ensure, expect_bytes, pattern};
use crate::callbacks::{Reached, calls, hold, new_number, reached, release, wait_for_call};
use crate::queue::Queue;

pub(super) const CHECKS: &[Check] = &[
    Check::asynchronous(
        "T-2",
        "a callback is called once, on a thread of the plugin, with its device and stream",
        once,
    ),
    Check::asynchronous("T-2", "a function that takes a callback returns without waiting for it", held),
    Check::asynchronous("T-2", "a callback comes although nobody waits for the stream", unasked),
    Check::asynchronous("A-1", "a callback comes after the work before it", in_order),
];

/// The one call that came for a number; fails unless it is one, and the right one.
fn the_call(queue: &Queue<'_>, number: usize) -> Verdict<Reached> {
    let device = queue.device();
    let is_called = wait_for_call(number, device.bench.patience() / 2);
    ensure!(is_called, "expected the callback to be called, found it was not");
    let calls = calls(number);
    ensure!(calls.len() == 1, "expected one call, found {}", calls.len());
    let call = calls[0].clone();
    device.bench.read("stream_add_callback", call.failure)?;
    ensure!(call.device == device.id, "expected {device} in the callback, found device {}", call.device);
    ensure!(
        call.stream == queue.handle,
        "expected stream {} in the callback, found {}",
        queue.handle.0,
        call.stream.0
    );
    ensure!(
        call.thread != std::thread::current().id(),
        "expected the callback on a thread of the plugin, found it on the thread that added it"
    );
    Ok(call)
}

fn once(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        let numbers = [new_number(), new_number(), new_number()];
        for number in numbers {
            queue.add_callback(reached, number)?;
        }
        queue.synchronize()?;
        for number in numbers {
            the_call(&queue, number)?;
        }
        queue.destroy()?;
        device.synchronize()?;
        for number in numbers {
            let count = calls(number).len();
            ensure!(count == 1, "expected one call until the stream was destroyed, found {count}");
        }
        Ok(())
    })
}

fn held(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        let number = new_number();
        hold(number);
        queue.add_callback(reached, number)?;
        release(number);
        let call = the_call(&queue, number)?;
        ensure!(!call.was_held_too_long, "expected `stream_add_callback` to return first, found it waiting");
        queue.synchronize()?;
        queue.destroy()
    })
}

fn unasked(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = Queue::create(device)?;
        let number = new_number();
        queue.add_callback(reached, number)?;
        the_call(&queue, number)?;
        queue.synchronize()?;
        queue.destroy()
    })
}

fn in_order(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.block_of(&vec![0; SIZE])?;
        let queue = Queue::create(device)?;
        let number = new_number();
        queue.upload(&block, 0, pattern(70, SIZE))?;
        queue.add_callback(reached, number)?;
        the_call(&queue, number)?;
        expect_bytes("what stands before the callback", &pattern(70, SIZE), &block.read_all()?)?;
        queue.synchronize()?;
        queue.destroy()?;
        block.give_back()
    })
}

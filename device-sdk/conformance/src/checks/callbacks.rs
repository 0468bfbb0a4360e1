//! Checks of callbacks: functions that run when a stream reaches a point.

use super::ConformanceCheck;
use super::streams::COPY_SIZE;
use crate::bench::{TestBench, Verdict, ensure, expect_bytes, test_pattern};
use crate::callbacks::{
    CallbackInvocation, hold_callbacks, invocations_for, new_callback_number, on_stream_reached,
    release_callbacks, wait_for_call,
};
use crate::stream::TestStream;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::async_check(
        "T-2",
        "a callback is called once, on a thread of the plugin, with its device and stream",
        callback_runs_once,
    ),
    ConformanceCheck::async_check(
        "T-2",
        "a function that accepts a callback returns without waiting for it",
        held_callback_blocks_stream,
    ),
    ConformanceCheck::async_check(
        "T-2",
        "a callback runs even if nobody waits for the stream",
        no_callback_unasked,
    ),
    ConformanceCheck::async_check("A-1", "a callback comes after the work before it", callbacks_keep_order),
];

/// The only call for a number; fails if there is none, more than one, or a wrong one.
fn only_invocation(queue: &TestStream<'_>, number: usize) -> Verdict<CallbackInvocation> {
    let device = queue.device();
    let is_called = wait_for_call(number, device.bench.wait_limit() / 2);
    ensure!(is_called, "expected the callback to be called, found it was not");
    let calls = invocations_for(number);
    ensure!(calls.len() == 1, "expected one call, found {}", calls.len());
    let call = calls[0].clone();
    device.bench.check_callback_error("stream_add_callback", call.failure)?;
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

fn callback_runs_once(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
        let numbers = [new_callback_number(), new_callback_number(), new_callback_number()];
        for number in numbers {
            queue.add_callback(on_stream_reached, number)?;
        }
        queue.synchronize()?;
        for number in numbers {
            only_invocation(&queue, number)?;
        }
        queue.destroy()?;
        device.synchronize()?;
        for number in numbers {
            let count = invocations_for(number).len();
            ensure!(count == 1, "expected one call until the stream was destroyed, found {count}");
        }
        Ok(())
    })
}

fn held_callback_blocks_stream(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
        let number = new_callback_number();
        hold_callbacks(number);
        queue.add_callback(on_stream_reached, number)?;
        release_callbacks(number);
        let call = only_invocation(&queue, number)?;
        ensure!(!call.was_held_too_long, "expected `stream_add_callback` to return first, found it waiting");
        queue.synchronize()?;
        queue.destroy()
    })
}

fn no_callback_unasked(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let queue = TestStream::create_stream(device)?;
        let number = new_callback_number();
        queue.add_callback(on_stream_reached, number)?;
        only_invocation(&queue, number)?;
        queue.synchronize()?;
        queue.destroy()
    })
}

fn callbacks_keep_order(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let block = device.allocate_with(&vec![0; COPY_SIZE])?;
        let queue = TestStream::create_stream(device)?;
        let number = new_callback_number();
        queue.upload(&block, 0, test_pattern(70, COPY_SIZE))?;
        queue.add_callback(on_stream_reached, number)?;
        only_invocation(&queue, number)?;
        expect_bytes("what stands before the callback", &test_pattern(70, COPY_SIZE), &block.read_all()?)?;
        queue.synchronize()?;
        queue.destroy()?;
        block.deallocate()
    })
}

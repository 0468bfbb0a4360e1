//! Checks of kernels at work: what they compute, what they write, in streams and on threads.

use oarlock_abi as abi;

use super::ConformanceCheck;
use super::kernels::require_kernels;
use super::threads::run_on_threads;
use crate::bench::{CheckAbort, TestBench, Verdict};
use crate::numbers::compare_all_kernels;
use crate::stream::TestStream;
use crate::trial::{CallLayout, KernelTrial, kernel_trials};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::kernel_check("run", "every kernel computes what its op says", compare_all_kernels),
    ConformanceCheck::kernel_check(
        "K-3",
        "a kernel writes its outputs and nothing else",
        writes_only_outputs,
    ),
    ConformanceCheck::kernel_check(
        "K-7",
        "a kernel in a stream has its place between copies",
        runs_in_stream,
    ),
    ConformanceCheck::kernel_check("K-4", "one state runs on several threads at once", runs_on_many_threads),
];

/// Checks every kernel with each dtype on each device, in the first call that it accepts. Fails at the first failure; unsupported
/// if no kernel takes a call.
fn on_each_trial<'a>(bench: &'a TestBench, check: impl Fn(&KernelTrial<'a>) -> Verdict) -> Verdict {
    let mut reason = "none of the kernels is for an op that the suite has a reference for".to_owned();
    let mut is_any_tried = false;
    for device in bench.devices()? {
        let kernels = require_kernels(bench)?;
        for kernel in kernels.into_iter().filter(|kernel| kernel.runs_on(&bench.subject().device_type)) {
            for trial in kernel_trials(kernel, device)? {
                let (op, dtype) = (kernel.op_name(), trial.dtype);
                let exceptions = &bench.exceptions;
                if exceptions.expects_kernel_failure(&op, dtype)
                    || exceptions.unsupported_kernel(&op, dtype).is_some()
                {
                    continue;
                }
                match check(&trial) {
                    Ok(()) => is_any_tried = true,
                    Err(CheckAbort::Unsupported(why)) => reason = format!("{trial}: {why}"),
                    Err(failed) => return Err(failed.at_location(&trial)),
                }
            }
        }
    }
    if is_any_tried { Ok(()) } else { Err(CheckAbort::unsupported(reason)) }
}

fn writes_only_outputs(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        let case = trial.first_accepted()?;
        let operands = trial.make_operands(&case, CallLayout::Contiguous)?;
        let state = trial.prepare_call(&operands)?;
        operands.with_trial_call(trial, abi::Stream(0), |call| state.run(call))?;
        operands.expect_rest_untouched(trial)
    })
}

fn runs_in_stream(bench: &TestBench) -> Verdict {
    bench.async_table()?;
    on_each_trial(bench, |trial| {
        let case = trial.first_accepted()?;
        let operands = trial.make_operands(&case, CallLayout::Contiguous)?;
        let state = trial.prepare_call(&operands)?;
        let (Some((block, offset, elements)), Some((output, start, size))) =
            (operands.first_input(trial), operands.first_output())
        else {
            return Err(CheckAbort::unsupported("its operands are not in device memory"));
        };
        block.write_bytes(offset, &vec![0; elements.len()])?;
        let queue = TestStream::create_stream(trial.device)?;
        queue.upload(block, offset, elements)?;
        operands.with_trial_call(trial, queue.handle, |call| state.run(call))?;
        let arriving = queue.download(output, start, size)?;
        queue.synchronize()?;
        operands.compare_first(trial, &queue.take_download(&arriving))?;
        queue.destroy()
    })
}

fn runs_on_many_threads(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        let case = trial.first_accepted()?;
        let first = trial.make_operands(&case, CallLayout::Contiguous)?;
        let state = trial.prepare_call(&first)?;
        run_on_threads(|number| {
            for _ in 0..2 {
                let operands = trial.make_operands(&case, CallLayout::Contiguous)?;
                operands.with_trial_call(trial, abi::Stream(0), |call| state.run(call))?;
                operands
                    .compare_outputs(trial)
                    .map_err(|stop| stop.at_location(format_args!("thread {number}")))?;
            }
            Ok(())
        })?;
        first.expect_outputs_blank()
    })
}

//! Checks of what the whole run left behind. They inspect the effects of all other checks, so they run last.

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, lock_unpoisoned};
use crate::snapshot::RunSnapshot;

/// Descriptors that a plugin may keep open after the run, such as those of a driver that is opened on the first call.
const MAX_NEW_DESCRIPTORS: usize = 64;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::plugin_check(
        "R-5",
        "every error of the run has a code of the contract and says what is wrong",
        errors_are_well_formed,
    ),
    ConformanceCheck::plugin_check(
        "R-3",
        "the process is as it was: signals, timers, umask, directory, limits, locale, variables, streams",
        process_is_untouched,
    ),
    ConformanceCheck::plugin_check(
        "run",
        "neither loading nor a call changes how floats are rounded and flushed",
        float_mode_is_kept,
    ),
    ConformanceCheck::plugin_check("run", "descriptors do not pile up", descriptors_are_closed),
    ConformanceCheck::kernel_check(
        "S-6",
        "the records of kernels read as they did at first",
        records_are_unchanged,
    ),
];

fn errors_are_well_formed(bench: &TestBench) -> Verdict {
    let errors = bench.recorded_errors();
    if errors.is_empty() {
        return Err(CheckAbort::unsupported("no call of the run failed"));
    }
    for error in errors {
        let (slot, text) = (error.slot, &error.text);
        if let Some(breach) = &text.breach {
            return Err(CheckAbort::failed(format!("the error of `{slot}`: {breach}")));
        }
        ensure!(
            text.code.name().is_some(),
            "expected a code of the contract in the error of `{slot}`, found {}",
            text.code.0
        );
        ensure!(
            !text.message.trim().is_empty(),
            "expected the error of `{slot}` to have a message, found none"
        );
    }
    Ok(())
}

fn process_is_untouched(bench: &TestBench) -> Verdict {
    let now = RunSnapshot::capture(bench.subject()).process;
    let before = bench.process_before.as_ref().unwrap_or(&bench.at_first.process);
    match before.changes(&now).as_slice() {
        [] => Ok(()),
        changes => Err(CheckAbort::failed(changes.join("; "))),
    }
}

fn float_mode_is_kept(bench: &TestBench) -> Verdict {
    if let Some((before, now)) = bench.subject().mode_change {
        return Err(CheckAbort::failed(format!(
            "expected the mode {before} after the plugin was loaded, found {now}; link it without `-ffast-math`"
        )));
    }
    match *lock_unpoisoned(&bench.mode_changed_by) {
        Some((slot, before, now)) => {
            Err(CheckAbort::failed(format!("expected `{slot}` to leave the mode {before}, found {now}")))
        }
        None => Ok(()),
    }
}

fn descriptors_are_closed(bench: &TestBench) -> Verdict {
    let now = RunSnapshot::capture(bench.subject()).descriptors;
    let (Some(before), Some(now)) = (bench.at_first.descriptors, now) else {
        return Err(CheckAbort::unsupported("this system does not list the open descriptors"));
    };
    ensure!(
        now <= before + MAX_NEW_DESCRIPTORS,
        "expected at most {MAX_NEW_DESCRIPTORS} descriptors more than the {before} at the start, found {now}"
    );
    Ok(())
}

fn records_are_unchanged(bench: &TestBench) -> Verdict {
    super::kernels::require_kernels(bench)?;
    let now = RunSnapshot::capture(bench.subject()).kernels;
    let changed = bench.at_first.kernels.iter().zip(&now).find(|(before, now)| before != now);
    match changed {
        Some((before, now)) => {
            Err(CheckAbort::failed(format!("expected the record `{before}`, found `{now}`")))
        }
        None => Ok(()),
    }
}

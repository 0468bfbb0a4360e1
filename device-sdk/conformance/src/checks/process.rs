//! Checks of what the whole run left behind. They inspect the effects of all other checks, so they run last.

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure};
use crate::snapshot::ProcessSnapshot;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::plugin_check(
        "R-5",
        "every error of the run has a code of the contract and says what is wrong",
        errors_are_well_formed,
    ),
    ConformanceCheck::plugin_check(
        "R-3",
        "the process catches and ignores the signals that it did before",
        signals_are_untouched,
    ),
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

fn signals_are_untouched(bench: &TestBench) -> Verdict {
    let now = ProcessSnapshot::capture(bench.subject()).signals;
    let (Some(before), Some(now)) = (&bench.at_first.signals, now) else {
        return Err(CheckAbort::unsupported("this system does not reveal which signals a process catches"));
    };
    ensure!(*before == now, "expected signals {}, found {}", before.join(", "), now.join(", "));
    Ok(())
}

fn records_are_unchanged(bench: &TestBench) -> Verdict {
    super::kernels::require_kernels(bench)?;
    let now = ProcessSnapshot::capture(bench.subject()).kernels;
    let changed = bench.at_first.kernels.iter().zip(&now).find(|(before, now)| before != now);
    match changed {
        Some((before, now)) => {
            Err(CheckAbort::failed(format!("expected the record `{before}`, found `{now}`")))
        }
        None => Ok(()),
    }
}

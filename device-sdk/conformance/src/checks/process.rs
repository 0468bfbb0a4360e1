//! What the whole run left behind: looks back at every other check, so these come last.

use super::Check;
use crate::bench::{Bench, Stop, Verdict, ensure};
use crate::snapshot::Snapshot;

pub(super) const CHECKS: &[Check] = &[
    Check::core("R-5", "every error of the run has a code of the contract and says what is wrong", errors),
    Check::core("R-3", "the process catches and ignores the signals that it did before", signals),
    Check::kernels("S-6", "the records of kernels read as they did at first", records),
];

fn errors(bench: &Bench) -> Verdict {
    let errors = bench.errors();
    if errors.is_empty() {
        return Err(Stop::unsupported("no call of the run failed"));
    }
    for error in errors {
        let (slot, text) = (error.slot, &error.text);
        if let Some(breach) = &text.breach {
            return Err(Stop::failed(format!("the error of `{slot}`: {breach}")));
        }
        ensure!(
            text.code.name().is_some(),
            "expected a code of the contract in the error of `{slot}`, found {}",
            text.code.0
        );
        ensure!(
            !text.message.trim().is_empty(),
            "expected the error of `{slot}` to say what is wrong, found no message"
        );
    }
    Ok(())
}

fn signals(bench: &Bench) -> Verdict {
    let now = Snapshot::take(bench.subject()).signals;
    let (Some(before), Some(now)) = (&bench.at_first.signals, now) else {
        return Err(Stop::unsupported("this system does not say which signals a process catches"));
    };
    ensure!(*before == now, "expected signals {}, found {}", before.join(", "), now.join(", "));
    Ok(())
}

fn records(bench: &Bench) -> Verdict {
    super::kernels::any(bench)?;
    let now = Snapshot::take(bench.subject()).kernels;
    let changed = bench.at_first.kernels.iter().zip(&now).find(|(before, now)| before != now);
    match changed {
        Some((before, now)) => Err(Stop::failed(format!("expected the record `{before}`, found `{now}`"))),
        None => Ok(()),
    }
}

//! Runs the checks one after another, each on its own thread with a timeout.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::bench::{CheckAbort, TestBench, Verdict};
use crate::checks::{self, ConformanceCheck};
use crate::report::{CheckOutcome, CheckResult, ConformanceReport};
use crate::subject::ConformanceSubject;

/// The default for the time that a check may take before the suite gives up on the plugin.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs all checks. `progress` gets the name of each before it starts.
///
/// # Safety
///
/// The tables, the context and the kernels of the subject belong to a loaded plugin and were checked as a host checks them. The
/// plugin and its devices are initialized, and stay so for as long as `read_error` lives. Nobody else uses the plugin during
/// the run.
#[expect(unsafe_code, reason = "the caller vouches for the plugin, whose tables are raw")]
pub unsafe fn run_suite(
    subject: ConformanceSubject,
    patience: Duration,
    progress: &mut dyn FnMut(&str),
) -> ConformanceReport {
    let bench = Arc::new(TestBench::new(subject, patience));
    let mut results = Vec::new();
    let mut stuck: Option<&str> = None;
    for check in checks::all_checks() {
        let (outcome, time) = match stuck {
            Some(name) => {
                (CheckOutcome::NotRun(format!("the check \"{name}\" did not return")), Duration::ZERO)
            }
            None => {
                progress(check.name);
                let start = Instant::now();
                let outcome = run_with_timeout(&bench, check);
                (
                    outcome.unwrap_or_else(|| {
                        stuck = Some(check.name);
                        timed_out_outcome(&bench)
                    }),
                    start.elapsed(),
                )
            }
        };
        results.push(CheckResult {
            name: check.name.to_owned(),
            rule: check.rule.to_owned(),
            profile: check.profile.name().to_owned(),
            outcome,
            micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        });
    }
    ConformanceReport::new(bench.subject(), results)
}

/// Runs a check; `None` if it did not return in time.
fn run_with_timeout(bench: &Arc<TestBench>, check: &'static ConformanceCheck) -> Option<CheckOutcome> {
    let (sender, receiver) = mpsc::channel();
    let for_check = Arc::clone(bench);
    let run = move || {
        // The receiver is gone if the check took too long.
        let _ = sender.send((check.run)(&for_check));
    };
    let thread = match std::thread::Builder::new().name("conformance".to_owned()).spawn(run) {
        Ok(thread) => thread,
        Err(error) => {
            return Some(CheckOutcome::Failed(format!(
                "a thread for the check could not be started: {error}"
            )));
        }
    };
    match receiver.recv_timeout(bench.wait_limit()) {
        Ok(verdict) => {
            // The check frees its resources before the next one starts.
            let _ = thread.join();
            Some(outcome_of_verdict(verdict))
        }
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            Some(CheckOutcome::Failed(
                "the check itself panicked, which is a mistake of the suite".to_owned(),
            ))
        }
        Err(RecvTimeoutError::Timeout) => None,
    }
}

fn outcome_of_verdict(verdict: Verdict) -> CheckOutcome {
    match verdict {
        Ok(()) => CheckOutcome::Passed,
        Err(CheckAbort::Failed(message)) => CheckOutcome::Failed(message),
        Err(CheckAbort::Unsupported(reason)) => CheckOutcome::Unsupported(reason),
    }
}

/// The outcome of a check that did not return. Its thread never calls the plugin again.
fn timed_out_outcome(bench: &TestBench) -> CheckOutcome {
    bench.abandon_check();
    let seconds = bench.wait_limit().as_secs_f32();
    let call = bench.last_call().map_or(String::new(), |slot| format!("; the last call was `{slot}`"));
    CheckOutcome::Failed(format!("did not return within {seconds} s{call}"))
}

//! Runs the checks one after the other, each on a thread of its own with somebody watching it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::bench::{Bench, Stop, Verdict};
use crate::checks::{self, Check};
use crate::report::{CheckResult, Outcome, Report};
use crate::subject::Subject;

/// How long a check may take before the suite gives up on the plugin, unless the caller says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs every check. `progress` is told the name of each before it starts.
///
/// # Safety
///
/// The tables, the context and the kernels of the subject are a loaded plugin's, checked as a host checks them; the plugin
/// is initialised, the devices are readied, and it stays so for as long as `read_error` lives. Nobody else uses the plugin
/// during the run.
#[expect(unsafe_code, reason = "the caller vouches for the plugin, whose tables are raw")]
pub unsafe fn run(subject: Subject, patience: Duration, progress: &mut dyn FnMut(&str)) -> Report {
    let bench = Arc::new(Bench::new(subject, patience));
    let mut results = Vec::new();
    let mut stuck: Option<&str> = None;
    for check in checks::all() {
        let (outcome, time) = match stuck {
            Some(name) => (Outcome::NotRun(format!("the check \"{name}\" did not return")), Duration::ZERO),
            None => {
                progress(check.name);
                let start = Instant::now();
                let outcome = watched(&bench, check);
                (
                    outcome.unwrap_or_else(|| {
                        stuck = Some(check.name);
                        given_up(&bench)
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
    Report::new(bench.subject(), results)
}

/// Runs a check; nothing when it did not return in time.
fn watched(bench: &Arc<Bench>, check: &'static Check) -> Option<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let for_check = Arc::clone(bench);
    let run = move || {
        // Nobody listens any more when the check took too long.
        let _ = sender.send((check.run)(&for_check));
    };
    let thread = match std::thread::Builder::new().name("conformance".to_owned()).spawn(run) {
        Ok(thread) => thread,
        Err(error) => {
            return Some(Outcome::Failed(format!("a thread for the check could not be started: {error}")));
        }
    };
    match receiver.recv_timeout(bench.patience()) {
        Ok(verdict) => {
            // What the check holds is dropped before the next one starts.
            let _ = thread.join();
            Some(outcome(verdict))
        }
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            Some(Outcome::Failed("the check itself panicked, which is a mistake of the suite".to_owned()))
        }
        Err(RecvTimeoutError::Timeout) => None,
    }
}

fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Ok(()) => Outcome::Passed,
        Err(Stop::Failed(message)) => Outcome::Failed(message),
        Err(Stop::Unsupported(reason)) => Outcome::Unsupported(reason),
    }
}

/// The outcome of a check that did not return. Its thread never calls the plugin again.
fn given_up(bench: &Bench) -> Outcome {
    bench.abandon();
    let seconds = bench.patience().as_secs_f32();
    let call = bench.last_call().map_or(String::new(), |slot| format!("; the last call was `{slot}`"));
    Outcome::Failed(format!("did not return within {seconds} s{call}"))
}

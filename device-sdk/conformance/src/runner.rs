//! Runs the checks one after another, each on its own thread with a timeout.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::bench::{CheckAbort, CheckMessage, TestBench, Verdict};
use crate::checks::{self, CheckedProfile};
use crate::findings::{CheckOutcome, CheckResult};
use crate::measure::measure_speed;
use crate::report::ConformanceReport;
use crate::settings::SuiteSettings;
use crate::subject::ConformanceSubject;

/// Runs the checks. `progress` gets the name of each, and of its parts, before it starts.
///
/// # Safety
///
/// The tables, the contexts and the kernels of the subject belong to loaded plugins and were checked as a host checks them. The
/// plugins and their devices are initialized, and stay so for as long as `read_error` lives. Nobody else uses them during the run.
#[expect(unsafe_code, reason = "the caller vouches for the plugin, whose tables are raw")]
pub unsafe fn run_suite(
    subject: ConformanceSubject,
    settings: &SuiteSettings,
    progress: &mut dyn FnMut(&str),
) -> ConformanceReport {
    let bench = Arc::new(TestBench::new(subject, settings));
    let base = CheckedProfile::base_of(&bench.subject().role);
    let is_wanted = |profile: CheckedProfile| {
        profile.is_offered(bench.subject())
            && settings.profile.as_ref().is_none_or(|wanted| wanted == profile.name())
    };
    let mut results = Vec::new();
    let mut stuck: Option<&str> = None;
    for check in checks::all_checks() {
        let profile = check.profile.unwrap_or(base);
        if !is_wanted(profile) {
            continue;
        }
        let excepted = settings.exceptions.unsupported_check(check.name, check.rule);
        let (outcome, time) = match stuck {
            _ if excepted.is_some() => {
                (CheckOutcome::Unsupported(excepted.unwrap_or_default()), Duration::ZERO)
            }
            Some(name) => {
                (CheckOutcome::NotRun(format!("the check \"{name}\" did not return")), Duration::ZERO)
            }
            None => {
                progress(check.name);
                let start = Instant::now();
                let for_check = Arc::clone(&bench);
                let outcome = run_with_timeout(&bench, move || (check.run)(&for_check), progress, check.name);
                (
                    outcome.unwrap_or_else(|| {
                        stuck = Some(check.name);
                        timed_out_outcome(&bench)
                    }),
                    start.elapsed(),
                )
            }
        };
        let mut result = CheckResult {
            name: check.name.to_owned(),
            rule: check.rule.to_owned(),
            profile: profile.name().to_owned(),
            outcome,
            micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        };
        settings.exceptions.judge_check(&mut result);
        results.push(result);
    }
    // A plugin that is stuck or wrong is not worth measuring, and figures that cannot be had are left out.
    let is_well = results.iter().all(|result| !matches!(result.outcome, CheckOutcome::Failed(_)));
    if stuck.is_none() && is_well {
        progress("the speed of copies and launches");
        let measure = Arc::clone(&bench);
        run_with_timeout(&bench, move || measure_speed(&measure), progress, "speed");
    }
    let profiles: Vec<CheckedProfile> =
        CheckedProfile::ALL.into_iter().filter(|profile| is_wanted(*profile)).collect();
    ConformanceReport::new(&bench, &profiles, results)
}

/// Runs a check; `None` if it, or a part of it, did not return in time.
fn run_with_timeout(
    bench: &Arc<TestBench>,
    check: impl FnOnce() -> Verdict + Send + 'static,
    progress: &mut dyn FnMut(&str),
    name: &str,
) -> Option<CheckOutcome> {
    let (sender, receiver) = mpsc::channel();
    bench.report_steps_to(sender.clone());
    let run = move || {
        let verdict = catch_unwind(AssertUnwindSafe(check));
        // The receiver is gone if the check took too long.
        let _ = sender.send(CheckMessage::Done(verdict.ok()));
    };
    let thread = match std::thread::Builder::new().name("conformance".to_owned()).spawn(run) {
        Ok(thread) => thread,
        Err(error) => {
            return Some(CheckOutcome::Failed(format!(
                "a thread for the check could not be started: {error}"
            )));
        }
    };
    loop {
        match receiver.recv_timeout(bench.wait_limit()) {
            Ok(CheckMessage::Step(step, told)) => {
                progress(&format!("{name}: {step}"));
                // The check waits for this.
                let _ = told.send(());
            }
            Ok(CheckMessage::Done(verdict)) => {
                // The check frees its resources before the next one starts.
                let _ = thread.join();
                let panicked = || {
                    CheckOutcome::Failed(
                        "the check itself panicked, which is a mistake of the suite".to_owned(),
                    )
                };
                return Some(verdict.map_or_else(panicked, outcome_of_verdict));
            }
            // The bench keeps a sender, so nobody can hang up.
            Err(_) => return None,
        }
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

//! Measures whole runs, in turns with the other runtime if there is one.

use std::ops::RangeInclusive;
use std::time::Duration;

use oarlock_engine::RuntimeValue;

use super::measured_runs::{CallerRuns, MeasuredRuns, run_at_once};
use super::peer_runtime::PeerProcess;
use super::time_run;
use crate::arguments::BenchArguments;
use crate::commands::model::{PreparedModel, lock_progress};
use crate::problem::CommandError;
use oarlock_report::text::to_milliseconds;

/// Total time of the measured runs if their number is not given.
const MEASURING_TIME: Duration = Duration::from_secs(3);
/// Bounds of that number.
const RUN_LIMITS: RangeInclusive<u32> = 10..=10_000;
/// A trial for an estimate of that number takes at least this part of the time. Waking the callers may take longer than some runs.
const TRIAL_SHARE: f64 = 0.01;
/// Turns of each runtime in a comparison.
const TURN_COUNT: u32 = 10;
/// Pause after own runs. By the end of it, the threads of the pool have gone to sleep.
const OWN_PAUSE: Duration = Duration::from_millis(10);

/// Times all runs. The progress bar counts those of the first caller; the others make as many.
pub(super) fn measure_in_turns(
    subject: &PreparedModel,
    call: &BenchArguments,
    inputs: &[RuntimeValue],
    mut rival: Option<&mut PeerProcess>,
) -> Result<MeasuredRuns, CommandError> {
    let run = || time_run(&subject.session, inputs);
    let show_bar = |doing: &str, done: u32, all: u32| {
        lock_progress(&subject.progress).show_bar(doing, done as usize, all as usize);
    };
    let warmup = CallerRuns { unmeasured: 0, measured: call.warmup };
    run_at_once(call.callers, warmup, &run, |done| show_bar("warming up", done, call.warmup))?;
    // A run takes longer after a pause, and on a thread that has just started.
    let unmeasured = u32::from(rival.is_some() || call.callers > 1);
    let repeat = match call.repeat {
        Some(repeat) => repeat,
        None => {
            let make_trial = |measured| {
                let counts = CallerRuns { unmeasured, measured };
                Ok(run_at_once(call.callers, counts, &run, |_| ())?.wall_ms)
            };
            count_runs(make_trial)?
        }
    };
    let turns = if rival.is_some() { TURN_COUNT.min(repeat) } else { 1 };
    if let Some(rival) = &mut rival {
        rival.warm_up(call.warmup)?;
    }
    let mut measured = MeasuredRuns::default();
    let mut done = 0;
    for turn in 1..=turns {
        let until = (u64::from(repeat) * u64::from(turn) / u64::from(turns)) as u32;
        let counts = CallerRuns { unmeasured, measured: until - done };
        if let Some(rival) = &mut rival {
            rival.run_turn(counts.measured)?;
            rival.wait_until_idle();
        }
        let own = run_at_once(call.callers, counts, &run, |own| show_bar("measuring", done + own, repeat))?;
        measured.add_turn(own);
        done = until;
        if rival.is_some() {
            std::thread::sleep(OWN_PAUSE);
        }
    }
    Ok(measured)
}

/// How many runs of each caller take the time of a measurement. `make_trial` makes some, and returns the milliseconds they took.
fn count_runs(make_trial: impl Fn(u32) -> Result<f64, CommandError>) -> Result<u32, CommandError> {
    let whole = to_milliseconds(MEASURING_TIME);
    let mut runs = 1;
    loop {
        let taken = make_trial(runs)?.max(1e-6);
        if taken >= whole * TRIAL_SHARE || runs >= *RUN_LIMITS.end() {
            let count = (f64::from(runs) * whole / taken) as u32;
            return Ok(count.clamp(*RUN_LIMITS.start(), *RUN_LIMITS.end()));
        }
        runs *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_a_trial_that_outweighs_its_start() {
        // Milliseconds of a start and of a run.
        let count = |start: f64, run: f64| count_runs(|runs| Ok(start + run * f64::from(runs))).unwrap();
        assert_eq!(count(0.0, 100.0), 30);
        assert_eq!(count(0.0, 2000.0), 10);
        assert_eq!(count(0.0, 1e-4), 10_000);
        // One run and its start would take 6 ms, and that would make 500 runs.
        assert_eq!(count(5.0, 1.0), 2594);
    }
}

//! Times runs that several callers make at once, as the clients of a server do.
//!
//! The measuring thread is the first caller, so one caller alone needs no other thread. Every other caller has a thread of its
//! own. All wait until the last one is ready. Otherwise the first runs would have the processor for themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::problem::CommandError;
use oarlock_report::statistics::TimeStatistics;
use oarlock_report::text::to_milliseconds;

/// The runs of all callers of one runtime.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MeasuredRuns {
    /// Milliseconds of each run: the first run of every caller, then the second of every caller, and so on.
    pub(super) times: Vec<f64>,
    /// Milliseconds from the begin of the first run to the end of the last. Pauses between turns are left out.
    pub(super) wall_ms: f64,
}

/// How often each caller runs.
#[derive(Clone, Copy)]
pub(super) struct CallerRuns {
    /// Runs before the callers wait for each other.
    pub(super) unmeasured: u32,
    pub(super) measured: u32,
}

/// What all callers share.
struct CallerGroup<'a, F> {
    run: &'a F,
    counts: CallerRuns,
    /// Callers begin to measure when nobody holds it for writing.
    gate: RwLock<()>,
    /// Set by the first error; no caller starts another run then.
    has_failed: AtomicBool,
}

/// The measured runs of one caller.
struct CallerTimes {
    times: Vec<f64>,
    began: Instant,
    ended: Instant,
}

impl MeasuredRuns {
    pub(super) fn latency_ms(&self) -> Result<TimeStatistics, CommandError> {
        TimeStatistics::from_times(&self.times).ok_or_else(|| CommandError::new("expected runs, found none"))
    }

    /// Runs per second of all callers together.
    pub(super) fn throughput_per_s(&self) -> f64 {
        self.times.len() as f64 * 1e3 / self.wall_ms
    }

    /// Appends the runs of a later turn.
    pub(super) fn add_turn(&mut self, turn: Self) {
        self.times.extend(turn.times);
        self.wall_ms += turn.wall_ms;
    }

    fn from_callers(callers: &[CallerTimes], runs: u32) -> Self {
        let times_of_run = |run| callers.iter().filter_map(move |caller| caller.times.get(run).copied());
        let began = callers.iter().map(|caller| caller.began).min();
        let ended = callers.iter().map(|caller| caller.ended).max();
        let wall = began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended.duration_since(began));
        Self { times: (0..runs as usize).flat_map(times_of_run).collect(), wall_ms: to_milliseconds(wall) }
    }
}

/// Lets callers run at once, each as often as `counts` says. `run` is one run and returns its time. `on_run` is given the number
/// of measured runs that the first caller has made. The first error ends the runs of all.
pub(super) fn run_at_once<F: Fn() -> Result<Duration, CommandError> + Sync>(
    callers: u16,
    counts: CallerRuns,
    run: &F,
    on_run: impl FnMut(u32),
) -> Result<MeasuredRuns, CommandError> {
    let group = CallerGroup { run, counts, gate: RwLock::new(()), has_failed: AtomicBool::new(false) };
    let group = &group;
    let all: Result<Vec<CallerTimes>, CommandError> = std::thread::scope(|scope| {
        let closed = group.gate.write().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent. The receiver wakes up when the last caller that gets ready has dropped its sender.
        let (getting_ready, all_ready) = channel::<()>();
        let mut others = Vec::new();
        let mut problem = None;
        for caller in 2..=callers {
            let getting_ready = getting_ready.clone();
            let work = move || {
                group.get_ready()?;
                drop(getting_ready);
                drop(group.gate.read());
                group.measure_runs(|_| ())
            };
            match Builder::new().name(format!("caller {caller}")).spawn_scoped(scope, work) {
                Ok(other) => others.push(other),
                Err(error) => {
                    group.has_failed.store(true, Ordering::Relaxed);
                    let message = format!("expected a thread for each of {callers} callers, found: {error}");
                    problem = Some(CommandError::new(message).with_hint("give fewer with `--callers`"));
                    break;
                }
            }
        }
        drop(getting_ready);
        let first = group.get_ready();
        _ = all_ready.recv();
        drop(closed);
        let first = first.and_then(|()| group.measure_runs(on_run));
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        problem.map_or_else(|| std::iter::once(first).chain(others).collect(), Err)
    });
    Ok(MeasuredRuns::from_callers(&all?, counts.measured))
}

impl<F: Fn() -> Result<Duration, CommandError> + Sync> CallerGroup<'_, F> {
    fn get_ready(&self) -> Result<(), CommandError> {
        self.repeat_run(self.counts.unmeasured, |_| ())
    }

    fn measure_runs(&self, mut on_run: impl FnMut(u32)) -> Result<CallerTimes, CommandError> {
        let mut times = Vec::new();
        let began = Instant::now();
        let mut done = 0;
        self.repeat_run(self.counts.measured, |taken| {
            times.push(to_milliseconds(taken));
            done += 1;
            on_run(done);
        })?;
        Ok(CallerTimes { times, began, ended: Instant::now() })
    }

    /// Ends early without an error if another caller has one.
    fn repeat_run(&self, runs: u32, mut on_time: impl FnMut(Duration)) -> Result<(), CommandError> {
        for _ in 0..runs {
            if self.has_failed.load(Ordering::Relaxed) {
                break;
            }
            on_time((self.run)().inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;

    use super::*;

    const COUNTS: CallerRuns = CallerRuns { unmeasured: 2, measured: 5 };

    #[test]
    fn callers_run_at_once() {
        // A run ends only when three run at the same time.
        let meeting = Barrier::new(3);
        let run = || {
            meeting.wait();
            Ok(Duration::from_millis(2))
        };
        let mut shown = Vec::new();
        let measured = run_at_once(3, COUNTS, &run, |done| shown.push(done)).unwrap();
        assert_eq!(measured.times, [2.0; 15]);
        assert_eq!(shown, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn one_caller_is_the_thread_that_measures() {
        let own = std::thread::current().id();
        let run = || {
            assert_eq!(std::thread::current().id(), own);
            Ok(Duration::ZERO)
        };
        assert_eq!(run_at_once(1, COUNTS, &run, |_| ()).unwrap().times.len(), 5);
    }

    #[test]
    fn the_error_of_one_caller_ends_the_runs_of_all() {
        for counts in [
            CallerRuns { unmeasured: 0, measured: u32::MAX },
            CallerRuns { unmeasured: u32::MAX, measured: u32::MAX },
        ] {
            let count = AtomicU32::new(0);
            let run = || match count.fetch_add(1, Ordering::Relaxed) {
                100 => Err(CommandError::new("expected a run, found the last straw")),
                _ => Ok(Duration::ZERO),
            };
            let problem = run_at_once(4, counts, &run, |_| ()).unwrap_err();
            assert_eq!(problem.message, "expected a run, found the last straw");
        }
    }

    #[test]
    fn throughput_is_that_of_all_callers_by_the_time_that_passed() {
        let began = Instant::now();
        let caller = |after: u64, until: u64, times: &[f64]| CallerTimes {
            times: times.to_vec(),
            began: began + Duration::from_millis(after),
            ended: began + Duration::from_millis(until),
        };
        let callers = [caller(1, 7, &[2.0, 4.0]), caller(0, 8, &[3.0, 5.0])];
        let mut measured = MeasuredRuns::from_callers(&callers, 2);
        assert_eq!((measured.times.as_slice(), measured.wall_ms), (&[2.0, 3.0, 4.0, 5.0][..], 8.0));
        assert_eq!(measured.throughput_per_s(), 500.0);
        measured.add_turn(MeasuredRuns { times: vec![1.0, 1.0], wall_ms: 2.0 });
        assert_eq!((measured.times.len(), measured.throughput_per_s()), (6, 600.0));
    }
}

//! When runs of models and their steps took place, for `Profiler` to make tables of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use oarlock_core::Result;
use oarlock_engine::{Datum, Session, Timings};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::plan;

/// What notes the runs of all threads now, if anything does.
static ACTIVE: Mutex<Option<Arc<Record>>> = Mutex::new(None);

/// Whether anything does, without a lock.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// Notes when runs of models and their steps take place, from its start to its end.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct Recorder(Arc<Record>);

struct Record {
    start: Instant,
    runs: Mutex<Vec<Run>>,
}

/// One run of a model.
struct Run {
    thread: ThreadId,
    begin: Duration,
    end: Duration,
    timings: Timings,
}

#[pymethods]
impl Recorder {
    #[new]
    fn new() -> Self {
        Self(Arc::new(Record { start: Instant::now(), runs: Mutex::default() }))
    }

    /// Has it note runs from now on. Another one that did no longer does.
    fn start(&self) {
        *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.0.clone());
        IS_ACTIVE.store(true, Ordering::Relaxed);
    }

    /// Has it note no more.
    fn stop(&self) {
        let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
        if active.as_ref().is_some_and(|active| Arc::ptr_eq(active, &self.0)) {
            *active = None;
            IS_ACTIVE.store(false, Ordering::Relaxed);
        }
    }

    /// Nanoseconds since it was made.
    fn now(&self) -> u128 {
        self.0.start.elapsed().as_nanos()
    }

    /// The runs that were noted, and no longer are: each with its thread, begin and end, with what its steps are, and with
    /// when they ran: which step, within which other, its begin, when the host had launched it, and its end.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let runs = std::mem::take(&mut *self.0.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let mut threads = Vec::new();
        runs.into_iter().map(|run| described(py, run, &mut threads)).collect()
    }
}

/// What notes runs now.
#[inline]
pub(super) fn active() -> Option<Recording> {
    if !IS_ACTIVE.load(Ordering::Relaxed) {
        return None;
    }
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).clone().map(Recording)
}

/// What a run is noted in.
pub(super) struct Recording(Arc<Record>);

impl Recording {
    /// Runs a model step by step, and notes when.
    pub(super) fn run(&self, session: &Session, inputs: &[Datum]) -> Result<Vec<Datum>> {
        let begin = self.0.start.elapsed();
        let (made, timings) = session.run_timed(inputs)?;
        let end = self.0.start.elapsed();
        let run = Run { thread: std::thread::current().id(), begin, end, timings };
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        Ok(made)
    }
}

fn described<'py>(py: Python<'py>, run: Run, threads: &mut Vec<ThreadId>) -> PyResult<Bound<'py, PyDict>> {
    let thread = threads.iter().position(|known| *known == run.thread).unwrap_or_else(|| {
        threads.push(run.thread);
        threads.len() - 1
    });
    let steps = PyList::empty(py);
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    let mut events = Vec::new();
    for timing in &run.timings.steps {
        let place = match places.get(&timing.key()) {
            Some(place) => *place,
            None => {
                steps.append(plan::step(py, timing.step())?)?;
                places.insert(timing.key(), steps.len() - 1);
                steps.len() - 1
            }
        };
        let [begin, launched, end] =
            [timing.begin, timing.launched, timing.end].map(|time| (run.begin + time).as_nanos());
        events.push((place, timing.within, begin, launched, end));
    }
    let all = PyDict::new(py);
    all.set_item("thread", thread)?;
    all.set_item("begin", run.begin.as_nanos())?;
    all.set_item("end", run.end.as_nanos())?;
    all.set_item("steps", steps)?;
    all.set_item("events", events)?;
    all.set_item("omitted", run.timings.omitted)?;
    Ok(all)
}

//! Records when runs, their steps and single ops took place, for the tables of `Profiler`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use oarlock_core::{Device, Op, OpInvocation, OpOutputs, Result, Runtime, Tensor};
use oarlock_engine::{RunTimings, RuntimeValue, Session};
use oarlock_report::graph_text::qualified_op_name;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::plan_report;

/// The log that all threads write to, if a recorder is active.
static ACTIVE_LOG: Mutex<Option<Arc<ActivityLog>>> = Mutex::new(None);

/// True if there is an active log; readable without a lock.
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// Records when model runs, their steps and single op calls happen, from `start` to `stop`.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct Recorder(Arc<ActivityLog>);

struct ActivityLog {
    start: Instant,
    runs: Mutex<Vec<RecordedRun>>,
    calls: Mutex<Vec<RecordedCall>>,
}

struct RecordedRun {
    thread: ThreadId,
    begin: Duration,
    end: Duration,
    timings: RunTimings,
}

/// One op call outside of models, or one copy that a program requested.
struct RecordedCall {
    thread: ThreadId,
    op: String,
    device: String,
    kernel: String,
    begin: Duration,
    launched: Duration,
    end: Duration,
}

/// Recorded runs, and recorded single calls.
type RecordedActivity<'py> = (Vec<Bound<'py, PyDict>>, Vec<Bound<'py, PyDict>>);

#[pymethods]
impl Recorder {
    #[new]
    fn new() -> Self {
        Self(Arc::new(ActivityLog { start: Instant::now(), runs: Mutex::default(), calls: Mutex::default() }))
    }

    /// Starts recording. A recorder that is still active stops.
    fn start(&self) {
        *ACTIVE_LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.0.clone());
        IS_RECORDING.store(true, Ordering::Relaxed);
    }

    /// Stops recording.
    fn stop(&self) {
        let mut active = ACTIVE_LOG.lock().unwrap_or_else(PoisonError::into_inner);
        if active.as_ref().is_some_and(|active| Arc::ptr_eq(active, &self.0)) {
            *active = None;
            IS_RECORDING.store(false, Ordering::Relaxed);
        }
    }

    /// Nanoseconds since the recorder was created.
    fn now(&self) -> u128 {
        self.0.start.elapsed().as_nanos()
    }

    /// Removes and returns what was recorded. First the model runs, each with its thread, begin and end, its steps, and their
    /// times: index of the step, of the step around it, begin, end of the launch on the host, and end. Then the single op
    /// calls.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<RecordedActivity<'py>> {
        let runs = std::mem::take(&mut *self.0.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let calls = std::mem::take(&mut *self.0.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let mut threads = Vec::new();
        let runs =
            runs.into_iter().map(|run| describe_run(py, run, &mut threads)).collect::<PyResult<_>>()?;
        let calls =
            calls.into_iter().map(|call| describe_call(py, call, &mut threads)).collect::<PyResult<_>>()?;
        Ok((runs, calls))
    }
}

/// One relaxed load, so that calls cost nothing extra without a profiler.
#[inline]
pub(crate) fn is_recording() -> bool {
    IS_RECORDING.load(Ordering::Relaxed)
}

/// The active log, if there is one.
#[inline]
pub(crate) fn active_recording() -> Option<ActiveRecording> {
    if !is_recording() {
        return None;
    }
    ACTIVE_LOG.lock().unwrap_or_else(PoisonError::into_inner).clone().map(ActiveRecording)
}

/// Keeps the log alive while a run or call is recorded.
pub(crate) struct ActiveRecording(Arc<ActivityLog>);

impl ActiveRecording {
    /// Runs the model step by step and records the times.
    pub(crate) fn record_run(&self, session: &Session, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>> {
        let begin = self.0.start.elapsed();
        let (result, timings) = session.run_timed(inputs)?;
        let end = self.0.start.elapsed();
        let run = RecordedRun { thread: std::thread::current().id(), begin, end, timings };
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        Ok(result)
    }

    /// Calls an op, waits for its outputs and records the times.
    pub(crate) fn record_call(
        &self,
        runtime: &Runtime,
        op: &Op,
        call: &OpInvocation<'_>,
    ) -> Result<OpOutputs> {
        let begin = self.0.start.elapsed();
        let result = op.invoke(runtime, call)?;
        let launched = self.0.start.elapsed();
        result.iter().flatten().try_for_each(Tensor::wait)?;
        let end = self.0.start.elapsed();
        let explanation = op.explain_call(runtime, call)?;
        let kernel =
            explanation.chosen_entry().map_or("the CPU, with copies".to_owned(), ToString::to_string);
        let op = qualified_op_name(op.domain(), op.name());
        self.add_call(op, explanation.device, kernel, [begin, launched, end]);
        Ok(result)
    }

    /// Copies to another device, waits for the copy and records the times.
    pub(crate) fn record_copy(&self, tensor: &Tensor, device: &Device) -> Result<Tensor> {
        let begin = self.0.start.elapsed();
        let result = tensor.to_device(device)?;
        let launched = self.0.start.elapsed();
        result.wait()?;
        let end = self.0.start.elapsed();
        self.add_call("copy".to_owned(), device.name().to_owned(), String::new(), [begin, launched, end]);
        Ok(result)
    }

    fn add_call(&self, op: String, device: String, kernel: String, [begin, launched, end]: [Duration; 3]) {
        let thread = std::thread::current().id();
        let call = RecordedCall { thread, op, device, kernel, begin, launched, end };
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

/// Numbers threads in the order of first appearance.
fn thread_number(thread: ThreadId, threads: &mut Vec<ThreadId>) -> usize {
    threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
        threads.push(thread);
        threads.len() - 1
    })
}

fn describe_call<'py>(
    py: Python<'py>,
    call: RecordedCall,
    threads: &mut Vec<ThreadId>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("thread", thread_number(call.thread, threads))?;
    all.set_item("op", call.op)?;
    all.set_item("device", call.device)?;
    all.set_item("kernel", call.kernel)?;
    all.set_item("begin", call.begin.as_nanos())?;
    all.set_item("launched", call.launched.as_nanos())?;
    all.set_item("end", call.end.as_nanos())?;
    Ok(all)
}

fn describe_run<'py>(
    py: Python<'py>,
    run: RecordedRun,
    threads: &mut Vec<ThreadId>,
) -> PyResult<Bound<'py, PyDict>> {
    let thread = thread_number(run.thread, threads);
    let steps = PyList::empty(py);
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    let mut events = Vec::new();
    for timing in &run.timings.steps {
        let place = match places.get(&timing.step_key()) {
            Some(place) => *place,
            None => {
                steps.append(plan_report::describe_step(py, timing.step())?)?;
                places.insert(timing.step_key(), steps.len() - 1);
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

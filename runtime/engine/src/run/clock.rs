//! Records when the steps of a run took place.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oarlock_core::{Device, Result};

use crate::plan::{ExecutionPlan, StepView};

/// Limit on recorded steps; a loop may run more than anyone looks at.
const MAX_TIMINGS: usize = 200_000;
/// Limit on recorded plans. A loop over a growing tensor has a plan for each iteration, and every timing keeps its plan alive.
const MAX_TIMED_PLANS: usize = 64;

/// Timing of one step.
#[derive(Clone)]
pub struct StepTiming {
    plan: Arc<ExecutionPlan>,
    step: usize,
    /// Index of the control-flow step in whose subgraph it ran; always an earlier one.
    pub within: Option<usize>,
    /// Start, relative to the start of the run.
    pub begin: Duration,
    /// When the host had launched it; the device may still be busy then.
    pub launched: Duration,
    /// When it was finished, on the device too.
    pub end: Duration,
}

impl StepTiming {
    /// The step that ran, with its plan.
    pub fn step(&self) -> StepView<'_> {
        StepView::new(&self.plan, &self.plan.steps[self.step])
    }

    /// Identifies the step: repeated executions of a loop body with the same plan share one key.
    pub fn step_key(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.plan).addr(), self.step)
    }
}

/// Timings of all steps of a run.
#[derive(Default)]
pub struct RunTimings {
    /// Timings in order of their start.
    pub steps: Vec<StepTiming>,
    /// Steps in subgraphs that exceeded the limits and were not recorded.
    pub omitted: usize,
}

/// Records when steps run. The run waits for every step, so that device work is attributed to the step that launched it.
pub(crate) struct StepClock {
    start: Instant,
    timings: RefCell<RunTimings>,
    /// Addresses of the plans that have recorded steps.
    plans: RefCell<HashSet<usize>>,
    /// The control-flow step that is running now, if any.
    within: Cell<Option<usize>>,
}

impl StepClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            timings: RefCell::default(),
            plans: RefCell::default(),
            within: Cell::new(None),
        }
    }

    pub(crate) fn finish(self) -> RunTimings {
        self.timings.into_inner()
    }

    #[cold]
    pub(super) fn time_step(
        &self,
        plan: &Arc<ExecutionPlan>,
        step: usize,
        device: &Device,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let within = self.within.get();
        let Some(at) = self.begin_step(plan, step, within) else { return run() };
        self.within.set(Some(at));
        let ran = run();
        self.within.set(within);
        ran?;
        let launched = self.start.elapsed();
        device.default_stream()?.synchronize()?;
        let timing = &mut self.timings.borrow_mut().steps[at];
        (timing.launched, timing.end) = (launched, self.start.elapsed());
        Ok(())
    }

    /// Starts recording a step; `None` if a limit was reached. Top-level steps are always recorded.
    fn begin_step(&self, plan: &Arc<ExecutionPlan>, step: usize, within: Option<usize>) -> Option<usize> {
        let timings = &mut *self.timings.borrow_mut();
        let at = timings.steps.len();
        if within.is_some() && (at >= MAX_TIMINGS || !self.is_plan_recorded(plan)) {
            timings.omitted += 1;
            return None;
        }
        let begin = self.start.elapsed();
        timings.steps.push(StepTiming {
            plan: plan.clone(),
            step,
            within,
            begin,
            launched: begin,
            end: begin,
        });
        Some(at)
    }

    /// True if steps of this plan are recorded. The timings keep the plan alive, so its address stays unique.
    fn is_plan_recorded(&self, plan: &Arc<ExecutionPlan>) -> bool {
        let plans = &mut *self.plans.borrow_mut();
        let plan = Arc::as_ptr(plan).addr();
        plans.contains(&plan) || (plans.len() < MAX_TIMED_PLANS && plans.insert(plan))
    }
}

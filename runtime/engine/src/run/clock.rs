//! When the steps of a run took place.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oarlock_core::{Device, Result};

use crate::plan::{ExecutionPlan, StepView};

/// So many steps are noted of a run. A loop may take more than anybody looks at.
const MOST_TIMINGS: usize = 200_000;
/// Steps of so many plans are noted of a run. A loop whose values grow has a plan for each time that it goes round, and what
/// is noted keeps its plan.
const MOST_TIMED_PLANS: usize = 64;

/// When a step of a plan ran.
#[derive(Clone)]
pub struct StepTiming {
    plan: Arc<ExecutionPlan>,
    step: usize,
    /// The step in whose branch or body it ran, as an index of all timings, which is before its own.
    pub within: Option<usize>,
    /// When it began, since the run did.
    pub begin: Duration,
    /// When the host had launched it. A device may still be at work then.
    pub launched: Duration,
    /// When it was done.
    pub end: Duration,
}

impl StepTiming {
    /// The step that ran.
    pub fn step(&self) -> StepView<'_> {
        StepView::new(&self.plan, &self.plan.steps[self.step])
    }

    /// What tells it from other steps: steps of a body that ran several times with a plan are one.
    pub fn step_key(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.plan).addr(), self.step)
    }
}

/// When all steps of a run took place.
#[derive(Default)]
pub struct RunTimings {
    /// In the order in which they began.
    pub steps: Vec<StepTiming>,
    /// How many steps of bodies were too many to be noted.
    pub omitted: usize,
}

/// Notes when steps run. Every step is waited for, so that its work on a device counts as its own.
pub(crate) struct StepClock {
    start: Instant,
    timings: RefCell<RunTimings>,
    /// Where the plans are that steps were noted of.
    plans: RefCell<HashSet<usize>>,
    /// The step that runs now, whose branch or body further steps are of.
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

    /// The place of a step that begins; nothing for one too many.
    fn begin_step(&self, plan: &Arc<ExecutionPlan>, step: usize, within: Option<usize>) -> Option<usize> {
        let timings = &mut *self.timings.borrow_mut();
        let at = timings.steps.len();
        if within.is_some() && (at >= MOST_TIMINGS || !self.is_plan_recorded(plan)) {
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

    /// Whether steps of this plan are noted, which has the plan outlive the clock.
    fn is_plan_recorded(&self, plan: &Arc<ExecutionPlan>) -> bool {
        let plans = &mut *self.plans.borrow_mut();
        let plan = Arc::as_ptr(plan).addr();
        plans.contains(&plan) || (plans.len() < MOST_TIMED_PLANS && plans.insert(plan))
    }
}

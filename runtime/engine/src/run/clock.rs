//! When the steps of a run took place.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oarlock_core::{Device, Result};

use crate::plan::{Plan, StepInfo};

/// So many steps are noted of a run. A loop may take more than anybody looks at.
const MOST_TIMINGS: usize = 200_000;
/// Steps of so many plans are noted of a run. A loop whose values grow has a plan for each time that it goes round, and what
/// is noted keeps its plan.
const MOST_PLANS: usize = 64;

/// When a step of a plan ran.
#[derive(Clone)]
pub struct Timing {
    plan: Arc<Plan>,
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

impl Timing {
    /// The step that ran.
    pub fn step(&self) -> StepInfo<'_> {
        StepInfo::new(&self.plan, &self.plan.steps[self.step])
    }

    /// What tells it from other steps: steps of a body that ran several times with a plan are one.
    pub fn key(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.plan).addr(), self.step)
    }
}

/// When all steps of a run took place.
#[derive(Default)]
pub struct Timings {
    /// In the order in which they began.
    pub steps: Vec<Timing>,
    /// How many steps of bodies were too many to be noted.
    pub omitted: usize,
}

/// Notes when steps run. Every step is waited for, so that its work on a device counts as its own.
pub(crate) struct Clock {
    start: Instant,
    timings: RefCell<Timings>,
    /// Where the plans are that steps were noted of.
    plans: RefCell<HashSet<usize>>,
    /// The step that runs now, whose branch or body further steps are of.
    within: Cell<Option<usize>>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            timings: RefCell::default(),
            plans: RefCell::default(),
            within: Cell::new(None),
        }
    }

    pub(crate) fn finish(self) -> Timings {
        self.timings.into_inner()
    }

    #[cold]
    pub(super) fn time(
        &self,
        plan: &Arc<Plan>,
        step: usize,
        device: &Device,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let within = self.within.get();
        let Some(at) = self.begin(plan, step, within) else { return run() };
        self.within.set(Some(at));
        let ran = run();
        self.within.set(within);
        ran?;
        let launched = self.start.elapsed();
        device.stream()?.synchronize()?;
        let timing = &mut self.timings.borrow_mut().steps[at];
        (timing.launched, timing.end) = (launched, self.start.elapsed());
        Ok(())
    }

    /// The place of a step that begins; nothing for one too many.
    fn begin(&self, plan: &Arc<Plan>, step: usize, within: Option<usize>) -> Option<usize> {
        let timings = &mut *self.timings.borrow_mut();
        let at = timings.steps.len();
        if within.is_some() && (at >= MOST_TIMINGS || !self.is_noted(plan)) {
            timings.omitted += 1;
            return None;
        }
        let begin = self.start.elapsed();
        timings.steps.push(Timing { plan: plan.clone(), step, within, begin, launched: begin, end: begin });
        Some(at)
    }

    /// Whether steps of this plan are noted, which has the plan outlive the clock.
    fn is_noted(&self, plan: &Arc<Plan>) -> bool {
        let plans = &mut *self.plans.borrow_mut();
        let plan = Arc::as_ptr(plan).addr();
        plans.contains(&plan) || (plans.len() < MOST_PLANS && plans.insert(plan))
    }
}

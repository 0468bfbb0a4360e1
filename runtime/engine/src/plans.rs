//! Plans by the shapes of the inputs that they are for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use oarlock_core::{Dims, Dtype, Result};

use crate::datum::Datum;
use crate::plan::Plan;

/// How many plans are kept.
const MOST_PLANS: usize = 32;

/// The plans that there are. Finding one takes no lock.
#[derive(Default)]
pub(crate) struct Plans {
    known: ArcSwap<Vec<Arc<Planned>>>,
    /// Held while a plan is made, so that threads that want the same one make it once.
    making: Mutex<()>,
}

/// A plan, and the inputs it is for.
pub(crate) struct Planned {
    inputs: Vec<Given>,
    pub(crate) plan: Arc<Plan>,
    /// Whether anybody found it since it was last thought of giving one up.
    is_wanted: AtomicBool,
}

/// An input: dtype and shape, or nothing for what is no tensor.
type Given = Option<(Dtype, Dims)>;

impl Plans {
    /// Does something with the plan for inputs of these shapes, which is made where there is none.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        inputs: &[Datum],
        make: impl FnOnce() -> Result<Arc<Plan>>,
        done: impl FnOnce(&Arc<Plan>) -> Result<T>,
    ) -> Result<T> {
        let known = self.known.load();
        match known.iter().find(|planned| planned.matches(inputs)) {
            Some(planned) => {
                planned.want();
                done(&planned.plan)
            }
            None => {
                drop(known);
                done(&self.made(inputs, make)?)
            }
        }
    }

    #[cold]
    fn made(&self, inputs: &[Datum], make: impl FnOnce() -> Result<Arc<Plan>>) -> Result<Arc<Plan>> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.load_full();
        if let Some(planned) = known.iter().find(|planned| planned.matches(inputs)) {
            return Ok(planned.plan.clone());
        }
        let plan = make()?;
        let inputs = inputs.iter().map(given).collect();
        let mut plans = Vec::clone(&known);
        // What is kept for runs of plans that nobody found again may be of use to the new one.
        let idle = plans.iter().filter(|planned| !planned.is_wanted.load(Ordering::Relaxed));
        idle.for_each(|planned| planned.plan.rest());
        if plans.len() == MOST_PLANS {
            // The oldest that nobody wanted lately goes; those that are older and stay have to be wanted anew.
            let unwanted = plans.iter().position(|planned| !planned.is_wanted.swap(false, Ordering::Relaxed));
            plans.rotate_left(unwanted.unwrap_or(0));
            plans.remove(0).plan.rest();
        }
        plans.push(Arc::new(Planned { inputs, plan: plan.clone(), is_wanted: AtomicBool::new(false) }));
        self.known.store(Arc::new(plans));
        Ok(plan)
    }
}

impl Planned {
    #[inline]
    fn matches(&self, inputs: &[Datum]) -> bool {
        self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(known, input)| match (known, input) {
                (Some((dtype, dims)), Datum::Tensor(tensor)) => {
                    *dtype == tensor.dtype() && dims.as_slice() == tensor.dims()
                }
                (None, Datum::Tensor(_)) => false,
                (known, _) => known.is_none(),
            })
    }

    /// Notes that somebody found it. Threads that share a plan mostly read this.
    #[inline]
    fn want(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
    }
}

fn given(input: &Datum) -> Given {
    let Datum::Tensor(tensor) = input else { return None };
    Some((tensor.dtype(), tensor.dims().into()))
}

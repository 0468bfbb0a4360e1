//! Programs: graphs with the plans that were made for the shapes of their inputs.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use oarlock_core::infer::Fact;
use oarlock_core::{Dims, Dtype, Result};

use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::Graph;
use crate::passes::{self, Effect};
use crate::plan::{self, Plan};
use crate::run::{self, Clock, Timing};

/// How many plans are found without a lock.
const FIRST_PLANS: usize = 8;
/// How many further ones are kept.
const MORE_PLANS: usize = 24;

/// A graph that can be run on inputs of any shapes.
pub(crate) struct Program {
    /// The graph as passes left it that know nothing of shapes.
    graph: Graph,
    /// What they did.
    effects: Vec<Effect>,
    first: [OnceLock<Planned>; FIRST_PLANS],
    more: Mutex<Vec<Planned>>,
}

/// A plan, and the inputs it is for: dtype and shape, or nothing for what is no tensor.
#[derive(Clone)]
struct Planned {
    inputs: Arc<[Option<(Dtype, Dims)>]>,
    plan: Arc<Plan>,
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
}

impl Program {
    /// Makes a program of a graph: whatever can be done before shapes are known is done here.
    pub(crate) fn new(mut graph: Graph, environment: &Environment) -> Result<Self> {
        let effects = passes::run(&mut graph, &environment.scene())?;
        Ok(Self { graph, effects, first: [const { OnceLock::new() }; FIRST_PLANS], more: Mutex::default() })
    }

    /// The graph before shapes are known.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What passes did before shapes are known.
    pub(crate) fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Runs it.
    #[inline]
    pub(crate) fn run(&self, environment: &Environment, inputs: &[Datum]) -> Result<Vec<Datum>> {
        let known = self.first.iter().map_while(OnceLock::get);
        if let Some(planned) = known.into_iter().find(|planned| planned.matches(inputs)) {
            return run::run(&planned.plan, environment, inputs, None);
        }
        let plan = self.plan(environment, inputs)?;
        run::run(&plan, environment, inputs, None)
    }

    /// Runs it, and notes when each step did.
    pub(crate) fn run_timed(
        &self,
        environment: &Environment,
        inputs: &[Datum],
    ) -> Result<(Vec<Datum>, Vec<Timing>)> {
        let plan = self.plan(environment, inputs)?;
        let mut clock = Clock::new();
        let outputs = run::run(&plan, environment, inputs, Some(&mut clock))?;
        Ok((outputs, clock.timings))
    }

    /// The plan for inputs of these shapes: one that is there, or a new one.
    pub(crate) fn plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Arc<Plan>> {
        let known = self.first.iter().map_while(OnceLock::get);
        if let Some(planned) = known.into_iter().find(|planned| planned.matches(inputs)) {
            return Ok(planned.plan.clone());
        }
        {
            let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = more.iter().position(|planned| planned.matches(inputs)) {
                // What was wanted last is given up last.
                let planned = more.remove(at);
                more.push(planned.clone());
                return Ok(planned.plan);
            }
        }
        let planned = self.new_plan(environment, inputs)?;
        if let Some(free) = self.first.iter().find(|plan| plan.get().is_none()) {
            // When another thread was faster its plan stays, and this one serves this run alone.
            _ = free.set(planned.clone());
        } else {
            let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
            if more.len() == MORE_PLANS {
                more.remove(0);
            }
            more.push(planned.clone());
        }
        Ok(planned.plan)
    }

    #[cold]
    fn new_plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Planned> {
        let mut graph = self.graph.clone();
        let mut known = Vec::new();
        for (id, input) in graph.inputs.clone().into_iter().zip(inputs) {
            let Datum::Tensor(tensor) = input else {
                graph.value_mut(id).fact = None;
                known.push(None);
                continue;
            };
            graph.value_mut(id).fact = Some(Fact::of_shape(tensor.dtype(), tensor.dims()));
            known.push(Some((tensor.dtype(), tensor.dims().into())));
        }
        let plan = plan::build(graph, environment)?;
        Ok(Planned { inputs: known.into(), plan: Arc::new(plan) })
    }
}

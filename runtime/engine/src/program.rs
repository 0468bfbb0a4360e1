//! Programs: graphs with the plans that were made for the shapes of their inputs.

use std::sync::Arc;

use oarlock_core::Result;
use oarlock_core::infer::Fact;

use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::Graph;
use crate::passes::{self, Effect};
use crate::plan::{self, Plan};
use crate::plans::Plans;
use crate::run::{self, Clock, Run, Timings};

/// A graph that can be run on inputs of any shapes.
pub(crate) struct Program {
    /// The graph as passes left it that know nothing of shapes.
    graph: Graph,
    /// What they did.
    effects: Vec<Effect>,
    plans: Plans,
}

impl Program {
    /// Makes a program of a graph: whatever can be done before shapes are known is done here.
    pub(crate) fn new(mut graph: Graph, environment: &Environment) -> Result<Self> {
        let effects = passes::run(&mut graph, &environment.scene())?;
        Ok(Self { graph, effects, plans: Plans::default() })
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
        self.run_within(Run { environment, allowance: &environment.allowance(), clock: None }, inputs)
    }

    /// Runs it as a part of a run.
    #[inline]
    pub(crate) fn run_within(&self, run: Run<'_>, inputs: &[Datum]) -> Result<Vec<Datum>> {
        let Run { environment, .. } = run;
        self.plans.with(inputs, || self.new_plan(environment, inputs), |plan| run::run(plan, run, inputs))
    }

    /// Runs it, and notes when each step did.
    pub(crate) fn run_timed(
        &self,
        environment: &Environment,
        inputs: &[Datum],
    ) -> Result<(Vec<Datum>, Timings)> {
        let clock = Clock::new();
        let run = Run { environment, allowance: &environment.allowance(), clock: Some(&clock) };
        let outputs = self.run_within(run, inputs)?;
        Ok((outputs, clock.finish()))
    }

    /// The plan for inputs of these shapes: one that is there, or a new one.
    pub(crate) fn plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Arc<Plan>> {
        self.plans.with(inputs, || self.new_plan(environment, inputs), |plan| Ok(plan.clone()))
    }

    fn new_plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Plan> {
        let mut graph = self.graph.clone();
        for (id, input) in graph.inputs.clone().into_iter().zip(inputs) {
            graph.value_mut(id).fact = match input {
                Datum::Tensor(tensor) => Some(Fact::of_shape(tensor.dtype(), tensor.dims())),
                _ => None,
            };
        }
        plan::build(graph, environment)
    }
}

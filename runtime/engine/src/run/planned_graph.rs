//! Graphs with the plans that were built for the shapes of their inputs. A branch or a loop of a plan runs such graphs in turn.

mod control_flow;
mod plan_cache;
mod planned_subgraph;
mod runnable_plan;
mod scan;

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::infer::TensorFact;
use oarlock_core::{Constant, Result};

use super::{InterruptCheck, RunScope, RunTimings, StepClock, run_plan};
use crate::fallback_review::review_fallbacks;
use crate::graph::{Graph, GraphValue, Node, ValueId};
use crate::passes::{self, PassEffect, PassReplay, ReplayedGraph};
use crate::plan::{self, PreviousPlan};
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

use plan_cache::PlanCache;
pub(super) use runnable_plan::RunnablePlan;

/// A graph that runs on inputs of any shape and builds a plan for each new one.
pub(crate) struct PlannedGraph {
    /// The graph after the shape-independent passes.
    graph: Graph,
    effects: Vec<PassEffect>,
    /// Nodes that were folded into constants, in topological order; export writes them back where the constant is large.
    folded: Vec<Node>,
    plans: PlanCache,
    /// Recorded shape-dependent decisions, each with a plan built from them, the most recently used first.
    pass_replays: Mutex<Vec<(PassReplay, Arc<RunnablePlan>)>>,
}

/// Limit on recorded replays. If passes decide differently for most shapes, remembering more would not help.
const MAX_REPLAY_PLANS: usize = 8;

impl PlannedGraph {
    /// Runs every pass that does not depend on input shapes.
    pub(crate) fn new(mut graph: Graph, environment: &SessionEnvironment) -> Result<Self> {
        let context = environment.pass_context();
        let effects = passes::run_passes(&mut graph, &context)?;
        let folded = context.recording.folded_nodes();
        // Passes made others of these.
        let use_counts = graph.use_counts();
        let unread = graph.values().filter(|(id, _)| use_counts[id.index()] == 0);
        unread.filter_map(|(_, value)| value.known_numbers()).for_each(Constant::let_go);
        Ok(Self { graph, effects, folded, plans: PlanCache::default(), pass_replays: Mutex::default() })
    }

    /// The graph before input shapes are known.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Effects of the shape-independent passes.
    pub(crate) fn effects(&self) -> &[PassEffect] {
        &self.effects
    }

    /// The nodes that became constants before shapes were known, in topological order.
    pub(crate) fn folded_nodes(&self) -> &[Node] {
        &self.folded
    }

    /// The plan of the first run, if there was one.
    pub(super) fn first_plan(&self) -> Option<Arc<RunnablePlan>> {
        self.plans.first_plan()
    }

    #[inline]
    pub(crate) fn run(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        let step_budget = environment.new_step_budget();
        self.run_within(
            RunScope { environment, step_budget: &step_budget, clock: None, interrupt_check: None },
            inputs,
        )
    }

    /// Runs it and calls `ask` now and then, between steps and within long ones; an error from it stops the run.
    pub(crate) fn run_interruptible(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
        ask: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<RuntimeValue>> {
        let (step_budget, interrupt_check) = (environment.new_step_budget(), InterruptCheck::new(ask));
        let run = RunScope {
            environment,
            step_budget: &step_budget,
            clock: None,
            interrupt_check: Some(&interrupt_check),
        };
        oarlock_core::with_interrupt(ask, || self.run_within(run, inputs))
    }

    /// Runs it inside another run, sharing its step budget, clock and interrupt check.
    #[inline]
    pub(crate) fn run_within(&self, run: RunScope<'_>, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>> {
        let RunScope { environment, .. } = run;
        let make = || self.make_plan(environment, inputs);
        self.plans.with_plan(inputs, make, |plan, arenas| run_plan(plan, arenas, run, inputs))
    }

    /// Runs it and records when each step ran.
    pub(crate) fn run_timed(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<(Vec<RuntimeValue>, RunTimings)> {
        let (step_budget, clock) = (environment.new_step_budget(), StepClock::new());
        let run =
            RunScope { environment, step_budget: &step_budget, clock: Some(&clock), interrupt_check: None };
        let outputs = self.run_within(run, inputs)?;
        Ok((outputs, clock.finish()))
    }

    /// The plan for inputs of these shapes, built if there is none yet.
    pub(crate) fn plan_for(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Arc<RunnablePlan>> {
        self.plans.with_plan(inputs, || self.make_plan(environment, inputs), |plan, _| Ok(plan.clone()))
    }

    /// Builds a plan for new shapes. If the passes would decide as they did for earlier shapes, those decisions are replayed
    /// instead.
    fn make_plan(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Arc<RunnablePlan>> {
        let fact = |input: &RuntimeValue| match input {
            RuntimeValue::Tensor(tensor) => Some(TensorFact::from_shape(tensor.dtype(), tensor.dims())),
            _ => None,
        };
        let facts: Vec<Option<TensorFact>> = inputs.iter().map(fact).collect();
        let mut pass_replays = self.pass_replays.lock().unwrap_or_else(PoisonError::into_inner);
        let again = |(pass_replay, known): &(PassReplay, Arc<RunnablePlan>)| {
            let ReplayedGraph { graph, differs } = pass_replay.replay(&facts, &environment.pass_context())?;
            debug_assert_eq!(Ok(()), self.check_replay(&graph, environment, &facts));
            let previous = PreviousPlan { plan: &known.plan, differs: &differs };
            let plan = plan::build_plan(graph, pass_replay, Some(previous), environment).ok()?;
            RunnablePlan::new(plan, Some(known), environment).ok()
        };
        let found =
            pass_replays.iter().enumerate().find_map(|(at, pass_replay)| Some((at, again(pass_replay)?)));
        if let Some((at, plan)) = found {
            pass_replays[..=at].rotate_right(1);
            review_fallbacks(&plan.plan, environment)?;
            self.let_weights_go();
            return Ok(Arc::new(plan));
        }
        let (graph, pass_replay) = self.optimize_for(environment, &facts)?;
        let plan = plan::build_plan(graph, &pass_replay, None, environment)?;
        let plan = Arc::new(RunnablePlan::new(plan, None, environment)?);
        review_fallbacks(&plan.plan, environment)?;
        pass_replays.truncate(MAX_REPLAY_PLANS - 1);
        pass_replays.insert(0, (pass_replay, plan.clone()));
        self.let_weights_go();
        Ok(plan)
    }

    /// Lets go of all weights, also of those that passes replaced by others. Plans hold what they need of them.
    fn let_weights_go(&self) {
        self.graph.values().filter_map(|(_, value)| value.known_numbers()).for_each(Constant::let_go);
    }

    /// Runs all passes with the inputs' dtypes and shapes known.
    fn optimize_for(
        &self,
        environment: &SessionEnvironment,
        facts: &[Option<TensorFact>],
    ) -> Result<(Graph, PassReplay)> {
        let (mut graph, context) = (self.graph.clone(), environment.pass_context());
        for (id, fact) in graph.inputs.clone().into_iter().zip(facts) {
            graph.value_mut(id).fact.clone_from(fact);
        }
        let effects = passes::run_passes_with_shapes(&mut graph, &context)?;
        let pass_replay = PassReplay::new(&self.graph, &graph, context.recording, effects);
        Ok((graph, pass_replay))
    }

    /// Debug check: compares a replayed graph with what the passes make from scratch, and describes the difference.
    fn check_replay(
        &self,
        graph: &Graph,
        environment: &SessionEnvironment,
        facts: &[Option<TensorFact>],
    ) -> std::result::Result<(), String> {
        let new = self.optimize_for(environment, facts).map_err(|error| error.to_string())?.0;
        let (found, expected) = (graph.to_string(), new.to_string());
        if found != expected {
            return Err(format!("expected\n{expected}found\n{found}"));
        }
        let is_same = |(id, value): &(ValueId, &GraphValue)| {
            let found = graph.value(*id);
            (&found.fact, &found.weight) == (&value.fact, &value.weight)
        };
        let is_used = |id: ValueId| {
            let nodes = || new.nodes.iter();
            nodes().any(|node| node.read_values().chain(node.written_values()).any(|used| used == id))
        };
        match new.values().find(|pair| !is_same(pair) && is_used(pair.0)) {
            None => Ok(()),
            Some((id, value)) => Err(format!("expected {value:?}, found {:?}", graph.value(id))),
        }
    }
}

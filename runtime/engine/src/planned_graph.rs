//! Programs: graphs with the plans that were made for the shapes of their inputs.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Result;
use oarlock_core::infer::TensorFact;

use crate::environment::SessionEnvironment;
use crate::fallback;
use crate::graph::{Graph, GraphValue, Node, ValueId};
use crate::passes::{self, PassEffect, ReplayPlan, ReplayedGraph};
use crate::plan::{self, ExamplePlan, ExecutionPlan};
use crate::plan_cache::PlanCache;
use crate::run::{self, InterruptCheck, RunScope, RunTimings, StepClock};
use crate::runtime_value::RuntimeValue;

/// A graph that can be run on inputs of any shapes.
pub(crate) struct PlannedGraph {
    /// The graph as passes left it that know nothing of shapes.
    graph: Graph,
    /// What they did.
    effects: Vec<PassEffect>,
    /// The nodes that they made constants of, in their order.
    folded: Vec<Node>,
    plans: PlanCache,
    /// Which graphs passes made of it, each with a plan of it, the one that was used last first.
    recipes: Mutex<Vec<(ReplayPlan, Arc<ExecutionPlan>)>>,
}

/// How many recipes are kept. Where passes do something else for many shapes, there is little to remember.
const MOST_REPLAY_PLANS: usize = 8;

impl PlannedGraph {
    /// Makes a program of a graph: whatever can be done before shapes are known is done here.
    pub(crate) fn new(mut graph: Graph, environment: &SessionEnvironment) -> Result<Self> {
        let scene = environment.pass_context();
        let effects = passes::run_passes(&mut graph, &scene)?;
        let folded = scene.notes.folded_nodes();
        Ok(Self { graph, effects, folded, plans: PlanCache::default(), recipes: Mutex::default() })
    }

    /// The graph before shapes are known.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What passes did before shapes are known.
    pub(crate) fn effects(&self) -> &[PassEffect] {
        &self.effects
    }

    /// The nodes that became constants before shapes are known, in their order.
    pub(crate) fn folded_nodes(&self) -> &[Node] {
        &self.folded
    }

    /// The plan for the shapes that it ran on first, if it did.
    pub(crate) fn first_plan(&self) -> Option<Arc<ExecutionPlan>> {
        self.plans.first_plan()
    }

    /// Runs it.
    #[inline]
    pub(crate) fn run(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        let allowance = environment.new_step_budget();
        self.run_within(RunScope { environment, allowance: &allowance, clock: None, watch: None }, inputs)
    }

    /// Runs it, and asks now and then whether to go on.
    pub(crate) fn run_watched(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
        ask: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<RuntimeValue>> {
        let (allowance, watch) = (environment.new_step_budget(), InterruptCheck::new(ask));
        self.run_within(
            RunScope { environment, allowance: &allowance, clock: None, watch: Some(&watch) },
            inputs,
        )
    }

    /// Runs it as a part of a run.
    #[inline]
    pub(crate) fn run_within(&self, run: RunScope<'_>, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>> {
        let RunScope { environment, .. } = run;
        let make = || self.make_plan(environment, inputs);
        self.plans.with_plan(inputs, make, |plan, arenas| run::run_plan(plan, arenas, run, inputs))
    }

    /// Runs it, and notes when each step did.
    pub(crate) fn run_timed(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<(Vec<RuntimeValue>, RunTimings)> {
        let (allowance, clock) = (environment.new_step_budget(), StepClock::new());
        let run = RunScope { environment, allowance: &allowance, clock: Some(&clock), watch: None };
        let outputs = self.run_within(run, inputs)?;
        Ok((outputs, clock.finish()))
    }

    /// The plan for inputs of these shapes: one that is there, or a new one.
    pub(crate) fn plan_for(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Arc<ExecutionPlan>> {
        self.plans.with_plan(inputs, || self.make_plan(environment, inputs), |plan, _| Ok(plan.clone()))
    }

    /// A plan for shapes that there is none for. Where passes would do again what they did for others, they need not.
    fn make_plan(
        &self,
        environment: &SessionEnvironment,
        inputs: &[RuntimeValue],
    ) -> Result<Arc<ExecutionPlan>> {
        let fact = |input: &RuntimeValue| match input {
            RuntimeValue::Tensor(tensor) => Some(TensorFact::from_shape(tensor.dtype(), tensor.dims())),
            _ => None,
        };
        let facts: Vec<Option<TensorFact>> = inputs.iter().map(fact).collect();
        let mut recipes = self.recipes.lock().unwrap_or_else(PoisonError::into_inner);
        let again = |(recipe, plan): &(ReplayPlan, Arc<ExecutionPlan>)| {
            let ReplayedGraph { graph, differs } = recipe.replay(&facts, &environment.pass_context())?;
            debug_assert_eq!(Ok(()), self.check_replay(&graph, environment, &facts));
            let example = ExamplePlan { plan, differs: &differs };
            plan::build_plan(graph, recipe, Some(example), environment).ok()
        };
        let found = recipes.iter().enumerate().find_map(|(at, recipe)| Some((at, again(recipe)?)));
        if let Some((at, plan)) = found {
            recipes[..=at].rotate_right(1);
            fallback::review_fallbacks(&plan, environment)?;
            return Ok(Arc::new(plan));
        }
        let (graph, recipe) = self.optimize_for(environment, &facts)?;
        let plan = Arc::new(plan::build_plan(graph, &recipe, None, environment)?);
        fallback::review_fallbacks(&plan, environment)?;
        recipes.truncate(MOST_REPLAY_PLANS - 1);
        recipes.insert(0, (recipe, plan.clone()));
        Ok(plan)
    }

    /// What passes make of the graph for certain inputs.
    fn optimize_for(
        &self,
        environment: &SessionEnvironment,
        facts: &[Option<TensorFact>],
    ) -> Result<(Graph, ReplayPlan)> {
        let (mut graph, scene) = (self.graph.clone(), environment.pass_context());
        for (id, fact) in graph.inputs.clone().into_iter().zip(facts) {
            graph.value_mut(id).fact.clone_from(fact);
        }
        let effects = passes::run_passes(&mut graph, &scene)?;
        let recipe = ReplayPlan::new(&self.graph, &graph, scene.notes, effects);
        Ok((graph, recipe))
    }

    /// Whether a graph is what passes make, and if not, how it differs.
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

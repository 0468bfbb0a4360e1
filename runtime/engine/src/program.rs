//! Programs: graphs with the plans that were made for the shapes of their inputs.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Result;
use oarlock_core::infer::Fact;

use crate::datum::Datum;
use crate::environment::Environment;
use crate::fallback;
use crate::graph::{Graph, Node, Value, ValueId};
use crate::passes::{self, Again, Effect, Recipe};
use crate::plan::{self, Example, Plan};
use crate::plans::Plans;
use crate::run::{self, Clock, Run, Timings, Watch};

/// A graph that can be run on inputs of any shapes.
pub(crate) struct Program {
    /// The graph as passes left it that know nothing of shapes.
    graph: Graph,
    /// What they did.
    effects: Vec<Effect>,
    /// The nodes that they made constants of, in their order.
    folded: Vec<Node>,
    plans: Plans,
    /// Which graphs passes made of it, each with a plan of it, the one that was used last first.
    recipes: Mutex<Vec<(Recipe, Arc<Plan>)>>,
}

/// How many recipes are kept. Where passes do something else for many shapes, there is little to remember.
const MOST_RECIPES: usize = 8;

impl Program {
    /// Makes a program of a graph: whatever can be done before shapes are known is done here.
    pub(crate) fn new(mut graph: Graph, environment: &Environment) -> Result<Self> {
        let scene = environment.scene();
        let effects = passes::run(&mut graph, &scene)?;
        let folded = scene.notes.folded();
        Ok(Self { graph, effects, folded, plans: Plans::default(), recipes: Mutex::default() })
    }

    /// The graph before shapes are known.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What passes did before shapes are known.
    pub(crate) fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The nodes that became constants before shapes are known, in their order.
    pub(crate) fn folded(&self) -> &[Node] {
        &self.folded
    }

    /// The plan for the shapes that it ran on first, if it did.
    pub(crate) fn first_plan(&self) -> Option<Arc<Plan>> {
        self.plans.first()
    }

    /// Runs it.
    #[inline]
    pub(crate) fn run(&self, environment: &Environment, inputs: &[Datum]) -> Result<Vec<Datum>> {
        let allowance = environment.allowance();
        self.run_within(Run { environment, allowance: &allowance, clock: None, watch: None }, inputs)
    }

    /// Runs it, and asks now and then whether to go on.
    pub(crate) fn run_watched(
        &self,
        environment: &Environment,
        inputs: &[Datum],
        ask: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<Datum>> {
        let (allowance, watch) = (environment.allowance(), Watch::new(ask));
        self.run_within(Run { environment, allowance: &allowance, clock: None, watch: Some(&watch) }, inputs)
    }

    /// Runs it as a part of a run.
    #[inline]
    pub(crate) fn run_within(&self, run: Run<'_>, inputs: &[Datum]) -> Result<Vec<Datum>> {
        let Run { environment, .. } = run;
        let make = || self.new_plan(environment, inputs);
        self.plans.with(inputs, make, |plan, arenas| run::run(plan, arenas, run, inputs))
    }

    /// Runs it, and notes when each step did.
    pub(crate) fn run_timed(
        &self,
        environment: &Environment,
        inputs: &[Datum],
    ) -> Result<(Vec<Datum>, Timings)> {
        let (allowance, clock) = (environment.allowance(), Clock::new());
        let run = Run { environment, allowance: &allowance, clock: Some(&clock), watch: None };
        let outputs = self.run_within(run, inputs)?;
        Ok((outputs, clock.finish()))
    }

    /// The plan for inputs of these shapes: one that is there, or a new one.
    pub(crate) fn plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Arc<Plan>> {
        self.plans.with(inputs, || self.new_plan(environment, inputs), |plan, _| Ok(plan.clone()))
    }

    /// A plan for shapes that there is none for. Where passes would do again what they did for others, they need not.
    fn new_plan(&self, environment: &Environment, inputs: &[Datum]) -> Result<Arc<Plan>> {
        let fact = |input: &Datum| match input {
            Datum::Tensor(tensor) => Some(Fact::of_shape(tensor.dtype(), tensor.dims())),
            _ => None,
        };
        let facts: Vec<Option<Fact>> = inputs.iter().map(fact).collect();
        let mut recipes = self.recipes.lock().unwrap_or_else(PoisonError::into_inner);
        let again = |(recipe, plan): &(Recipe, Arc<Plan>)| {
            let Again { graph, differs } = recipe.again(&facts, &environment.scene())?;
            debug_assert_eq!(Ok(()), self.is_as_new(&graph, environment, &facts));
            let example = Example { plan, differs: &differs };
            plan::build(graph, recipe, Some(example), environment).ok()
        };
        let found = recipes.iter().enumerate().find_map(|(at, recipe)| Some((at, again(recipe)?)));
        if let Some((at, plan)) = found {
            recipes[..=at].rotate_right(1);
            fallback::review(&plan, environment)?;
            return Ok(Arc::new(plan));
        }
        let (graph, recipe) = self.optimised(environment, &facts)?;
        let plan = Arc::new(plan::build(graph, &recipe, None, environment)?);
        fallback::review(&plan, environment)?;
        recipes.truncate(MOST_RECIPES - 1);
        recipes.insert(0, (recipe, plan.clone()));
        Ok(plan)
    }

    /// What passes make of the graph for certain inputs.
    fn optimised(&self, environment: &Environment, facts: &[Option<Fact>]) -> Result<(Graph, Recipe)> {
        let (mut graph, scene) = (self.graph.clone(), environment.scene());
        for (id, fact) in graph.inputs.clone().into_iter().zip(facts) {
            graph.value_mut(id).fact.clone_from(fact);
        }
        let effects = passes::run(&mut graph, &scene)?;
        let recipe = Recipe::new(&self.graph, &graph, scene.notes, effects);
        Ok((graph, recipe))
    }

    /// Whether a graph is what passes make, and if not, how it differs.
    fn is_as_new(
        &self,
        graph: &Graph,
        environment: &Environment,
        facts: &[Option<Fact>],
    ) -> std::result::Result<(), String> {
        let new = self.optimised(environment, facts).map_err(|error| error.to_string())?.0;
        let (found, expected) = (graph.to_string(), new.to_string());
        if found != expected {
            return Err(format!("expected\n{expected}found\n{found}"));
        }
        let is_same = |(id, value): &(ValueId, &Value)| {
            let found = graph.value(*id);
            (&found.fact, &found.weight) == (&value.fact, &value.weight)
        };
        let is_used = |id: ValueId| {
            let nodes = || new.nodes.iter();
            nodes().any(|node| node.uses().chain(node.makes()).any(|used| used == id))
        };
        match new.values().find(|pair| !is_same(pair) && is_used(pair.0)) {
            None => Ok(()),
            Some((id, value)) => Err(format!("expected {value:?}, found {:?}", graph.value(id))),
        }
    }
}

//! Plans: how a graph is run for inputs of certain shapes.
//!
//! A plan is a list of steps. Most are calls of kernels that are ready, on memory whose place was decided before: a run
//! is a loop over that list. What depends on data is left to the run: ops whose output shapes only their kernels know are
//! dispatched then, and branches and loops run programs of their own.

mod build;
mod layout;
mod memory;
mod placement;
mod report;
mod step;

use std::collections::BTreeMap;

use crossbeam_queue::ArrayQueue;
use oarlock_core::Device;

pub(crate) use build::{Example, build};
pub(crate) use placement::Stay;
pub use report::{Ability, Cost, Lodging, ability, cost, weight_bytes};
pub(crate) use step::{Call, Eager, Operand, Source, Step, Work};

use crate::graph::Graph;
use crate::passes::Effect;
use crate::run::Context;

/// How many runs of one plan may keep their memory for the next ones. More may run at once; theirs is given back.
const KEPT_CONTEXTS: usize = 64;

/// How a graph is run for inputs of certain shapes.
pub struct Plan {
    /// The graph as passes left it.
    pub(crate) graph: Graph,
    /// What the passes did.
    pub(crate) effects: Vec<Effect>,
    /// The nodes that stay on the host although a device before it could run them.
    pub(crate) stays: BTreeMap<usize, Stay>,
    pub(crate) steps: Vec<Step>,
    /// The memory that a run needs for what is neither given nor handed out: for each device how many bytes.
    pub(crate) arenas: Vec<(Device, u64)>,
    /// How many values are tensors of their own in a run.
    pub(crate) slots: usize,
    /// Where the inputs go; `None` for one that nobody reads.
    pub(crate) inputs: Vec<Option<(usize, Device)>>,
    /// Where the outputs come from.
    pub(crate) outputs: Vec<Source>,
    /// What runs that are over left for the next ones.
    pub(crate) contexts: ArrayQueue<Context>,
}

impl Plan {
    /// Gives back the memory that runs left for the next ones.
    pub(crate) fn rest(&self) {
        while self.contexts.pop().is_some() {}
    }

    /// The graph as it runs: after all passes, with all shapes that are known.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the passes did.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The memory that each run takes on each device, beside its inputs and outputs.
    pub fn arenas(&self) -> &[(Device, u64)] {
        &self.arenas
    }

    /// What is done, in order: the index of a node of the graph, its device and what runs it.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepInfo<'_>> {
        self.steps.iter().map(|step| StepInfo { plan: self, step })
    }
}

/// One step of a plan, to be looked at.
#[derive(Clone, Copy)]
pub struct StepInfo<'a> {
    plan: &'a Plan,
    step: &'a Step,
}

impl<'a> StepInfo<'a> {
    pub(crate) fn new(plan: &'a Plan, step: &'a Step) -> Self {
        Self { plan, step }
    }

    /// The plan it is of.
    pub fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// The node of the plan's graph that the step is for; none for copies.
    pub fn node(&self) -> &'a crate::graph::Node {
        &self.plan.graph.nodes[self.step.node]
    }

    /// The device it runs on.
    pub fn device(&self) -> &'a Device {
        &self.step.device
    }

    /// What runs it, such as a row of the registry.
    pub fn runner(&self) -> String {
        match &self.step.work {
            Work::Call(call) => call.ready.row().to_string(),
            Work::Eager(_) => "whatever kernel takes the shapes that come".to_owned(),
            Work::View { .. } => "no kernel: another view of the same memory".to_owned(),
            Work::Copy { .. } => "a copy between devices".to_owned(),
            Work::Control(_) => "the engine".to_owned(),
        }
    }

    /// How the kernel does it, in its own words; empty where it says nothing.
    pub fn description(&self) -> &'a str {
        if let Work::Call(call) = &self.step.work { call.ready.description() } else { "" }
    }

    /// Whether it calls a kernel that was readied before.
    pub fn is_ready(&self) -> bool {
        matches!(self.step.work, Work::Call(_))
    }
}

fn kept_contexts() -> ArrayQueue<Context> {
    ArrayQueue::new(KEPT_CONTEXTS)
}

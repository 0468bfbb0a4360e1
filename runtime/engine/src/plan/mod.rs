//! Plans: how a graph is run for inputs of certain shapes.
//!
//! A plan is a list of steps. Most are calls of kernels that are ready, on memory whose place was decided before: a run
//! is a loop over that list. What depends on data is left to the run: ops whose output shapes only their kernels know are
//! dispatched then, and branches and loops run programs of their own.

mod buffer_offsets;
mod build;
mod context_pool;
mod host_nodes;
mod layout;
mod placement;
mod report;
mod step;

use std::collections::BTreeMap;

use oarlock_core::Device;

pub(crate) use build::{ExamplePlan, build_plan};
pub(crate) use context_pool::RunContextPool;
pub(crate) use host_nodes::{HostNodes, HostReason};
pub(crate) use placement::HostAffinity;
pub use report::{ArenaSlot, DeviceSupport, NodeCost, device_support, node_cost};
pub(crate) use step::{EagerCall, PlanStep, PlannedCall, PlannedOperand, StepAction, ValueSource};

use crate::graph::Graph;
use crate::passes::PassEffect;

/// About how many bytes a plan takes by itself, and for each node and each value of its graph.
const PLAN_BYTES: usize = 4096;
const NODE_BYTES: usize = 2048;
const VALUE_BYTES: usize = 128;

/// How a graph is run for inputs of certain shapes.
pub struct ExecutionPlan {
    /// The graph as passes left it.
    pub(crate) graph: Graph,
    /// What the passes did.
    pub(crate) effects: Vec<PassEffect>,
    /// The nodes that stay on the host although a device before it could run them.
    pub(crate) stays: BTreeMap<usize, HostAffinity>,
    pub(crate) steps: Vec<PlanStep>,
    /// The memory that a run needs for what is neither given nor handed out: for each device how many bytes.
    pub(crate) arenas: Vec<(Device, u64)>,
    /// How many values are tensors of their own in a run.
    pub(crate) slots: usize,
    /// Where the inputs go; `None` for one that nobody reads.
    pub(crate) inputs: Vec<Option<(usize, Device)>>,
    /// Where the outputs come from.
    pub(crate) outputs: Vec<ValueSource>,
    /// How many bytes its constants take that no other plan has.
    pub(crate) copied: usize,
    /// What runs that are over left for the next ones.
    pub(crate) contexts: RunContextPool,
}

impl ExecutionPlan {
    /// About how many bytes it takes, beside the memory that runs take.
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.copied
            + PLAN_BYTES
            + self.graph.nodes.len() * NODE_BYTES
            + self.graph.value_count() * VALUE_BYTES
    }

    /// The graph as it runs: after all passes, with all shapes that are known.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the passes did.
    pub fn effects(&self) -> &[PassEffect] {
        &self.effects
    }

    /// The memory that each run takes on each device, beside its inputs and outputs.
    pub fn arenas(&self) -> &[(Device, u64)] {
        &self.arenas
    }

    /// What is done, in order: the index of a node of the graph, its device and what runs it.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepView<'_>> {
        self.steps.iter().map(|step| StepView { plan: self, step })
    }
}

/// One step of a plan, to be looked at.
#[derive(Clone, Copy)]
pub struct StepView<'a> {
    plan: &'a ExecutionPlan,
    step: &'a PlanStep,
}

impl<'a> StepView<'a> {
    pub(crate) fn new(plan: &'a ExecutionPlan, step: &'a PlanStep) -> Self {
        Self { plan, step }
    }

    /// The plan it is of.
    pub fn plan(&self) -> &'a ExecutionPlan {
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
            StepAction::Call(call) => call.ready.kernel_entry().to_string(),
            StepAction::Eager(_) => "whatever kernel takes the shapes that come".to_owned(),
            StepAction::View { .. } => "no kernel: another view of the same memory".to_owned(),
            StepAction::Copy { .. } => "a copy between devices".to_owned(),
            StepAction::Control(_) => "the engine".to_owned(),
        }
    }

    /// How the kernel does it, in its own words; empty where it says nothing.
    pub fn description(&self) -> &'a str {
        if let StepAction::Call(call) = &self.step.work { call.ready.description() } else { "" }
    }

    /// Whether it calls a kernel that was readied before.
    pub fn is_prepared(&self) -> bool {
        matches!(self.step.work, StepAction::Call(_))
    }
}

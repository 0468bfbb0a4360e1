//! Plans: devices, kernels and memory for a graph at certain input shapes.
//!
//! A plan is a list of steps. Most are calls of prepared kernels on memory whose location is already fixed, so a run is a
//! loop over that list. Data-dependent work is left to the run: ops whose output shapes only the kernel knows are dispatched
//! then, and branches and loops run graphs of their own.

mod buffer_offsets;
mod build;
mod host_affinity;
mod host_nodes;
mod memory_planner;
mod report;
mod rounding;
mod step;
mod unallocated_step;

use std::collections::BTreeMap;

use oarlock_core::Device;

pub(crate) use build::{PreviousPlan, build_plan};
pub(crate) use host_affinity::HostAffinity;
pub(crate) use host_nodes::{HostNodes, HostReason};
pub use report::{ArenaRange, DeviceSupport, NodeCost, device_support, node_cost};
pub use rounding::RoundingReport;
pub(crate) use step::{
    ControlFlowCall, DispatchedCall, HostOpCall, PlanStep, PlannedCall, PlannedOperand, StepAction,
    ValueSource,
};

use crate::graph::Graph;
use crate::passes::PassEffect;

/// Rough size of a plan, for the limit of the plan cache: a base, plus so much for each node and value.
const PLAN_BYTES: usize = 4096;
const NODE_BYTES: usize = 2048;
const VALUE_BYTES: usize = 128;

/// An executable form of a graph for certain input shapes. It is immutable, so concurrent runs share it.
pub struct ExecutionPlan {
    /// The graph after all passes.
    pub(crate) graph: Graph,
    pub(crate) effects: Vec<PassEffect>,
    /// Nodes that stay on the host although a device could run them.
    pub(crate) host_affinities: BTreeMap<usize, HostAffinity>,
    pub(crate) steps: Vec<PlanStep>,
    /// Memory for intermediate values: bytes on each device.
    pub(crate) arenas: Vec<(Device, u64)>,
    /// Number of values that are tensors of their own.
    pub(crate) slots: usize,
    /// Slot and device of each input; `None` for an unused one.
    pub(crate) inputs: Vec<Option<(usize, Device)>>,
    pub(crate) outputs: Vec<ValueSource>,
    /// Bytes of constants that no other plan shares.
    pub(crate) copied_bytes: usize,
}

impl ExecutionPlan {
    /// Approximate size, without the memory that runs take.
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.copied_bytes
            + PLAN_BYTES
            + self.graph.nodes.len() * NODE_BYTES
            + self.graph.value_count() * VALUE_BYTES
    }

    /// The graph as it runs: after all passes, with every shape that is known.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Effects of the passes, in order.
    pub fn effects(&self) -> &[PassEffect] {
        &self.effects
    }

    /// Memory for intermediate values that each run takes, for each device.
    pub fn arenas(&self) -> &[(Device, u64)] {
        &self.arenas
    }

    /// The steps in the order in which they run.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepView<'_>> {
        self.steps.iter().map(|step| StepView { plan: self, step })
    }
}

/// A step together with its plan, for inspection.
#[derive(Clone, Copy)]
pub struct StepView<'a> {
    plan: &'a ExecutionPlan,
    step: &'a PlanStep,
}

impl<'a> StepView<'a> {
    pub(crate) fn new(plan: &'a ExecutionPlan, step: &'a PlanStep) -> Self {
        Self { plan, step }
    }

    /// The plan that the step belongs to.
    pub fn plan(&self) -> &'a ExecutionPlan {
        self.plan
    }

    /// The node that the step belongs to. A copy belongs to the node that reads it.
    pub fn node(&self) -> &'a crate::graph::Node {
        &self.plan.graph.nodes[self.step.node]
    }

    /// The device that the step runs on.
    pub fn device(&self) -> &'a Device {
        &self.step.device
    }

    /// The registry row of the step's kernel, or a phrase for a step without one.
    pub fn runner(&self) -> String {
        match &self.step.action {
            StepAction::Call(call) => call.prepared.kernel_entry().to_string(),
            StepAction::Dispatched(_) => "whatever kernel takes the shapes that come".to_owned(),
            StepAction::View { .. } => "no kernel: another view of the same memory".to_owned(),
            StepAction::Copy { .. } => "a copy between devices".to_owned(),
            StepAction::Host(_) | StepAction::ControlFlow(_) => "the engine".to_owned(),
        }
    }

    /// The kernel's own description of its algorithm; empty if it gives none.
    pub fn description(&self) -> &'a str {
        if let StepAction::Call(call) = &self.step.action { call.prepared.description() } else { "" }
    }

    /// True if it calls a kernel that was prepared when the plan was built.
    pub fn is_prepared(&self) -> bool {
        matches!(self.step.action, StepAction::Call(_))
    }
}

//! The steps of a plan.

use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, PreparedCall, Tensor};

use crate::host_ops::HostOp;

/// One entry of the list that a run walks through.
pub(crate) struct PlanStep {
    /// The node it belongs to.
    pub(crate) node: usize,
    pub(crate) device: Device,
    pub(crate) action: StepAction,
    /// Slots that are dead after it.
    pub(crate) frees: Vec<usize>,
}

impl PlanStep {
    /// True for a copy of an input; the node then has a step of its own as well.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.action, StepAction::Copy { .. })
    }
}

pub(crate) enum StepAction {
    /// Calls a prepared kernel on memory whose location is fixed.
    Call(PlannedCall),
    /// Dispatches the op during the run.
    Dispatched(DispatchedCall),
    /// Reinterprets a tensor with another shape.
    View { from: ValueSource, dims: Dims, to: usize },
    /// Copies a tensor to the step's device.
    Copy { from: ValueSource, to: usize },
    /// Runs an op of the engine on the host.
    Host(HostOpCall),
    /// Runs a branch or a loop, whose bodies are graphs of their own.
    ControlFlow(ControlFlowCall),
}

/// A call of a prepared kernel.
pub(crate) struct PlannedCall {
    pub(crate) prepared: PreparedCall,
    pub(crate) inputs: Vec<PlannedOperand>,
    pub(crate) outputs: Vec<PlannedOperand>,
    /// Arena and byte offset of the workspace.
    pub(crate) workspace: Option<(usize, u64)>,
}

/// Location of an operand of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedOperand {
    /// Omitted, or a constant that the kernel was prepared with.
    Fixed,
    /// Arena and byte offset.
    Arena(usize, u64),
    /// A tensor in this slot.
    Slot(usize),
}

/// A call that is dispatched during the run.
pub(crate) struct DispatchedCall {
    pub(crate) op: Arc<Op>,
    pub(crate) inputs: Vec<Option<ValueSource>>,
    /// A bit for each input that is a constant.
    pub(crate) constant_inputs: u64,
    /// Output slots; `None` for an unused output.
    pub(crate) outputs: Vec<Option<usize>>,
}

/// A call of an op that the engine runs on the host.
pub(crate) struct HostOpCall {
    pub(crate) op: Arc<HostOp>,
    pub(crate) inputs: Vec<Option<ValueSource>>,
    /// Output slots; `None` for an unused output.
    pub(crate) outputs: Vec<Option<usize>>,
}

/// A branch or a loop.
pub(crate) struct ControlFlowCall {
    /// Number of the node's own inputs; captured values follow.
    pub(crate) own_inputs: usize,
    pub(crate) inputs: Vec<Option<ValueSource>>,
    /// Output slots; `None` for an unused output.
    pub(crate) outputs: Vec<Option<usize>>,
}

/// Source of a value that a step reads.
#[derive(Clone, Debug)]
pub(crate) enum ValueSource {
    Slot(usize),
    Constant(Tensor),
}

//! The steps of a plan.

use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, PreparedCall, Tensor};

use crate::run::ControlFlowNode;

/// One thing that a run does.
pub(crate) struct PlanStep {
    /// The node it is for.
    pub(crate) node: usize,
    pub(crate) device: Device,
    pub(crate) work: StepAction,
    /// The slots that nobody reads after it.
    pub(crate) frees: Vec<usize>,
}

impl PlanStep {
    /// Whether it copies what the node reads, and the node itself has a step of its own.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.work, StepAction::Copy { .. })
    }
}

/// What a step does.
pub(crate) enum StepAction {
    /// Calls a kernel that is ready, on memory whose places are decided.
    Call(PlannedCall),
    /// Has the core find a kernel for what comes.
    Eager(EagerCall),
    /// Sees a tensor in another shape.
    View { from: ValueSource, dims: Dims, to: usize },
    /// Copies a tensor to the step's device.
    Copy { from: ValueSource, to: usize },
    /// What the engine does itself: branches, loops, sequences.
    Control(ControlFlowNode),
}

/// A call of a kernel.
pub(crate) struct PlannedCall {
    pub(crate) ready: PreparedCall,
    pub(crate) inputs: Vec<PlannedOperand>,
    pub(crate) outputs: Vec<PlannedOperand>,
    /// Where its scratch memory lies: the arena and the bytes from its start.
    pub(crate) workspace: Option<(usize, u64)>,
}

/// Where an operand of a call lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedOperand {
    /// The kernel was readied with it, or it is left out.
    Fixed,
    /// In an arena, so many bytes from its start.
    Arena(usize, u64),
    /// In the tensor of a slot.
    Slot(usize),
}

/// A call that is dispatched in the run.
pub(crate) struct EagerCall {
    pub(crate) op: Arc<Op>,
    pub(crate) inputs: Vec<Option<ValueSource>>,
    /// The slots of the outputs; one that nobody wants is `None`.
    pub(crate) outputs: Vec<Option<usize>>,
}

/// Where a value of a run is found.
#[derive(Clone, Debug)]
pub(crate) enum ValueSource {
    /// In a slot.
    Slot(usize),
    /// It is always the same.
    Constant(Tensor),
}

//! Steps before the memory planner decides where their operands lie.

use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, PreparedCall};
use smallvec::SmallVec;

use crate::graph::{Graph, ValueId};
use crate::host_ops::HostOp;

/// A value while the plan is built. A copy on another device is a value too.
#[derive(Clone)]
pub(super) struct PlanValue {
    /// The graph value that this is, or is a copy of.
    pub(super) value: ValueId,
    /// The device it is written on; `None` for constants, which are available on every device.
    pub(super) device: Option<Device>,
    /// Size in bytes if it differs from that of the graph value, as for unused outputs.
    pub(super) size: Option<u64>,
}

impl PlanValue {
    pub(super) fn size_in_bytes(&self, graph: &Graph) -> Option<u64> {
        self.size.or_else(|| graph.value(self.value).size_in_bytes())
    }
}

/// A step whose operands have no memory yet. Operands are indices into the builder's `plan_values`.
pub(super) struct UnallocatedStep {
    pub(super) node: usize,
    pub(super) device: Device,
    pub(super) action: UnallocatedAction,
    pub(super) inputs: PlanValueIndices,
    pub(super) outputs: PlanValueIndices,
}

/// Indices into `plan_values`; `None` for an omitted operand.
pub(super) type PlanValueIndices = SmallVec<[Option<usize>; 4]>;

/// What a step will do, once its operands have memory.
pub(super) enum UnallocatedAction {
    Call(PreparedCall),
    Dispatched(Arc<Op>),
    View(Dims),
    Copy,
    Host(Arc<HostOp>),
    ControlFlow,
}

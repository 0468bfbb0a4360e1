//! Reports on a plan and its graph: arena use, cost of nodes, and what a device supports.

use oarlock_core::registry::DispatchExplanation;
use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Device, Error, Op, Result, Runtime, shape};

use super::{ExecutionPlan, PlannedOperand, StepAction, StepView};
use crate::graph::{Graph, Node};
use crate::host_ops::HostOp;
use crate::passes::with_expected_inputs;
use oarlock_core::schema::OARLOCK_DOMAIN;

/// A range of an arena that a value or a kernel's workspace occupies during some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaRange {
    /// Name of the value; empty for a workspace.
    pub value: String,
    /// Index into [`ExecutionPlan::arenas`].
    pub arena: usize,
    /// Byte offset in the arena.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// First and last step that use it.
    pub steps: (usize, usize),
}

/// Estimated work of a node, as far as its operands tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCost {
    /// Floating-point operations; known only for products, convolutions and attention.
    pub flops: Option<u64>,
    /// Bytes of all inputs and outputs, the least memory traffic that is possible.
    pub bytes: Option<u64>,
}

/// Support of a device for a node.
#[derive(Debug)]
pub enum DeviceSupport {
    /// Registry rows that were considered; one of them was chosen, or none.
    Kernels(DispatchExplanation),
    /// The kernel is chosen during the run, because input types or shapes are not known yet. Holds the number of rows for the
    /// op and the device type.
    DecidedAtRun(usize),
    /// The engine runs it without a kernel.
    Engine,
    /// The node is invalid.
    InvalidNode(Error),
}

impl DeviceSupport {
    /// True if the device can run the node, as far as is known before a run.
    pub fn is_supported(&self) -> bool {
        match self {
            Self::Kernels(explanation) => explanation.chosen_entry().is_some(),
            Self::DecidedAtRun(entries) => *entries > 0,
            Self::Engine => true,
            Self::InvalidNode(_) => false,
        }
    }

    /// The reason the device cannot run the node; `None` if it can.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Kernels(explanation) if explanation.chosen_entry().is_none() => {
                Some(explanation.to_error().message().to_owned())
            }
            Self::DecidedAtRun(0) => {
                Some("expected a kernel for this type of devices, found none".to_owned())
            }
            Self::InvalidNode(error) => Some(error.message().to_owned()),
            Self::Kernels(_) | Self::DecidedAtRun(_) | Self::Engine => None,
        }
    }
}

/// Reports how a device supports a node. Types and shapes must have been inferred with [`crate::passes::infer_graph`], or every
/// kernel is left to the run.
pub fn device_support(graph: &Graph, node: &Node, runtime: &Runtime, device: &Device) -> DeviceSupport {
    if is_engine_op(node) || is_engine_view(graph, node) {
        return DeviceSupport::Engine;
    }
    consider_kernels(graph, node, runtime, device).unwrap_or_else(DeviceSupport::InvalidNode)
}

fn consider_kernels(graph: &Graph, node: &Node, runtime: &Runtime, device: &Device) -> Result<DeviceSupport> {
    let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone())?;
    let entries = || {
        let registry = runtime.registry();
        let entries = registry.entries_for_op(&node.domain, &node.op);
        DeviceSupport::DecidedAtRun(
            entries.filter(|entry| entry.info().device_type == device.device_type()).count(),
        )
    };
    let considered = with_expected_inputs(graph, node, |expected| {
        op.explain_candidates(runtime, device, expected, node.outputs.len())
    });
    Ok(considered.transpose()?.flatten().map_or_else(entries, DeviceSupport::Kernels))
}

/// True if the engine runs the node itself: a branch, a loop, or an op on sequences or text.
pub(super) fn is_engine_op(node: &Node) -> bool {
    node.is_control_flow() || matches!(HostOp::from_node(node), Ok(Some(_)))
}

/// True if the engine runs the node as a view of its input.
fn is_engine_view(graph: &Graph, node: &Node) -> bool {
    let size = |value| graph.value(value).size_in_bytes();
    let ends = node.input(0).zip(node.output(0));
    node.is_view() && ends.is_some_and(|(from, to)| size(from).is_some() && size(from) == size(to))
}

/// Estimates the work of a node from the shapes of its operands.
pub fn node_cost(graph: &Graph, node: &Node) -> NodeCost {
    let size = |id: &Option<_>| id.map_or(Some(0), |id| graph.value(id).size_in_bytes());
    let made: Option<u64> = node.outputs.iter().map(size).sum();
    let read = |(index, input)| {
        let whole = size(input)?;
        Some(if index == 0 && has_fact(&node.op, OpFact::PartialRead) { whole.min(made?) } else { whole })
    };
    let read: Option<u64> = node.inputs.iter().enumerate().map(read).sum();
    let bytes = made.zip(read).map(|(made, read)| made + read);
    NodeCost { flops: count_flops(graph, node), bytes }
}

/// Counts a multiplication and an addition for each product.
fn count_flops(graph: &Graph, node: &Node) -> Option<u64> {
    let count = |dims: &[i64]| shape::element_count(dims).ok();
    let input = |index| graph.value(node.input(index)?).dims();
    let output = graph.value(node.output(0)?).dims()?;
    let is_ours = node.domain.is_empty() || &*node.domain == OARLOCK_DOMAIN;
    let each = match &*node.op {
        "Conv" if is_ours => {
            let weights = input(1)?;
            count(weights.get(1..)?)?
        }
        "ConvTranspose" if is_ours => {
            let (given, weights) = (input(0)?, input(1)?);
            return Some(2 * count(&given)? * count(weights.get(1..)?)?);
        }
        "MatMul" | "Gemm" if is_ours => {
            let left = input(0)?;
            let is_transposed = matches!(node.attributes.get_int("transA"), Ok(Some(1)));
            let from_end = if is_transposed { 2 } else { 1 };
            left.len().checked_sub(from_end).and_then(|at| left.get(at)).copied()?.unsigned_abs()
        }
        "Attention" if node.domain.is_empty() => {
            // Queries by keys, and the same again for values; cached keys count too.
            let (queries, keys) = (input(0)?, input(1)?);
            let length = |dims: &[i64]| dims.len().checked_sub(2).map(|at| dims[at].unsigned_abs());
            let kept = node.input(4).map_or(Some(0), |kept| length(&graph.value(kept).dims()?))?;
            return count(&queries)?.checked_mul(length(&keys)? + kept)?.checked_mul(4);
        }
        _ => return None,
    };
    count(&output)?.checked_mul(each)?.checked_mul(2)
}

impl ExecutionPlan {
    /// Arena ranges of all values, in the order of the steps. Values that share memory, such as an in-place output and its
    /// input, are listed one by one.
    pub fn arena_ranges(&self) -> Vec<ArenaRange> {
        let mut slots: Vec<ArenaRange> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let StepAction::Call(call) = &step.action else { continue };
            for operand in &call.inputs {
                let PlannedOperand::Arena(arena, offset) = *operand else { continue };
                // A read belongs to the last write at this offset.
                let written =
                    slots.iter_mut().rev().find(|other| (other.arena, other.offset) == (arena, offset));
                written.into_iter().for_each(|arena_slot| arena_slot.steps.1 = at);
            }
            let node = &self.graph.nodes[step.node];
            for (index, operand) in call.outputs.iter().enumerate() {
                let PlannedOperand::Arena(arena, offset) = *operand else { continue };
                let known = call.prepared.output_types().nth(index).flatten();
                let size = known.and_then(|(dtype, dims)| shape::size_in_bytes(dtype, dims).ok());
                let value =
                    node.output(index).map_or_else(String::new, |id| self.graph.value(id).name.to_string());
                slots.push(ArenaRange { value, arena, offset, size: size.unwrap_or(0), steps: (at, at) });
            }
            if let Some((arena, offset)) = call.workspace {
                let size = call.prepared.workspace_size();
                slots.push(ArenaRange { value: String::new(), arena, offset, size, steps: (at, at) });
            }
        }
        slots
    }
}

impl<'a> StepView<'a> {
    /// Index of the node in the plan's graph.
    pub fn node_index(&self) -> usize {
        self.step.node
    }

    /// The registry row of the kernel, if the step calls a prepared one.
    pub fn registry_row(&self) -> Option<&'a oarlock_core::registry::KernelEntry> {
        if let StepAction::Call(call) = &self.step.action { Some(call.prepared.kernel_entry()) } else { None }
    }

    /// Why the step stays on the host although a device could run it, if it does.
    pub fn host_affinity(&self) -> Option<String> {
        self.plan.host_affinities.get(&self.step.node).map(ToString::to_string)
    }

    /// True if it copies a value between devices.
    pub fn is_copy(&self) -> bool {
        matches!(self.step.action, StepAction::Copy { .. })
    }

    /// Estimated work of the step's node; zero for copies.
    pub fn cost(&self) -> NodeCost {
        if self.is_copy() { NodeCost::default() } else { node_cost(&self.plan.graph, self.node()) }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_core::infer::TensorFact;
    use oarlock_core::{Attribute, Attributes, Dtype};

    use super::*;
    use crate::graph::GraphValue;

    /// Cost of a node on operands of these shapes, the last of which is the output.
    fn op_cost(op: &str, attributes: Attributes, shapes: &[&[i64]]) -> NodeCost {
        let mut graph = Graph::new("test");
        let values =
            shapes.iter().map(|dims| GraphValue::with_fact("", TensorFact::from_shape(Dtype::F32, dims)));
        let mut ids: Vec<_> = values.map(|value| Some(graph.add_value(value))).collect();
        let output = ids.split_off(shapes.len() - 1);
        node_cost(&graph, &Node { attributes, ..Node::new("", op, 24, ids, output) })
    }

    #[test]
    fn products_and_convolutions_count_a_multiplication_and_an_addition_for_each_pair() {
        let none = Attributes::new;
        let transposed = Attributes::new().with_attribute("transA", Attribute::Int(1));
        let flops = |cost: NodeCost| cost.flops;
        assert_eq!(flops(op_cost("MatMul", none(), &[&[2, 3, 4], &[4, 5], &[2, 3, 5]])), Some(2 * 30 * 4));
        assert_eq!(flops(op_cost("Gemm", transposed, &[&[4, 3], &[4, 5], &[3, 5]])), Some(2 * 15 * 4));
        let conv = op_cost("Conv", none(), &[&[1, 4, 8, 8], &[6, 2, 3, 3], &[1, 6, 6, 6]]);
        assert_eq!(flops(conv), Some(2 * 6 * 36 * 2 * 9));
        let attention =
            op_cost("Attention", none(), &[&[1, 2, 3, 8], &[1, 2, 5, 8], &[1, 2, 5, 8], &[1, 2, 3, 8]]);
        assert_eq!(flops(attention), Some(4 * 48 * 5));
        assert_eq!(flops(op_cost("Relu", none(), &[&[7], &[7]])), None);
    }

    #[test]
    fn every_operand_is_read_or_written_once() {
        assert_eq!(op_cost("Add", Attributes::new(), &[&[2, 3], &[3], &[2, 3]]).bytes, Some(4 * 15));
        let gather = op_cost("Gather", Attributes::new(), &[&[1000, 3], &[2], &[2, 3]]);
        assert_eq!(gather.bytes, Some(4 * (6 + 2 + 6)));
    }
}

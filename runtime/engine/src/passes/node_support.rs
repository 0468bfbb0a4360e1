//! Whether a device has a kernel for a node, and when two nodes get the same answer.

use std::sync::Arc;

use oarlock_core::{Dims, ExpectedInput, Op};
use smallvec::SmallVec;

use super::PassContext;
use crate::graph::{Graph, GraphValue, Node, ValueId};

/// Calls `done` with the expected inputs of a node; `None` if a dtype or shape is unknown.
pub(crate) fn with_expected_inputs<T>(
    graph: &Graph,
    node: &Node,
    done: impl FnOnce(&[Option<ExpectedInput<'_>>]) -> T,
) -> Option<T> {
    let dims =
        |input: &Option<ValueId>| input.map_or(Some(None), |input| graph.value(input).dims().map(Some));
    let dims: SmallVec<[Option<Dims>; 4]> = node.inputs.iter().map(dims).collect::<Option<_>>()?;
    if node.inputs.iter().flatten().any(|input| graph.value(*input).dtype().is_none()) {
        return None;
    }
    let expected: SmallVec<[Option<ExpectedInput<'_>>; 4]> = node
        .inputs
        .iter()
        .zip(&dims)
        .map(|(input, dims)| {
            let value = graph.value((*input)?);
            let (dtype, is_constant) = (value.dtype()?, value.weight.is_some());
            Some(ExpectedInput { dtype, dims: dims.as_ref()?, is_constant, value: value.known_numbers() })
        })
        .collect();
    Some(done(&expected))
}

/// True if the device has a kernel for a node with operands of these shapes; false if they are unknown. Not recorded.
pub(super) fn is_node_supported(graph: &Graph, node: &Node, op: &Op, context: &PassContext<'_>) -> bool {
    let chosen = with_expected_inputs(graph, node, |expected| {
        op.select_kernel(context.runtime, context.device, expected, node.outputs.len())
    });
    matches!(chosen, Some(Ok(Some(Some(_)))))
}

/// True if two nodes make the same calls whenever their operands agree in dtypes and shapes.
pub(crate) fn is_same_op(one: &Node, other: &Node) -> bool {
    (&one.op, &one.domain, one.opset) == (&other.op, &other.domain, other.opset)
        && (one.inputs.len(), one.outputs.len()) == (other.inputs.len(), other.outputs.len())
        && one.attributes == other.attributes
}

/// True if the same is known about two values. Constants are not compared element by element; they must be one object.
pub(crate) fn is_same_value(one: &Arc<GraphValue>, other: &Arc<GraphValue>) -> bool {
    Arc::ptr_eq(one, other)
        || one.weight.is_none() && other.weight.is_none() && one.fact.is_some() && one.fact == other.fact
}

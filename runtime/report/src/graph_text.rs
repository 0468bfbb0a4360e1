//! Names of ops, steps and values.

use oarlock_engine::StepView;
use oarlock_engine::graph::{Graph, ValueId};

/// Includes the domain unless it is ONNX's.
pub fn qualified_op_name(domain: &str, op: &str) -> String {
    if domain.is_empty() { op.to_owned() } else { format!("{domain}.{op}") }
}

/// Such as `x: f32 [1, 3]`.
pub fn describe_value(graph: &Graph, id: ValueId) -> String {
    let value = graph.value(id);
    let dtype = value.dtype().map_or("?", |dtype| dtype.name());
    match value.dims() {
        Some(dims) => format!("{}: {dtype} {dims:?}", value.name),
        None => format!("{}: {dtype} […]", value.name),
    }
}

/// The op of a step, or `copy`.
pub fn step_op_name(step: StepView<'_>) -> String {
    let node = step.node();
    if step.is_copy() { "copy".to_owned() } else { qualified_op_name(&node.domain, &node.op) }
}

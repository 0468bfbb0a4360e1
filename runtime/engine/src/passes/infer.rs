//! Shape inference over a whole graph.

use std::sync::Arc;

use oarlock_core::infer::{PartialDim, PartialDims, TensorFact};
use oarlock_core::{Error, ErrorKind, Op, Result, Runtime};
use smallvec::SmallVec;

use super::PassContext;
use crate::graph::{DeclaredDimension, Graph, GraphValue, Node, ValueType, Weight};
use oarlock_core::schema::ONNXRUNTIME_DOMAIN;

/// Infers dtypes, shapes and small elements of all values, starting from the declared inputs.
pub fn infer_graph(graph: &mut Graph, context: &PassContext<'_>) -> Result<()> {
    for input in graph.inputs.clone() {
        let value = graph.value_mut(input);
        if value.fact.is_none() {
            value.fact = declared_fact(&value.declared);
        }
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let inferred = nodes.iter().try_for_each(|node| infer_node(graph, node, context));
    graph.nodes = nodes;
    inferred
}

fn infer_node(graph: &mut Graph, node: &Node, context: &PassContext<'_>) -> Result<()> {
    if !node.subgraphs.is_empty() {
        return Ok(());
    }
    let known = context.recording.inferred_op(graph, node);
    if let Some((_, false)) = known {
        return Ok(());
    }
    let infer = || {
        let op = known.map_or_else(|| node_op(node, context.runtime), |(op, _)| Ok(op))?;
        infer_outputs(graph, node, &op).map(|facts| (op, facts))
    };
    let (op, facts) = infer().map_err(|error| {
        // A node without a name is identified by its output.
        let result = node.output(0).filter(|_| node.name.is_empty() && error.kind() == ErrorKind::NotFound);
        let error = error.with_op(&node.op).with_node(&node.name);
        match result {
            Some(result) => error.with_operand(format!("the node that makes `{}`", graph.value(result).name)),
            None => error,
        }
    })?;
    for (output, fact) in node.outputs.iter().zip(facts.into_iter().flatten()) {
        let Some(output) = *output else { continue };
        if graph.value(output).fact.as_ref() != Some(&fact) {
            graph.value_mut(output).fact = Some(fact);
        }
    }
    context.recording.record_inference(graph, node, op);
    Ok(())
}

/// Everything known about a value, elements of small constants included.
pub(crate) fn value_fact(value: &GraphValue) -> Option<TensorFact> {
    match &value.weight {
        Some(Weight::Numbers(numbers)) if numbers.size_in_bytes() <= MAX_FACT_BYTES => {
            Some(TensorFact::from_value(numbers.clone()))
        }
        Some(weight) => Some(TensorFact::from_shape(weight.dtype(), weight.dims())),
        None => value.fact.clone(),
    }
}

/// Larger constants are data, not shapes, so inference need not see their elements.
const MAX_FACT_BYTES: usize = 1 << 16;

/// Infers the outputs of a node; `None` if nothing is known about some input, or the op has no inference rule.
pub(super) fn infer_outputs(graph: &Graph, node: &Node, op: &Op) -> Result<Option<Vec<TensorFact>>> {
    let mut inputs: SmallVec<[Option<TensorFact>; 4]> = SmallVec::new();
    for input in &node.inputs {
        inputs.push(match input {
            None => None,
            Some(input) => match value_fact(graph.value(*input)) {
                Some(fact) => Some(fact),
                None => return Ok(None),
            },
        });
    }
    op.infer_outputs(&inputs, node.outputs.len())
}

/// Looks up the schema of a node; the error explains what to do about an unknown op.
pub(crate) fn node_op(node: &Node, runtime: &Runtime) -> Result<Arc<Op>> {
    let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone());
    op.map(Arc::new).map_err(|error| match error.kind() {
        ErrorKind::NotFound if &*node.domain == ONNXRUNTIME_DOMAIN => {
            let message =
                format!("expected an op of onnxruntime's own that is understood, found `{}`", node.op);
            Error::not_found(message).with_advice(
                "the page `Run a model` of the book lists those that are; another needs a plugin that provides its schema \
                 and a kernel, or a model that does without: export it without onnxruntime's own ops",
            )
        }
        ErrorKind::NotFound => error.with_advice(format!(
            "the model has it of opset {}; an op that is in no standard needs a plugin that provides its schema and a \
             kernel, or a function of that name in the model",
            node.opset
        )),
        _ => error,
    })
}

/// The reliable part of a declared type: symbols are ignored.
pub(super) fn declared_fact(declared: &ValueType) -> Option<TensorFact> {
    let ValueType::Tensor { dtype: Some(dtype), dims } = declared else { return None };
    let dim = |dim: &DeclaredDimension| match dim {
        DeclaredDimension::Known(size) => PartialDim::Known(*size),
        DeclaredDimension::Symbol(_) | DeclaredDimension::Unknown => PartialDim::Unknown,
    };
    let dims: Option<PartialDims> = dims.as_ref().map(|dims| dims.iter().map(dim).collect());
    Some(TensorFact { dtype: *dtype, dims, value: None })
}

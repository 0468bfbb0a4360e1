//! Rewrites nodes of opsets before 7 in terms of opset 7.
//!
//! Before opset 7, operands broadcast only if an attribute said so, aligned at an axis given by another one, and some ops
//! had an attribute that marked inference.

use oarlock_core::{Attribute, Attributes, Error, Result};

use super::scope::ScopeStack;
use crate::graph::{GraphValue, Node, ValueId, ValueType};
use crate::import::error_location::invalid_model;

/// The first opset with NumPy-style broadcasting.
const BROADCASTING_OPSET: u32 = 7;

/// Rewrites a node of ONNX's own domain if opset 7 changed its op.
pub(super) fn modernize_node(node: &mut Node, scopes: &mut ScopeStack<'_>) -> Result<()> {
    if node.opset >= BROADCASTING_OPSET {
        return Ok(());
    }
    let dropped: &[&str] = match &*node.op {
        "Add" | "And" | "Div" | "Equal" | "Greater" | "Less" | "Mul" | "Or" | "Pow" | "Sub" | "Xor" => {
            if let Some(axis) = node.attributes.get_int("axis")? {
                align_operand(node, axis, scopes)?;
            }
            &["axis", "broadcast", "consumed_inputs"]
        }
        "Gemm" => &["broadcast"],
        "BatchNormalization" | "Dropout" => {
            if node.written_values().count() > 1 && node.attributes.get_int("is_test")? != Some(1) {
                return Err(Error::unimplemented(
                    "expected an op that is not in training, found one that is",
                ));
            }
            &["consumed_inputs", "is_test"]
        }
        "PRelu" => {
            // One slope for all, or one for each channel, which is dimension 1.
            let slope = node.input(1).and_then(|slope| scopes.current_graph().value(slope).weight.as_ref());
            if slope.is_none_or(|slope| slope.dims() != [1]) {
                align_operand(node, 1, scopes)?;
            }
            &["consumed_inputs"]
        }
        _ => return Ok(()),
    };
    let kept = node.attributes.iter().filter(|(name, _)| !dropped.contains(name));
    node.attributes = kept.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    node.opset = BROADCASTING_OPSET;
    Ok(())
}

/// Appends dimensions of size 1 to the second operand, so that broadcasting aligns it at `axis` of the first.
fn align_operand(node: &mut Node, axis: i64, scopes: &mut ScopeStack<'_>) -> Result<()> {
    let (Some(left), Some(right)) = (node.input(0), node.input(1)) else { return Ok(()) };
    let (Some(rank), Some(second)) = (declared_rank(scopes, left), declared_rank(scopes, right)) else {
        let message =
            "expected operands of a known number of dimensions, found one of which the model does not say it";
        return Err(Error::unimplemented(message));
    };
    let first = if axis < 0 { axis.saturating_add(rank) } else { axis };
    let missing = rank.saturating_sub(first).saturating_sub(second);
    if first < 0 || missing < 0 {
        return Err(invalid_model(
            format!("an axis from which on {second} of {rank} dimensions follow"),
            axis,
        ));
    }
    if missing == 0 {
        return Ok(());
    }
    let graph = scopes.current_graph();
    let aligned = graph.add_value(GraphValue::with_name(format!("{} aligned", graph.value(right).name)));
    let mut unsqueeze = Node::new("", "Unsqueeze", node.opset, [Some(right)], [Some(aligned)]);
    unsqueeze.attributes =
        Attributes::new().with_attribute("axes", Attribute::Ints((second..second + missing).collect()));
    graph.nodes.push(unsqueeze);
    node.inputs[1] = Some(aligned);
    Ok(())
}

/// The declared rank of a value.
fn declared_rank(scopes: &mut ScopeStack<'_>, id: ValueId) -> Option<i64> {
    let value = scopes.current_graph().value(id);
    let rank = match (&value.weight, &value.declared) {
        (Some(weight), _) => weight.dims().len(),
        (None, ValueType::Tensor { dims: Some(dims), .. }) => dims.len(),
        _ => return None,
    };
    i64::try_from(rank).ok()
}

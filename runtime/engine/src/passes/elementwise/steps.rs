//! Nodes as steps of a fused op.

use oarlock_core::Dtype;

use super::super::graph_view::GraphView;
use crate::graph::{Node, ValueId};

/// An op of a fused op and its operands. Operands that the node has as attributes are scalars behind the others.
pub(super) struct FusedStep {
    pub(super) op: &'static str,
    pub(super) operands: Vec<FusedOperand>,
}

#[derive(Clone, Copy)]
pub(super) enum FusedOperand {
    Value(ValueId),
    Scalar(f64),
    /// The result of the step before, which belongs to the same node.
    Previous,
}

/// Ops of one operand.
const UNARY_OPS: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "HardSwish",
    "IsNaN",
    "Log",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
];

/// Ops of two operands, with the opset since which they broadcast as NumPy does.
const BINARY_OPS: &[(&str, u32)] = &[
    ("Add", 7),
    ("And", 7),
    ("Div", 7),
    ("Equal", 7),
    ("Greater", 7),
    ("GreaterOrEqual", 12),
    ("Less", 7),
    ("LessOrEqual", 12),
    ("Mul", 7),
    ("Or", 7),
    ("PRelu", 7),
    ("Sub", 7),
    ("Xor", 7),
];

/// Ops of any number of operands, and the step that takes in one more.
const FOLDING_OPS: &[(&str, &str)] = &[("Max", "Max"), ("Min", "Min"), ("Sum", "Add")];

/// The opset since which folding ops broadcast.
const FOLDING_OPSET: u32 = 8;

/// The opset since which the bounds of `Clip` are inputs.
const CLIP_OPSET: u32 = 11;

/// Functions of which the CPU computes some results together with those of neighbors, so that they depend on how elements are cut into
/// tiles.
const TILED_OPS: &[&str] = &["Cos", "Sin", "Tan"];

/// True if the results of a node may differ in their last bit where others of its inputs broadcast.
pub(super) fn depends_on_tiles(node: &Node) -> bool {
    TILED_OPS.contains(&&*node.op)
}

/// The steps that compute what a node of floats of this dtype does; `None` if there are none.
pub(super) fn node_steps(view: &GraphView<'_>, node: &Node, dtype: Dtype) -> Option<Vec<FusedStep>> {
    let is_elementwise = node.domain.is_empty() && node.outputs.len() == 1 && node.subgraphs.is_empty();
    let has_dtypes = node.inputs.iter().flatten().chain(&node.output(0)).all(|value| {
        let found = view.dtype(*value);
        found == Some(dtype) || found == Some(Dtype::Bool)
    });
    if !is_elementwise || !has_dtypes && !node.is_op("Pow") {
        return None;
    }
    match &*node.op {
        "Clip" => clip_steps(view, node),
        "Pow" => power_steps(view, node, dtype),
        "Equal" if view.dtype(node.input(0)?) == Some(Dtype::Bool) => None,
        "Where" => one_step("Where", operands(view, node)?),
        op => None
            .or_else(|| unary_steps(view, node, op))
            .or_else(|| binary_steps(view, node, op))
            .or_else(|| folding_steps(view, node, op))
            .or_else(|| parametric_steps(view, node, op)),
    }
}

fn one_step(op: &'static str, operands: Vec<FusedOperand>) -> Option<Vec<FusedStep>> {
    Some(vec![FusedStep { op, operands }])
}

fn operand(view: &GraphView<'_>, value: ValueId) -> FusedOperand {
    // An element that is a mask is not a number of the fused op.
    let is_float = view.dtype(value) != Some(Dtype::Bool);
    let scalar = is_float.then(|| view.scalar_constant(value)).flatten();
    scalar.map_or(FusedOperand::Value(value), FusedOperand::Scalar)
}

/// All inputs of a node; `None` if one was left out.
fn operands(view: &GraphView<'_>, node: &Node) -> Option<Vec<FusedOperand>> {
    node.inputs.iter().map(|input| Some(operand(view, (*input)?))).collect()
}

fn unary_steps(view: &GraphView<'_>, node: &Node, op: &str) -> Option<Vec<FusedStep>> {
    let op = *UNARY_OPS.iter().find(|known| **known == op)?;
    one_step(op, operands(view, node)?)
}

fn binary_steps(view: &GraphView<'_>, node: &Node, op: &str) -> Option<Vec<FusedStep>> {
    let (op, _) = *BINARY_OPS.iter().find(|(known, since)| *known == op && node.opset >= *since)?;
    one_step(op, operands(view, node)?)
}

fn folding_steps(view: &GraphView<'_>, node: &Node, op: &str) -> Option<Vec<FusedStep>> {
    let (_, op) = *FOLDING_OPS.iter().find(|(known, _)| *known == op)?;
    let operands =
        operands(view, node).filter(|operands| node.opset >= FOLDING_OPSET && operands.len() > 1)?;
    let first = FusedStep { op, operands: operands[..2].to_vec() };
    let further = operands[2..]
        .iter()
        .map(|operand| FusedStep { op, operands: vec![FusedOperand::Previous, *operand] });
    Some(std::iter::once(first).chain(further).collect())
}

/// Functions with attributes. Where an attribute has a default, it is the `f32` that the schema says.
fn parametric_steps(view: &GraphView<'_>, node: &Node, op: &str) -> Option<Vec<FusedStep>> {
    let float = |name: &str, default: f32| {
        Some(FusedOperand::Scalar(node.attributes.get_float(name).ok()?.unwrap_or(f64::from(default))))
    };
    let (op, parameters) = match op {
        "Celu" => ("Celu", vec![float("alpha", 1.0)?]),
        "Elu" => ("Elu", vec![float("alpha", 1.0)?]),
        "Gelu" => match node.attributes.get_string("approximate").ok()? {
            Some("tanh") => ("GeluTanh", vec![]),
            _ => ("Gelu", vec![]),
        },
        "HardSigmoid" => ("HardSigmoid", vec![float("alpha", 0.2)?, float("beta", 0.5)?]),
        "LeakyRelu" => ("LeakyRelu", vec![float("alpha", 0.01)?]),
        "Selu" if node.opset >= 6 => ("Selu", vec![float("alpha", 1.673_263_2)?, float("gamma", 1.050_701)?]),
        "Swish" => ("Swish", vec![float("alpha", 1.0)?]),
        "ThresholdedRelu" => ("ThresholdedRelu", vec![float("alpha", 1.0)?]),
        _ => return None,
    };
    let [Some(x)] = node.inputs[..] else { return None };
    one_step(op, std::iter::once(operand(view, x)).chain(parameters).collect())
}

/// The steps of a `Clip` with scalars as bounds.
fn clip_steps(view: &GraphView<'_>, node: &Node) -> Option<Vec<FusedStep>> {
    let x = operand(view, node.input(0)?);
    if node.opset < CLIP_OPSET {
        let bound = |name: &str, default: f32| {
            Some(FusedOperand::Scalar(node.attributes.get_float(name).ok()?.unwrap_or(f64::from(default))))
        };
        return one_step("Clip", vec![x, bound("min", f32::MIN)?, bound("max", f32::MAX)?]);
    }
    let mut steps: Vec<FusedStep> = Vec::new();
    for (index, op) in [(1, "Max"), (2, "Min")] {
        if let Some(bound) = node.input(index) {
            let bound = FusedOperand::Scalar(view.scalar_constant(bound)?);
            let first = if steps.is_empty() { x } else { FusedOperand::Previous };
            steps.push(FusedStep { op, operands: vec![first, bound] });
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// A power with a scalar as the exponent, which may have any dtype.
fn power_steps(view: &GraphView<'_>, node: &Node, dtype: Dtype) -> Option<Vec<FusedStep>> {
    let (base, exponent) = node.input(0).zip(node.input(1))?;
    if node.opset < 7 || view.dtype(base) != Some(dtype) {
        return None;
    }
    let exponent = FusedOperand::Scalar(view.scalar_constant(exponent)?);
    one_step("Pow", vec![operand(view, base), exponent])
}

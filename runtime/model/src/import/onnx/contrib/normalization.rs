//! Normalization, alone or fused with a preceding addition.

use oarlock_core::{Attribute, Result};

use super::contrib_op::ContribOp;
use super::lowering::{ContribLowering, build_attributes};
use crate::graph::ValueId;

/// An op that onnxruntime defines in ONNX's own domain.
pub(super) const SIMPLIFIED_LAYER_NORM: &str = "SimplifiedLayerNormalization";

pub(super) const NORMALIZATION_OPS: &[ContribOp] = &[
    ContribOp {
        op: SIMPLIFIED_LAYER_NORM,
        inputs: "X scale",
        attributes: "axis epsilon stash_type",
        outputs: "Y !inv_std_var",
        lower: lower_simplified_layer_norm,
    },
    ContribOp {
        op: "SkipLayerNormalization",
        inputs: "input skip gamma beta? bias?",
        attributes: "epsilon",
        outputs: "output !mean !inv_std_var input_skip_bias_sum",
        lower: |op| lower_skip_norm(op, 4, |op, sum| add_layer_norm(op, sum, 2, 3)),
    },
    ContribOp {
        op: "SkipSimplifiedLayerNormalization",
        inputs: "input skip gamma bias?",
        attributes: "epsilon",
        outputs: "output !mean !inv_std_var input_skip_bias_sum",
        lower: |op| {
            lower_skip_norm(op, 3, |op, sum| {
                let scale = op.input(2)?;
                add_rms_norm(op, sum, scale)
            })
        },
    },
];

/// The epsilon attribute with onnxruntime's default.
fn epsilon_attribute(op: &ContribLowering<'_>, default: f32) -> Result<Attribute> {
    Ok(Attribute::Float(op.float_attribute("epsilon", f64::from(default))?))
}

fn lower_simplified_layer_norm(op: &mut ContribLowering<'_>) -> Result<()> {
    let mut attributes = op.copy_attributes(&["axis", "stash_type"]);
    attributes.set("epsilon", epsilon_attribute(op, 1e-5)?);
    let inputs = [Some(op.input(0)?), Some(op.input(1)?)];
    let result = op.add_node("RMSNormalization", &inputs, attributes, 1)[0];
    op.set_output(0, result);
    Ok(())
}

/// Adds a `LayerNormalization`, with scale and bias at the given input positions.
pub(super) fn add_layer_norm(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    scale: usize,
    bias: usize,
) -> Result<ValueId> {
    let attributes =
        build_attributes([("axis", Attribute::Int(-1)), ("epsilon", epsilon_attribute(op, 1e-12)?)]);
    let inputs = [Some(x), Some(op.input(scale)?), op.optional_input(bias)];
    Ok(op.add_node("LayerNormalization", &inputs, attributes, 1)[0])
}

fn add_rms_norm(op: &mut ContribLowering<'_>, x: ValueId, scale: ValueId) -> Result<ValueId> {
    let epsilon = epsilon_attribute(op, 1e-12)?;
    Ok(op.add_op_with("RMSNormalization", &[x, scale], [("axis", Attribute::Int(-1)), ("epsilon", epsilon)]))
}

/// Lowers an addition followed by a normalization; the sum may be an output as well.
fn lower_skip_norm(
    op: &mut ContribLowering<'_>,
    bias: usize,
    normalized: impl Fn(&mut ContribLowering<'_>, ValueId) -> Result<ValueId>,
) -> Result<()> {
    let (mut x, skip) = (op.input(0)?, op.input(1)?);
    if let Some(bias) = op.optional_input(bias) {
        x = op.add_op("Add", &[x, bias]);
    }
    let sum = op.add_op("Add", &[x, skip]);
    let result = normalized(op, sum)?;
    op.set_output(0, result);
    op.set_output(3, sum);
    Ok(())
}

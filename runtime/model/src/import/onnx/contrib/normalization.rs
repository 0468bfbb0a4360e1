//! Normalization, alone or fused with a preceding addition.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result, shape};

use super::contrib_op::ContribOp;
use super::lowering::{ContribLowering, build_attributes};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

/// Ops that onnxruntime defines in ONNX's own domain. `LayerNormalization` is one up to the opset before ONNX adopted it.
const SIMPLIFIED_LAYER_NORM: &str = "SimplifiedLayerNormalization";
const LAYER_NORM: &str = "LayerNormalization";

/// The opset with which ONNX adopted `LayerNormalization`.
const LAYER_NORM_OPSET: u32 = 17;

pub(super) const NORMALIZATION_OPS: &[ContribOp] = &[
    ContribOp {
        op: LAYER_NORM,
        inputs: "X scale B?",
        attributes: "axis epsilon stash_type",
        outputs: "Y mean inv_std_var",
        lower: lower_layer_norm,
    },
    ContribOp {
        op: SIMPLIFIED_LAYER_NORM,
        inputs: "X scale",
        attributes: "axis epsilon stash_type",
        outputs: "Y inv_std_var",
        lower: lower_simplified_layer_norm,
    },
    ContribOp {
        op: "SkipLayerNormalization",
        inputs: "input skip gamma beta? bias?",
        attributes: "epsilon",
        outputs: "output mean inv_std_var input_skip_bias_sum",
        lower: |op| {
            lower_skip_norm(op, 4, |op, sum| {
                let (inputs, attributes) = layer_norm_of_sum(op, sum, 2, 3)?;
                Ok(add_layer_norm_with_statistics(op, &inputs, attributes))
            })
        },
    },
    ContribOp {
        op: "SkipSimplifiedLayerNormalization",
        inputs: "input skip gamma bias?",
        attributes: "epsilon",
        outputs: "output !mean inv_std_var input_skip_bias_sum",
        lower: |op| {
            lower_skip_norm(op, 3, |op, sum| {
                let epsilon = op.float_attribute("epsilon", f64::from(SKIP_EPSILON))?;
                set_inverse_deviation(op, 2, sum, -1, epsilon)?;
                let scale = op.input(2)?;
                add_rms_norm(op, sum, scale)
            })
        },
    },
];

/// onnxruntime's defaults, of the plain ops and of those that add first.
const NORM_EPSILON: f32 = 1e-5;
const SKIP_EPSILON: f32 = 1e-12;

/// True for an op of ONNX's own domain that only onnxruntime defines, at least up to this opset.
pub(super) fn is_defined_in_onnx_domain(op: &str, opset: u32) -> bool {
    op == SIMPLIFIED_LAYER_NORM || op == LAYER_NORM && opset < LAYER_NORM_OPSET
}

/// The epsilon attribute with onnxruntime's default.
fn epsilon_attribute(op: &ContribLowering<'_>, default: f32) -> Result<Attribute> {
    Ok(Attribute::Float(op.float_attribute("epsilon", f64::from(default))?))
}

fn axis_attributes(op: &ContribLowering<'_>) -> Result<Attributes> {
    let mut attributes = op.copy_attributes(&["axis", "stash_type"]);
    attributes.set("epsilon", epsilon_attribute(op, NORM_EPSILON)?);
    Ok(attributes)
}

fn lower_layer_norm(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = axis_attributes(op)?;
    let (inputs, dtype) = inputs_of_one_dtype(op, [op.input(0)?, op.input(1)?], op.optional_input(2));
    let result = add_layer_norm_with_statistics(op, &inputs, attributes);
    set_result(op, result, dtype);
    Ok(())
}

fn lower_simplified_layer_norm(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = axis_attributes(op)?;
    let (x, scale, axis) = (op.input(0)?, op.input(1)?, op.int_attribute("axis", -1)?);
    set_inverse_deviation(op, 1, x, axis, op.float_attribute("epsilon", f64::from(NORM_EPSILON))?)?;
    let (inputs, dtype) = inputs_of_one_dtype(op, [x, scale], None);
    let result = op.add_node("RMSNormalization", &inputs, attributes, 1)[0];
    set_result(op, result, dtype);
    Ok(())
}

/// Casts operands of different dtypes to a wide one. Scale and bias may have a dtype of their own in onnxruntime, which is then
/// that of the result and returned.
fn inputs_of_one_dtype(
    op: &mut ContribLowering<'_>,
    [x, scale]: [ValueId; 2],
    bias: Option<ValueId>,
) -> ([Option<ValueId>; 3], Option<Dtype>) {
    let inputs = [Some(x), Some(scale), bias];
    match (op.dtype(x), op.dtype(scale)) {
        (Some(dtype), Some(scale_dtype)) if dtype != scale_dtype => {
            let wide = if [dtype, scale_dtype].contains(&Dtype::F64) { Dtype::F64 } else { Dtype::F32 };
            (inputs.map(|operand| operand.map(|operand| cast_unless(op, operand, wide))), Some(scale_dtype))
        }
        _ => (inputs, None),
    }
}

fn cast_unless(op: &mut ContribLowering<'_>, value: ValueId, dtype: Dtype) -> ValueId {
    if op.dtype(value) == Some(dtype) { value } else { op.add_cast(value, dtype) }
}

/// Sets output 0, cast to a dtype if there is one.
fn set_result(op: &mut ContribLowering<'_>, made: ValueId, dtype: Option<Dtype>) {
    let result = dtype.map_or(made, |dtype| op.add_cast(made, dtype));
    op.set_output(0, result);
}

/// Computes the reciprocal of the root of the mean square from an axis on, in f32, if an output wants it.
fn set_inverse_deviation(
    op: &mut ContribLowering<'_>,
    output: usize,
    x: ValueId,
    axis: i64,
    epsilon: f64,
) -> Result<()> {
    if !op.wants_output(output) {
        return Ok(());
    }
    let end = match axis {
        ..0 => 0,
        _ => op.rank(x).and_then(|rank| i64::try_from(rank).ok()).ok_or_else(|| {
            Error::unimplemented(
                "expected an `axis` below 0 or an input of a known number of dimensions, found neither",
            )
        })?,
    };
    // A rank is small, and an axis far below it names no dimension.
    if end.saturating_sub(axis) > i64::try_from(shape::MAX_RANK).unwrap_or(i64::MAX) {
        return Err(invalid_model("an `axis` of the input", axis));
    }
    let axes = op.add_ints(&(axis..end).collect::<Vec<_>>());
    let x = cast_unless(op, x, Dtype::F32);
    let squares = op.add_op("Mul", &[x, x]);
    let mean = op.add_op("ReduceMean", &[squares, axes]);
    let epsilon = op.add_float_scalar(epsilon)?;
    let sum = op.add_op("Add", &[mean, epsilon]);
    let root = op.add_op("Sqrt", &[sum]);
    let result = op.add_op("Reciprocal", &[root]);
    op.set_output(output, result);
    Ok(())
}

/// Adds a `LayerNormalization`, with scale and bias at the given input positions.
pub(super) fn add_layer_norm(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    scale: usize,
    bias: usize,
) -> Result<ValueId> {
    let (inputs, attributes) = layer_norm_of_sum(op, x, scale, bias)?;
    Ok(op.add_node(LAYER_NORM, &inputs, attributes, 1)[0])
}

/// The operands and attributes of a `LayerNormalization` of a sum.
fn layer_norm_of_sum(
    op: &ContribLowering<'_>,
    sum: ValueId,
    scale: usize,
    bias: usize,
) -> Result<([Option<ValueId>; 3], Attributes)> {
    let attributes =
        build_attributes([("axis", Attribute::Int(-1)), ("epsilon", epsilon_attribute(op, SKIP_EPSILON)?)]);
    Ok(([Some(sum), Some(op.input(scale)?), op.optional_input(bias)], attributes))
}

/// Adds a `LayerNormalization`. Its mean and inverse deviation become outputs 1 and 2 of the lowered op; unless they are wanted,
/// it has no such outputs, because passes and kernels do better without.
fn add_layer_norm_with_statistics(
    op: &mut ContribLowering<'_>,
    inputs: &[Option<ValueId>],
    attributes: Attributes,
) -> ValueId {
    let count = (1..=2).rev().find(|index| op.wants_output(*index)).map_or(1, |last| last + 1);
    let made = op.add_node(LAYER_NORM, inputs, attributes, count);
    (1..count).for_each(|index| op.set_output(index, made[index]));
    made[0]
}

fn add_rms_norm(op: &mut ContribLowering<'_>, x: ValueId, scale: ValueId) -> Result<ValueId> {
    let epsilon = epsilon_attribute(op, SKIP_EPSILON)?;
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

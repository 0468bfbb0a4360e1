//! Quantized ops, lowered to float ops between `DequantizeLinear` and `QuantizeLinear`.
//!
//! Passes later find those that integer kernels can compute.

use oarlock_core::{Attribute, Attributes, Result};

use super::contrib_op::ContribOp;
use super::lowering::{ContribLowering, build_attributes};
use super::product::{
    WINDOW_ATTRIBUTES, spatial_rank, to_channels_first, to_channels_last, window_attributes,
};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const QUANTIZED_LINEAR_OPS: &[ContribOp] = &[
    ContribOp {
        op: "QuantizeLinear",
        inputs: "x y_scale y_zero_point?",
        attributes: "axis",
        outputs: "y",
        lower: |op| lower_conversion(op, "QuantizeLinear"),
    },
    ContribOp {
        op: "DequantizeLinear",
        inputs: "x x_scale x_zero_point?",
        attributes: "axis",
        outputs: "y",
        lower: |op| lower_conversion(op, "DequantizeLinear"),
    },
    ContribOp {
        op: "QLinearAdd",
        inputs: BINARY_INPUTS,
        attributes: "",
        outputs: "C",
        lower: |op| lower_binary(op, "Add"),
    },
    ContribOp {
        op: "QLinearMul",
        inputs: BINARY_INPUTS,
        attributes: "",
        outputs: "C",
        lower: |op| lower_binary(op, "Mul"),
    },
    ContribOp {
        op: "QLinearSigmoid",
        inputs: UNARY_INPUTS,
        attributes: "",
        outputs: "Y",
        lower: |op| lower_unary(op, "Sigmoid", &[]),
    },
    ContribOp {
        op: "QLinearLeakyRelu",
        inputs: UNARY_INPUTS,
        attributes: "alpha",
        outputs: "Y",
        lower: |op| lower_unary(op, "LeakyRelu", &["alpha"]),
    },
    ContribOp {
        op: "QLinearSoftmax",
        inputs: UNARY_INPUTS,
        attributes: "axis opset",
        outputs: "Y",
        lower: lower_softmax,
    },
    ContribOp {
        op: "QLinearReduceMean",
        inputs: UNARY_INPUTS,
        attributes: "axes keepdims",
        outputs: "reduced",
        lower: lower_mean,
    },
    ContribOp {
        op: "QLinearAveragePool",
        inputs: UNARY_INPUTS,
        attributes: "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides",
        outputs: "Y",
        lower: lower_average_pool,
    },
    ContribOp {
        op: "QLinearGlobalAveragePool",
        inputs: UNARY_INPUTS,
        attributes: "channels_last",
        outputs: "Y",
        lower: lower_global_average_pool,
    },
    ContribOp {
        op: "QLinearConcat",
        inputs: "Y_scale Y_zero_point inputs*",
        attributes: "axis",
        outputs: "Y",
        lower: lower_concat,
    },
    ContribOp {
        op: "QLinearWhere",
        inputs: "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
        attributes: "",
        outputs: "Z",
        lower: lower_where,
    },
    ContribOp {
        op: "QLinearConv",
        inputs: "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        attributes: "auto_pad channels_last dilations group kernel_shape pads strides",
        outputs: "y",
        lower: lower_conv,
    },
];

const UNARY_INPUTS: &str = "X X_scale X_zero_point? Y_scale Y_zero_point?";
const BINARY_INPUTS: &str = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?";

/// Scale and zero point as scalars; an omitted zero point is 0.
fn scale_inputs(op: &mut ContribLowering<'_>, scale: ValueId, zero: Option<ValueId>) -> [Option<ValueId>; 2] {
    [Some(scale), zero].map(|value| value.map(|value| op.reshape_to_scalar(value)))
}

/// Dequantizes the input at a position, with scale and zero point behind it.
pub(super) fn dequantize_input(op: &mut ContribLowering<'_>, at: usize) -> Result<ValueId> {
    let (x, scale, zero) = (op.input(at)?, op.input(at + 1)?, op.optional_input(at + 2));
    Ok(add_dequantize(op, x, scale, zero))
}

fn add_dequantize(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
) -> ValueId {
    let [scale, zero] = scale_inputs(op, scale, zero);
    op.add_node("DequantizeLinear", &[Some(x), scale, zero], Attributes::new(), 1)[0]
}

/// Quantizes the output. Scale and zero point are inputs from position `at`; without a zero point, the dtype is that of `like`.
pub(super) fn set_quantized_output(
    op: &mut ContribLowering<'_>,
    made: ValueId,
    at: usize,
    like: ValueId,
) -> Result<()> {
    let [scale, mut zero] = scale_inputs(op, op.input(at)?, op.optional_input(at + 1));
    if zero.is_none() {
        let none = op.add_int_scalar(0)?;
        zero = Some(op.add_cast_like(none, like));
    }
    let made = op.add_node("QuantizeLinear", &[Some(made), scale, zero], Attributes::new(), 1)[0];
    op.set_output(0, made);
    Ok(())
}

/// Lowers to the ONNX op of the same name. Here, unlike in ONNX, the scale is a single one unless `axis` is given.
fn lower_conversion(op: &mut ContribLowering<'_>, name: &str) -> Result<()> {
    let (x, mut scale, mut zero) = (op.input(0)?, Some(op.input(1)?), op.optional_input(2));
    if op.node.attributes.get("axis").is_none() {
        [scale, zero] = scale_inputs(op, op.input(1)?, zero);
    }
    let attributes = op.copy_attributes(&["axis"]);
    let made = op.add_node(name, &[Some(x), scale, zero], attributes, 1)[0];
    op.set_output(0, made);
    Ok(())
}

fn lower_binary(op: &mut ContribLowering<'_>, name: &str) -> Result<()> {
    let (a, b) = (dequantize_input(op, 0)?, dequantize_input(op, 3)?);
    let made = op.add_op(name, &[a, b]);
    set_quantized_output(op, made, 6, op.input(0)?)
}

fn lower_unary(op: &mut ContribLowering<'_>, name: &str, attributes: &[&str]) -> Result<()> {
    let x = dequantize_input(op, 0)?;
    let attributes = op.copy_attributes(attributes);
    let made = op.add_node(name, &[Some(x)], attributes, 1)[0];
    set_quantized_output(op, made, 3, op.input(0)?)
}

/// Lowers a softmax. Before opset 13, it flattened all dimensions from the axis on.
fn lower_softmax(op: &mut ContribLowering<'_>) -> Result<()> {
    let opset = op.positive_attribute("opset")?;
    let x = dequantize_input(op, 0)?;
    let axis = op.int_attribute("axis", -1)?;
    let made = op.add_op_with("Softmax", &[x], [("axis", Attribute::Int(axis))]);
    if opset < 13
        && let Some(node) = op.last_node()
    {
        node.opset = 11;
    }
    set_quantized_output(op, made, 3, op.input(0)?)
}

fn lower_mean(op: &mut ContribLowering<'_>) -> Result<()> {
    let axes = op.node.attributes.get_ints("axes")?.unwrap_or_default().to_vec();
    let x = dequantize_input(op, 0)?;
    let (axes, attributes) = (op.add_ints(&axes), op.copy_attributes(&["keepdims"]));
    let made = op.add_node("ReduceMean", &[Some(x), Some(axes)], attributes, 1)[0];
    set_quantized_output(op, made, 3, op.input(0)?)
}

fn is_channels_last(op: &ContribLowering<'_>) -> Result<bool> {
    Ok(op.int_attribute("channels_last", 0)? != 0)
}

fn lower_average_pool(op: &mut ContribLowering<'_>) -> Result<()> {
    let (x, attributes) = (dequantize_input(op, 0)?, window_attributes(op));
    let pool =
        |op: &mut ContribLowering<'_>, x| op.add_node("AveragePool", &[Some(x)], attributes.clone(), 1)[0];
    let made = if is_channels_last(op)? {
        let rank = spatial_rank(op, op.input(0)?)?;
        let x = to_channels_first(op, x, rank);
        let made = pool(op, x);
        to_channels_last(op, made, rank)
    } else {
        pool(op, x)
    };
    set_quantized_output(op, made, 3, op.input(0)?)
}

fn lower_global_average_pool(op: &mut ContribLowering<'_>) -> Result<()> {
    let x = dequantize_input(op, 0)?;
    let made = if is_channels_last(op)? {
        // All dimensions but the first and the last, whatever the rank.
        let dims = op.slice_shape(x, 0, None);
        let (rank, one) = (op.add_op("Size", &[dims]), op.add_int_scalar(1)?);
        let end = op.add_op("Sub", &[rank, one]);
        let axes = op.add_op("Range", &[one, end, one]);
        op.add_op_with("ReduceMean", &[x, axes], [("keepdims", Attribute::Int(1))])
    } else {
        op.add_op("GlobalAveragePool", &[x])
    };
    set_quantized_output(op, made, 3, op.input(0)?)
}

fn lower_concat(op: &mut ContribLowering<'_>) -> Result<()> {
    let axis =
        op.node.attributes.get_int("axis")?.ok_or_else(|| invalid_model("the attribute `axis`", "none"))?;
    let given = op.node.inputs.len();
    if given < 5 || given % 3 != 2 {
        return Err(invalid_model("a scale and a zero point with every tensor", format!("{given} inputs")));
    }
    let parts = (2..given).step_by(3).map(|at| dequantize_input(op, at)).collect::<Result<Vec<_>>>()?;
    let made = op.add_concat(&parts, axis);
    set_quantized_output(op, made, 0, op.input(2)?)
}

fn lower_where(op: &mut ContribLowering<'_>) -> Result<()> {
    let (x, y) = (dequantize_input(op, 1)?, dequantize_input(op, 4)?);
    let made = op.add_op("Where", &[op.input(0)?, x, y]);
    set_quantized_output(op, made, 7, op.input(1)?)
}

/// Lowers to `QLinearConv`, which ONNX has for NCHW only.
fn lower_conv(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = op.copy_attributes(&WINDOW_ATTRIBUTES);
    let mut inputs: Vec<Option<ValueId>> = (0..9).map(|index| op.optional_input(index)).collect();
    for at in [1, 2, 6, 7] {
        inputs[at] = Some(op.reshape_to_scalar(op.input(at)?));
    }
    if !is_channels_last(op)? {
        let made = op.add_node("QLinearConv", &inputs, attributes, 1)[0];
        op.set_output(0, made);
        return Ok(());
    }
    let rank = spatial_rank(op, op.input(3)?)?;
    inputs[0] = Some(to_channels_first(op, op.input(0)?, rank));
    let made = op.add_node("QLinearConv", &inputs, attributes, 1)[0];
    let made = to_channels_last(op, made, rank);
    op.set_output(0, made);
    Ok(())
}

/// Dequantizes weights with a single scale or one for each index along an axis.
pub(super) fn dequantize_along(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    mut scale: ValueId,
    mut zero: Option<ValueId>,
    axis: i64,
) -> Result<ValueId> {
    let is_one =
        [Some(scale), zero].map(|value| value.is_none_or(|value| op.has_one_element(value) == Some(true)));
    match (is_one, zero) {
        ([true, true], _) => return Ok(add_dequantize(op, x, scale, zero)),
        // ONNX requires as many scales as zero points.
        ([true, false], Some(zero)) => scale = broadcast_like(op, scale, zero),
        ([false, true], Some(one)) => zero = Some(broadcast_like(op, one, scale)),
        _ => {}
    }
    let attributes = build_attributes([("axis", Attribute::Int(axis))]);
    Ok(op.add_node("DequantizeLinear", &[Some(x), Some(scale), zero], attributes, 1)[0])
}

/// Expands a single element to the shape of another value.
fn broadcast_like(op: &mut ContribLowering<'_>, one: ValueId, like: ValueId) -> ValueId {
    let (one, dims) = (op.reshape_to_scalar(one), op.slice_shape(like, 0, None));
    op.add_op("Expand", &[one, dims])
}

//! Ops on numbers of few bits, as what they are on floats between what makes floats of such numbers and numbers of floats.
//!
//! Passes find the ones that can be computed with integers.

use oarlock_core::{Attribute, Attributes, Result};

use super::lowering::{Lowering, named};
use super::product::{WINDOW, channels_first, channels_last, spatial_rank, window};
use super::row::Row;
use crate::graph::ValueId;
use crate::import::place::wrong;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "QuantizeLinear",
        inputs: "x y_scale y_zero_point?",
        attributes: "axis",
        outputs: "y",
        lower: |op| convert(op, "QuantizeLinear"),
    },
    Row {
        op: "DequantizeLinear",
        inputs: "x x_scale x_zero_point?",
        attributes: "axis",
        outputs: "y",
        lower: |op| convert(op, "DequantizeLinear"),
    },
    Row { op: "QLinearAdd", inputs: PAIR, attributes: "", outputs: "C", lower: |op| binary(op, "Add") },
    Row { op: "QLinearMul", inputs: PAIR, attributes: "", outputs: "C", lower: |op| binary(op, "Mul") },
    Row {
        op: "QLinearSigmoid",
        inputs: SINGLE,
        attributes: "",
        outputs: "Y",
        lower: |op| unary(op, "Sigmoid", &[]),
    },
    Row {
        op: "QLinearLeakyRelu",
        inputs: SINGLE,
        attributes: "alpha",
        outputs: "Y",
        lower: |op| unary(op, "LeakyRelu", &["alpha"]),
    },
    Row { op: "QLinearSoftmax", inputs: SINGLE, attributes: "axis opset", outputs: "Y", lower: softmax },
    Row {
        op: "QLinearReduceMean",
        inputs: SINGLE,
        attributes: "axes keepdims",
        outputs: "reduced",
        lower: mean,
    },
    Row {
        op: "QLinearAveragePool",
        inputs: SINGLE,
        attributes: "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides",
        outputs: "Y",
        lower: average_pool,
    },
    Row {
        op: "QLinearGlobalAveragePool",
        inputs: SINGLE,
        attributes: "channels_last",
        outputs: "Y",
        lower: global_average_pool,
    },
    Row {
        op: "QLinearConcat",
        inputs: "Y_scale Y_zero_point inputs*",
        attributes: "axis",
        outputs: "Y",
        lower: concat,
    },
    Row {
        op: "QLinearWhere",
        inputs: "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
        attributes: "",
        outputs: "Z",
        lower: choose,
    },
    Row {
        op: "QLinearConv",
        inputs: "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        attributes: "auto_pad channels_last dilations group kernel_shape pads strides",
        outputs: "y",
        lower: conv,
    },
];

const SINGLE: &str = "X X_scale X_zero_point? Y_scale Y_zero_point?";
const PAIR: &str = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?";

/// A scale and a zero point, which may be left out where it is 0.
fn step(op: &mut Lowering<'_>, scale: ValueId, zero: Option<ValueId>) -> [Option<ValueId>; 2] {
    [Some(scale), zero].map(|value| value.map(|value| op.scalar(value)))
}

/// The floats that numbers stand for, which lie at a place of the inputs with their scale and zero point behind them.
pub(super) fn real(op: &mut Lowering<'_>, at: usize) -> Result<ValueId> {
    let (x, scale, zero) = (op.input(at)?, op.input(at + 1)?, op.maybe(at + 2));
    Ok(real_of(op, x, scale, zero))
}

fn real_of(op: &mut Lowering<'_>, x: ValueId, scale: ValueId, zero: Option<ValueId>) -> ValueId {
    let [scale, zero] = step(op, scale, zero);
    op.of("DequantizeLinear", &[Some(x), scale, zero], Attributes::new(), 1)[0]
}

/// Gives the output as numbers, whose scale lies at a place of the inputs with its zero point behind it. Without one they are
/// of the type of another value.
pub(super) fn give_quantized(op: &mut Lowering<'_>, made: ValueId, at: usize, like: ValueId) -> Result<()> {
    let [scale, mut zero] = step(op, op.input(at)?, op.maybe(at + 1));
    if zero.is_none() {
        let none = op.whole(0)?;
        zero = Some(op.cast_like(none, like));
    }
    let made = op.of("QuantizeLinear", &[Some(made), scale, zero], Attributes::new(), 1)[0];
    op.give(0, made);
    Ok(())
}

/// The ops that ONNX has too. Here there is one scale for all unless an axis is given.
fn convert(op: &mut Lowering<'_>, name: &str) -> Result<()> {
    let (x, mut scale, mut zero) = (op.input(0)?, Some(op.input(1)?), op.maybe(2));
    if op.node.attributes.get("axis").is_none() {
        [scale, zero] = step(op, op.input(1)?, zero);
    }
    let attributes = op.copied(&["axis"]);
    let made = op.of(name, &[Some(x), scale, zero], attributes, 1)[0];
    op.give(0, made);
    Ok(())
}

fn binary(op: &mut Lowering<'_>, name: &str) -> Result<()> {
    let (a, b) = (real(op, 0)?, real(op, 3)?);
    let made = op.apply(name, &[a, b]);
    give_quantized(op, made, 6, op.input(0)?)
}

fn unary(op: &mut Lowering<'_>, name: &str, attributes: &[&str]) -> Result<()> {
    let x = real(op, 0)?;
    let attributes = op.copied(attributes);
    let made = op.of(name, &[Some(x)], attributes, 1)[0];
    give_quantized(op, made, 3, op.input(0)?)
}

/// Until opset 13 all dimensions from the axis on were one.
fn softmax(op: &mut Lowering<'_>) -> Result<()> {
    let opset = op.count("opset")?;
    let x = real(op, 0)?;
    let axis = op.int("axis", -1)?;
    let made = op.with("Softmax", &[x], [("axis", Attribute::Int(axis))]);
    if opset < 13
        && let Some(node) = op.last()
    {
        node.opset = 11;
    }
    give_quantized(op, made, 3, op.input(0)?)
}

fn mean(op: &mut Lowering<'_>) -> Result<()> {
    let axes = op.node.attributes.ints("axes")?.unwrap_or_default().to_vec();
    let x = real(op, 0)?;
    let (axes, attributes) = (op.ints(&axes), op.copied(&["keepdims"]));
    let made = op.of("ReduceMean", &[Some(x), Some(axes)], attributes, 1)[0];
    give_quantized(op, made, 3, op.input(0)?)
}

fn is_channels_last(op: &Lowering<'_>) -> Result<bool> {
    Ok(op.int("channels_last", 0)? != 0)
}

fn average_pool(op: &mut Lowering<'_>) -> Result<()> {
    let (x, attributes) = (real(op, 0)?, window(op));
    let pool = |op: &mut Lowering<'_>, x| op.of("AveragePool", &[Some(x)], attributes.clone(), 1)[0];
    let made = if is_channels_last(op)? {
        let rank = spatial_rank(op, op.input(0)?)?;
        let x = channels_first(op, x, rank);
        let made = pool(op, x);
        channels_last(op, made, rank)
    } else {
        pool(op, x)
    };
    give_quantized(op, made, 3, op.input(0)?)
}

fn global_average_pool(op: &mut Lowering<'_>) -> Result<()> {
    let x = real(op, 0)?;
    let made = if is_channels_last(op)? {
        // All dimensions between the first and the last one, however many there are.
        let dims = op.sizes(x, 0, None);
        let (rank, one) = (op.apply("Size", &[dims]), op.whole(1)?);
        let end = op.apply("Sub", &[rank, one]);
        let axes = op.apply("Range", &[one, end, one]);
        op.with("ReduceMean", &[x, axes], [("keepdims", Attribute::Int(1))])
    } else {
        op.apply("GlobalAveragePool", &[x])
    };
    give_quantized(op, made, 3, op.input(0)?)
}

fn concat(op: &mut Lowering<'_>) -> Result<()> {
    let axis = op.node.attributes.int("axis")?.ok_or_else(|| wrong("the attribute `axis`", "none"))?;
    let given = op.node.inputs.len();
    if given < 5 || given % 3 != 2 {
        return Err(wrong("a scale and a zero point with every tensor", format!("{given} inputs")));
    }
    let parts = (2..given).step_by(3).map(|at| real(op, at)).collect::<Result<Vec<_>>>()?;
    let made = op.join(&parts, axis);
    give_quantized(op, made, 0, op.input(2)?)
}

fn choose(op: &mut Lowering<'_>) -> Result<()> {
    let (x, y) = (real(op, 1)?, real(op, 4)?);
    let made = op.apply("Where", &[op.input(0)?, x, y]);
    give_quantized(op, made, 7, op.input(1)?)
}

/// ONNX has the same for images whose channels come first.
fn conv(op: &mut Lowering<'_>) -> Result<()> {
    let attributes = op.copied(&WINDOW);
    let mut inputs: Vec<Option<ValueId>> = (0..9).map(|index| op.maybe(index)).collect();
    for at in [1, 2, 6, 7] {
        inputs[at] = Some(op.scalar(op.input(at)?));
    }
    if !is_channels_last(op)? {
        let made = op.of("QLinearConv", &inputs, attributes, 1)[0];
        op.give(0, made);
        return Ok(());
    }
    let rank = spatial_rank(op, op.input(3)?)?;
    inputs[0] = Some(channels_first(op, op.input(0)?, rank));
    let made = op.of("QLinearConv", &inputs, attributes, 1)[0];
    let made = channels_last(op, made, rank);
    op.give(0, made);
    Ok(())
}

/// Floats of weights that have a scale for all, or one for each size along an axis.
pub(super) fn real_along(
    op: &mut Lowering<'_>,
    x: ValueId,
    mut scale: ValueId,
    mut zero: Option<ValueId>,
    axis: i64,
) -> Result<ValueId> {
    let is_one = [Some(scale), zero].map(|value| value.is_none_or(|value| op.is_one(value) == Some(true)));
    match (is_one, zero) {
        ([true, true], _) => return Ok(real_of(op, x, scale, zero)),
        // ONNX has as many of both.
        ([true, false], Some(zero)) => scale = repeated(op, scale, zero),
        ([false, true], Some(one)) => zero = Some(repeated(op, one, scale)),
        _ => {}
    }
    let attributes = named([("axis", Attribute::Int(axis))]);
    Ok(op.of("DequantizeLinear", &[Some(x), Some(scale), zero], attributes, 1)[0])
}

/// One element as often as another value has some.
fn repeated(op: &mut Lowering<'_>, one: ValueId, like: ValueId) -> ValueId {
    let (one, dims) = (op.scalar(one), op.sizes(like, 0, None));
    op.apply("Expand", &[one, dims])
}

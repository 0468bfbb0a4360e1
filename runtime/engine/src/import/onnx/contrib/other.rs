//! Ops that ONNX has too by now, nearly as they are there.

use oarlock_core::{Attribute, Dtype, Result};

use super::lowering::{Lowering, named};
use super::product::{channels_first, channels_last, spatial_rank, window};
use super::row::{Row, unsupported};
use crate::graph::ValueId;

pub(super) const OPS: &[Row] = &[
    Row { op: "CDist", inputs: "A B", attributes: "metric", outputs: "C", lower: distances },
    Row { op: "ExpandDims", inputs: "X axis", attributes: "", outputs: "Y", lower: expand_dims },
    Row { op: "GatherND", inputs: "data indices", attributes: "", outputs: "output", lower: gather_nd },
    Row {
        op: "GridSample",
        inputs: "X Grid",
        attributes: "align_corners mode padding_mode",
        outputs: "Y",
        lower: grid_sample,
    },
    Row {
        op: "NhwcMaxPool",
        inputs: "x",
        attributes: "auto_pad ceil_mode dilations kernel_shape pads strides",
        outputs: "y",
        lower: max_pool,
    },
    Row { op: "Pad", inputs: "data pads value?", attributes: "mode", outputs: "output", lower: pad },
    Row { op: "Range", inputs: "start limit delta?", attributes: "", outputs: "Y", lower: range },
    Row { op: "Trilu", inputs: "X k?", attributes: "upper", outputs: "Y", lower: trilu },
    Row { op: "Unique", inputs: "x", attributes: "", outputs: "y idx counts", lower: unique },
];

fn expand_dims(op: &mut Lowering<'_>) -> Result<()> {
    let axis = op.cast(op.input(1)?, Dtype::I64);
    let axis = op.reshape(axis, &[-1]);
    let made = op.apply("Unsqueeze", &[op.input(0)?, axis]);
    op.give(0, made);
    Ok(())
}

fn gather_nd(op: &mut Lowering<'_>) -> Result<()> {
    let indices = op.cast(op.input(1)?, Dtype::I64);
    let made = op.apply("GatherND", &[op.input(0)?, indices]);
    op.give(0, made);
    Ok(())
}

/// Between each row of one matrix and each of another, from their product: the differences of all pairs need not fit into
/// memory.
fn distances(op: &mut Lowering<'_>) -> Result<()> {
    let is_root = match op.node.attributes.string("metric")? {
        None | Some("sqeuclidean") => false,
        Some("euclidean") => true,
        Some(found) => return Err(unsupported("`euclidean` or `sqeuclidean` for `metric`", found)),
    };
    let (left, right) = (op.input(0)?, op.input(1)?);
    let (left_squares, right_squares) = (squares(op, left)?, squares(op, right)?);
    let turned = op.transpose(right, &[1, 0]);
    let (right_squares, two) = (op.transpose(right_squares, &[1, 0]), op.number(2.0, left)?);
    let product = op.apply("MatMul", &[left, turned]);
    let product = op.apply("Mul", &[product, two]);
    let sum = op.apply("Add", &[left_squares, right_squares]);
    let difference = op.apply("Sub", &[sum, product]);
    // Rounding may leave less than nothing of two rows that are equal.
    let mut made = op.apply("Relu", &[difference]);
    if is_root {
        made = op.apply("Sqrt", &[made]);
    }
    op.give(0, made);
    Ok(())
}

/// The sum of the squares of each row, as a column.
fn squares(op: &mut Lowering<'_>, rows: ValueId) -> Result<ValueId> {
    let axes = op.ints(&[1]);
    Ok(op.apply("ReduceSumSquare", &[rows, axes]))
}

/// ONNX calls the ways between pixels otherwise by now.
fn grid_sample(op: &mut Lowering<'_>) -> Result<()> {
    let mut attributes = op.copied(&["align_corners", "padding_mode"]);
    let mode = match op.node.attributes.string("mode")? {
        None | Some("bilinear") => "linear",
        Some("bicubic") => "cubic",
        Some(other) => other,
    };
    attributes.set("mode", Attribute::String(mode.to_owned()));
    let made = op.of("GridSample", &[Some(op.input(0)?), Some(op.input(1)?)], attributes, 1)[0];
    op.give(0, made);
    Ok(())
}

fn trilu(op: &mut Lowering<'_>) -> Result<()> {
    let attributes = op.copied(&["upper"]);
    let made = op.of("Trilu", &[Some(op.input(0)?), op.maybe(1)], attributes, 1)[0];
    op.give(0, made);
    Ok(())
}

fn max_pool(op: &mut Lowering<'_>) -> Result<()> {
    let (x, mut attributes) = (op.input(0)?, window(op));
    if let Some(dilations) = op.node.attributes.get("dilations") {
        attributes.set("dilations", dilations.clone());
    }
    let rank = spatial_rank(op, x)?;
    let x = channels_first(op, x, rank);
    let made = op.of("MaxPool", &[Some(x)], attributes, 1)[0];
    let made = channels_last(op, made, rank);
    op.give(0, made);
    Ok(())
}

fn pad(op: &mut Lowering<'_>) -> Result<()> {
    let pads = op.reshape(op.input(1)?, &[-1]);
    let value = op.maybe(2).map(|value| op.scalar(value));
    let made = op.of("Pad", &[Some(op.input(0)?), Some(pads), value], op.copied(&["mode"]), 1)[0];
    op.give(0, made);
    Ok(())
}

fn range(op: &mut Lowering<'_>) -> Result<()> {
    let start = op.input(0)?;
    let delta = match op.maybe(2) {
        Some(delta) => delta,
        None => op.number(1.0, start)?,
    };
    let [start, limit, delta] = [start, op.input(1)?, delta].map(|value| op.reshape(value, &[]));
    let made = op.apply("Range", &[start, limit, delta]);
    op.give(0, made);
    Ok(())
}

/// In the order in which they come first.
fn unique(op: &mut Lowering<'_>) -> Result<()> {
    let attributes = named([("sorted", Attribute::Int(0))]);
    let made = op.of("Unique", &[Some(op.input(0)?)], attributes, 4);
    op.give(0, made[0]);
    op.give(1, made[2]);
    op.give(2, made[3]);
    Ok(())
}

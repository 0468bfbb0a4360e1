//! Contrib ops that ONNX has adopted since, with small differences.

use oarlock_core::{Attribute, Dtype, Result};

use super::contrib_op::{ContribOp, unsupported_error};
use super::lowering::{ContribLowering, build_attributes};
use super::product::{spatial_rank, to_channels_first, to_channels_last, window_attributes};
use crate::graph::ValueId;

pub(super) const RENAMED_OPS: &[ContribOp] = &[
    ContribOp { op: "CDist", inputs: "A B", attributes: "metric", outputs: "C", lower: lower_cdist },
    ContribOp { op: "ExpandDims", inputs: "X axis", attributes: "", outputs: "Y", lower: lower_expand_dims },
    ContribOp {
        op: "GatherND",
        inputs: "data indices",
        attributes: "",
        outputs: "output",
        lower: lower_gather_nd,
    },
    ContribOp {
        op: "GridSample",
        inputs: "X Grid",
        attributes: "align_corners mode padding_mode",
        outputs: "Y",
        lower: lower_grid_sample,
    },
    ContribOp {
        op: "NhwcMaxPool",
        inputs: "x",
        attributes: "auto_pad ceil_mode dilations kernel_shape pads strides",
        outputs: "y",
        lower: lower_max_pool,
    },
    ContribOp {
        op: "Pad",
        inputs: "data pads value?",
        attributes: "mode",
        outputs: "output",
        lower: lower_pad,
    },
    ContribOp { op: "Range", inputs: "start limit delta?", attributes: "", outputs: "Y", lower: lower_range },
    ContribOp { op: "Trilu", inputs: "X k?", attributes: "upper", outputs: "Y", lower: lower_trilu },
    ContribOp { op: "Unique", inputs: "x", attributes: "", outputs: "y idx counts", lower: lower_unique },
];

fn lower_expand_dims(op: &mut ContribLowering<'_>) -> Result<()> {
    let axis = op.add_cast(op.input(1)?, Dtype::I64);
    let axis = op.add_reshape(axis, &[-1]);
    let result = op.add_op("Unsqueeze", &[op.input(0)?, axis]);
    op.set_output(0, result);
    Ok(())
}

fn lower_gather_nd(op: &mut ContribLowering<'_>) -> Result<()> {
    let indices = op.add_cast(op.input(1)?, Dtype::I64);
    let result = op.add_op("GatherND", &[op.input(0)?, indices]);
    op.set_output(0, result);
    Ok(())
}

/// Distances between all rows of two matrices, computed from their product: materializing the differences of all pairs might
/// exceed memory.
fn lower_cdist(op: &mut ContribLowering<'_>) -> Result<()> {
    let is_root = match op.node.attributes.get_string("metric")? {
        None | Some("sqeuclidean") => false,
        Some("euclidean") => true,
        Some(found) => return Err(unsupported_error("`euclidean` or `sqeuclidean` for `metric`", found)),
    };
    let (left, right) = (op.input(0)?, op.input(1)?);
    let (left_squares, right_squares) = (row_square_sums(op, left)?, row_square_sums(op, right)?);
    let transposed = op.add_transpose(right, &[1, 0]);
    let (right_squares, two) = (op.add_transpose(right_squares, &[1, 0]), op.add_scalar_like(2.0, left)?);
    let product = op.add_op("MatMul", &[left, transposed]);
    let product = op.add_op("Mul", &[product, two]);
    let sum = op.add_op("Add", &[left_squares, right_squares]);
    let difference = op.add_op("Sub", &[sum, product]);
    // Rounding may make the squared distance of equal rows negative.
    let mut result = op.add_op("Relu", &[difference]);
    if is_root {
        result = op.add_op("Sqrt", &[result]);
    }
    op.set_output(0, result);
    Ok(())
}

fn row_square_sums(op: &mut ContribLowering<'_>, rows: ValueId) -> Result<ValueId> {
    let axes = op.add_ints(&[1]);
    Ok(op.add_op("ReduceSumSquare", &[rows, axes]))
}

/// ONNX has renamed the interpolation modes since.
fn lower_grid_sample(op: &mut ContribLowering<'_>) -> Result<()> {
    let mut attributes = op.copy_attributes(&["align_corners", "padding_mode"]);
    let mode = match op.node.attributes.get_string("mode")? {
        None | Some("bilinear") => "linear",
        Some("bicubic") => "cubic",
        Some(other) => other,
    };
    attributes.set("mode", Attribute::String(mode.to_owned()));
    let result = op.add_node("GridSample", &[Some(op.input(0)?), Some(op.input(1)?)], attributes, 1)[0];
    op.set_output(0, result);
    Ok(())
}

fn lower_trilu(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = op.copy_attributes(&["upper"]);
    let result = op.add_node("Trilu", &[Some(op.input(0)?), op.optional_input(1)], attributes, 1)[0];
    op.set_output(0, result);
    Ok(())
}

fn lower_max_pool(op: &mut ContribLowering<'_>) -> Result<()> {
    let (x, mut attributes) = (op.input(0)?, window_attributes(op));
    if let Some(dilations) = op.node.attributes.get("dilations") {
        attributes.set("dilations", dilations.clone());
    }
    let rank = spatial_rank(op, x)?;
    let x = to_channels_first(op, x, rank);
    let result = op.add_node("MaxPool", &[Some(x)], attributes, 1)[0];
    let result = to_channels_last(op, result, rank);
    op.set_output(0, result);
    Ok(())
}

fn lower_pad(op: &mut ContribLowering<'_>) -> Result<()> {
    let pads = op.add_reshape(op.input(1)?, &[-1]);
    let value = op.optional_input(2).map(|value| op.reshape_to_scalar(value));
    let result =
        op.add_node("Pad", &[Some(op.input(0)?), Some(pads), value], op.copy_attributes(&["mode"]), 1)[0];
    op.set_output(0, result);
    Ok(())
}

fn lower_range(op: &mut ContribLowering<'_>) -> Result<()> {
    let start = op.input(0)?;
    let delta = match op.optional_input(2) {
        Some(delta) => delta,
        None => op.add_scalar_like(1.0, start)?,
    };
    let [start, limit, delta] = [start, op.input(1)?, delta].map(|value| op.add_reshape(value, &[]));
    let result = op.add_op("Range", &[start, limit, delta]);
    op.set_output(0, result);
    Ok(())
}

/// Keeps the order of first occurrence.
fn lower_unique(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = build_attributes([("sorted", Attribute::Int(0))]);
    let result = op.add_node("Unique", &[Some(op.input(0)?)], attributes, 4);
    op.set_output(0, result[0]);
    op.set_output(1, result[2]);
    op.set_output(2, result[3]);
    Ok(())
}

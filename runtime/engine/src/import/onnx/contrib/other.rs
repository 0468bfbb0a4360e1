//! Ops that ONNX has too by now, nearly as they are there.

use oarlock_core::{Attribute, Dtype, Result};

use super::lowering::{Lowering, named};
use super::product::{channels_first, channels_last, spatial_rank, window};
use super::row::Row;

pub(super) const OPS: &[Row] = &[
    Row { op: "ExpandDims", inputs: "X axis", attributes: "", outputs: "Y", lower: expand_dims },
    Row { op: "GatherND", inputs: "data indices", attributes: "", outputs: "output", lower: gather_nd },
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

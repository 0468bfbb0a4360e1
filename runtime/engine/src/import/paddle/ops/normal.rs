//! What is made to have a mean of zero and a deviation of one, or a length of one.

use oarlock_core::{Constant, Error, Result};

use super::spatial::{first, last};
use super::{Table, float, int, like};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most groups of channels that are normalised one by one; a constant is written for each.
const MOST_GROUPS: usize = 256;

pub(super) const OPS: Table = &[
    ("affine_channel", affine_channel),
    ("batch_norm", batch_norm),
    ("data_norm", data_norm),
    ("group_norm", group_norm),
    ("instance_norm", instance_norm),
    ("layer_norm", layer_norm),
    ("lrn", local_response),
    ("norm", unit),
    ("sync_batch_norm", batch_norm),
];

fn epsilon(op: &OpDesc) -> oarlock_core::Attribute {
    float(op.float("epsilon", 1e-5))
}

/// A vector with one number for each channel, aligned with the channels of an operand.
fn of_channels<'m>(program: &mut Program<'m>, x: Operand<'m>, vector: ValueId) -> Result<ValueId> {
    let axes: Vec<i64> = (1..x.rank()?.saturating_sub(1)).collect();
    let axes = program.ints(&axes);
    Ok(program.apply("Unsqueeze", &[vector, axes]))
}

fn batch_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.flag("is_test", false) && !op.flag("use_global_stats", false) {
        return Err(Error::unimplemented("expected a program for inference, found one for training"));
    }
    let x = program.input(op, "X")?;
    let mut operands = vec![first(program, op, "data_layout", x)?];
    for name in ["Scale", "Bias", "Mean", "Variance"] {
        operands.push(program.input(op, name)?.id);
    }
    let made = program.node("BatchNormalization", &operands, with([("epsilon", epsilon(op))]));
    let made = last(program, op, "data_layout", x, made)?;
    program.give(op, "Y", made)
}

/// The dimensions from an axis on. Scale and bias are flat, and ONNX wants them with the dimensions that they are for.
fn layer_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (rank, axis) = (x.rank()?, x.axis(op.int("begin_norm_axis", 1))?);
    let mut operands = vec![x.id];
    for name in ["Scale", "Bias"] {
        let mut given = program.maybe(op, name)?.map(|given| given.id);
        if let Some(flat) = given
            && axis != rank - 1
        {
            let shape = super::sizes(program, x, axis, rank);
            given = Some(program.apply("Reshape", &[flat, shape]));
        }
        match (name, given) {
            ("Scale", None) => operands.push(like(program, x, 1.0)?),
            (_, given) => operands.extend(given),
        }
    }
    let attributes = with([("axis", int(axis - rank)), ("epsilon", epsilon(op))]);
    let made = program.node("LayerNormalization", &operands, attributes);
    program.give(op, "Y", made)
}

/// A constant with one number for each channel.
fn constant<'m>(program: &mut Program<'m>, x: Operand<'m>, count: i64, value: f64) -> Result<ValueId> {
    let many = usize::try_from(count).ok().filter(|many| *many <= MOST_GROUPS * MOST_GROUPS);
    let many = many.ok_or_else(|| wrong("a number of channels", count))?;
    let bytes = super::bytes_of(&vec![value; many], x.dtype())?;
    Ok(program.constant(Constant::new(x.dtype(), &[count], bytes)?))
}

fn instance_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut operands = vec![x.id];
    for (name, without) in [("Scale", 1.0), ("Bias", 0.0)] {
        operands.push(match program.maybe(op, name)? {
            Some(given) => given.id,
            None => {
                let channels = x.known_size(1)?;
                constant(program, x, channels, without)?
            }
        });
    }
    let made = program.node("InstanceNormalization", &operands, with([("epsilon", epsilon(op))]));
    program.give(op, "Y", made)
}

/// Each group of channels is normalised, and then each channel is scaled. ONNX has this as one op later than here.
fn group_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, groups) = (program.input(op, "X")?, op.int("groups", 1));
    if !usize::try_from(groups).is_ok_and(|count| (1..=MOST_GROUPS).contains(&count)) {
        return Err(wrong(format!("1 to {MOST_GROUPS} groups"), groups));
    }
    let from = first(program, op, "data_layout", x)?;
    let grouped = program.ints(&[0, groups, -1]);
    let grouped = program.apply("Reshape", &[from, grouped]);
    let (ones, zeros) = (constant(program, x, groups, 1.0)?, constant(program, x, groups, 0.0)?);
    let normal =
        program.node("InstanceNormalization", &[grouped, ones, zeros], with([("epsilon", epsilon(op))]));
    let shape = program.apply("Shape", &[from]);
    let mut made = program.apply("Reshape", &[normal, shape]);
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        if let Some(given) = program.maybe(op, name)? {
            let aligned = of_channels(program, x, given.id)?;
            made = program.apply(step, &[made, aligned]);
        }
    }
    let made = last(program, op, "data_layout", x, made)?;
    program.give(op, "Y", made)
}

fn affine_channel<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut made = first(program, op, "data_layout", x)?;
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        let given = program.input(op, name)?.id;
        let aligned = of_channels(program, x, given)?;
        made = program.apply(step, &[made, aligned]);
    }
    let made = last(program, op, "data_layout", x, made)?;
    program.give(op, "Out", made)
}

/// By mean and deviation that are written as sums over so many examples.
fn data_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let count = program.input(op, "BatchSize")?.id;
    let (sum, squares) = (program.input(op, "BatchSum")?.id, program.input(op, "BatchSquareSum")?.id);
    let mean = program.apply("Div", &[sum, count]);
    let inverse = program.apply("Div", &[count, squares]);
    let factor = program.apply("Sqrt", &[inverse]);
    let distance = program.apply("Sub", &[x, mean]);
    let mut made = program.apply("Mul", &[distance, factor]);
    for (name, step) in [("scale_w", "Mul"), ("bias", "Add")] {
        if let Some(given) = program.maybe(op, name)? {
            made = program.apply(step, &[made, given.id]);
        }
    }
    program.give(op, "Y", made)
}

/// ONNX divides the factor of the sum by the number of channels that are summed up.
fn local_response<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, channels) = (program.input(op, "X")?, op.int("n", 5));
    let from = first(program, op, "data_format", x)?;
    let attributes = with([
        ("size", int(channels)),
        ("alpha", float(op.float("alpha", 1e-4) * channels as f64)),
        ("beta", float(op.float("beta", 0.75))),
        ("bias", float(op.float("k", 2.0))),
    ]);
    let made = program.node("LRN", &[from], attributes);
    let made = last(program, op, "data_format", x, made)?;
    program.give(op, "Out", made)
}

/// Vectors along an axis divided by their length.
fn unit<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = program.ints(&[op.int("axis", -1)]);
    let squares = program.node("ReduceSumSquare", &[x.id, axis], with([("keepdims", int(1))]));
    let little = like(program, x, op.float("epsilon", 1e-10))?;
    let sum = program.apply("Add", &[squares, little]);
    let length = program.apply("Sqrt", &[sum]);
    let made = program.apply("Div", &[x.id, length]);
    program.give(op, "Out", made)
}

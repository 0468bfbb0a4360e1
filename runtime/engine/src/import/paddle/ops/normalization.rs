//! What is made to have a mean of zero and a deviation of one, or a length of one.

use oarlock_core::{Constant, Error, Result};

use super::convolution::{restore_channels, to_channels_first};
use super::{TranslatorTable, add_scalar_like, float_attribute, int_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// The most groups of channels that are normalised one by one; a constant is written for each.
const MOST_NORMALIZED_GROUPS: usize = 256;

pub(super) const NORMALIZATION_OPS: TranslatorTable = &[
    ("affine_channel", lower_affine_channel),
    ("batch_norm", lower_batch_norm),
    ("data_norm", lower_data_norm),
    ("group_norm", lower_group_norm),
    ("instance_norm", lower_instance_norm),
    ("layer_norm", lower_layer_norm),
    ("lrn", lower_local_response_norm),
    ("norm", lower_unit_norm),
    ("sync_batch_norm", lower_batch_norm),
];

fn epsilon_attribute(op: &OpDesc) -> oarlock_core::Attribute {
    float_attribute(op.float_attribute("epsilon", 1e-5))
}

/// A vector with one number for each channel, aligned with the channels of an operand.
fn align_with_channels<'m>(
    program: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    vector: ValueId,
) -> Result<ValueId> {
    let axes: Vec<i64> = (1..x.rank()?.saturating_sub(1)).collect();
    let axes = program.add_ints(&axes);
    Ok(program.add_op("Unsqueeze", &[vector, axes]))
}

fn lower_batch_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.bool_attribute("is_test", false) && !op.bool_attribute("use_global_stats", false) {
        return Err(Error::unimplemented("expected a program for inference, found one for training"));
    }
    let x = program.input(op, "X")?;
    let mut operands = vec![to_channels_first(program, op, "data_layout", x)?];
    for name in ["Scale", "Bias", "Mean", "Variance"] {
        operands.push(program.input(op, name)?.id);
    }
    let made = program.add_op_with(
        "BatchNormalization",
        &operands,
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    let made = restore_channels(program, op, "data_layout", x, made)?;
    program.set_output(op, "Y", made)
}

/// The dimensions from an axis on. Scale and bias are flat, and ONNX wants them with the dimensions that they are for.
fn lower_layer_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (rank, axis) = (x.rank()?, x.normalize_axis(op.int_attribute("begin_norm_axis", 1))?);
    let mut operands = vec![x.id];
    for name in ["Scale", "Bias"] {
        let mut given = program.optional_input(op, name)?.map(|given| given.id);
        if let Some(flat) = given
            && axis != rank - 1
        {
            let shape = super::slice_shape(program, x, axis, rank);
            given = Some(program.add_op("Reshape", &[flat, shape]));
        }
        match (name, given) {
            ("Scale", None) => operands.push(add_scalar_like(program, x, 1.0)?),
            (_, given) => operands.extend(given),
        }
    }
    let attributes =
        build_attributes([("axis", int_attribute(axis - rank)), ("epsilon", epsilon_attribute(op))]);
    let made = program.add_op_with("LayerNormalization", &operands, attributes);
    program.set_output(op, "Y", made)
}

/// A constant with one number for each channel.
fn channel_constant<'m>(
    program: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    count: i64,
    value: f64,
) -> Result<ValueId> {
    let many =
        usize::try_from(count).ok().filter(|many| *many <= MOST_NORMALIZED_GROUPS * MOST_NORMALIZED_GROUPS);
    let many = many.ok_or_else(|| invalid_model("a number of channels", count))?;
    let bytes = super::encode_numbers(&vec![value; many], x.dtype())?;
    Ok(program.add_constant(Constant::new(x.dtype(), &[count], bytes)?))
}

fn lower_instance_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut operands = vec![x.id];
    for (name, without) in [("Scale", 1.0), ("Bias", 0.0)] {
        operands.push(match program.optional_input(op, name)? {
            Some(given) => given.id,
            None => {
                let channels = x.known_dimension_size(1)?;
                channel_constant(program, x, channels, without)?
            }
        });
    }
    let made = program.add_op_with(
        "InstanceNormalization",
        &operands,
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    program.set_output(op, "Y", made)
}

/// Each group of channels is normalised, and then each channel is scaled. ONNX has this as one op later than here.
fn lower_group_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, groups) = (program.input(op, "X")?, op.int_attribute("groups", 1));
    if !usize::try_from(groups).is_ok_and(|count| (1..=MOST_NORMALIZED_GROUPS).contains(&count)) {
        return Err(invalid_model(format!("1 to {MOST_NORMALIZED_GROUPS} groups"), groups));
    }
    let from = to_channels_first(program, op, "data_layout", x)?;
    let grouped = program.add_ints(&[0, groups, -1]);
    let grouped = program.add_op("Reshape", &[from, grouped]);
    let (ones, zeros) =
        (channel_constant(program, x, groups, 1.0)?, channel_constant(program, x, groups, 0.0)?);
    let normal = program.add_op_with(
        "InstanceNormalization",
        &[grouped, ones, zeros],
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    let shape = program.add_op("Shape", &[from]);
    let mut made = program.add_op("Reshape", &[normal, shape]);
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        if let Some(given) = program.optional_input(op, name)? {
            let aligned = align_with_channels(program, x, given.id)?;
            made = program.add_op(step, &[made, aligned]);
        }
    }
    let made = restore_channels(program, op, "data_layout", x, made)?;
    program.set_output(op, "Y", made)
}

fn lower_affine_channel<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut made = to_channels_first(program, op, "data_layout", x)?;
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        let given = program.input(op, name)?.id;
        let aligned = align_with_channels(program, x, given)?;
        made = program.add_op(step, &[made, aligned]);
    }
    let made = restore_channels(program, op, "data_layout", x, made)?;
    program.set_output(op, "Out", made)
}

/// By mean and deviation that are written as sums over so many examples.
fn lower_data_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let count = program.input(op, "BatchSize")?.id;
    let (sum, squares) = (program.input(op, "BatchSum")?.id, program.input(op, "BatchSquareSum")?.id);
    let mean = program.add_op("Div", &[sum, count]);
    let inverse = program.add_op("Div", &[count, squares]);
    let factor = program.add_op("Sqrt", &[inverse]);
    let distance = program.add_op("Sub", &[x, mean]);
    let mut made = program.add_op("Mul", &[distance, factor]);
    for (name, step) in [("scale_w", "Mul"), ("bias", "Add")] {
        if let Some(given) = program.optional_input(op, name)? {
            made = program.add_op(step, &[made, given.id]);
        }
    }
    program.set_output(op, "Y", made)
}

/// ONNX divides the factor of the sum by the number of channels that are summed up.
fn lower_local_response_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, channels) = (program.input(op, "X")?, op.int_attribute("n", 5));
    let from = to_channels_first(program, op, "data_format", x)?;
    let attributes = build_attributes([
        ("size", int_attribute(channels)),
        ("alpha", float_attribute(op.float_attribute("alpha", 1e-4) * channels as f64)),
        ("beta", float_attribute(op.float_attribute("beta", 0.75))),
        ("bias", float_attribute(op.float_attribute("k", 2.0))),
    ]);
    let made = program.add_op_with("LRN", &[from], attributes);
    let made = restore_channels(program, op, "data_format", x, made)?;
    program.set_output(op, "Out", made)
}

/// Vectors along an axis divided by their length.
fn lower_unit_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = program.add_ints(&[op.int_attribute("axis", -1)]);
    let squares = program.add_op_with(
        "ReduceSumSquare",
        &[x.id, axis],
        build_attributes([("keepdims", int_attribute(1))]),
    );
    let little = add_scalar_like(program, x, op.float_attribute("epsilon", 1e-10))?;
    let sum = program.add_op("Add", &[squares, little]);
    let length = program.add_op("Sqrt", &[sum]);
    let made = program.add_op("Div", &[x.id, length]);
    program.set_output(op, "Out", made)
}

//! Normalization to mean 0 and deviation 1, or to unit length.

use oarlock_core::{Constant, Error, Result};

use super::convolution::{restore_channels, to_channels_first};
use super::{TranslatorTable, add_scalar_like, float_attribute, int_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// Limit on groups in a group normalization; each needs constants.
const MAX_NORMALIZED_GROUPS: usize = 256;

pub(super) const NORMALIZATION_OPS: TranslatorTable = &[
    ("affine_channel", lower_affine_channel),
    ("batch_norm", lower_batch_norm),
    ("data_norm", lower_data_norm),
    ("fused_rms_norm_quant", lower_rms_norm),
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

/// Aligns a vector of channels with the channel dimension of an operand.
fn align_with_channels<'m>(
    importer: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    vector: ValueId,
) -> Result<ValueId> {
    let axes: Vec<i64> = (1..x.rank()?.saturating_sub(1)).collect();
    let axes = importer.add_ints(&axes);
    Ok(importer.add_op("Unsqueeze", &[vector, axes]))
}

fn lower_batch_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.bool_attribute("is_test", false) && !op.bool_attribute("use_global_stats", false) {
        return Err(Error::unimplemented("expected a program for inference, found one for training"));
    }
    let x = importer.input(op, "X")?;
    let mut operands = vec![to_channels_first(importer, op, "data_layout", x)?];
    for name in ["Scale", "Bias", "Mean", "Variance"] {
        operands.push(importer.input(op, name)?.id);
    }
    let result = importer.add_op_with(
        "BatchNormalization",
        &operands,
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    let result = restore_channels(importer, op, "data_layout", x, result)?;
    importer.set_output(op, "Y", result)
}

/// Layer normalization from an axis on. Scale and bias are flat; ONNX wants them in the normalized shape.
fn lower_layer_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (rank, axis) = (x.rank()?, x.normalize_axis(op.int_attribute("begin_norm_axis", 1))?);
    let mut operands = vec![x.id];
    for name in ["Scale", "Bias"] {
        let mut given = importer.optional_input(op, name)?.map(|given| given.id);
        if let Some(flat) = given
            && axis != rank - 1
        {
            let shape = super::slice_shape(importer, x, axis, rank);
            given = Some(importer.add_op("Reshape", &[flat, shape]));
        }
        match (name, given) {
            ("Scale", None) => operands.push(add_scalar_like(importer, x, 1.0)?),
            (_, given) => operands.extend(given),
        }
    }
    let attributes =
        build_attributes([("axis", int_attribute(axis - rank)), ("epsilon", epsilon_attribute(op))]);
    let result = importer.add_op_with("LayerNormalization", &operands, attributes);
    importer.set_output(op, "Y", result)
}

/// A constant with an element for each channel.
fn channel_constant<'m>(
    importer: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    count: i64,
    value: f64,
) -> Result<ValueId> {
    let many =
        usize::try_from(count).ok().filter(|many| *many <= MAX_NORMALIZED_GROUPS * MAX_NORMALIZED_GROUPS);
    let many = many.ok_or_else(|| invalid_model("a number of channels", count))?;
    let bytes = super::encode_numbers(&vec![value; many], x.dtype())?;
    Ok(importer.add_constant(Constant::new(x.dtype(), &[count], bytes)?))
}

fn lower_instance_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut operands = vec![x.id];
    for (name, without) in [("Scale", 1.0), ("Bias", 0.0)] {
        operands.push(match importer.optional_input(op, name)? {
            Some(given) => given.id,
            None => {
                let channels = x.known_dimension_size(1)?;
                channel_constant(importer, x, channels, without)?
            }
        });
    }
    let result = importer.add_op_with(
        "InstanceNormalization",
        &operands,
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    importer.set_output(op, "Y", result)
}

/// Normalizes groups of channels, then scales each channel. ONNX has an op for this only in a later opset.
fn lower_group_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, groups) = (importer.input(op, "X")?, op.int_attribute("groups", 1));
    if !usize::try_from(groups).is_ok_and(|count| (1..=MAX_NORMALIZED_GROUPS).contains(&count)) {
        return Err(invalid_model(format!("1 to {MAX_NORMALIZED_GROUPS} groups"), groups));
    }
    let from = to_channels_first(importer, op, "data_layout", x)?;
    let grouped = importer.add_ints(&[0, groups, -1]);
    let grouped = importer.add_op("Reshape", &[from, grouped]);
    let (ones, zeros) =
        (channel_constant(importer, x, groups, 1.0)?, channel_constant(importer, x, groups, 0.0)?);
    let normal = importer.add_op_with(
        "InstanceNormalization",
        &[grouped, ones, zeros],
        build_attributes([("epsilon", epsilon_attribute(op))]),
    );
    let shape = importer.add_op("Shape", &[from]);
    let mut result = importer.add_op("Reshape", &[normal, shape]);
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        if let Some(given) = importer.optional_input(op, name)? {
            let aligned = align_with_channels(importer, x, given.id)?;
            result = importer.add_op(step, &[result, aligned]);
        }
    }
    let result = restore_channels(importer, op, "data_layout", x, result)?;
    importer.set_output(op, "Y", result)
}

fn lower_affine_channel<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut result = to_channels_first(importer, op, "data_layout", x)?;
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        let given = importer.input(op, name)?.id;
        let aligned = align_with_channels(importer, x, given)?;
        result = importer.add_op(step, &[result, aligned]);
    }
    let result = restore_channels(importer, op, "data_layout", x, result)?;
    importer.set_output(op, "Out", result)
}

/// Normalizes by sums over a number of examples, which the model stores instead of mean and deviation.
fn lower_data_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let count = importer.input(op, "BatchSize")?.id;
    let (sum, squares) = (importer.input(op, "BatchSum")?.id, importer.input(op, "BatchSquareSum")?.id);
    let mean = importer.add_op("Div", &[sum, count]);
    let inverse = importer.add_op("Div", &[count, squares]);
    let factor = importer.add_op("Sqrt", &[inverse]);
    let distance = importer.add_op("Sub", &[x, mean]);
    let mut result = importer.add_op("Mul", &[distance, factor]);
    for (name, step) in [("scale_w", "Mul"), ("bias", "Add")] {
        if let Some(given) = importer.optional_input(op, name)? {
            result = importer.add_op(step, &[result, given.id]);
        }
    }
    importer.set_output(op, "Y", result)
}

/// ONNX divides `alpha` by the number of channels in the sum, so it is multiplied by that here.
fn lower_local_response_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, channels) = (importer.input(op, "X")?, op.int_attribute("n", 5));
    let from = to_channels_first(importer, op, "data_format", x)?;
    let attributes = build_attributes([
        ("size", int_attribute(channels)),
        ("alpha", float_attribute(op.float_attribute("alpha", 1e-4) * channels as f64)),
        ("beta", float_attribute(op.float_attribute("beta", 0.75))),
        ("bias", float_attribute(op.float_attribute("k", 2.0))),
    ]);
    let result = importer.add_op_with("LRN", &[from], attributes);
    let result = restore_channels(importer, op, "data_format", x, result)?;
    importer.set_output(op, "Out", result)
}

/// Divides vectors along an axis by their length.
fn lower_unit_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = importer.add_ints(&[op.int_attribute("axis", -1)]);
    let squares = importer.add_op_with(
        "ReduceSumSquare",
        &[x.id, axis],
        build_attributes([("keepdims", int_attribute(1))]),
    );
    let little = add_scalar_like(importer, x, op.float_attribute("epsilon", 1e-10))?;
    let sum = importer.add_op("Add", &[squares, little]);
    let length = importer.add_op("Sqrt", &[sum]);
    let result = importer.add_op("Div", &[x.id, length]);
    importer.set_output(op, "Out", result)
}

/// Divides by the root of the mean square from an axis on.
fn lower_rms_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "x")?;
    for name in ["bias", "residual"] {
        if importer.optional_input(op, name)?.is_some() {
            return Err(Error::unimplemented(format!(
                "expected a normalization without `{name}`, found one"
            )));
        }
    }
    if op.float_attribute("quant_scale", -1.0) > 0.0 {
        return Err(Error::unimplemented("expected a result in floats, found one that is quantized"));
    }
    let (rank, axis) = (x.rank()?, x.normalize_axis(op.int_attribute("begin_norm_axis", -1))?);
    let axes: Vec<i64> = (axis..rank).collect();
    let axes = importer.add_ints(&axes);
    let squares = importer.add_op("Mul", &[x.id, x.id]);
    let mean = importer.add_op("ReduceMean", &[squares, axes]);
    let epsilon = add_scalar_like(importer, x, op.float_attribute("epsilon", 1e-5))?;
    let sum = importer.add_op("Add", &[mean, epsilon]);
    let root = importer.add_op("Sqrt", &[sum]);
    let mut result = importer.add_op("Div", &[x.id, root]);
    for (name, step) in [("norm_weight", "Mul"), ("norm_bias", "Add")] {
        if let Some(given) = importer.optional_input(op, name)? {
            let shape = super::slice_shape(importer, x, axis, rank);
            let given = importer.add_op("Reshape", &[given.id, shape]);
            result = importer.add_op(step, &[result, given]);
        }
    }
    importer.set_output(op, "out", result)
}

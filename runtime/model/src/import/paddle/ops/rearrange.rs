//! Ops that move elements within a tensor or pad it.

use oarlock_core::{Dtype, Error, Result};

use super::{
    TranslatorTable, add_scalar_like, int_attribute, ints_attribute, known_list, lower_unary, text_attribute,
};
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const REARRANGE_OPS: TranslatorTable = &[
    ("channel_shuffle", |importer, op| lower_channel_shuffle(importer, op, "groups")),
    ("crop_tensor", lower_crop),
    ("flip", lower_flip),
    ("fold", lower_fold),
    ("pad", lower_pad_all),
    ("pad2d", |importer, op| lower_pad(importer, op, 2)),
    ("pad3d", |importer, op| lower_pad(importer, op, 3)),
    ("pixel_shuffle", lower_pixel_shuffle),
    ("pixel_unshuffle", lower_pixel_unshuffle),
    ("repeat_interleave", lower_repeat_interleave),
    ("reverse", lower_flip),
    ("roll", lower_roll),
    ("shuffle_channel", |importer, op| lower_channel_shuffle(importer, op, "group")),
    ("temporal_shift", lower_temporal_shift),
    ("tril_triu", lower_tril_triu),
];

/// Spatial padding. With two dimensions the first comes first; with three, the last comes first.
fn lower_pad<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    op.expect_attribute("mode", &["constant", "reflect", "replicate", "edge", "circular"])?;
    let x = importer.input(op, "X")?;
    let given = known_list(importer, op, "paddings", "Paddings", "")?
        .ok_or_else(|| Error::unimplemented("expected constant paddings, found computed ones"))?;
    if given.len() != 2 * count {
        return Err(invalid_model(format!("{} paddings", 2 * count), given.len()));
    }
    let mut pairs: Vec<&[i64]> = given.chunks(2).collect();
    if count == 3 {
        pairs.reverse();
    }
    let none = [0, 0];
    if super::convolution::is_channels_last(op, "data_format")? {
        pairs.push(&none);
    } else {
        pairs.insert(0, &none);
    }
    pairs.insert(0, &none);
    let (value, mode) =
        (op.float_attribute("value", op.float_attribute("pad_value", 0.0)), op.text_attribute("mode"));
    let mode = match mode {
        "reflect" => "reflect",
        "replicate" | "edge" => "edge",
        "circular" => "wrap",
        _ => "constant",
    };
    lower_padding(importer, op, x, &pairs, value, mode)
}

/// Padding of all dimensions.
fn lower_pad_all<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let given = known_list(importer, op, "paddings", "Paddings", "")?
        .ok_or_else(|| Error::unimplemented("expected constant paddings, found computed ones"))?;
    let pairs: Vec<&[i64]> = given.chunks(2).collect();
    lower_padding(importer, op, x, &pairs, op.float_attribute("pad_value", 0.0), "constant")
}

fn lower_padding<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    x: PaddleOperand<'m>,
    pairs: &[&[i64]],
    value: f64,
    mode: &str,
) -> Result<()> {
    let sides = [0, 1].map(|side| pairs.iter().filter_map(move |pair| pair.get(side)));
    let paddings: Vec<i64> = sides.into_iter().flatten().copied().collect();
    if paddings.len() as i64 != 2 * x.rank()? {
        return Err(invalid_model(format!("paddings of {} dimensions", x.rank()?), paddings.len() / 2));
    }
    let paddings = importer.add_ints(&paddings);
    let value = add_scalar_like(importer, x, value)?;
    let result = importer.add_op_with(
        "Pad",
        &[x.id, paddings, value],
        build_attributes([("mode", text_attribute(mode))]),
    );
    importer.set_output(op, "Out", result)
}

fn lower_pixel_shuffle<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("data_format", &["NCHW"])?;
    let attributes = build_attributes([
        ("blocksize", int_attribute(op.int_attribute("upscale_factor", 1))),
        ("mode", text_attribute("CRD")),
    ]);
    lower_unary(importer, op, "DepthToSpace", attributes)
}

/// The inverse of pixel shuffle: positions within small squares become channels.
fn lower_pixel_unshuffle<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("data_format", &["NCHW"])?;
    let (x, factor) = (importer.input(op, "X")?, op.int_attribute("downscale_factor", 1));
    let unknown = importer.add_ints(&[-1]);
    let squares = [2, 3].map(|axis| super::slice_shape(importer, x, axis, axis + 1));
    let whole = importer.add_ints(&[factor]);
    let [height, width] = squares.map(|size| importer.add_op("Div", &[size, whole]));
    let axis = || build_attributes([("axis", int_attribute(0))]);
    let (kept, channels) = (super::slice_shape(importer, x, 0, 2), super::slice_shape(importer, x, 0, 1));
    let shape = importer.add_op_with("Concat", &[kept, height, whole, width, whole], axis());
    let cut = importer.add_op("Reshape", &[x.id, shape]);
    let transposed = importer.add_op_with(
        "Transpose",
        &[cut],
        build_attributes([("perm", ints_attribute(&[0, 1, 3, 5, 2, 4]))]),
    );
    let shape = importer.add_op_with("Concat", &[channels, unknown, height, width], axis());
    let result = importer.add_op("Reshape", &[transposed, shape]);
    importer.set_output(op, "Out", result)
}

/// Interleaves the channels of groups.
fn lower_channel_shuffle<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, groups: &str) -> Result<()> {
    op.expect_attribute("data_format", &["NCHW"])?;
    let x = importer.input(op, "X")?;
    let (batch, picture) =
        (super::slice_shape(importer, x, 0, 1), super::slice_shape(importer, x, 2, x.rank()?));
    let groups = importer.add_ints(&[op.int_attribute(groups, 1), -1]);
    let shape = importer.add_op_with(
        "Concat",
        &[batch, groups, picture],
        build_attributes([("axis", int_attribute(0))]),
    );
    let grouped = importer.add_op("Reshape", &[x.id, shape]);
    let order: Vec<i64> = [0, 2, 1].into_iter().chain(3..=x.rank()?).collect();
    let transposed =
        importer.add_op_with("Transpose", &[grouped], build_attributes([("perm", ints_attribute(&order))]));
    let shape = importer.add_op("Shape", &[x.id]);
    let result = importer.add_op("Reshape", &[transposed, shape]);
    importer.set_output(op, "Out", result)
}

/// Crops from given offsets; -1 in the shape extends to the end.
fn lower_crop<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let shape = known_list(importer, op, "shape", "Shape", "ShapeTensor")?;
    let offsets = known_list(importer, op, "offsets", "Offsets", "OffsetsTensor")?;
    let (Some(shape), Some(offsets)) = (shape, offsets) else {
        return Err(Error::unimplemented("expected a part that is known, found one that is computed"));
    };
    let end = |(size, from): (&i64, &i64)| if *size < 0 { i64::MAX } else { from.saturating_add(*size) };
    let ends: Vec<i64> = shape.iter().zip(&offsets).map(end).collect();
    let (offsets, ends) = (importer.add_ints(&offsets), importer.add_ints(&ends));
    let result = importer.add_op("Slice", &[x, offsets, ends]);
    importer.set_output(op, "Out", result)
}

/// Reverses some axes.
fn lower_flip<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, axes) = (importer.input(op, "X")?.id, op.ints_attribute("axis"));
    let [begin, end, step] = [-1, i64::MIN, -1].map(|value| importer.add_ints(&vec![value; axes.len()]));
    let axes = importer.add_ints(&axes);
    let result = importer.add_op("Slice", &[x, begin, end, axes, step]);
    importer.set_output(op, "Out", result)
}

/// Rotates elements along axes.
fn lower_roll<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let shifts = known_list(importer, op, "shifts", "ShiftsTensor", "")?.ok_or_else(|| {
        Error::unimplemented("expected shifts that are known, found some that are computed")
    })?;
    let mut axes = op.ints_attribute("axis");
    let (mut result, shape) = (x.id, importer.add_op("Shape", &[x.id]));
    if axes.is_empty() {
        let all = importer.add_ints(&[-1]);
        (result, axes) = (importer.add_op("Reshape", &[result, all]), vec![0]);
    }
    let is_flat = op.ints_attribute("axis").is_empty();
    for (axis, shift) in axes.iter().zip(&shifts) {
        // If the size is known, the shift is reduced modulo it.
        let size = if is_flat { None } else { x.dimension_size(*axis).filter(|size| *size > 0) };
        let shift = size.map_or(*shift, |size| shift.rem_euclid(size));
        let (at, begin, end) = (
            importer.add_ints(&[shift.saturating_neg()]),
            importer.add_ints(&[0]),
            importer.add_ints(&[i64::MAX]),
        );
        let axes = importer.add_ints(&[*axis]);
        if shift == 0 {
            continue;
        }
        let (behind, before) = (
            importer.add_op("Slice", &[result, at, end, axes]),
            importer.add_op("Slice", &[result, begin, at, axes]),
        );
        result = importer.add_op_with(
            "Concat",
            &[behind, before],
            build_attributes([("axis", int_attribute(*axis))]),
        );
    }
    if is_flat {
        result = importer.add_op("Reshape", &[result, shape]);
    }
    importer.set_output(op, "Out", result)
}

/// The upper or lower triangle of matrices.
fn lower_tril_triu<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let diagonal = importer.add_scalar(op.int_attribute("diagonal", 0) as f64, Dtype::I64)?;
    let upper = int_attribute((!op.bool_attribute("lower", true)).into());
    let result = importer.add_op_with("Trilu", &[x, diagonal], build_attributes([("upper", upper)]));
    importer.set_output(op, "Out", result)
}

/// Repeats each index of an axis several times.
fn lower_repeat_interleave<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, times) = (importer.input(op, "X")?, op.int_attribute("Repeats", 1));
    if importer.optional_input(op, "RepeatsTensor")?.is_some() {
        return Err(Error::unimplemented(
            "expected a known number of repetitions, found one that is computed",
        ));
    }
    let axis = x.normalize_axis(op.int_attribute("dim", 0))?;
    let behind = importer.add_ints(&[axis + 1]);
    let raised = importer.add_op("Unsqueeze", &[x.id, behind]);
    let many: Vec<i64> = (0..=x.rank()?).map(|at| if at == axis + 1 { times } else { 1 }).collect();
    let many = importer.add_ints(&many);
    let repeated = importer.add_op("Expand", &[raised, many]);
    let (before, after) =
        (super::slice_shape(importer, x, 0, axis), super::slice_shape(importer, x, axis + 1, x.rank()?));
    let all = importer.add_ints(&[-1]);
    let shape =
        importer.add_op_with("Concat", &[before, all, after], build_attributes([("axis", int_attribute(0))]));
    let result = importer.add_op("Reshape", &[repeated, shape]);
    importer.set_output(op, "Out", result)
}

/// Sums columns back into images, the inverse of `unfold`.
fn lower_fold<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let [size, kernel] = ["output_sizes", "kernel_sizes"].map(|name| op.ints_attribute(name));
    let (size, kernel) = (importer.add_ints(&size), importer.add_ints(&kernel));
    let attributes = [("dilations", "dilations"), ("paddings", "pads"), ("strides", "strides")];
    let attributes = attributes.map(|(old, new)| (new, ints_attribute(&op.ints_attribute(old))));
    let result = importer.add_op_with("Col2Im", &[x, size, kernel], build_attributes(attributes));
    importer.set_output(op, "Y", result)
}

/// Takes a share of the channels from the frame before, as many from the frame after, and the rest from the same frame.
fn lower_temporal_shift<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("data_format", &["NCHW"])?;
    let x = importer.input(op, "X")?;
    let (frames, share) = (op.int_attribute("seg_num", 1), op.float_attribute("shift_ratio", 0.25));
    let channels = x.known_dimension_size(1)?;
    if frames < 1 || !(0.0..=0.5).contains(&share) {
        return Err(invalid_model(
            "frames, and a `shift_ratio` from 0 to 0.5",
            format!("{frames} and {share}"),
        ));
    }
    let (one, two) = ((channels as f64 * share) as i64, (channels as f64 * 2.0 * share) as i64);
    let shape = super::slice_shape(importer, x, 1, 4);
    let split = importer.add_ints(&[-1, frames]);
    let along = |axis| build_attributes([("axis", int_attribute(axis))]);
    let split = importer.add_op_with("Concat", &[split, shape], along(0));
    let clips = importer.add_op("Reshape", &[x.id, split]);
    let parts = importer.add_ints(&[one, two - one, channels - two]);
    let parts = importer.add_node("Split", &[Some(clips), Some(parts)], along(2), 3);
    let mut shifted = Vec::new();
    for (part, [begin, end]) in parts[..2].iter().zip([[1, 0], [0, 1]]) {
        let pads = importer.add_ints(&[0, begin, 0, 0, 0, 0, end, 0, 0, 0]);
        let long = importer.add_op("Pad", &[*part, pads]);
        let [from, to, axis] =
            [[end], [frames.saturating_add(end)], [1]].map(|bounds| importer.add_ints(&bounds));
        shifted.push(importer.add_op("Slice", &[long, from, to, axis]));
    }
    shifted.push(parts[2]);
    let clips = importer.add_op_with("Concat", &shifted, along(2));
    let whole = importer.add_op("Shape", &[x.id]);
    let result = importer.add_op("Reshape", &[clips, whole]);
    importer.set_output(op, "Out", result)
}

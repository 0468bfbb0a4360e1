//! Resampling of images: resize, grid sampling, deformable convolution, windows and regions.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::convolution::{padding_attribute, restore_channels, to_channels_first};
use super::{TranslatorTable, float_attribute, int_attribute, ints_attribute, list_operand, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// Limit on elements of an unfolded window.
const MAX_WINDOW_ELEMENTS: i64 = 4096;

pub(super) const RESAMPLING_OPS: TranslatorTable = &[
    ("affine_grid", lower_affine_grid),
    ("bicubic_interp", |importer, op| lower_resize(importer, op, "cubic", 2)),
    ("bicubic_interp_v2", |importer, op| lower_resize(importer, op, "cubic", 2)),
    ("bilinear_interp", |importer, op| lower_resize(importer, op, "linear", 2)),
    ("bilinear_interp_v2", |importer, op| lower_resize(importer, op, "linear", 2)),
    ("deformable_conv", lower_deformable_conv),
    ("deformable_conv_v1", lower_deformable_conv),
    ("grid_sampler", lower_grid_sample),
    ("linear_interp", |importer, op| lower_resize(importer, op, "linear", 1)),
    ("linear_interp_v2", |importer, op| lower_resize(importer, op, "linear", 1)),
    ("nearest_interp", |importer, op| lower_resize(importer, op, "nearest", 2)),
    ("nearest_interp_v2", |importer, op| lower_resize(importer, op, "nearest", 2)),
    ("roi_align", lower_roi_align),
    ("trilinear_interp", |importer, op| lower_resize(importer, op, "linear", 3)),
    ("trilinear_interp_v2", |importer, op| lower_resize(importer, op, "linear", 3)),
    ("unfold", lower_unfold),
];

fn lower_resize<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    mode: &str,
    count: usize,
) -> Result<()> {
    let layout = if op.text_attribute("data_layout").is_empty() { "data_format" } else { "data_layout" };
    let x = importer.input(op, "X")?;
    let from = to_channels_first(importer, op, layout, x)?;
    let places = match (op.bool_attribute("align_corners", true), mode, op.int_attribute("align_mode", 1)) {
        (true, ..) => "align_corners",
        (false, "linear", 0) | (false, "cubic", _) => "half_pixel",
        (false, ..) => "asymmetric",
    };
    let rounded = if places == "align_corners" { "round_prefer_ceil" } else { "floor" };
    let attributes = build_attributes([
        ("mode", text_attribute(mode)),
        ("coordinate_transformation_mode", text_attribute(places)),
        ("nearest_mode", text_attribute(rounded)),
    ]);
    let result = match resize_target(importer, op, count)? {
        ResizeTarget::Sizes(size) => {
            // Batch and channels keep their sizes.
            let shape = importer.add_op_with(
                "Shape",
                &[from],
                build_attributes([("start", int_attribute(0)), ("end", int_attribute(2))]),
            );
            let sizes = importer.add_op_with(
                "Concat",
                &[shape, size],
                build_attributes([("axis", int_attribute(0))]),
            );
            importer.add_node("Resize", &[Some(from), None, None, Some(sizes)], attributes, 1)[0]
        }
        ResizeTarget::Scales(scales) => {
            let ones = importer.add_constant(Constant::new(
                Dtype::F32,
                &[2],
                super::encode_numbers(&[1.0, 1.0], Dtype::F32)?,
            )?);
            let scales = importer.add_op_with(
                "Concat",
                &[ones, scales],
                build_attributes([("axis", int_attribute(0))]),
            );
            importer.add_node("Resize", &[Some(from), None, Some(scales)], attributes, 1)[0]
        }
    };
    let result = restore_channels(importer, op, layout, x, result)?;
    importer.set_output(op, "Out", result)
}

/// Target of a resize: sizes, or f32 scales, one for each spatial dimension.
enum ResizeTarget {
    Sizes(ValueId),
    Scales(ValueId),
}

fn resize_target<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    count: usize,
) -> Result<ResizeTarget> {
    for (whole, parts) in [("", "SizeTensor"), ("OutSize", "")] {
        let is_given = !importer.inputs(op, whole)?.is_empty() || !importer.inputs(op, parts)?.is_empty();
        if is_given {
            return Ok(ResizeTarget::Sizes(list_operand(importer, op, "", whole, parts)?));
        }
    }
    if let Some(scale) = importer.optional_input(op, "Scale")? {
        let shape = importer.add_ints(&[count as i64]);
        let flat = importer.add_ints(&[-1]);
        let flat = importer.add_op("Reshape", &[scale.id, flat]);
        let scales = importer.add_op("Expand", &[flat, shape]);
        return Ok(ResizeTarget::Scales(importer.add_cast(scales, Dtype::F32)));
    }
    let mut scales = op.floats_attribute("scale");
    if scales.is_empty() && op.float_attribute("scale", 0.0) > 0.0 {
        scales = vec![op.float_attribute("scale", 0.0)];
    }
    if let [one] = scales[..] {
        scales = vec![one; count];
    }
    if scales.len() == count && scales.iter().all(|scale| *scale > 0.0) {
        let bytes = super::encode_numbers(&scales, Dtype::F32)?;
        return Ok(ResizeTarget::Scales(importer.add_constant(Constant::new(
            Dtype::F32,
            &[count as i64],
            bytes,
        )?)));
    }
    let sizes: Vec<i64> =
        ["out_d", "out_h", "out_w"][3 - count..].iter().map(|it| op.int_attribute(it, -1)).collect();
    if sizes.iter().all(|size| *size > 0) {
        return Ok(ResizeTarget::Sizes(importer.add_ints(&sizes)));
    }
    Err(invalid_model("a size or a scale", "neither"))
}

fn lower_grid_sample<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("mode", &["bilinear", "nearest"])?;
    op.expect_attribute("padding_mode", &["zeros", "border", "reflection"])?;
    let (x, grid) = (importer.input(op, "X")?.id, importer.input(op, "Grid")?.id);
    let outside = match op.text_attribute("padding_mode") {
        "" => "zeros",
        mode => mode,
    };
    let attributes = build_attributes([
        ("mode", text_attribute(if op.text_attribute("mode") == "nearest" { "nearest" } else { "linear" })),
        ("padding_mode", text_attribute(outside)),
        ("align_corners", int_attribute(op.bool_attribute("align_corners", true).into())),
    ]);
    let result = importer.add_op_with("GridSample", &[x, grid], attributes);
    importer.set_output(op, "Output", result)
}

fn lower_affine_grid<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let theta = importer.input(op, "Theta")?.id;
    let size = list_operand(importer, op, "output_shape", "OutputShape", "")?;
    let corners =
        build_attributes([("align_corners", int_attribute(op.bool_attribute("align_corners", true).into()))]);
    let result = importer.add_op_with("AffineGrid", &[theta, size], corners);
    importer.set_output(op, "Output", result)
}

/// Deformable convolution, with an optional mask.
fn lower_deformable_conv<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, filter) = (importer.input(op, "Input")?.id, importer.input(op, "Filter")?.id);
    let (offset, mask) = (importer.input(op, "Offset")?.id, importer.optional_input(op, "Mask")?);
    let mut attributes = build_attributes([
        ("strides", ints_attribute(&op.ints_attribute("strides"))),
        ("dilations", ints_attribute(&op.ints_attribute("dilations"))),
        ("group", int_attribute(op.int_attribute("groups", 1))),
        ("offset_group", int_attribute(op.int_attribute("deformable_groups", 1))),
        padding_attribute(op, 2)?,
    ]);
    if op.ints_attribute("dilations").is_empty() {
        attributes.set("dilations", ints_attribute(&[1, 1]));
    }
    let operands = [Some(input), Some(filter), Some(offset), None, mask.map(|mask| mask.id)];
    let operands = if mask.is_some() { operands.as_slice() } else { &operands[..3] };
    let result = importer.add_node("DeformConv", operands, attributes, 1);
    importer.set_output(op, "Output", result[0])
}

/// im2col, written as a convolution in which each filter copies one element of the window.
fn lower_unfold<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (channels, window) = (x.known_dimension_size(1)?, op.ints_attribute("kernel_sizes"));
    let [height, width] = window[..] else { return Err(invalid_model("a window of 2 sizes", window.len())) };
    let count = height.checked_mul(width).filter(|count| (1..=MAX_WINDOW_ELEMENTS).contains(count));
    let all = count.and_then(|count| count.checked_mul(channels)).filter(|all| *all <= MAX_WINDOW_ELEMENTS);
    let (Some(count), Some(all)) = (count, all) else {
        let expected = format!("expected at most {MAX_WINDOW_ELEMENTS} elements in a window of all channels");
        return Err(Error::unimplemented(format!("{expected}, found {height} × {width} of {channels}")));
    };
    let filters = (0..all * count).map(|at| if at / count % count == at % count { 1.0 } else { 0.0 });
    let bytes = super::encode_numbers(&filters.collect::<Vec<f64>>(), x.dtype())?;
    let filters = importer.add_constant(Constant::new(x.dtype(), &[all, 1, height, width], bytes)?);
    let pads = match op.ints_attribute("paddings")[..] {
        [all] => [all; 4],
        [height, width] => [height, width, height, width],
        [top, left, bottom, right] => [top, left, bottom, right],
        ref other => return Err(invalid_model("1, 2 or 4 paddings", other.len())),
    };
    let attributes = build_attributes([
        ("strides", ints_attribute(&op.ints_attribute("strides"))),
        ("dilations", ints_attribute(&op.ints_attribute("dilations"))),
        ("pads", ints_attribute(&pads)),
        ("group", int_attribute(channels)),
    ]);
    let columns = importer.add_op_with("Conv", &[x.id, filters], attributes);
    let shape = importer.add_ints(&[0, 0, -1]);
    let result = importer.add_op("Reshape", &[columns, shape]);
    importer.set_output(op, "Y", result)
}

/// Pools regions of images to a fixed size.
fn lower_roi_align<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, parts) = (importer.input(op, "X")?, importer.input(op, "ROIs")?);
    let pictures = match importer.optional_input(op, "RoisNum")? {
        Some(counts) => owner_indices(importer, parts.id, counts)?,
        None if x.dimension_size(0) == Some(1) => {
            let count = super::slice_shape(importer, parts, 0, 1);
            // `ConstantOfShape` fills with zeros by default.
            importer.add_op("ConstantOfShape", &[count])
        }
        None => {
            return Err(Error::unimplemented(
                "expected `RoisNum`, found that parts belong to pictures by levels",
            ));
        }
    };
    let pictures = importer.add_cast(pictures, Dtype::I64);
    let places = if op.bool_attribute("aligned", false) { "half_pixel" } else { "output_half_pixel" };
    let attributes = build_attributes([
        ("mode", text_attribute("avg")),
        ("coordinate_transformation_mode", text_attribute(places)),
        ("output_height", int_attribute(op.int_attribute("pooled_height", 1))),
        ("output_width", int_attribute(op.int_attribute("pooled_width", 1))),
        ("sampling_ratio", int_attribute(op.int_attribute("sampling_ratio", -1).max(0))),
        ("spatial_scale", float_attribute(op.float_attribute("spatial_scale", 1.0))),
    ]);
    let result = importer.add_op_with("RoiAlign", &[x.id, parts.id, pictures], attributes);
    importer.set_output(op, "Out", result)
}

/// The image index of each row, from the number of rows for each image.
fn owner_indices<'m>(
    importer: &mut PaddleImporter<'m>,
    rows: ValueId,
    counts: PaddleOperand<'m>,
) -> Result<ValueId> {
    let counts = importer.add_cast(counts.id, Dtype::I64);
    let axis = importer.add_scalar(0.0, Dtype::I64)?;
    let ends = importer.add_op("CumSum", &[counts, axis]);
    let none = importer.add_ints(&[]);
    let count = importer.add_op_with(
        "Shape",
        &[rows],
        build_attributes([("start", int_attribute(0)), ("end", int_attribute(1))]),
    );
    let count = importer.add_op("Reshape", &[count, none]);
    let (begin, step) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let places = importer.add_op("Range", &[begin, count, step]);
    let last = importer.add_ints(&[1]);
    let places = importer.add_op("Unsqueeze", &[places, last]);
    let is_behind = importer.add_op("GreaterOrEqual", &[places, ends]);
    let is_behind = importer.add_cast(is_behind, Dtype::I64);
    Ok(importer.add_op_with(
        "ReduceSum",
        &[is_behind, last],
        build_attributes([("keepdims", int_attribute(0))]),
    ))
}

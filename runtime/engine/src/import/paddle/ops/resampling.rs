//! Pictures that are seen at other places: larger, smaller, turned, or in parts.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::convolution::{padding_attribute, restore_channels, to_channels_first};
use super::{TranslatorTable, float_attribute, int_attribute, ints_attribute, list_operand, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// The most elements of a window that is cut out of pictures.
const MOST_WINDOW_ELEMENTS: i64 = 4096;

pub(super) const RESAMPLING_OPS: TranslatorTable = &[
    ("affine_grid", lower_affine_grid),
    ("bicubic_interp", |program, op| lower_resize(program, op, "cubic", 2)),
    ("bicubic_interp_v2", |program, op| lower_resize(program, op, "cubic", 2)),
    ("bilinear_interp", |program, op| lower_resize(program, op, "linear", 2)),
    ("bilinear_interp_v2", |program, op| lower_resize(program, op, "linear", 2)),
    ("deformable_conv", lower_deformable_conv),
    ("deformable_conv_v1", lower_deformable_conv),
    ("grid_sampler", lower_grid_sample),
    ("linear_interp", |program, op| lower_resize(program, op, "linear", 1)),
    ("linear_interp_v2", |program, op| lower_resize(program, op, "linear", 1)),
    ("nearest_interp", |program, op| lower_resize(program, op, "nearest", 2)),
    ("nearest_interp_v2", |program, op| lower_resize(program, op, "nearest", 2)),
    ("roi_align", lower_roi_align),
    ("trilinear_interp", |program, op| lower_resize(program, op, "linear", 3)),
    ("trilinear_interp_v2", |program, op| lower_resize(program, op, "linear", 3)),
    ("unfold", lower_unfold),
];

fn lower_resize<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    mode: &str,
    count: usize,
) -> Result<()> {
    let layout = if op.text_attribute("data_layout").is_empty() { "data_format" } else { "data_layout" };
    let x = program.input(op, "X")?;
    let from = to_channels_first(program, op, layout, x)?;
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
    let made = match resize_target(program, op, count)? {
        ResizeTarget::Sizes(size) => {
            // The first two sizes are those of the operand.
            let shape = program.add_op_with(
                "Shape",
                &[from],
                build_attributes([("start", int_attribute(0)), ("end", int_attribute(2))]),
            );
            let sizes =
                program.add_op_with("Concat", &[shape, size], build_attributes([("axis", int_attribute(0))]));
            program.add_node("Resize", &[Some(from), None, None, Some(sizes)], attributes, 1)[0]
        }
        ResizeTarget::Scales(scales) => {
            let ones = program.add_constant(Constant::new(
                Dtype::F32,
                &[2],
                super::encode_numbers(&[1.0, 1.0], Dtype::F32)?,
            )?);
            let scales = program.add_op_with(
                "Concat",
                &[ones, scales],
                build_attributes([("axis", int_attribute(0))]),
            );
            program.add_node("Resize", &[Some(from), None, Some(scales)], attributes, 1)[0]
        }
    };
    let made = restore_channels(program, op, layout, x, made)?;
    program.set_output(op, "Out", made)
}

/// How large a picture becomes: its new sizes, or factors of type `f32`, one for each dimension.
enum ResizeTarget {
    Sizes(ValueId),
    Scales(ValueId),
}

fn resize_target<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, count: usize) -> Result<ResizeTarget> {
    for (whole, parts) in [("", "SizeTensor"), ("OutSize", "")] {
        let is_given = !program.inputs(op, whole)?.is_empty() || !program.inputs(op, parts)?.is_empty();
        if is_given {
            return Ok(ResizeTarget::Sizes(list_operand(program, op, "", whole, parts)?));
        }
    }
    if let Some(scale) = program.optional_input(op, "Scale")? {
        let shape = program.add_ints(&[count as i64]);
        let flat = program.add_ints(&[-1]);
        let flat = program.add_op("Reshape", &[scale.id, flat]);
        let scales = program.add_op("Expand", &[flat, shape]);
        return Ok(ResizeTarget::Scales(program.add_cast(scales, Dtype::F32)));
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
        return Ok(ResizeTarget::Scales(program.add_constant(Constant::new(
            Dtype::F32,
            &[count as i64],
            bytes,
        )?)));
    }
    let sizes: Vec<i64> =
        ["out_d", "out_h", "out_w"][3 - count..].iter().map(|it| op.int_attribute(it, -1)).collect();
    if sizes.iter().all(|size| *size > 0) {
        return Ok(ResizeTarget::Sizes(program.add_ints(&sizes)));
    }
    Err(invalid_model("a size or a scale", "neither"))
}

fn lower_grid_sample<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("mode", &["bilinear", "nearest"])?;
    op.expect_attribute("padding_mode", &["zeros", "border", "reflection"])?;
    let (x, grid) = (program.input(op, "X")?.id, program.input(op, "Grid")?.id);
    let outside = match op.text_attribute("padding_mode") {
        "" => "zeros",
        mode => mode,
    };
    let attributes = build_attributes([
        ("mode", text_attribute(if op.text_attribute("mode") == "nearest" { "nearest" } else { "linear" })),
        ("padding_mode", text_attribute(outside)),
        ("align_corners", int_attribute(op.bool_attribute("align_corners", true).into())),
    ]);
    let made = program.add_op_with("GridSample", &[x, grid], attributes);
    program.set_output(op, "Output", made)
}

fn lower_affine_grid<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let theta = program.input(op, "Theta")?.id;
    let size = list_operand(program, op, "output_shape", "OutputShape", "")?;
    let corners =
        build_attributes([("align_corners", int_attribute(op.bool_attribute("align_corners", true).into()))]);
    let made = program.add_op_with("AffineGrid", &[theta, size], corners);
    program.set_output(op, "Output", made)
}

/// A convolution of which each place is moved, and weighed where there is a mask.
fn lower_deformable_conv<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, filter) = (program.input(op, "Input")?.id, program.input(op, "Filter")?.id);
    let (offset, mask) = (program.input(op, "Offset")?.id, program.optional_input(op, "Mask")?);
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
    let made = program.add_node("DeformConv", operands, attributes, 1);
    program.set_output(op, "Output", made[0])
}

/// Windows of pictures as columns, which a convolution makes whose filters each take one place of a window.
fn lower_unfold<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (channels, window) = (x.known_dimension_size(1)?, op.ints_attribute("kernel_sizes"));
    let [height, width] = window[..] else { return Err(invalid_model("a window of 2 sizes", window.len())) };
    let count = height.checked_mul(width).filter(|count| (1..=MOST_WINDOW_ELEMENTS).contains(count));
    let all = count.and_then(|count| count.checked_mul(channels)).filter(|all| *all <= MOST_WINDOW_ELEMENTS);
    let (Some(count), Some(all)) = (count, all) else {
        let expected =
            format!("expected at most {MOST_WINDOW_ELEMENTS} elements in a window of all channels");
        return Err(Error::unimplemented(format!("{expected}, found {height} × {width} of {channels}")));
    };
    let filters = (0..all * count).map(|at| if at / count % count == at % count { 1.0 } else { 0.0 });
    let bytes = super::encode_numbers(&filters.collect::<Vec<f64>>(), x.dtype())?;
    let filters = program.add_constant(Constant::new(x.dtype(), &[all, 1, height, width], bytes)?);
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
    let columns = program.add_op_with("Conv", &[x.id, filters], attributes);
    let shape = program.add_ints(&[0, 0, -1]);
    let made = program.add_op("Reshape", &[columns, shape]);
    program.set_output(op, "Y", made)
}

/// Parts of pictures, each made of the same size.
fn lower_roi_align<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, parts) = (program.input(op, "X")?, program.input(op, "ROIs")?);
    let pictures = match program.optional_input(op, "RoisNum")? {
        Some(counts) => owner_indices(program, parts.id, counts)?,
        None if x.dimension_size(0) == Some(1) => {
            let count = super::slice_shape(program, parts, 0, 1);
            // Without a value it is filled with zeros.
            program.add_op("ConstantOfShape", &[count])
        }
        None => {
            return Err(Error::unimplemented(
                "expected `RoisNum`, found that parts belong to pictures by levels",
            ));
        }
    };
    let pictures = program.add_cast(pictures, Dtype::I64);
    let places = if op.bool_attribute("aligned", false) { "half_pixel" } else { "output_half_pixel" };
    let attributes = build_attributes([
        ("mode", text_attribute("avg")),
        ("coordinate_transformation_mode", text_attribute(places)),
        ("output_height", int_attribute(op.int_attribute("pooled_height", 1))),
        ("output_width", int_attribute(op.int_attribute("pooled_width", 1))),
        ("sampling_ratio", int_attribute(op.int_attribute("sampling_ratio", -1).max(0))),
        ("spatial_scale", float_attribute(op.float_attribute("spatial_scale", 1.0))),
    ]);
    let made = program.add_op_with("RoiAlign", &[x.id, parts.id, pictures], attributes);
    program.set_output(op, "Out", made)
}

/// Which picture each of some rows belongs to, of how many belong to each.
fn owner_indices<'m>(
    program: &mut PaddleImporter<'m>,
    rows: ValueId,
    counts: PaddleOperand<'m>,
) -> Result<ValueId> {
    let counts = program.add_cast(counts.id, Dtype::I64);
    let axis = program.add_scalar(0.0, Dtype::I64)?;
    let ends = program.add_op("CumSum", &[counts, axis]);
    let none = program.add_ints(&[]);
    let count = program.add_op_with(
        "Shape",
        &[rows],
        build_attributes([("start", int_attribute(0)), ("end", int_attribute(1))]),
    );
    let count = program.add_op("Reshape", &[count, none]);
    let (begin, step) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let places = program.add_op("Range", &[begin, count, step]);
    let last = program.add_ints(&[1]);
    let places = program.add_op("Unsqueeze", &[places, last]);
    let is_behind = program.add_op("GreaterOrEqual", &[places, ends]);
    let is_behind = program.add_cast(is_behind, Dtype::I64);
    Ok(program.add_op_with(
        "ReduceSum",
        &[is_behind, last],
        build_attributes([("keepdims", int_attribute(0))]),
    ))
}

//! Pictures that are seen at other places: larger, smaller, turned, or in parts.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::spatial::{first, last, padding};
use super::{Table, float, int, ints, list, text};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most elements of a window that is cut out of pictures.
const MOST_IN_WINDOW: i64 = 4096;

pub(super) const OPS: Table = &[
    ("affine_grid", affine_grid),
    ("bicubic_interp", |program, op| resize(program, op, "cubic", 2)),
    ("bicubic_interp_v2", |program, op| resize(program, op, "cubic", 2)),
    ("bilinear_interp", |program, op| resize(program, op, "linear", 2)),
    ("bilinear_interp_v2", |program, op| resize(program, op, "linear", 2)),
    ("deformable_conv", deformed),
    ("deformable_conv_v1", deformed),
    ("grid_sampler", grid_sample),
    ("linear_interp", |program, op| resize(program, op, "linear", 1)),
    ("linear_interp_v2", |program, op| resize(program, op, "linear", 1)),
    ("nearest_interp", |program, op| resize(program, op, "nearest", 2)),
    ("nearest_interp_v2", |program, op| resize(program, op, "nearest", 2)),
    ("roi_align", roi_align),
    ("trilinear_interp", |program, op| resize(program, op, "linear", 3)),
    ("trilinear_interp_v2", |program, op| resize(program, op, "linear", 3)),
    ("unfold", unfold),
];

fn resize<'m>(program: &mut Program<'m>, op: &'m OpDesc, mode: &str, count: usize) -> Result<()> {
    let layout = if op.text("data_layout").is_empty() { "data_format" } else { "data_layout" };
    let x = program.input(op, "X")?;
    let from = first(program, op, layout, x)?;
    let places = match (op.flag("align_corners", true), mode, op.int("align_mode", 1)) {
        (true, ..) => "align_corners",
        (false, "linear", 0) | (false, "cubic", _) => "half_pixel",
        (false, ..) => "asymmetric",
    };
    let rounded = if places == "align_corners" { "round_prefer_ceil" } else { "floor" };
    let attributes = with([
        ("mode", text(mode)),
        ("coordinate_transformation_mode", text(places)),
        ("nearest_mode", text(rounded)),
    ]);
    let made = match size(program, op, count)? {
        Size::Sizes(size) => {
            // The first two sizes are those of the operand.
            let shape = program.node("Shape", &[from], with([("start", int(0)), ("end", int(2))]));
            let sizes = program.node("Concat", &[shape, size], with([("axis", int(0))]));
            program.nodes("Resize", &[Some(from), None, None, Some(sizes)], attributes, 1)[0]
        }
        Size::Scales(scales) => {
            let ones =
                program.constant(Constant::new(Dtype::F32, &[2], super::bytes_of(&[1.0, 1.0], Dtype::F32)?)?);
            let scales = program.node("Concat", &[ones, scales], with([("axis", int(0))]));
            program.nodes("Resize", &[Some(from), None, Some(scales)], attributes, 1)[0]
        }
    };
    let made = last(program, op, layout, x, made)?;
    program.give(op, "Out", made)
}

/// How large a picture becomes: its new sizes, or factors of type `f32`, one for each dimension.
enum Size {
    Sizes(ValueId),
    Scales(ValueId),
}

fn size<'m>(program: &mut Program<'m>, op: &'m OpDesc, count: usize) -> Result<Size> {
    for (whole, parts) in [("", "SizeTensor"), ("OutSize", "")] {
        let is_given = !program.inputs(op, whole)?.is_empty() || !program.inputs(op, parts)?.is_empty();
        if is_given {
            return Ok(Size::Sizes(list(program, op, "", whole, parts)?));
        }
    }
    if let Some(scale) = program.maybe(op, "Scale")? {
        let shape = program.ints(&[count as i64]);
        let flat = program.ints(&[-1]);
        let flat = program.apply("Reshape", &[scale.id, flat]);
        let scales = program.apply("Expand", &[flat, shape]);
        return Ok(Size::Scales(program.cast(scales, Dtype::F32)));
    }
    let mut scales = op.floats("scale");
    if scales.is_empty() && op.float("scale", 0.0) > 0.0 {
        scales = vec![op.float("scale", 0.0)];
    }
    if let [one] = scales[..] {
        scales = vec![one; count];
    }
    if scales.len() == count && scales.iter().all(|scale| *scale > 0.0) {
        let bytes = super::bytes_of(&scales, Dtype::F32)?;
        return Ok(Size::Scales(program.constant(Constant::new(Dtype::F32, &[count as i64], bytes)?)));
    }
    let sizes: Vec<i64> = ["out_d", "out_h", "out_w"][3 - count..].iter().map(|it| op.int(it, -1)).collect();
    if sizes.iter().all(|size| *size > 0) {
        return Ok(Size::Sizes(program.ints(&sizes)));
    }
    Err(wrong("a size or a scale", "neither"))
}

fn grid_sample<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("mode", &["bilinear", "nearest"])?;
    op.expect("padding_mode", &["zeros", "border", "reflection"])?;
    let (x, grid) = (program.input(op, "X")?.id, program.input(op, "Grid")?.id);
    let outside = match op.text("padding_mode") {
        "" => "zeros",
        mode => mode,
    };
    let attributes = with([
        ("mode", text(if op.text("mode") == "nearest" { "nearest" } else { "linear" })),
        ("padding_mode", text(outside)),
        ("align_corners", int(op.flag("align_corners", true).into())),
    ]);
    let made = program.node("GridSample", &[x, grid], attributes);
    program.give(op, "Output", made)
}

fn affine_grid<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let theta = program.input(op, "Theta")?.id;
    let size = list(program, op, "output_shape", "OutputShape", "")?;
    let corners = with([("align_corners", int(op.flag("align_corners", true).into()))]);
    let made = program.node("AffineGrid", &[theta, size], corners);
    program.give(op, "Output", made)
}

/// A convolution of which each place is moved, and weighed where there is a mask.
fn deformed<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, filter) = (program.input(op, "Input")?.id, program.input(op, "Filter")?.id);
    let (offset, mask) = (program.input(op, "Offset")?.id, program.maybe(op, "Mask")?);
    let mut attributes = with([
        ("strides", ints(&op.ints("strides"))),
        ("dilations", ints(&op.ints("dilations"))),
        ("group", int(op.int("groups", 1))),
        ("offset_group", int(op.int("deformable_groups", 1))),
        padding(op, 2)?,
    ]);
    if op.ints("dilations").is_empty() {
        attributes.set("dilations", ints(&[1, 1]));
    }
    let operands = [Some(input), Some(filter), Some(offset), None, mask.map(|mask| mask.id)];
    let operands = if mask.is_some() { operands.as_slice() } else { &operands[..3] };
    let made = program.nodes("DeformConv", operands, attributes, 1);
    program.give(op, "Output", made[0])
}

/// Windows of pictures as columns, which a convolution makes whose filters each take one place of a window.
fn unfold<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (channels, window) = (x.known_size(1)?, op.ints("kernel_sizes"));
    let [height, width] = window[..] else { return Err(wrong("a window of 2 sizes", window.len())) };
    let count = height.checked_mul(width).filter(|count| (1..=MOST_IN_WINDOW).contains(count));
    let all = count.and_then(|count| count.checked_mul(channels)).filter(|all| *all <= MOST_IN_WINDOW);
    let (Some(count), Some(all)) = (count, all) else {
        let expected = format!("expected at most {MOST_IN_WINDOW} elements in a window of all channels");
        return Err(Error::unimplemented(format!("{expected}, found {height} × {width} of {channels}")));
    };
    let filters = (0..all * count).map(|at| if at / count % count == at % count { 1.0 } else { 0.0 });
    let bytes = super::bytes_of(&filters.collect::<Vec<f64>>(), x.dtype())?;
    let filters = program.constant(Constant::new(x.dtype(), &[all, 1, height, width], bytes)?);
    let pads = match op.ints("paddings")[..] {
        [all] => [all; 4],
        [height, width] => [height, width, height, width],
        [top, left, bottom, right] => [top, left, bottom, right],
        ref other => return Err(wrong("1, 2 or 4 paddings", other.len())),
    };
    let attributes = with([
        ("strides", ints(&op.ints("strides"))),
        ("dilations", ints(&op.ints("dilations"))),
        ("pads", ints(&pads)),
        ("group", int(channels)),
    ]);
    let columns = program.node("Conv", &[x.id, filters], attributes);
    let shape = program.ints(&[0, 0, -1]);
    let made = program.apply("Reshape", &[columns, shape]);
    program.give(op, "Y", made)
}

/// Parts of pictures, each made of the same size.
fn roi_align<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, parts) = (program.input(op, "X")?, program.input(op, "ROIs")?);
    let pictures = match program.maybe(op, "RoisNum")? {
        Some(counts) => owners(program, parts.id, counts)?,
        None if x.size(0) == Some(1) => {
            let count = super::sizes(program, parts, 0, 1);
            // Without a value it is filled with zeros.
            program.apply("ConstantOfShape", &[count])
        }
        None => {
            return Err(Error::unimplemented(
                "expected `RoisNum`, found that parts belong to pictures by levels",
            ));
        }
    };
    let pictures = program.cast(pictures, Dtype::I64);
    let places = if op.flag("aligned", false) { "half_pixel" } else { "output_half_pixel" };
    let attributes = with([
        ("mode", text("avg")),
        ("coordinate_transformation_mode", text(places)),
        ("output_height", int(op.int("pooled_height", 1))),
        ("output_width", int(op.int("pooled_width", 1))),
        ("sampling_ratio", int(op.int("sampling_ratio", -1).max(0))),
        ("spatial_scale", float(op.float("spatial_scale", 1.0))),
    ]);
    let made = program.node("RoiAlign", &[x.id, parts.id, pictures], attributes);
    program.give(op, "Out", made)
}

/// Which picture each of some rows belongs to, of how many belong to each.
fn owners<'m>(program: &mut Program<'m>, rows: ValueId, counts: Operand<'m>) -> Result<ValueId> {
    let counts = program.cast(counts.id, Dtype::I64);
    let axis = program.number(0.0, Dtype::I64)?;
    let ends = program.apply("CumSum", &[counts, axis]);
    let none = program.ints(&[]);
    let count = program.node("Shape", &[rows], with([("start", int(0)), ("end", int(1))]));
    let count = program.apply("Reshape", &[count, none]);
    let (begin, step) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let places = program.apply("Range", &[begin, count, step]);
    let last = program.ints(&[1]);
    let places = program.apply("Unsqueeze", &[places, last]);
    let is_behind = program.apply("GreaterOrEqual", &[places, ends]);
    let is_behind = program.cast(is_behind, Dtype::I64);
    Ok(program.node("ReduceSum", &[is_behind, last], with([("keepdims", int(0))])))
}

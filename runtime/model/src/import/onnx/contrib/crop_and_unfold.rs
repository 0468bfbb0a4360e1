//! Cropping, unfolding, and other small ops that belong to no group.

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::contrib_op::{ContribOp, unsupported_error};
use super::lowering::ContribLowering;
use crate::graph::ValueId;

pub(super) const CROP_AND_UNFOLD_OPS: &[ContribOp] = &[
    ContribOp {
        op: "CropAndResize",
        inputs: "X rois batch_indices crop_size",
        attributes: "extrapolation_value mode",
        outputs: "Y",
        lower: lower_crop_and_resize,
    },
    ContribOp {
        op: "DynamicTimeWarping",
        inputs: "input",
        attributes: "",
        outputs: "output",
        lower: lower_to_oarlock_op,
    },
    ContribOp { op: "Inverse", inputs: "X", attributes: "", outputs: "Y", lower: lower_inverse },
    ContribOp {
        op: "MurmurHash3",
        inputs: "X",
        attributes: "positive seed",
        outputs: "Y",
        lower: lower_to_oarlock_op,
    },
    ContribOp { op: "SampleOp", inputs: "X", attributes: "", outputs: "Y", lower: lower_identity },
    ContribOp {
        op: "UnfoldTensor",
        inputs: "input",
        attributes: "dim size step",
        outputs: "output",
        lower: lower_unfold,
    },
];

fn lower_identity(op: &mut ContribLowering<'_>) -> Result<()> {
    let result = op.add_op("Identity", &[op.input(0)?]);
    op.set_output(0, result);
    Ok(())
}

/// Lowers to an op of the same name in Oarlock's own domain.
fn lower_to_oarlock_op(op: &mut ContribLowering<'_>) -> Result<()> {
    let (name, attributes) = (op.node.op.clone(), op.node.attributes.clone());
    let result = op.add_oarlock_op(&name, &[op.input(0)?], attributes);
    op.set_output(0, result);
    Ok(())
}

/// The inverse of each matrix: solves a system whose right-hand side is the identity.
fn lower_inverse(op: &mut ContribLowering<'_>) -> Result<()> {
    let x = op.input(0)?;
    // f16 is not precise enough to solve in.
    let matrices = if op.dtype(x) == Some(Dtype::F16) { op.add_cast(x, Dtype::F32) } else { x };
    let (one, dims) = (op.add_scalar_like(1.0, matrices)?, op.slice_shape(x, 0, None));
    let ones = op.add_op("Expand", &[one, dims]);
    let upper = op.add_op("Trilu", &[ones]);
    let identity = op.add_op_with("Trilu", &[upper], [("upper", Attribute::Int(0))]);
    let solved = op.add_oarlock_op("Solve", &[matrices, identity], Attributes::new());
    let result = op.add_cast_like(solved, x);
    op.set_output(0, result);
    Ok(())
}

/// All windows of one size along a dimension; they overlap if the step is smaller. The window becomes the last dimension.
fn lower_unfold(op: &mut ContribLowering<'_>) -> Result<()> {
    let (x, axis) = (op.input(0)?, op.int_attribute("dim", -1)?);
    let (size, step) = (op.positive_attribute("size")?, op.int_attribute("step", 1)?);
    if step < 1 {
        return Err(unsupported_error("a `step` of at least 1", &step.to_string()));
    }
    let before = op.slice_shape(x, 0, Some(axis));
    // Behind the last dimension (-1) there is nothing; -1 + 1 = 0 would be taken for the first.
    let after = match axis.checked_add(1) {
        Some(next) if next != 0 => op.slice_shape(x, next, None),
        _ => op.add_ints(&[]),
    };
    let length = op.slice_shape(x, axis, (axis != -1).then(|| axis.saturating_add(1)));
    let [outer, inner] = [before, after].map(|sizes| op.add_op_with("ReduceProd", &[sizes], []));
    let x = reshape_with_zeros(op, x, &[outer, length, inner]);
    let (whole_size, whole_step, one) = (op.add_ints(&[size]), op.add_ints(&[step]), op.add_ints(&[1]));
    let last = op.add_op("Sub", &[length, whole_size]);
    let steps = op.add_op("Div", &[last, whole_step]);
    let count = op.add_op("Add", &[steps, one]);
    let pieces = op.reshape_to_scalar(count);
    let first = op.add_range(pieces)?;
    let first = op.add_op("Mul", &[first, whole_step]);
    let first = op.add_unsqueeze(first, &[1]);
    let size = op.add_int_scalar(size)?;
    let within = op.add_range(size)?;
    let places = op.add_op("Add", &[first, within]);
    let found = op.add_op_with("Gather", &[x, places], [("axis", Attribute::Int(1))]);
    let found = op.add_transpose(found, &[0, 1, 3, 2]);
    let result = reshape_with_zeros(op, found, &[before, count, after, whole_size]);
    op.set_output(0, result);
    Ok(())
}

/// Reshapes to concatenated dimensions, in which 0 means an empty dimension.
fn reshape_with_zeros(op: &mut ContribLowering<'_>, value: ValueId, parts: &[ValueId]) -> ValueId {
    let dims = op.add_concat(parts, 0);
    op.add_op_with("Reshape", &[value, dims], [("allowzero", Attribute::Int(1))])
}

/// Sampling positions of crops along one side of an image.
struct CropSide {
    /// A row of positions for each crop.
    places: ValueId,
    /// True for positions within the image.
    is_inside: ValueId,
    /// Size of the image along this side.
    length: ValueId,
}

/// Crops boxes out of images and resizes them, with corners aligned.
fn lower_crop_and_resize(op: &mut ContribLowering<'_>) -> Result<()> {
    let is_nearest = match op.node.attributes.get_string("mode")? {
        None | Some("bilinear") => false,
        Some("nearest") => true,
        Some(found) => return Err(unsupported_error("`bilinear` or `nearest` for `mode`", found)),
    };
    let (x, boxes) = (op.input(0)?, op.input(1)?);
    let counts = op.add_cast(op.input(3)?, Dtype::I64);
    let counts = op.add_split(counts, 0, 2);
    let corners = op.add_split(boxes, 1, 4);
    let height = crop_side(op, [corners[0], corners[2]], (x, 2), counts[0])?;
    let width = crop_side(op, [corners[1], corners[3]], (x, 3), counts[1])?;

    // Pixels become rows of channels, one image after another.
    let pixels = op.add_transpose(x, &[0, 2, 3, 1]);
    let (any, channels) = (op.add_ints(&[-1]), op.slice_shape(x, 1, Some(2)));
    let pixels = reshape_with_zeros(op, pixels, &[any, channels]);
    let images = op.add_cast(op.input(2)?, Dtype::I64);
    let images = op.add_reshape(images, &[-1, 1]);
    let first = op.add_op("Mul", &[images, height.length]);
    let at = |op: &mut ContribLowering<'_>, y: ValueId, x: ValueId| {
        let (y, x) = (op.add_cast(y, Dtype::I64), op.add_cast(x, Dtype::I64));
        let row = op.add_op("Add", &[first, y]);
        let begin = op.add_op("Mul", &[row, width.length]);
        let (begin, x) = (op.add_unsqueeze(begin, &[2]), op.add_unsqueeze(x, &[1]));
        let places = op.add_op("Add", &[begin, x]);
        op.add_op("Gather", &[pixels, places])
    };
    let found = if is_nearest {
        let half = op.add_scalar_like(0.5, boxes)?;
        let [y, x] = [&height, &width].map(|side| {
            let beyond = op.add_op("Add", &[side.places, half]);
            op.add_op("Floor", &[beyond])
        });
        at(op, y, x)
    } else {
        let [top, left] = [&height, &width].map(|side| op.add_op("Floor", &[side.places]));
        let [bottom, right] = [&height, &width].map(|side| op.add_op("Ceil", &[side.places]));
        let across = op.add_op("Sub", &[width.places, left]);
        let across = op.add_unsqueeze(across, &[1, 3]);
        let [upper, lower] = [top, bottom].map(|y| {
            let ends = [left, right].map(|x| at(op, y, x));
            interpolate(op, ends, across)
        });
        let down = op.add_op("Sub", &[height.places, top]);
        let down = op.add_unsqueeze(down, &[2, 3]);
        interpolate(op, [upper, lower], down)
    };
    let (rows, columns) =
        (op.add_unsqueeze(height.is_inside, &[2, 3]), op.add_unsqueeze(width.is_inside, &[1, 3]));
    let is_inside = op.add_op("And", &[rows, columns]);
    let outside = op.add_scalar_like(op.float_attribute("extrapolation_value", 0.0)?, x)?;
    let result = op.add_op("Where", &[is_inside, found, outside]);
    let result = op.add_transpose(result, &[0, 3, 1, 2]);
    op.set_output(0, result);
    Ok(())
}

/// Linear interpolation.
fn interpolate(op: &mut ContribLowering<'_>, [from, to]: [ValueId; 2], part: ValueId) -> ValueId {
    let span = op.add_op("Sub", &[to, from]);
    let step = op.add_op("Mul", &[span, part]);
    op.add_op("Add", &[from, step])
}

/// Evenly spaced positions from one edge of each box to the other along a side, or the middle if there is only one.
fn crop_side(
    op: &mut ContribLowering<'_>,
    [from, to]: [ValueId; 2],
    (image, axis): (ValueId, i64),
    count: ValueId,
) -> Result<CropSide> {
    let (length, one) = (op.slice_shape(image, axis, Some(axis + 1)), op.add_ints(&[1]));
    let (last, steps) = (op.add_op("Sub", &[length, one]), op.add_op("Sub", &[count, one]));
    let is_line = op.add_op("Greater", &[count, one]);
    let (last, steps) = (op.add_cast_like(last, from), op.add_op("Max", &[steps, one]));
    let steps = op.add_cast_like(steps, from);

    let span = op.add_op("Sub", &[to, from]);
    let span = op.add_op("Mul", &[span, last]);
    let step = op.add_op("Div", &[span, steps]);
    let count = op.reshape_to_scalar(count);
    let indices = op.add_range(count)?;
    let indices = op.add_cast_like(indices, from);
    let (begin, along) = (op.add_op("Mul", &[from, last]), op.add_op("Mul", &[indices, step]));
    let line = op.add_op("Add", &[begin, along]);

    let (both, half) = (op.add_op("Add", &[from, to]), op.add_scalar_like(0.5, from)?);
    let middle = op.add_op("Mul", &[both, half]);
    let middle = op.add_op("Mul", &[middle, last]);
    let places = op.add_op("Where", &[is_line, line, middle]);

    let zero = op.add_scalar_like(0.0, from)?;
    let (after, before) =
        (op.add_op("GreaterOrEqual", &[places, zero]), op.add_op("LessOrEqual", &[places, last]));
    let is_inside = op.add_op("And", &[after, before]);
    let places = op.add_op("Where", &[is_inside, places, zero]);
    Ok(CropSide { places, is_inside, length })
}

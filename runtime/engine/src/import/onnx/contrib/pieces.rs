//! Pieces of tensors and images, and what else is small and stands alone.

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::lowering::Lowering;
use super::row::{Row, unsupported};
use crate::graph::ValueId;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "CropAndResize",
        inputs: "X rois batch_indices crop_size",
        attributes: "extrapolation_value mode",
        outputs: "Y",
        lower: crop,
    },
    Row { op: "DynamicTimeWarping", inputs: "input", attributes: "", outputs: "output", lower: same },
    Row { op: "Inverse", inputs: "X", attributes: "", outputs: "Y", lower: invert },
    Row { op: "MurmurHash3", inputs: "X", attributes: "positive seed", outputs: "Y", lower: same },
    Row { op: "SampleOp", inputs: "X", attributes: "", outputs: "Y", lower: hand_on },
    Row {
        op: "UnfoldTensor",
        inputs: "input",
        attributes: "dim size step",
        outputs: "output",
        lower: unfold,
    },
];

fn hand_on(op: &mut Lowering<'_>) -> Result<()> {
    let made = op.apply("Identity", &[op.input(0)?]);
    op.give(0, made);
    Ok(())
}

/// Ops that this program has, too.
fn same(op: &mut Lowering<'_>) -> Result<()> {
    let (name, attributes) = (op.node.op.clone(), op.node.attributes.clone());
    let made = op.own(&name, &[op.input(0)?], attributes);
    op.give(0, made);
    Ok(())
}

/// What each matrix has to be multiplied by to be the one that changes nothing.
fn invert(op: &mut Lowering<'_>) -> Result<()> {
    let x = op.input(0)?;
    // Halves are not enough to solve in.
    let matrices = if op.dtype(x) == Some(Dtype::F16) { op.cast(x, Dtype::F32) } else { x };
    let (one, dims) = (op.number(1.0, matrices)?, op.sizes(x, 0, None));
    let ones = op.apply("Expand", &[one, dims]);
    let upper = op.apply("Trilu", &[ones]);
    let identity = op.with("Trilu", &[upper], [("upper", Attribute::Int(0))]);
    let solved = op.own("Solve", &[matrices, identity], Attributes::new());
    let made = op.cast_like(solved, x);
    op.give(0, made);
    Ok(())
}

/// All pieces of one size along a dimension, which overlap where they begin close to each other. A piece is the last dimension.
fn unfold(op: &mut Lowering<'_>) -> Result<()> {
    let (x, axis) = (op.input(0)?, op.int("dim", -1)?);
    let (size, step) = (op.count("size")?, op.int("step", 1)?);
    if step < 1 {
        return Err(unsupported("a `step` of at least 1", &step.to_string()));
    }
    let before = op.sizes(x, 0, Some(axis));
    // Behind the last dimension, -1, there is none, while 0 would be the first.
    let after = match axis.checked_add(1) {
        Some(next) if next != 0 => op.sizes(x, next, None),
        _ => op.ints(&[]),
    };
    let length = op.sizes(x, axis, (axis != -1).then(|| axis.saturating_add(1)));
    let [outer, inner] = [before, after].map(|sizes| op.with("ReduceProd", &[sizes], []));
    let x = reshape(op, x, &[outer, length, inner]);
    let (whole_size, whole_step, one) = (op.ints(&[size]), op.ints(&[step]), op.ints(&[1]));
    let last = op.apply("Sub", &[length, whole_size]);
    let steps = op.apply("Div", &[last, whole_step]);
    let count = op.apply("Add", &[steps, one]);
    let pieces = op.scalar(count);
    let first = op.range(pieces)?;
    let first = op.apply("Mul", &[first, whole_step]);
    let first = op.unsqueeze(first, &[1]);
    let size = op.whole(size)?;
    let within = op.range(size)?;
    let places = op.apply("Add", &[first, within]);
    let found = op.with("Gather", &[x, places], [("axis", Attribute::Int(1))]);
    let found = op.transpose(found, &[0, 1, 3, 2]);
    let made = reshape(op, found, &[before, count, after, whole_size]);
    op.give(0, made);
    Ok(())
}

/// The same elements in a shape that is put together from lists, in which 0 is a size.
fn reshape(op: &mut Lowering<'_>, value: ValueId, parts: &[ValueId]) -> ValueId {
    let dims = op.join(parts, 0);
    op.with("Reshape", &[value, dims], [("allowzero", Attribute::Int(1))])
}

/// Where the pixels of crops lie along one side of an image.
struct Side {
    /// A row of places for each crop.
    places: ValueId,
    /// Whether each of them is within the image.
    is_inside: ValueId,
    /// How many pixels the image has.
    length: ValueId,
}

/// Parts of images, in other sizes: of each box the corners are those of its crop.
fn crop(op: &mut Lowering<'_>) -> Result<()> {
    let is_nearest = match op.node.attributes.string("mode")? {
        None | Some("bilinear") => false,
        Some("nearest") => true,
        Some(found) => return Err(unsupported("`bilinear` or `nearest` for `mode`", found)),
    };
    let (x, boxes) = (op.input(0)?, op.input(1)?);
    let counts = op.cast(op.input(3)?, Dtype::I64);
    let counts = op.parts(counts, 0, 2);
    let corners = op.parts(boxes, 1, 4);
    let height = side(op, [corners[0], corners[2]], (x, 2), counts[0])?;
    let width = side(op, [corners[1], corners[3]], (x, 3), counts[1])?;

    // Pixels are rows of channels, one image after the other.
    let pixels = op.transpose(x, &[0, 2, 3, 1]);
    let (any, channels) = (op.ints(&[-1]), op.sizes(x, 1, Some(2)));
    let pixels = reshape(op, pixels, &[any, channels]);
    let images = op.cast(op.input(2)?, Dtype::I64);
    let images = op.reshape(images, &[-1, 1]);
    let first = op.apply("Mul", &[images, height.length]);
    let at = |op: &mut Lowering<'_>, y: ValueId, x: ValueId| {
        let (y, x) = (op.cast(y, Dtype::I64), op.cast(x, Dtype::I64));
        let row = op.apply("Add", &[first, y]);
        let begin = op.apply("Mul", &[row, width.length]);
        let (begin, x) = (op.unsqueeze(begin, &[2]), op.unsqueeze(x, &[1]));
        let places = op.apply("Add", &[begin, x]);
        op.apply("Gather", &[pixels, places])
    };
    let found = if is_nearest {
        let half = op.number(0.5, boxes)?;
        let [y, x] = [&height, &width].map(|side| {
            let beyond = op.apply("Add", &[side.places, half]);
            op.apply("Floor", &[beyond])
        });
        at(op, y, x)
    } else {
        let [top, left] = [&height, &width].map(|side| op.apply("Floor", &[side.places]));
        let [bottom, right] = [&height, &width].map(|side| op.apply("Ceil", &[side.places]));
        let across = op.apply("Sub", &[width.places, left]);
        let across = op.unsqueeze(across, &[1, 3]);
        let [upper, lower] = [top, bottom].map(|y| {
            let ends = [left, right].map(|x| at(op, y, x));
            between(op, ends, across)
        });
        let down = op.apply("Sub", &[height.places, top]);
        let down = op.unsqueeze(down, &[2, 3]);
        between(op, [upper, lower], down)
    };
    let (rows, columns) = (op.unsqueeze(height.is_inside, &[2, 3]), op.unsqueeze(width.is_inside, &[1, 3]));
    let is_inside = op.apply("And", &[rows, columns]);
    let outside = op.number(op.float("extrapolation_value", 0.0)?, x)?;
    let made = op.apply("Where", &[is_inside, found, outside]);
    let made = op.transpose(made, &[0, 3, 1, 2]);
    op.give(0, made);
    Ok(())
}

/// Some way from one value to another.
fn between(op: &mut Lowering<'_>, [from, to]: [ValueId; 2], part: ValueId) -> ValueId {
    let way = op.apply("Sub", &[to, from]);
    let step = op.apply("Mul", &[way, part]);
    op.apply("Add", &[from, step])
}

/// So many places from one end of each box to the other along a side of an image, and one place in the middle.
fn side(
    op: &mut Lowering<'_>,
    [from, to]: [ValueId; 2],
    (image, axis): (ValueId, i64),
    count: ValueId,
) -> Result<Side> {
    let (length, one) = (op.sizes(image, axis, Some(axis + 1)), op.ints(&[1]));
    let (last, steps) = (op.apply("Sub", &[length, one]), op.apply("Sub", &[count, one]));
    let is_line = op.apply("Greater", &[count, one]);
    let (last, steps) = (op.cast_like(last, from), op.apply("Max", &[steps, one]));
    let steps = op.cast_like(steps, from);

    let way = op.apply("Sub", &[to, from]);
    let way = op.apply("Mul", &[way, last]);
    let step = op.apply("Div", &[way, steps]);
    let count = op.scalar(count);
    let indices = op.range(count)?;
    let indices = op.cast_like(indices, from);
    let (begin, along) = (op.apply("Mul", &[from, last]), op.apply("Mul", &[indices, step]));
    let line = op.apply("Add", &[begin, along]);

    let (both, half) = (op.apply("Add", &[from, to]), op.number(0.5, from)?);
    let middle = op.apply("Mul", &[both, half]);
    let middle = op.apply("Mul", &[middle, last]);
    let places = op.apply("Where", &[is_line, line, middle]);

    let zero = op.number(0.0, from)?;
    let (after, before) =
        (op.apply("GreaterOrEqual", &[places, zero]), op.apply("LessOrEqual", &[places, last]));
    let is_inside = op.apply("And", &[after, before]);
    let places = op.apply("Where", &[is_inside, places, zero]);
    Ok(Side { places, is_inside, length })
}

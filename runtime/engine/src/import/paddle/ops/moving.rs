//! Ops that move elements to other places of the same tensor, or add some at its edges.

use oarlock_core::{Dtype, Error, Result};

use super::{Table, int, ints, known_list, like, text, unary};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

pub(super) const OPS: Table = &[
    ("channel_shuffle", |program, op| shuffle(program, op, "groups")),
    ("crop_tensor", crop),
    ("flip", flip),
    ("pad", pad_all),
    ("pad2d", |program, op| pad(program, op, 2)),
    ("pad3d", |program, op| pad(program, op, 3)),
    ("pixel_shuffle", pixel_shuffle),
    ("pixel_unshuffle", pixel_unshuffle),
    ("repeat_interleave", interleave),
    ("reverse", flip),
    ("roll", roll),
    ("shuffle_channel", |program, op| shuffle(program, op, "group")),
    ("tril_triu", triangle),
];

/// Paddings of the dimensions of a picture: of two dimensions the first one first, and of three the last one first.
fn pad<'m>(program: &mut Program<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    op.expect("mode", &["constant", "reflect", "replicate", "edge", "circular"])?;
    let x = program.input(op, "X")?;
    let given = known_list(program, op, "paddings", "Paddings", "")?.ok_or_else(|| {
        Error::unimplemented("expected paddings that are known, found some that are computed")
    })?;
    if given.len() != 2 * count {
        return Err(wrong(format!("{} paddings", 2 * count), given.len()));
    }
    let mut pairs: Vec<&[i64]> = given.chunks(2).collect();
    if count == 3 {
        pairs.reverse();
    }
    let none = [0, 0];
    if super::spatial::is_last(op, "data_format")? {
        pairs.push(&none);
    } else {
        pairs.insert(0, &none);
    }
    pairs.insert(0, &none);
    let (value, mode) = (op.float("value", op.float("pad_value", 0.0)), op.text("mode"));
    let mode = match mode {
        "reflect" => "reflect",
        "replicate" | "edge" => "edge",
        "circular" => "wrap",
        _ => "constant",
    };
    padded(program, op, x, &pairs, value, mode)
}

/// Paddings of all dimensions.
fn pad_all<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let given = known_list(program, op, "paddings", "Paddings", "")?.ok_or_else(|| {
        Error::unimplemented("expected paddings that are known, found some that are computed")
    })?;
    let pairs: Vec<&[i64]> = given.chunks(2).collect();
    padded(program, op, x, &pairs, op.float("pad_value", 0.0), "constant")
}

fn padded<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    x: Operand<'m>,
    pairs: &[&[i64]],
    value: f64,
    mode: &str,
) -> Result<()> {
    let sides = [0, 1].map(|side| pairs.iter().filter_map(move |pair| pair.get(side)));
    let paddings: Vec<i64> = sides.into_iter().flatten().copied().collect();
    if paddings.len() as i64 != 2 * x.rank()? {
        return Err(wrong(format!("paddings of {} dimensions", x.rank()?), paddings.len() / 2));
    }
    let paddings = program.ints(&paddings);
    let value = like(program, x, value)?;
    let made = program.node("Pad", &[x.id, paddings, value], with([("mode", text(mode))]));
    program.give(op, "Out", made)
}

fn pixel_shuffle<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_format", &["NCHW"])?;
    let attributes = with([("blocksize", int(op.int("upscale_factor", 1))), ("mode", text("CRD"))]);
    unary(program, op, "DepthToSpace", attributes)
}

/// The other way: places within small squares become channels.
fn pixel_unshuffle<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_format", &["NCHW"])?;
    let (x, factor) = (program.input(op, "X")?, op.int("downscale_factor", 1));
    let unknown = program.ints(&[-1]);
    let squares = [2, 3].map(|axis| super::sizes(program, x, axis, axis + 1));
    let whole = program.ints(&[factor]);
    let [height, width] = squares.map(|size| program.apply("Div", &[size, whole]));
    let axis = || with([("axis", int(0))]);
    let (kept, channels) = (super::sizes(program, x, 0, 2), super::sizes(program, x, 0, 1));
    let shape = program.node("Concat", &[kept, height, whole, width, whole], axis());
    let cut = program.apply("Reshape", &[x.id, shape]);
    let turned = program.node("Transpose", &[cut], with([("perm", ints(&[0, 1, 3, 5, 2, 4]))]));
    let shape = program.node("Concat", &[channels, unknown, height, width], axis());
    let made = program.apply("Reshape", &[turned, shape]);
    program.give(op, "Out", made)
}

/// Takes channels from groups in turn.
fn shuffle<'m>(program: &mut Program<'m>, op: &'m OpDesc, groups: &str) -> Result<()> {
    op.expect("data_format", &["NCHW"])?;
    let x = program.input(op, "X")?;
    let (batch, picture) = (super::sizes(program, x, 0, 1), super::sizes(program, x, 2, x.rank()?));
    let groups = program.ints(&[op.int(groups, 1), -1]);
    let shape = program.node("Concat", &[batch, groups, picture], with([("axis", int(0))]));
    let grouped = program.apply("Reshape", &[x.id, shape]);
    let order: Vec<i64> = [0, 2, 1].into_iter().chain(3..=x.rank()?).collect();
    let turned = program.node("Transpose", &[grouped], with([("perm", ints(&order))]));
    let shape = program.apply("Shape", &[x.id]);
    let made = program.apply("Reshape", &[turned, shape]);
    program.give(op, "Out", made)
}

/// A part of a tensor from some offsets on; -1 in its shape takes all from there on.
fn crop<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = known_list(program, op, "shape", "Shape", "ShapeTensor")?;
    let offsets = known_list(program, op, "offsets", "Offsets", "OffsetsTensor")?;
    let (Some(shape), Some(offsets)) = (shape, offsets) else {
        return Err(Error::unimplemented("expected a part that is known, found one that is computed"));
    };
    let end = |(size, from): (&i64, &i64)| if *size < 0 { i64::MAX } else { from.saturating_add(*size) };
    let ends: Vec<i64> = shape.iter().zip(&offsets).map(end).collect();
    let (offsets, ends) = (program.ints(&offsets), program.ints(&ends));
    let made = program.apply("Slice", &[x, offsets, ends]);
    program.give(op, "Out", made)
}

/// The other way round along some axes.
fn flip<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, axes) = (program.input(op, "X")?.id, op.ints("axis"));
    let [begin, end, step] = [-1, i64::MIN, -1].map(|value| program.ints(&vec![value; axes.len()]));
    let axes = program.ints(&axes);
    let made = program.apply("Slice", &[x, begin, end, axes, step]);
    program.give(op, "Out", made)
}

/// Moves what is at the end of an axis to its begin.
fn roll<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let shifts = known_list(program, op, "shifts", "ShiftsTensor", "")?.ok_or_else(|| {
        Error::unimplemented("expected shifts that are known, found some that are computed")
    })?;
    let mut axes = op.ints("axis");
    let (mut made, shape) = (x.id, program.apply("Shape", &[x.id]));
    if axes.is_empty() {
        let all = program.ints(&[-1]);
        (made, axes) = (program.apply("Reshape", &[made, all]), vec![0]);
    }
    let is_flat = op.ints("axis").is_empty();
    for (axis, shift) in axes.iter().zip(&shifts) {
        // Where the size is known the shift is brought within it.
        let size = if is_flat { None } else { x.size(*axis).filter(|size| *size > 0) };
        let shift = size.map_or(*shift, |size| shift.rem_euclid(size));
        let (at, begin, end) =
            (program.ints(&[shift.saturating_neg()]), program.ints(&[0]), program.ints(&[i64::MAX]));
        let axes = program.ints(&[*axis]);
        if shift == 0 {
            continue;
        }
        let (behind, before) = (
            program.apply("Slice", &[made, at, end, axes]),
            program.apply("Slice", &[made, begin, at, axes]),
        );
        made = program.node("Concat", &[behind, before], with([("axis", int(*axis))]));
    }
    if is_flat {
        made = program.apply("Reshape", &[made, shape]);
    }
    program.give(op, "Out", made)
}

/// One half of matrices, with zeros as the other.
fn triangle<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let diagonal = program.number(op.int("diagonal", 0) as f64, Dtype::I64)?;
    let upper = int((!op.flag("lower", true)).into());
    let made = program.node("Trilu", &[x, diagonal], with([("upper", upper)]));
    program.give(op, "Out", made)
}

/// Each place of an axis several times.
fn interleave<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, times) = (program.input(op, "X")?, op.int("Repeats", 1));
    if program.maybe(op, "RepeatsTensor")?.is_some() {
        return Err(Error::unimplemented(
            "expected a known number of repetitions, found one that is computed",
        ));
    }
    let axis = x.axis(op.int("dim", 0))?;
    let behind = program.ints(&[axis + 1]);
    let raised = program.apply("Unsqueeze", &[x.id, behind]);
    let many: Vec<i64> = (0..=x.rank()?).map(|at| if at == axis + 1 { times } else { 1 }).collect();
    let many = program.ints(&many);
    let repeated = program.apply("Expand", &[raised, many]);
    let (before, after) = (super::sizes(program, x, 0, axis), super::sizes(program, x, axis + 1, x.rank()?));
    let all = program.ints(&[-1]);
    let shape = program.node("Concat", &[before, all, after], with([("axis", int(0))]));
    let made = program.apply("Reshape", &[repeated, shape]);
    program.give(op, "Out", made)
}

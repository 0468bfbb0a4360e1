//! Ops that move elements without changing them.

use oarlock_core::{Attributes, Dtype, Result};

use super::{Table, int, ints, known_int, known_list, list, unary};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

pub(super) const OPS: Table = &[
    ("concat", concat),
    ("expand", |program, op| repeat(program, op, "expand_times", "ExpandTimes", "expand_times_tensor")),
    ("expand_as_v2", expand_as),
    ("expand_v2", expand),
    ("flatten2", |program, op| unary(program, op, "Flatten", with([("axis", int(op.int("axis", 1)))]))),
    ("flatten_contiguous_range", flatten),
    ("meshgrid", mesh),
    ("reshape", reshape),
    ("reshape2", reshape),
    ("split", split),
    ("squeeze", |program, op| axes(program, op, "Squeeze")),
    ("squeeze2", |program, op| axes(program, op, "Squeeze")),
    ("stack", stack),
    ("tile", |program, op| repeat(program, op, "repeat_times", "RepeatTimes", "repeat_times_tensor")),
    ("transpose", |program, op| unary(program, op, "Transpose", with([("perm", ints(&op.ints("axis")))]))),
    ("transpose2", |program, op| unary(program, op, "Transpose", with([("perm", ints(&op.ints("axis")))]))),
    ("unbind", |program, op| parts(program, op, "Out")),
    ("unsqueeze", |program, op| axes(program, op, "Unsqueeze")),
    ("unsqueeze2", |program, op| axes(program, op, "Unsqueeze")),
    ("unstack", |program, op| parts(program, op, "Y")),
];

fn reshape<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = list(program, op, "shape", "Shape", "ShapeTensor")?;
    let made = program.node("Reshape", &[x, shape], Attributes::new());
    program.give(op, "Out", made)
}

/// Makes one dimension of some that follow each other.
fn flatten<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let rank = x.rank()?;
    let from_begin = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis };
    let (start, stop) = (from_begin(op.int("start_axis", 1)), from_begin(op.int("stop_axis", -1)));
    if start < 0 || stop < start || stop >= rank.max(1) {
        return Err(wrong(format!("two of {rank} axes"), format!("{start} and {stop}")));
    }
    let dims = x.dims.unwrap_or_default();
    let behind = dims.get(stop as usize + 1..).unwrap_or_default();
    // A 0 stands for the size that is there already.
    let shape: Vec<i64> = (0..start).map(|_| 0).chain([-1]).chain(behind.iter().copied()).collect();
    let shape = if behind.iter().all(|size| *size >= 0) {
        program.ints(&shape)
    } else {
        let before = program.ints(&shape[..start as usize + 1]);
        let behind = super::sizes(program, x, stop + 1, rank);
        program.node("Concat", &[before, behind], with([("axis", int(0))]))
    };
    let made = program.apply("Reshape", &[x.id, shape]);
    program.give(op, "Out", made)
}

fn axes<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    let known = known_list(program, op, "axes", "AxesTensor", "AxesTensorList")?;
    // Paddle leaves dimensions that cannot be dropped as they are.
    let can_be_dropped = |axis: &i64| name != "Squeeze" || x.size(*axis).is_none_or(|size| size == 1);
    let made = match known {
        Some(axes) if axes.is_empty() => program.apply(name, &[x.id]),
        Some(axes) => {
            let axes: Vec<i64> = axes.into_iter().filter(can_be_dropped).collect();
            let axes = program.ints(&axes);
            program.apply(name, &[x.id, axes])
        }
        None => {
            let axes = list(program, op, "axes", "AxesTensor", "AxesTensorList")?;
            program.apply(name, &[x.id, axes])
        }
    };
    super::give_one(program, op, "Out", made)
}

fn concat<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let axis = known_int(program, op, "axis", "AxisTensor", 0)?;
    let made = program.node("Concat", &operands, with([("axis", int(axis))]));
    program.give(op, "Out", made)
}

fn split<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = known_int(program, op, "axis", "AxisTensor", 0)?;
    let count = OpDesc::operands(&op.outputs, "Out").len();
    let known = known_list(program, op, "sections", "SectionsTensor", "SectionsTensorList")?;
    let made = match known {
        Some(sizes) if sizes.is_empty() => {
            let attributes = with([("axis", int(axis)), ("num_outputs", int(count as i64))]);
            program.nodes("Split", &[Some(x.id)], attributes, count)
        }
        Some(mut sizes) => {
            if let Some(open) = sizes.iter().position(|size| *size == -1) {
                let others =
                    sizes.iter().filter(|size| **size > 0).fold(0i64, |sum, size| sum.saturating_add(*size));
                sizes[open] = x.known_size(axis)?.saturating_sub(others);
            }
            let sizes = program.ints(&sizes);
            program.nodes("Split", &[Some(x.id), Some(sizes)], with([("axis", int(axis))]), count)
        }
        None => {
            let sizes = list(program, op, "sections", "SectionsTensor", "SectionsTensorList")?;
            program.nodes("Split", &[Some(x.id), Some(sizes)], with([("axis", int(axis))]), count)
        }
    };
    program.give_all(op, "Out", &made)
}

fn stack<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (operands, axis) = (program.inputs(op, "X")?, op.int("axis", 0));
    let axes = program.ints(&[axis]);
    let raise = |operand: &Operand<'m>| program.node("Unsqueeze", &[operand.id, axes], Attributes::new());
    let raised: Vec<ValueId> = operands.iter().map(raise).collect();
    let made = program.node("Concat", &raised, with([("axis", int(axis))]));
    program.give(op, "Y", made)
}

/// Repeats dimensions of 1; a -1 in the shape keeps what is there, for which ONNX writes 1.
fn expand<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = match known_list(program, op, "shape", "Shape", "expand_shapes_tensor")? {
        Some(shape) => {
            let shape: Vec<i64> = shape.iter().map(|size| if *size == -1 { 1 } else { *size }).collect();
            program.ints(&shape)
        }
        None => {
            let shape = list(program, op, "shape", "Shape", "expand_shapes_tensor")?;
            let one = program.number(1.0, Dtype::I64)?;
            program.apply("Max", &[shape, one])
        }
    };
    let made = program.apply("Expand", &[x, shape]);
    program.give(op, "Out", made)
}

/// Repeats all of some dimensions; those before the ones that are named are as they are.
fn repeat<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str, whole: &str, parts: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    let (times, rank) = match known_list(program, op, name, whole, parts)? {
        Some(mut times) => {
            let missing = usize::try_from(x.rank()?).unwrap_or_default().saturating_sub(times.len());
            times.splice(0..0, std::iter::repeat_n(1, missing));
            (program.ints(&times), times.len() as i64)
        }
        None => (list(program, op, name, whole, parts)?, x.rank()?),
    };
    let missing = rank - x.rank()?;
    let mut from = x.id;
    if missing > 0 {
        let axes = program.ints(&(0..missing).collect::<Vec<i64>>());
        from = program.apply("Unsqueeze", &[from, axes]);
    }
    let made = program.apply("Tile", &[from, times]);
    program.give(op, "Out", made)
}

fn expand_as<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = match program.maybe(op, "Y")? {
        Some(like) => program.node("Shape", &[like.id], Attributes::new()),
        None => program.ints(&op.ints("target_shape")),
    };
    let made = program.node("Expand", &[x, shape], Attributes::new());
    program.give(op, "Out", made)
}

/// All places along an axis, each without it.
fn parts<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, axis) = (program.input(op, "X")?.id, op.int("axis", 0));
    let count = OpDesc::operands(&op.outputs, name).len();
    let attributes = with([("axis", int(axis)), ("num_outputs", int(count as i64))]);
    let parts = program.nodes("Split", &[Some(x)], attributes, count);
    let axes = program.ints(&[axis]);
    let lower = |part: &ValueId| program.node("Squeeze", &[*part, axes], Attributes::new());
    let made: Vec<ValueId> = parts.iter().map(lower).collect();
    program.give_all(op, name, &made)
}

/// Vectors as dimensions of their own, all repeated to one shape.
fn mesh<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let vectors = program.inputs(op, "X")?;
    let flat = program.ints(&[-1]);
    let each: Vec<ValueId> =
        vectors.iter().map(|vector| program.apply("Reshape", &[vector.id, flat])).collect();
    let sizes: Vec<ValueId> = each.iter().map(|vector| program.apply("Shape", &[*vector])).collect();
    let shape = program.node("Concat", &sizes, with([("axis", int(0))]));
    let mut made = Vec::new();
    for (at, vector) in each.iter().enumerate() {
        let alone: Vec<i64> = (0..each.len()).map(|axis| if axis == at { -1 } else { 1 }).collect();
        let alone = program.ints(&alone);
        let aligned = program.apply("Reshape", &[*vector, alone]);
        made.push(program.apply("Expand", &[aligned, shape]));
    }
    program.give_all(op, "Out", &made)
}

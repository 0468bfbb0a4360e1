//! Ops that move elements without changing them.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{Translate, int, ints, list, unary};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Operand, Program, with};
use crate::import::place::wrong;

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "concat" => concat,
        "expand_v2" => expand,
        "flatten2" => |program, op| unary(program, op, "Flatten", with([("axis", int(op.int("axis", 1)))])),
        "flatten_contiguous_range" => flatten,
        "expand_as_v2" => expand_as,
        "pad3d" => pad,
        "pixel_shuffle" => pixel_shuffle,
        "reshape" | "reshape2" => reshape,
        "split" => split,
        "squeeze2" => |program, op| axes(program, op, "Squeeze"),
        "stack" => stack,
        "tile" => tile,
        "transpose" | "transpose2" => {
            |program, op| unary(program, op, "Transpose", with([("perm", ints(&op.ints("axis")))]))
        }
        "unbind" => |program, op| parts(program, op, "Out"),
        "unstack" => |program, op| parts(program, op, "Y"),
        "unsqueeze2" => |program, op| axes(program, op, "Unsqueeze"),
        _ => return None,
    })
}

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
    if behind.iter().any(|size| *size < 0) {
        return Err(Error::unimplemented(
            "expected known sizes behind what is made one, found one that is not",
        ));
    }
    // A 0 stands for the size that is there already.
    let shape: Vec<i64> = (0..start).map(|_| 0).chain([-1]).chain(behind.iter().copied()).collect();
    let shape = program.ints(&shape);
    let made = program.node("Reshape", &[x.id, shape], Attributes::new());
    program.give(op, "Out", made)
}

fn axes<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let has_axes = !op.ints("axes").is_empty();
    let is_computed = program.maybe(op, "AxesTensor")?.is_some();
    let made = if has_axes || is_computed {
        let axes = list(program, op, "axes", "AxesTensor", "AxesTensorList")?;
        program.node(name, &[x, axes], Attributes::new())
    } else {
        program.node(name, &[x], Attributes::new())
    };
    program.give(op, "Out", made)
}

fn concat<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let axis = known_axis(program, op)?;
    let made = program.node("Concat", &operands, with([("axis", int(axis))]));
    program.give(op, "Out", made)
}

/// The axis, which may be an operand if that is known.
fn known_axis<'m>(program: &Program<'m>, op: &'m OpDesc) -> Result<i64> {
    let Some(given) = program.maybe(op, "AxisTensor")? else { return Ok(op.int("axis", 0)) };
    let known = program.known(given.id).and_then(|axis| axis.ints().ok()?.first().copied());
    known.ok_or_else(|| Error::unimplemented("expected an axis that is known, found one that is computed"))
}

fn split<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, axis) = (program.input(op, "X")?.id, known_axis(program, op)?);
    let count = OpDesc::operands(&op.outputs, "Out").len();
    if !program.inputs(op, "SectionsTensorList")?.is_empty() {
        return Err(Error::unimplemented("expected sizes that are known, found some that are computed"));
    }
    let sizes = op.ints("sections");
    let made = if sizes.is_empty() {
        let attributes = with([("axis", int(axis)), ("num_outputs", int(count as i64))]);
        program.nodes("Split", &[Some(x)], attributes, count)
    } else if sizes.contains(&-1) {
        return Err(Error::unimplemented("expected known sizes of all parts, found one that is left open"));
    } else {
        let sizes = program.ints(&sizes);
        program.nodes("Split", &[Some(x), Some(sizes)], with([("axis", int(axis))]), count)
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
    let is_computed =
        program.maybe(op, "Shape")?.is_some() || !program.inputs(op, "expand_shapes_tensor")?.is_empty();
    let shape = if is_computed {
        list(program, op, "shape", "Shape", "expand_shapes_tensor")?
    } else {
        let shape: Vec<i64> =
            op.ints("shape").iter().map(|size| if *size == -1 { 1 } else { *size }).collect();
        program.ints(&shape)
    };
    let made = program.node("Expand", &[x, shape], Attributes::new());
    program.give(op, "Out", made)
}

fn tile<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let times = op.ints("repeat_times");
    let is_computed =
        program.maybe(op, "RepeatTimes")?.is_some() || !program.inputs(op, "repeat_times_tensor")?.is_empty();
    if is_computed || times.len() as i64 != x.rank()? {
        return Err(Error::unimplemented("expected a known number of times for each dimension, found other"));
    }
    let times = program.ints(&times);
    let made = program.node("Tile", &[x.id, times], Attributes::new());
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

/// Paddings of the last three of five dimensions, the last first.
fn pad<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_format", &["NCDHW"])?;
    op.expect("mode", &["constant", "reflect", "replicate", "circular"])?;
    let x = program.input(op, "X")?.id;
    if program.maybe(op, "Paddings")?.is_some() {
        return Err(Error::unimplemented("expected paddings that are known, found some that are computed"));
    }
    let paddings = op.ints("paddings");
    let [left, right, top, bottom, front, back] = paddings[..] else {
        return Err(wrong("6 paddings", paddings.len()));
    };
    let paddings = program.ints(&[0, 0, front, top, left, 0, 0, back, bottom, right]);
    let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let value = program.number(op.float("value", 0.0), dtype)?;
    let mode = match op.text("mode") {
        "reflect" => "reflect",
        "replicate" => "edge",
        "circular" => "wrap",
        _ => "constant",
    };
    let made = program.node("Pad", &[x, paddings, value], with([("mode", Attribute::String(mode.into()))]));
    program.give(op, "Out", made)
}

fn pixel_shuffle<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_format", &["NCHW"])?;
    let attributes =
        with([("blocksize", int(op.int("upscale_factor", 1))), ("mode", Attribute::String("CRD".into()))]);
    unary(program, op, "DepthToSpace", attributes)
}

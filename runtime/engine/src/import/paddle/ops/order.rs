//! What is sorted, counted and picked out by value.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{Table, int, known_int};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::parameters::dtype;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

pub(super) const OPS: Table = &[
    ("argsort", sort),
    ("masked_select", masked),
    ("sequence_mask", sequence_mask),
    ("top_k", top_k),
    ("top_k_v2", top_k),
    ("unique", unique),
    ("where_index", places),
];

/// The largest or smallest along an axis, with their places.
fn best<'m>(
    program: &mut Program<'m>,
    x: Operand<'m>,
    count: ValueId,
    axis: i64,
    is_largest: bool,
) -> [ValueId; 2] {
    let attributes = with([("axis", int(axis)), ("largest", int(is_largest.into())), ("sorted", int(1))]);
    let made = program.nodes("TopK", &[Some(x.id), Some(count)], attributes, 2);
    [made[0], made[1]]
}

fn top_k<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let count = match program.maybe(op, "K")? {
        Some(given) => {
            let one = program.ints(&[1]);
            let count = program.cast(given.id, Dtype::I64);
            program.apply("Reshape", &[count, one])
        }
        None => program.ints(&[op.int("k", 1)]),
    };
    let [values, indices] = best(program, x, count, op.int("axis", -1), op.flag("largest", true));
    program.give(op, "Out", values)?;
    program.give(op, "Indices", indices)
}

fn sort<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = x.axis(op.int("axis", -1))?;
    let count = super::sizes(program, x, axis, axis + 1);
    let [values, indices] = best(program, x, count, axis, op.flag("descending", false));
    program.give(op, "Out", values)?;
    program.give(op, "Indices", indices)
}

/// The places of all elements that are not zero, one in a row.
fn places<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let condition = program.input(op, "Condition")?.id;
    let found = program.apply("NonZero", &[condition]);
    let made = program.node("Transpose", &[found], with([("perm", super::ints(&[1, 0]))]));
    program.give(op, "Out", made)
}

fn masked<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, mask) = (program.input(op, "X")?, program.input(op, "Mask")?);
    let mut operands = [x.id, mask.id];
    if x.dims.is_none() || x.dims != mask.dims {
        for at in [0, 1] {
            let shape = program.apply("Shape", &[[x.id, mask.id][1 - at]]);
            operands[at] = program.apply("Expand", &[operands[at], shape]);
        }
    }
    // Without an axis the elements are taken one after the other.
    let operands = operands.map(|it| flat(program, it));
    let made = program.apply("Compress", &operands);
    program.give(op, "Y", made)
}

fn flat(program: &mut Program, from: ValueId) -> ValueId {
    let all = program.ints(&[-1]);
    program.apply("Reshape", &[from, all])
}

/// Each element once, with where it was first, which each was, and how often it was there.
fn unique<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut attributes = with([("sorted", int(1))]);
    match op.ints("axis")[..] {
        [] => {}
        [axis] => attributes.set("axis", int(x.axis(axis)?)),
        _ => return Err(wrong("one axis", "several")),
    }
    if !op.flag("is_sorted", false) {
        return Err(Error::unimplemented("expected elements that are sorted, found that they are to stay"));
    }
    let made = program.nodes("Unique", &[Some(x.id)], attributes, 4);
    program.give(op, "Out", made[0])?;
    let to = dtype(i32::try_from(op.int("dtype", 3)).unwrap_or(-1))?;
    for (name, id) in [("Indices", made[1]), ("Index", made[2]), ("Counts", made[3])] {
        if !OpDesc::operands(&op.outputs, name).is_empty() {
            let id = if to == Dtype::I64 { id } else { program.cast(id, to) };
            program.give(op, name, id)?;
        }
    }
    Ok(())
}

/// Rows of ones, as many as an element says, and zeros.
fn sequence_mask<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let most = known_int(program, op, "maxlen", "MaxLenTensor", -1)?;
    let lengths = program.cast(x.id, Dtype::I64);
    let end = if most > 0 {
        program.number(most as f64, Dtype::I64)?
    } else {
        program.node("ReduceMax", &[lengths], with([("keepdims", int(0))]))
    };
    let (begin, step) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let places = program.apply("Range", &[begin, end, step]);
    let last = program.ints(&[-1]);
    let lengths = program.apply("Unsqueeze", &[lengths, last]);
    let is_within = program.apply("Less", &[places, lengths]);
    let to = dtype(i32::try_from(op.int("out_dtype", 3)).unwrap_or(-1))?;
    let made = program.node("Cast", &[is_within], with([("to", Attribute::Int(to.onnx_number()))]));
    program.give(op, "Y", made)
}

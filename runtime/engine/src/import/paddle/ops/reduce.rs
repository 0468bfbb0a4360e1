//! One number of many: sums, extremes, lengths and their places.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{Table, give_one, int, known_int, known_list, like};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};

pub(super) const OPS: Table = &[
    ("arg_max", |program, op| arg(program, op, "ArgMax")),
    ("arg_min", |program, op| arg(program, op, "ArgMin")),
    ("cumsum", cumulative),
    ("frobenius_norm", |program, op| reduce(program, op, "ReduceL2")),
    ("logsumexp", |program, op| reduce(program, op, "ReduceLogSumExp")),
    ("mean", |program, op| reduce(program, op, "ReduceMean")),
    ("p_norm", length),
    ("reduce_all", |program, op| truths(program, op, "ReduceMin")),
    ("reduce_amax", |program, op| reduce(program, op, "ReduceMax")),
    ("reduce_amin", |program, op| reduce(program, op, "ReduceMin")),
    ("reduce_any", |program, op| truths(program, op, "ReduceMax")),
    ("reduce_max", |program, op| reduce(program, op, "ReduceMax")),
    ("reduce_mean", |program, op| reduce(program, op, "ReduceMean")),
    ("reduce_min", |program, op| reduce(program, op, "ReduceMin")),
    ("reduce_prod", |program, op| reduce(program, op, "ReduceProd")),
    ("reduce_sum", |program, op| reduce(program, op, "ReduceSum")),
];

/// Whether the dimensions that an op reduces stay, with one element each.
fn keep(op: &OpDesc) -> Attribute {
    int((op.flag("keep_dim", false) || op.flag("keepdim", false)).into())
}

/// Reduces the dimensions that an op names; all of them where it names none.
fn reduced<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str, from: ValueId) -> Result<ValueId> {
    let attribute = if op.ints("dim").is_empty() { "axis" } else { "dim" };
    let axes = known_list(program, op, attribute, "Axis", "AxisTensor")?
        .ok_or_else(|| Error::unimplemented("expected axes that are known, found some that are computed"))?;
    let keep = with([("keepdims", keep(op))]);
    Ok(if op.flag("reduce_all", false) || axes.is_empty() {
        program.node(name, &[from], keep)
    } else {
        let axes = program.ints(&axes);
        program.node(name, &[from, axes], keep)
    })
}

fn reduce<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    // Sums of few bits are made of more.
    let from = match program.output_dtype(op, "Out") {
        Some(to) if x.stated.is_some_and(|dtype| dtype != to) => program.cast(x.id, to),
        _ => x.id,
    };
    let made = reduced(program, op, name, from)?;
    give_one(program, op, "Out", made)
}

fn truths<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let numbers = program.cast(x, Dtype::I32);
    let made = reduced(program, op, name, numbers)?;
    let made = program.cast(made, Dtype::Bool);
    give_one(program, op, "Out", made)
}

/// The length of vectors in one of many meanings.
fn length<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, order) = (program.input(op, "X")?, op.float("porder", 2.0));
    let axes = if op.flag("asvector", false) { Vec::new() } else { vec![op.int("axis", -1)] };
    let axes = program.ints(&axes);
    let keep = || with([("keepdims", keep(op))]);
    let made = if order == 1.0 {
        program.node("ReduceL1", &[x.id, axes], keep())
    } else if order == 2.0 {
        program.node("ReduceL2", &[x.id, axes], keep())
    } else {
        let sizes = program.apply("Abs", &[x.id]);
        if order == f64::INFINITY {
            program.node("ReduceMax", &[sizes, axes], keep())
        } else if order == f64::NEG_INFINITY {
            program.node("ReduceMin", &[sizes, axes], keep())
        } else if order == 0.0 {
            let counted = program.apply("Sign", &[sizes]);
            program.node("ReduceSum", &[counted, axes], keep())
        } else {
            let (power, root) = (like(program, x, order)?, like(program, x, 1.0 / order)?);
            let powers = program.apply("Pow", &[sizes, power]);
            let sum = program.node("ReduceSum", &[powers, axes], keep());
            program.apply("Pow", &[sum, root])
        }
    };
    give_one(program, op, "Out", made)
}

fn flat<'m>(program: &mut Program<'m>, x: Operand<'m>) -> ValueId {
    let all = program.ints(&[-1]);
    program.apply("Reshape", &[x.id, all])
}

fn arg<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = known_int(program, op, "axis", "Axis", -1)?;
    let keep = int(op.flag("keepdims", false).into());
    let mut made = if op.flag("flatten", false) {
        let flat = flat(program, x);
        let place = program.node(name, &[flat], with([("axis", int(0)), ("keepdims", int(0))]));
        if keep == int(1) {
            let ones = program.ints(&vec![1; x.rank()? as usize]);
            program.apply("Reshape", &[place, ones])
        } else {
            place
        }
    } else {
        program.node(name, &[x.id], with([("axis", int(axis)), ("keepdims", keep)]))
    };
    if program.output_dtype(op, "Out") == Some(Dtype::I32) {
        made = program.cast(made, Dtype::I32);
    }
    give_one(program, op, "Out", made)
}

fn cumulative<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut axis = known_int(program, op, "axis", "AxisTensor", -1)?;
    let mut from = x.id;
    if op.flag("flatten", false) {
        (from, axis) = (flat(program, x), 0);
    }
    let axis = program.number(axis as f64, Dtype::I64)?;
    let flag = |name| int(op.flag(name, false).into());
    let attributes = with([("exclusive", flag("exclusive")), ("reverse", flag("reverse"))]);
    let made = program.node("CumSum", &[from, axis], attributes);
    program.give(op, "Out", made)
}

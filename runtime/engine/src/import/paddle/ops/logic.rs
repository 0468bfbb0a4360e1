//! Comparisons, truth values and bits.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::arithmetic::{operands, pairs};
use super::{Table, give_one, int, unary};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

pub(super) const OPS: Table = &[
    ("allclose", all_close),
    ("bitwise_and", |program, op| bits(program, op, "And", "BitwiseAnd")),
    ("bitwise_not", |program, op| {
        let is_truth = program.input_dtype(op, "X") == Some(Dtype::Bool);
        unary(program, op, if is_truth { "Not" } else { "BitwiseNot" }, Attributes::new())
    }),
    ("bitwise_or", |program, op| bits(program, op, "Or", "BitwiseOr")),
    ("bitwise_xor", |program, op| bits(program, op, "Xor", "BitwiseXor")),
    ("equal", |program, op| pairs(program, op, "Equal")),
    ("equal_all", equal_all),
    ("greater_equal", |program, op| pairs(program, op, "GreaterOrEqual")),
    ("greater_than", |program, op| pairs(program, op, "Greater")),
    ("is_empty", is_empty),
    ("isfinite_v2", is_finite),
    ("isinf_v2", |program, op| unary(program, op, "IsInf", Attributes::new())),
    ("isnan_v2", |program, op| unary(program, op, "IsNaN", Attributes::new())),
    ("less_equal", |program, op| pairs(program, op, "LessOrEqual")),
    ("less_than", |program, op| pairs(program, op, "Less")),
    ("logical_and", |program, op| pairs(program, op, "And")),
    ("logical_not", |program, op| unary(program, op, "Not", Attributes::new())),
    ("logical_or", |program, op| pairs(program, op, "Or")),
    ("logical_xor", |program, op| pairs(program, op, "Xor")),
    ("not_equal", not_equal),
];

fn not_equal<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let equal = program.apply("Equal", &[x.id, y]);
    let made = program.apply("Not", &[equal]);
    program.give(op, "Out", made)
}

/// Of truth values as of bits.
fn bits<'m>(program: &mut Program<'m>, op: &'m OpDesc, truths: &str, bits: &str) -> Result<()> {
    let is_truth = program.input_dtype(op, "X") == Some(Dtype::Bool);
    pairs(program, op, if is_truth { truths } else { bits })
}

fn is_finite<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let (infinite, none) = (program.apply("IsInf", &[x]), program.apply("IsNaN", &[x]));
    let either = program.apply("Or", &[infinite, none]);
    let made = program.apply("Not", &[either]);
    program.give(op, "Out", made)
}

fn is_empty<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let size = program.apply("Size", &[x]);
    let zero = program.number(0.0, Dtype::I64)?;
    let made = program.apply("Equal", &[size, zero]);
    give_one(program, op, "Out", made)
}

/// Whether all of some truth values hold.
fn all<'m>(program: &mut Program<'m>, op: &'m OpDesc, truths: crate::graph::ValueId) -> Result<()> {
    let numbers = program.cast(truths, Dtype::I32);
    let least = program.node("ReduceMin", &[numbers], with([("keepdims", int(0))]));
    let made = program.cast(least, Dtype::Bool);
    give_one(program, op, "Out", made)
}

fn equal_all<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let equal = program.apply("Equal", &[x.id, y]);
    all(program, op, equal)
}

/// `|x − y| ≤ atol + rtol · |y|` for all elements.
fn all_close<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "Input")?, program.input(op, "Other")?);
    if op.flag("equal_nan", false) {
        return Err(Error::unimplemented(
            "expected that numbers are compared, found that what is none is too",
        ));
    }
    let number = |name: &str, default: f64| op.text(name).parse().unwrap_or(op.float(name, default));
    let relative = super::like(program, x, number("rtol", 1e-5))?;
    let absolute = super::like(program, x, number("atol", 1e-8))?;
    let difference = program.apply("Sub", &[x.id, y.id]);
    let difference = program.apply("Abs", &[difference]);
    let size = program.apply("Abs", &[y.id]);
    let part = program.apply("Mul", &[size, relative]);
    let most = program.apply("Add", &[part, absolute]);
    let near = program.apply("LessOrEqual", &[difference, most]);
    all(program, op, near)
}

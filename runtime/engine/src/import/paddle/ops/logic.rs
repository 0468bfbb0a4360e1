//! Comparisons, truth values and bits.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::arithmetic::{aligned_operands, lower_elementwise};
use super::{TranslatorTable, int_attribute, lower_unary, set_scalar_output};
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

pub(super) const LOGIC_OPS: TranslatorTable = &[
    ("allclose", lower_all_close),
    ("bitwise_and", |program, op| lower_bitwise(program, op, "And", "BitwiseAnd")),
    ("bitwise_not", |program, op| {
        let is_truth = program.input_dtype(op, "X") == Some(Dtype::Bool);
        lower_unary(program, op, if is_truth { "Not" } else { "BitwiseNot" }, Attributes::new())
    }),
    ("bitwise_or", |program, op| lower_bitwise(program, op, "Or", "BitwiseOr")),
    ("bitwise_xor", |program, op| lower_bitwise(program, op, "Xor", "BitwiseXor")),
    ("equal", |program, op| lower_elementwise(program, op, "Equal")),
    ("equal_all", lower_equal_all),
    ("greater_equal", |program, op| lower_elementwise(program, op, "GreaterOrEqual")),
    ("greater_than", |program, op| lower_elementwise(program, op, "Greater")),
    ("is_empty", lower_is_empty),
    ("isfinite_v2", lower_is_finite),
    ("isinf_v2", |program, op| lower_unary(program, op, "IsInf", Attributes::new())),
    ("isnan_v2", |program, op| lower_unary(program, op, "IsNaN", Attributes::new())),
    ("less_equal", |program, op| lower_elementwise(program, op, "LessOrEqual")),
    ("less_than", |program, op| lower_elementwise(program, op, "Less")),
    ("logical_and", |program, op| lower_elementwise(program, op, "And")),
    ("logical_not", |program, op| lower_unary(program, op, "Not", Attributes::new())),
    ("logical_or", |program, op| lower_elementwise(program, op, "Or")),
    ("logical_xor", |program, op| lower_elementwise(program, op, "Xor")),
    ("not_equal", lower_not_equal),
];

fn lower_not_equal<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let equal = program.add_op("Equal", &[x.id, y]);
    let made = program.add_op("Not", &[equal]);
    program.set_output(op, "Out", made)
}

/// Of truth values as of bits.
fn lower_bitwise<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    truths: &str,
    bits: &str,
) -> Result<()> {
    let is_truth = program.input_dtype(op, "X") == Some(Dtype::Bool);
    lower_elementwise(program, op, if is_truth { truths } else { bits })
}

fn lower_is_finite<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let (infinite, none) = (program.add_op("IsInf", &[x]), program.add_op("IsNaN", &[x]));
    let either = program.add_op("Or", &[infinite, none]);
    let made = program.add_op("Not", &[either]);
    program.set_output(op, "Out", made)
}

fn lower_is_empty<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let size = program.add_op("Size", &[x]);
    let zero = program.add_scalar(0.0, Dtype::I64)?;
    let made = program.add_op("Equal", &[size, zero]);
    set_scalar_output(program, op, "Out", made)
}

/// Whether all of some truth values hold.
fn set_all_output<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    truths: crate::graph::ValueId,
) -> Result<()> {
    let numbers = program.add_cast(truths, Dtype::I32);
    let least =
        program.add_op_with("ReduceMin", &[numbers], build_attributes([("keepdims", int_attribute(0))]));
    let made = program.add_cast(least, Dtype::Bool);
    set_scalar_output(program, op, "Out", made)
}

fn lower_equal_all<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let equal = program.add_op("Equal", &[x.id, y]);
    set_all_output(program, op, equal)
}

/// `|x − y| ≤ atol + rtol · |y|` for all elements.
fn lower_all_close<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "Input")?, program.input(op, "Other")?);
    if op.bool_attribute("equal_nan", false) {
        return Err(Error::unimplemented(
            "expected that numbers are compared, found that what is none is too",
        ));
    }
    let number = |name: &str, default: f64| {
        op.text_attribute(name).parse().unwrap_or(op.float_attribute(name, default))
    };
    let relative = super::add_scalar_like(program, x, number("rtol", 1e-5))?;
    let absolute = super::add_scalar_like(program, x, number("atol", 1e-8))?;
    let difference = program.add_op("Sub", &[x.id, y.id]);
    let difference = program.add_op("Abs", &[difference]);
    let size = program.add_op("Abs", &[y.id]);
    let part = program.add_op("Mul", &[size, relative]);
    let most = program.add_op("Add", &[part, absolute]);
    let near = program.add_op("LessOrEqual", &[difference, most]);
    set_all_output(program, op, near)
}

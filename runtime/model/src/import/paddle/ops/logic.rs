//! Comparisons, logical and bitwise ops.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::arithmetic::{aligned_operands, lower_elementwise};
use super::{TranslatorTable, int_attribute, lower_unary, set_scalar_output};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

pub(super) const LOGIC_OPS: TranslatorTable = &[
    ("allclose", lower_all_close),
    ("bitwise_and", |importer, op| lower_bitwise(importer, op, "And", "BitwiseAnd")),
    ("bitwise_not", |importer, op| {
        let is_truth = importer.input_dtype(op, "X") == Some(Dtype::Bool);
        lower_unary(importer, op, if is_truth { "Not" } else { "BitwiseNot" }, Attributes::new())
    }),
    ("bitwise_or", |importer, op| lower_bitwise(importer, op, "Or", "BitwiseOr")),
    ("bitwise_xor", |importer, op| lower_bitwise(importer, op, "Xor", "BitwiseXor")),
    ("equal", |importer, op| lower_elementwise(importer, op, "Equal")),
    ("equal_all", lower_equal_all),
    ("greater_equal", |importer, op| lower_elementwise(importer, op, "GreaterOrEqual")),
    ("greater_than", |importer, op| lower_elementwise(importer, op, "Greater")),
    ("is_empty", lower_is_empty),
    ("isclose", |importer, op| {
        let near = add_nearness(importer, op)?;
        importer.set_output(op, "Out", near)
    }),
    ("isfinite_v2", lower_is_finite),
    ("isinf_v2", |importer, op| lower_unary(importer, op, "IsInf", Attributes::new())),
    ("isnan_v2", |importer, op| lower_unary(importer, op, "IsNaN", Attributes::new())),
    ("less_equal", |importer, op| lower_elementwise(importer, op, "LessOrEqual")),
    ("less_than", |importer, op| lower_elementwise(importer, op, "Less")),
    ("logical_and", |importer, op| lower_elementwise(importer, op, "And")),
    ("logical_not", |importer, op| lower_unary(importer, op, "Not", Attributes::new())),
    ("logical_or", |importer, op| lower_elementwise(importer, op, "Or")),
    ("logical_xor", |importer, op| lower_elementwise(importer, op, "Xor")),
    ("not_equal", lower_not_equal),
];

fn lower_not_equal<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let equal = importer.add_op("Equal", &[x.id, y]);
    let result = importer.add_op("Not", &[equal]);
    importer.set_output(op, "Out", result)
}

/// Chooses the logical op for booleans and the bitwise op for integers.
fn lower_bitwise<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    truths: &str,
    bits: &str,
) -> Result<()> {
    let is_truth = importer.input_dtype(op, "X") == Some(Dtype::Bool);
    lower_elementwise(importer, op, if is_truth { truths } else { bits })
}

fn lower_is_finite<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let (infinite, none) = (importer.add_op("IsInf", &[x]), importer.add_op("IsNaN", &[x]));
    let either = importer.add_op("Or", &[infinite, none]);
    let result = importer.add_op("Not", &[either]);
    importer.set_output(op, "Out", result)
}

fn lower_is_empty<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let size = importer.add_op("Size", &[x]);
    let zero = importer.add_scalar(0.0, Dtype::I64)?;
    let result = importer.add_op("Equal", &[size, zero]);
    set_scalar_output(importer, op, "Out", result)
}

/// Sets the output to the conjunction of all elements.
fn set_all_output<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, truths: ValueId) -> Result<()> {
    let numbers = importer.add_cast(truths, Dtype::I32);
    let least =
        importer.add_op_with("ReduceMin", &[numbers], build_attributes([("keepdims", int_attribute(0))]));
    let result = importer.add_cast(least, Dtype::Bool);
    set_scalar_output(importer, op, "Out", result)
}

fn lower_equal_all<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let equal = importer.add_op("Equal", &[x.id, y]);
    set_all_output(importer, op, equal)
}

/// `|x − y| ≤ atol + rtol · |y|` for all elements.
fn lower_all_close<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let near = add_nearness(importer, op)?;
    set_all_output(importer, op, near)
}

/// Whether elements are equal within a tolerance.
fn add_nearness<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<ValueId> {
    let (x, y) = (importer.input(op, "Input")?, importer.input(op, "Other")?);
    if op.bool_attribute("equal_nan", false) {
        return Err(Error::unimplemented(
            "expected a comparison of numbers only, found one that treats NaN as equal",
        ));
    }
    let number = |name: &str, default: f64| {
        op.text_attribute(name).parse().unwrap_or(op.float_attribute(name, default))
    };
    let relative = super::add_scalar_like(importer, x, number("rtol", 1e-5))?;
    let absolute = super::add_scalar_like(importer, x, number("atol", 1e-8))?;
    let difference = importer.add_op("Sub", &[x.id, y.id]);
    let difference = importer.add_op("Abs", &[difference]);
    let size = importer.add_op("Abs", &[y.id]);
    let part = importer.add_op("Mul", &[size, relative]);
    let most = importer.add_op("Add", &[part, absolute]);
    Ok(importer.add_op("LessOrEqual", &[difference, most]))
}

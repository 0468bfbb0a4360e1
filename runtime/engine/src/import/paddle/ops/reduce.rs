//! One number of many: sums, extremes, lengths and their places.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, known_int, known_list, set_scalar_output};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const REDUCE_OPS: TranslatorTable = &[
    ("arg_max", |program, op| lower_arg_extreme(program, op, "ArgMax")),
    ("arg_min", |program, op| lower_arg_extreme(program, op, "ArgMin")),
    ("cumsum", lower_cumulative),
    ("frobenius_norm", |program, op| lower_reduce(program, op, "ReduceL2")),
    ("logsumexp", |program, op| lower_reduce(program, op, "ReduceLogSumExp")),
    ("mean", |program, op| lower_reduce(program, op, "ReduceMean")),
    ("p_norm", lower_norm),
    ("reduce_all", |program, op| lower_logical_reduce(program, op, "ReduceMin")),
    ("reduce_amax", |program, op| lower_reduce(program, op, "ReduceMax")),
    ("reduce_amin", |program, op| lower_reduce(program, op, "ReduceMin")),
    ("reduce_any", |program, op| lower_logical_reduce(program, op, "ReduceMax")),
    ("reduce_max", |program, op| lower_reduce(program, op, "ReduceMax")),
    ("reduce_mean", |program, op| lower_reduce(program, op, "ReduceMean")),
    ("reduce_min", |program, op| lower_reduce(program, op, "ReduceMin")),
    ("reduce_prod", |program, op| lower_reduce(program, op, "ReduceProd")),
    ("reduce_sum", |program, op| lower_reduce(program, op, "ReduceSum")),
];

/// Whether the dimensions that an op reduces stay, with one element each.
fn keepdims_attribute(op: &OpDesc) -> Attribute {
    int_attribute((op.bool_attribute("keep_dim", false) || op.bool_attribute("keepdim", false)).into())
}

/// Reduces the dimensions that an op names; all of them where it names none.
fn add_reduction<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    from: ValueId,
) -> Result<ValueId> {
    let attribute = if op.ints_attribute("dim").is_empty() { "axis" } else { "dim" };
    let axes = known_list(program, op, attribute, "Axis", "AxisTensor")?
        .ok_or_else(|| Error::unimplemented("expected axes that are known, found some that are computed"))?;
    let keep = build_attributes([("keepdims", keepdims_attribute(op))]);
    Ok(if op.bool_attribute("reduce_all", false) || axes.is_empty() {
        program.add_op_with(name, &[from], keep)
    } else {
        let axes = program.add_ints(&axes);
        program.add_op_with(name, &[from, axes], keep)
    })
}

fn lower_reduce<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    // Sums of few bits are made of more.
    let from = match program.output_dtype(op, "Out") {
        Some(to) if x.stated.is_some_and(|dtype| dtype != to) => program.add_cast(x.id, to),
        _ => x.id,
    };
    let made = add_reduction(program, op, name, from)?;
    set_scalar_output(program, op, "Out", made)
}

fn lower_logical_reduce<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let numbers = program.add_cast(x, Dtype::I32);
    let made = add_reduction(program, op, name, numbers)?;
    let made = program.add_cast(made, Dtype::Bool);
    set_scalar_output(program, op, "Out", made)
}

/// The length of vectors in one of many meanings.
fn lower_norm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, order) = (program.input(op, "X")?, op.float_attribute("porder", 2.0));
    let axes =
        if op.bool_attribute("asvector", false) { Vec::new() } else { vec![op.int_attribute("axis", -1)] };
    let axes = program.add_ints(&axes);
    let keep = || build_attributes([("keepdims", keepdims_attribute(op))]);
    let made = if order == 1.0 {
        program.add_op_with("ReduceL1", &[x.id, axes], keep())
    } else if order == 2.0 {
        program.add_op_with("ReduceL2", &[x.id, axes], keep())
    } else {
        let sizes = program.add_op("Abs", &[x.id]);
        if order == f64::INFINITY {
            program.add_op_with("ReduceMax", &[sizes, axes], keep())
        } else if order == f64::NEG_INFINITY {
            program.add_op_with("ReduceMin", &[sizes, axes], keep())
        } else if order == 0.0 {
            let counted = program.add_op("Sign", &[sizes]);
            program.add_op_with("ReduceSum", &[counted, axes], keep())
        } else {
            let (power, root) =
                (add_scalar_like(program, x, order)?, add_scalar_like(program, x, 1.0 / order)?);
            let powers = program.add_op("Pow", &[sizes, power]);
            let sum = program.add_op_with("ReduceSum", &[powers, axes], keep());
            program.add_op("Pow", &[sum, root])
        }
    };
    set_scalar_output(program, op, "Out", made)
}

fn flatten_operand<'m>(program: &mut PaddleImporter<'m>, x: PaddleOperand<'m>) -> ValueId {
    let all = program.add_ints(&[-1]);
    program.add_op("Reshape", &[x.id, all])
}

fn lower_arg_extreme<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = known_int(program, op, "axis", "Axis", -1)?;
    let keep = int_attribute(op.bool_attribute("keepdims", false).into());
    let mut made = if op.bool_attribute("flatten", false) {
        let flat = flatten_operand(program, x);
        let place = program.add_op_with(
            name,
            &[flat],
            build_attributes([("axis", int_attribute(0)), ("keepdims", int_attribute(0))]),
        );
        if keep == int_attribute(1) {
            let ones = program.add_ints(&vec![1; x.rank()? as usize]);
            program.add_op("Reshape", &[place, ones])
        } else {
            place
        }
    } else {
        program.add_op_with(
            name,
            &[x.id],
            build_attributes([("axis", int_attribute(axis)), ("keepdims", keep)]),
        )
    };
    if program.output_dtype(op, "Out") == Some(Dtype::I32) {
        made = program.add_cast(made, Dtype::I32);
    }
    set_scalar_output(program, op, "Out", made)
}

fn lower_cumulative<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut axis = known_int(program, op, "axis", "AxisTensor", -1)?;
    let mut from = x.id;
    if op.bool_attribute("flatten", false) {
        (from, axis) = (flatten_operand(program, x), 0);
    }
    let axis = program.add_scalar(axis as f64, Dtype::I64)?;
    let flag = |name| int_attribute(op.bool_attribute(name, false).into());
    let attributes = build_attributes([("exclusive", flag("exclusive")), ("reverse", flag("reverse"))]);
    let made = program.add_op_with("CumSum", &[from, axis], attributes);
    program.set_output(op, "Out", made)
}

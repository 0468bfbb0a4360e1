//! Reductions and their indices.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, known_int, known_list, set_scalar_output};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const REDUCE_OPS: TranslatorTable = &[
    ("arg_max", |importer, op| lower_arg_extreme(importer, op, "ArgMax")),
    ("arg_min", |importer, op| lower_arg_extreme(importer, op, "ArgMin")),
    ("clip_by_norm", lower_clip_by_norm),
    ("cumprod", lower_cumulative_product),
    ("cumsum", lower_cumulative),
    ("frobenius_norm", |importer, op| lower_reduce(importer, op, "ReduceL2")),
    ("l1_norm", |importer, op| lower_whole_norm(importer, op, "ReduceL1")),
    ("logsumexp", |importer, op| lower_reduce(importer, op, "ReduceLogSumExp")),
    ("mean", |importer, op| lower_reduce(importer, op, "ReduceMean")),
    ("p_norm", lower_norm),
    ("reduce_all", |importer, op| lower_logical_reduce(importer, op, "ReduceMin")),
    ("reduce_amax", |importer, op| lower_reduce(importer, op, "ReduceMax")),
    ("reduce_amin", |importer, op| lower_reduce(importer, op, "ReduceMin")),
    ("reduce_any", |importer, op| lower_logical_reduce(importer, op, "ReduceMax")),
    ("reduce_max", |importer, op| lower_reduce(importer, op, "ReduceMax")),
    ("reduce_mean", |importer, op| lower_reduce(importer, op, "ReduceMean")),
    ("reduce_min", |importer, op| lower_reduce(importer, op, "ReduceMin")),
    ("reduce_prod", |importer, op| lower_reduce(importer, op, "ReduceProd")),
    ("reduce_sum", |importer, op| lower_reduce(importer, op, "ReduceSum")),
    ("squared_l2_norm", |importer, op| lower_whole_norm(importer, op, "ReduceSumSquare")),
];

/// The `keepdims` attribute.
fn keepdims_attribute(op: &OpDesc) -> Attribute {
    int_attribute((op.bool_attribute("keep_dim", false) || op.bool_attribute("keepdim", false)).into())
}

/// Reduces the axes that an op names, or all if it names none.
fn add_reduction<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    from: ValueId,
) -> Result<ValueId> {
    let attribute = if op.ints_attribute("dim").is_empty() { "axis" } else { "dim" };
    let axes = known_list(importer, op, attribute, "Axis", "AxisTensor")?
        .ok_or_else(|| Error::unimplemented("expected axes that are known, found some that are computed"))?;
    let keep = build_attributes([("keepdims", keepdims_attribute(op))]);
    Ok(if op.bool_attribute("reduce_all", false) || axes.is_empty() {
        importer.add_op_with(name, &[from], keep)
    } else {
        let axes = importer.add_ints(&axes);
        importer.add_op_with(name, &[from, axes], keep)
    })
}

fn lower_reduce<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, "X")?;
    // Sums of narrow integers are computed in the wider output dtype.
    let from = match importer.output_dtype(op, "Out") {
        Some(to) if x.stated.is_some_and(|dtype| dtype != to) => importer.add_cast(x.id, to),
        _ => x.id,
    };
    let result = add_reduction(importer, op, name, from)?;
    set_scalar_output(importer, op, "Out", result)
}

fn lower_logical_reduce<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let numbers = importer.add_cast(x, Dtype::I32);
    let result = add_reduction(importer, op, name, numbers)?;
    let result = importer.add_cast(result, Dtype::Bool);
    set_scalar_output(importer, op, "Out", result)
}

/// Vector norm of any order.
fn lower_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, order) = (importer.input(op, "X")?, op.float_attribute("porder", 2.0));
    let axes =
        if op.bool_attribute("asvector", false) { Vec::new() } else { vec![op.int_attribute("axis", -1)] };
    let axes = importer.add_ints(&axes);
    let keep = || build_attributes([("keepdims", keepdims_attribute(op))]);
    let result = if order == 1.0 {
        importer.add_op_with("ReduceL1", &[x.id, axes], keep())
    } else if order == 2.0 {
        importer.add_op_with("ReduceL2", &[x.id, axes], keep())
    } else {
        let sizes = importer.add_op("Abs", &[x.id]);
        if order == f64::INFINITY {
            importer.add_op_with("ReduceMax", &[sizes, axes], keep())
        } else if order == f64::NEG_INFINITY {
            importer.add_op_with("ReduceMin", &[sizes, axes], keep())
        } else if order == 0.0 {
            let counted = importer.add_op("Sign", &[sizes]);
            importer.add_op_with("ReduceSum", &[counted, axes], keep())
        } else {
            let (power, root) =
                (add_scalar_like(importer, x, order)?, add_scalar_like(importer, x, 1.0 / order)?);
            let powers = importer.add_op("Pow", &[sizes, power]);
            let sum = importer.add_op_with("ReduceSum", &[powers, axes], keep());
            importer.add_op("Pow", &[sum, root])
        }
    };
    set_scalar_output(importer, op, "Out", result)
}

fn flatten_operand<'m>(importer: &mut PaddleImporter<'m>, x: PaddleOperand<'m>) -> ValueId {
    let all = importer.add_ints(&[-1]);
    importer.add_op("Reshape", &[x.id, all])
}

fn lower_arg_extreme<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = known_int(importer, op, "axis", "Axis", -1)?;
    let keep = int_attribute(op.bool_attribute("keepdims", false).into());
    let mut result = if op.bool_attribute("flatten", false) {
        let flat = flatten_operand(importer, x);
        let place = importer.add_op_with(
            name,
            &[flat],
            build_attributes([("axis", int_attribute(0)), ("keepdims", int_attribute(0))]),
        );
        if keep == int_attribute(1) {
            let ones = importer.add_ints(&vec![1; x.rank()? as usize]);
            importer.add_op("Reshape", &[place, ones])
        } else {
            place
        }
    } else {
        importer.add_op_with(
            name,
            &[x.id],
            build_attributes([("axis", int_attribute(axis)), ("keepdims", keep)]),
        )
    };
    if importer.output_dtype(op, "Out") == Some(Dtype::I32) {
        result = importer.add_cast(result, Dtype::I32);
    }
    set_scalar_output(importer, op, "Out", result)
}

fn lower_cumulative<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut axis = known_int(importer, op, "axis", "AxisTensor", -1)?;
    let mut from = x.id;
    if op.bool_attribute("flatten", false) {
        (from, axis) = (flatten_operand(importer, x), 0);
    }
    let axis = importer.add_scalar(axis as f64, Dtype::I64)?;
    let flag = |name| int_attribute(op.bool_attribute(name, false).into());
    let attributes = build_attributes([("exclusive", flag("exclusive")), ("reverse", flag("reverse"))]);
    let result = importer.add_op_with("CumSum", &[from, axis], attributes);
    importer.set_output(op, "Out", result)
}

/// The first opset of ONNX with `CumProd`.
const CUMULATIVE_PRODUCT_OPSET: u32 = 26;

fn lower_cumulative_product<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = importer.add_scalar(op.int_attribute("dim", -1) as f64, Dtype::I64)?;
    let flag = |name| int_attribute(op.bool_attribute(name, false).into());
    let attributes = build_attributes([("exclusive", flag("exclusive")), ("reverse", flag("reverse"))]);
    let result = importer.add_op_with("CumProd", &[x.id, axis], attributes);
    if let Some(node) = importer.current_graph().nodes.last_mut() {
        node.opset = CUMULATIVE_PRODUCT_OPSET;
    }
    importer.set_output(op, "Out", result)
}

/// The norm of all elements; older programs expect the shape `[1]`.
fn lower_whole_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let result = importer.add_op_with(name, &[x], build_attributes([("keepdims", int_attribute(0))]));
    set_scalar_output(importer, op, "Out", result)
}

/// Scales all elements down if their norm is above a limit.
fn lower_clip_by_norm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let norm = importer.add_op_with("ReduceL2", &[x.id], build_attributes([("keepdims", int_attribute(0))]));
    let most = super::add_scalar_like(importer, x, op.float_attribute("max_norm", f64::MAX))?;
    let larger = importer.add_op("Max", &[norm, most]);
    let scale = importer.add_op("Div", &[most, larger]);
    let result = importer.add_op("Mul", &[x.id, scale]);
    importer.set_output(op, "Out", result)
}

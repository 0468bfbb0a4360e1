//! What is sorted, counted and picked out by value.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{TranslatorTable, int_attribute, known_int};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;
use crate::import::paddle::parameters::dtype_from_number;

pub(super) const SORTING_OPS: TranslatorTable = &[
    ("argsort", lower_sort),
    ("masked_select", lower_masked_select),
    ("sequence_mask", lower_sequence_mask),
    ("top_k", lower_top_k),
    ("top_k_v2", lower_top_k),
    ("unique", lower_unique),
    ("where_index", lower_nonzero),
];

/// The largest or smallest along an axis, with their places.
fn add_top_k<'m>(
    program: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    count: ValueId,
    axis: i64,
    is_largest: bool,
) -> [ValueId; 2] {
    let attributes = build_attributes([
        ("axis", int_attribute(axis)),
        ("largest", int_attribute(is_largest.into())),
        ("sorted", int_attribute(1)),
    ]);
    let made = program.add_node("TopK", &[Some(x.id), Some(count)], attributes, 2);
    [made[0], made[1]]
}

fn lower_top_k<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let count = match program.optional_input(op, "K")? {
        Some(given) => {
            let one = program.add_ints(&[1]);
            let count = program.add_cast(given.id, Dtype::I64);
            program.add_op("Reshape", &[count, one])
        }
        None => program.add_ints(&[op.int_attribute("k", 1)]),
    };
    let [values, indices] =
        add_top_k(program, x, count, op.int_attribute("axis", -1), op.bool_attribute("largest", true));
    program.set_output(op, "Out", values)?;
    program.set_output(op, "Indices", indices)
}

fn lower_sort<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = x.normalize_axis(op.int_attribute("axis", -1))?;
    let count = super::slice_shape(program, x, axis, axis + 1);
    let [values, indices] = add_top_k(program, x, count, axis, op.bool_attribute("descending", false));
    program.set_output(op, "Out", values)?;
    program.set_output(op, "Indices", indices)
}

/// The places of all elements that are not zero, one in a row.
fn lower_nonzero<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let condition = program.input(op, "Condition")?.id;
    let found = program.add_op("NonZero", &[condition]);
    let made = program.add_op_with(
        "Transpose",
        &[found],
        build_attributes([("perm", super::ints_attribute(&[1, 0]))]),
    );
    program.set_output(op, "Out", made)
}

fn lower_masked_select<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, mask) = (program.input(op, "X")?, program.input(op, "Mask")?);
    let mut operands = [x.id, mask.id];
    if x.dims.is_none() || x.dims != mask.dims {
        for at in [0, 1] {
            let shape = program.add_op("Shape", &[[x.id, mask.id][1 - at]]);
            operands[at] = program.add_op("Expand", &[operands[at], shape]);
        }
    }
    // Without an axis the elements are taken one after the other.
    let operands = operands.map(|it| flatten_value(program, it));
    let made = program.add_op("Compress", &operands);
    program.set_output(op, "Y", made)
}

fn flatten_value(program: &mut PaddleImporter, from: ValueId) -> ValueId {
    let all = program.add_ints(&[-1]);
    program.add_op("Reshape", &[from, all])
}

/// Each element once, with where it was first, which each was, and how often it was there.
fn lower_unique<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut attributes = build_attributes([("sorted", int_attribute(1))]);
    match op.ints_attribute("axis")[..] {
        [] => {}
        [axis] => attributes.set("axis", int_attribute(x.normalize_axis(axis)?)),
        _ => return Err(invalid_model("one axis", "several")),
    }
    if !op.bool_attribute("is_sorted", false) {
        return Err(Error::unimplemented("expected elements that are sorted, found that they are to stay"));
    }
    let made = program.add_node("Unique", &[Some(x.id)], attributes, 4);
    program.set_output(op, "Out", made[0])?;
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 3)).unwrap_or(-1))?;
    for (name, id) in [("Indices", made[1]), ("Index", made[2]), ("Counts", made[3])] {
        if !OpDesc::operand_names(&op.outputs, name).is_empty() {
            let id = if to == Dtype::I64 { id } else { program.add_cast(id, to) };
            program.set_output(op, name, id)?;
        }
    }
    Ok(())
}

/// Rows of ones, as many as an element says, and zeros.
fn lower_sequence_mask<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let most = known_int(program, op, "maxlen", "MaxLenTensor", -1)?;
    let lengths = program.add_cast(x.id, Dtype::I64);
    let end = if most > 0 {
        program.add_scalar(most as f64, Dtype::I64)?
    } else {
        program.add_op_with("ReduceMax", &[lengths], build_attributes([("keepdims", int_attribute(0))]))
    };
    let (begin, step) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let places = program.add_op("Range", &[begin, end, step]);
    let last = program.add_ints(&[-1]);
    let lengths = program.add_op("Unsqueeze", &[lengths, last]);
    let is_within = program.add_op("Less", &[places, lengths]);
    let to = dtype_from_number(i32::try_from(op.int_attribute("out_dtype", 3)).unwrap_or(-1))?;
    let made = program.add_op_with(
        "Cast",
        &[is_within],
        build_attributes([("to", Attribute::Int(to.onnx_number()))]),
    );
    program.set_output(op, "Y", made)
}

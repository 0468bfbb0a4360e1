//! Sorting, counting and selection by value.

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

/// The largest or smallest elements along an axis, with their indices.
fn add_top_k<'m>(
    importer: &mut PaddleImporter<'m>,
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
    let result = importer.add_node("TopK", &[Some(x.id), Some(count)], attributes, 2);
    [result[0], result[1]]
}

fn lower_top_k<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let count = match importer.optional_input(op, "K")? {
        Some(given) => {
            let one = importer.add_ints(&[1]);
            let count = importer.add_cast(given.id, Dtype::I64);
            importer.add_op("Reshape", &[count, one])
        }
        None => importer.add_ints(&[op.int_attribute("k", 1)]),
    };
    let [values, indices] =
        add_top_k(importer, x, count, op.int_attribute("axis", -1), op.bool_attribute("largest", true));
    importer.set_output(op, "Out", values)?;
    importer.set_output(op, "Indices", indices)
}

fn lower_sort<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = x.normalize_axis(op.int_attribute("axis", -1))?;
    let count = super::slice_shape(importer, x, axis, axis + 1);
    let [values, indices] = add_top_k(importer, x, count, axis, op.bool_attribute("descending", false));
    importer.set_output(op, "Out", values)?;
    importer.set_output(op, "Indices", indices)
}

/// Indices of nonzero elements, one for each row.
fn lower_nonzero<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let condition = importer.input(op, "Condition")?.id;
    let found = importer.add_op("NonZero", &[condition]);
    let result = importer.add_op_with(
        "Transpose",
        &[found],
        build_attributes([("perm", super::ints_attribute(&[1, 0]))]),
    );
    importer.set_output(op, "Out", result)
}

fn lower_masked_select<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, mask) = (importer.input(op, "X")?, importer.input(op, "Mask")?);
    let mut operands = [x.id, mask.id];
    if x.dims.is_none() || x.dims != mask.dims {
        for at in [0, 1] {
            let shape = importer.add_op("Shape", &[[x.id, mask.id][1 - at]]);
            operands[at] = importer.add_op("Expand", &[operands[at], shape]);
        }
    }
    // Without an axis, the tensor is flattened first.
    let operands = operands.map(|it| flatten_value(importer, it));
    let result = importer.add_op("Compress", &operands);
    importer.set_output(op, "Y", result)
}

fn flatten_value(importer: &mut PaddleImporter, from: ValueId) -> ValueId {
    let all = importer.add_ints(&[-1]);
    importer.add_op("Reshape", &[from, all])
}

/// Unique elements, with first positions, inverse indices and counts.
fn lower_unique<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut attributes = build_attributes([("sorted", int_attribute(1))]);
    match op.ints_attribute("axis")[..] {
        [] => {}
        [axis] => attributes.set("axis", int_attribute(x.normalize_axis(axis)?)),
        _ => return Err(invalid_model("one axis", "several")),
    }
    if !op.bool_attribute("is_sorted", false) {
        return Err(Error::unimplemented("expected elements that are sorted, found that they are to stay"));
    }
    let result = importer.add_node("Unique", &[Some(x.id)], attributes, 4);
    importer.set_output(op, "Out", result[0])?;
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 3)).unwrap_or(-1))?;
    for (name, id) in [("Indices", result[1]), ("Index", result[2]), ("Counts", result[3])] {
        if !OpDesc::operand_names(&op.outputs, name).is_empty() {
            let id = if to == Dtype::I64 { id } else { importer.add_cast(id, to) };
            importer.set_output(op, name, id)?;
        }
    }
    Ok(())
}

/// Rows with as many leading ones as the operand says.
fn lower_sequence_mask<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let most = known_int(importer, op, "maxlen", "MaxLenTensor", -1)?;
    let lengths = importer.add_cast(x.id, Dtype::I64);
    let end = if most > 0 {
        importer.add_scalar(most as f64, Dtype::I64)?
    } else {
        importer.add_op_with("ReduceMax", &[lengths], build_attributes([("keepdims", int_attribute(0))]))
    };
    let (begin, step) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let places = importer.add_op("Range", &[begin, end, step]);
    let last = importer.add_ints(&[-1]);
    let lengths = importer.add_op("Unsqueeze", &[lengths, last]);
    let is_within = importer.add_op("Less", &[places, lengths]);
    let to = dtype_from_number(i32::try_from(op.int_attribute("out_dtype", 3)).unwrap_or(-1))?;
    let result = importer.add_op_with(
        "Cast",
        &[is_within],
        build_attributes([("to", Attribute::Int(to.onnx_number()))]),
    );
    importer.set_output(op, "Y", result)
}

//! Tensors of which some elements are replaced.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::indexing::slice_operand;
use super::{TranslatorTable, encode_numbers, int_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use oarlock_core::Constant;

pub(super) const SCATTER_OPS: TranslatorTable = &[
    ("put_along_axis", lower_put_along),
    ("scatter", lower_scatter),
    ("scatter_nd_add", |program, op| {
        let operands = ["X", "Index", "Updates"].map(|name| program.input(op, name).map(|it| it.id));
        let [x, index, updates] = operands;
        let made = add_scatter(program, x?, index?, updates?, "add");
        program.set_output(op, "Out", made)
    }),
    ("set_value", lower_set_value),
];

/// Whole parts of a tensor, by their places, replaced or added to.
fn add_scatter(
    program: &mut PaddleImporter,
    x: ValueId,
    index: ValueId,
    updates: ValueId,
    reduction: &str,
) -> ValueId {
    let index = program.add_cast(index, Dtype::I64);
    program.add_op_with(
        "ScatterND",
        &[x, index, updates],
        build_attributes([("reduction", text_attribute(reduction))]),
    )
}

/// Rows are replaced, or are the sums of all that are meant for them.
fn lower_scatter<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, updates) = (program.input(op, "X")?, program.input(op, "Updates")?.id);
    let flat = program.add_ints(&[-1, 1]);
    let index = program.input(op, "Ids")?.id;
    let index = program.add_op("Reshape", &[index, flat]);
    let made = if op.bool_attribute("overwrite", true) {
        add_scatter(program, x.id, index, updates, "none")
    } else {
        let zero = super::add_scalar_like(program, x, 0.0)?;
        let shape = program.add_op("Shape", &[updates]);
        let zeros = program.add_op("Expand", &[zero, shape]);
        let cleared = add_scatter(program, x.id, index, zeros, "none");
        add_scatter(program, cleared, index, updates, "add")
    };
    program.set_output(op, "Out", made)
}

fn lower_put_along<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("Reduce", &["assign", "add", "mul", "multiply", "amin", "amax"])?;
    let reduction = match op.text_attribute("Reduce") {
        "" | "assign" => "none",
        "add" => "add",
        "amin" => "min",
        "amax" => "max",
        _ => "mul",
    };
    let (x, index, value) =
        (program.input(op, "Input")?, program.input(op, "Index")?, program.input(op, "Value")?);
    let mut updates = value.id;
    if value.dims.is_none() || value.dims != index.dims {
        let shape = program.add_op("Shape", &[index.id]);
        updates = program.add_op("Expand", &[updates, shape]);
    }
    let attributes = build_attributes([
        ("axis", int_attribute(x.normalize_axis(op.int_attribute("Axis", 0))?)),
        ("reduction", text_attribute(reduction)),
    ]);
    let made = program.add_op_with("ScatterElements", &[x.id, index.id, updates], attributes);
    program.set_output(op, "Result", made)
}

/// A slice is replaced: the places of its elements are a slice of the places of all.
fn lower_set_value<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "Input")?;
    if !op.ints_attribute("none_axes").is_empty() {
        return Err(Error::unimplemented(
            "expected a slice with the dimensions of its tensor, found one with more",
        ));
    }
    let (none, flat) = (program.add_ints(&[]), program.add_ints(&[-1]));
    let (begin, step) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let (shape, count) = (program.add_op("Shape", &[x.id]), program.add_op("Size", &[x.id]));
    let count = program.add_op("Reshape", &[count, none]);
    let places = program.add_op("Range", &[begin, count, step]);
    let places = program.add_op("Reshape", &[places, shape]);
    let places = slice_operand(program, op, x, places)?;
    let mut value = match program.optional_input(op, "ValueTensor")? {
        Some(given) => given.id,
        None => attribute_values(program, op, x.dtype())?,
    };
    let dropped = op.ints_attribute("decrease_axes");
    let mut of_slice = places;
    if !dropped.is_empty() {
        let dropped = program.add_ints(&dropped);
        of_slice = program.add_op("Squeeze", &[places, dropped]);
    }
    let shape_of_slice = program.add_op("Shape", &[of_slice]);
    value = program.add_op("Expand", &[value, shape_of_slice]);
    let operands = [x.id, places, value].map(|it| program.add_op("Reshape", &[it, flat]));
    let changed =
        program.add_op_with("ScatterElements", &operands, build_attributes([("axis", int_attribute(0))]));
    let made = program.add_op_with("Reshape", &[changed, shape], Attributes::new());
    program.set_output(op, "Out", made)
}

/// The values that an op has among its attributes.
fn attribute_values<'m>(program: &mut PaddleImporter<'m>, op: &OpDesc, dtype: Dtype) -> Result<ValueId> {
    let names = ["values", "fp32_values", "fp64_values", "fp16_values"].map(|name| op.floats_attribute(name));
    let whole = ["values", "bool_values", "int32_values", "int64_values"].map(|name| op.ints_attribute(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        names.into_iter().chain(whole).find(|values: &Vec<f64>| !values.is_empty()).unwrap_or_default();
    let dims = op.ints_attribute("shape");
    Ok(program.add_constant(Constant::new(dtype, &dims, encode_numbers(&values, dtype)?)?))
}

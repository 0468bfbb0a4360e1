//! Ops that replace or accumulate elements of a tensor.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::indexing::slice_operand;
use super::{TranslatorTable, encode_numbers, int_attribute, ints_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use oarlock_core::Constant;

pub(super) const SCATTER_OPS: TranslatorTable = &[
    ("index_add", lower_index_add),
    ("index_put", lower_index_put),
    ("put_along_axis", lower_put_along),
    ("scatter", lower_scatter),
    ("scatter_nd_add", |importer, op| {
        let operands = ["X", "Index", "Updates"].map(|name| importer.input(op, name).map(|it| it.id));
        let [x, index, updates] = operands;
        let result = add_scatter(importer, x?, index?, updates?, "add");
        importer.set_output(op, "Out", result)
    }),
    ("set_value", lower_set_value),
    ("unpool", lower_unpool),
];

/// Adds slices along an axis at the given indices.
fn lower_index_add<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = x.normalize_axis(op.int_attribute("axis", 0))?;
    // The exchange of two axes is its own inverse.
    let mut order: Vec<i64> = (0..x.rank()?).collect();
    order.swap(0, axis as usize);
    let exchange = |importer: &mut PaddleImporter<'m>, operand: ValueId| {
        let order = build_attributes([("perm", ints_attribute(&order))]);
        if axis == 0 { operand } else { importer.add_op_with("Transpose", &[operand], order) }
    };
    let slices = importer.input(op, "AddValue")?.id;
    let (rows, slices) = (exchange(importer, x.id), exchange(importer, slices));
    let column = importer.add_ints(&[-1, 1]);
    let index = importer.input(op, "Index")?.id;
    let index = importer.add_op("Reshape", &[index, column]);
    let sums = add_scatter(importer, rows, index, slices, "add");
    let result = exchange(importer, sums);
    importer.set_output(op, "Out", result)
}

/// Replaces or adds to the elements at indices of the first dimensions, which are repeated to a common shape, or those where a
/// mask is true.
fn lower_index_put<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, value) = (importer.input(op, "x")?.id, importer.input(op, "value")?.id);
    let indices = importer.inputs(op, "indices")?;
    let last = importer.add_ints(&[-1]);
    let (places, count) = match indices[..] {
        [] => return Err(invalid_model("indices", "none")),
        [mask] if mask.dtype() == Dtype::Bool => {
            let found = importer.add_op("NonZero", &[mask.id]);
            let order = build_attributes([("perm", ints_attribute(&[1, 0]))]);
            (importer.add_op_with("Transpose", &[found], order), mask.rank()?)
        }
        _ => {
            if indices.iter().any(|index| index.dtype() == Dtype::Bool) {
                return Err(Error::unimplemented("expected one mask or indices, found several masks"));
            }
            let first = importer.add_cast(indices[0].id, Dtype::I64);
            let mut common = importer.add_op("Shape", &[first]);
            for index in &indices[1..] {
                let shape = importer.add_op("Shape", &[index.id]);
                let all = importer.add_op("Expand", &[first, common]);
                let all = importer.add_op("Expand", &[all, shape]);
                common = importer.add_op("Shape", &[all]);
            }
            let mut columns = Vec::new();
            for index in &indices {
                let index = importer.add_cast(index.id, Dtype::I64);
                let index = importer.add_op("Expand", &[index, common]);
                columns.push(importer.add_op("Unsqueeze", &[index, last]));
            }
            let axis = build_attributes([("axis", int_attribute(-1))]);
            (importer.add_op_with("Concat", &columns, axis), indices.len() as i64)
        }
    };
    let end = build_attributes([("end", int_attribute(-1))]);
    let outer = importer.add_op_with("Shape", &[places], end);
    let inner = importer.add_op_with("Shape", &[x], build_attributes([("start", int_attribute(count))]));
    let axis = build_attributes([("axis", int_attribute(0))]);
    let shape = importer.add_op_with("Concat", &[outer, inner], axis);
    let updates = importer.add_op("Expand", &[value, shape]);
    let reduction = if op.bool_attribute("accumulate", false) { "add" } else { "none" };
    let result = add_scatter(importer, x, places, updates, reduction);
    importer.set_output(op, "out", result)
}

/// Puts the elements that a pooling kept back to their places in images of zeros.
fn lower_unpool<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, places) = (importer.input(op, "X")?, importer.input(op, "Indices")?.id);
    let size = op.ints_attribute("output_size");
    let ([height, width], true) = (<[i64; 2]>::try_from(size.clone()).unwrap_or_default(), size.len() == 2)
    else {
        return Err(Error::unimplemented("expected a constant `output_size` of two sizes, found another"));
    };
    if height < 1 || width < 1 || op.text_attribute("data_format") == "NHWC" {
        return Err(invalid_model("images of at least one pixel in NCHW", format!("{height} x {width}")));
    }
    let outer = super::slice_shape(importer, x, 0, 2);
    let pixels = importer.add_ints(&[height.saturating_mul(width)]);
    let (end, dims) = (importer.add_ints(&[-1]), importer.add_ints(&[height, width]));
    let axis = || build_attributes([("axis", int_attribute(0))]);
    let flat = importer.add_op_with("Concat", &[outer, end], axis());
    let room = importer.add_op_with("Concat", &[outer, pixels], axis());
    let shape = importer.add_op_with("Concat", &[outer, dims], axis());
    let zero = super::add_scalar_like(importer, x, 0.0)?;
    let zeros = importer.add_op("Expand", &[zero, room]);
    let places = importer.add_cast(places, Dtype::I64);
    let [places, values] = [places, x.id].map(|operand| importer.add_op("Reshape", &[operand, flat]));
    let along = build_attributes([("axis", int_attribute(2))]);
    let result = importer.add_op_with("ScatterElements", &[zeros, places, values], along);
    let result = importer.add_op("Reshape", &[result, shape]);
    importer.set_output(op, "Out", result)
}

/// Scatters slices by index, with replacement or a reduction.
fn add_scatter(
    importer: &mut PaddleImporter,
    x: ValueId,
    index: ValueId,
    updates: ValueId,
    reduction: &str,
) -> ValueId {
    let index = importer.add_cast(index, Dtype::I64);
    importer.add_op_with(
        "ScatterND",
        &[x, index, updates],
        build_attributes([("reduction", text_attribute(reduction))]),
    )
}

/// Scatters rows: replaces them, or sums all updates of a row.
fn lower_scatter<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, updates) = (importer.input(op, "X")?, importer.input(op, "Updates")?.id);
    let flat = importer.add_ints(&[-1, 1]);
    let index = importer.input(op, "Ids")?.id;
    let index = importer.add_op("Reshape", &[index, flat]);
    let result = if op.bool_attribute("overwrite", true) {
        add_scatter(importer, x.id, index, updates, "none")
    } else {
        let zero = super::add_scalar_like(importer, x, 0.0)?;
        let shape = importer.add_op("Shape", &[updates]);
        let zeros = importer.add_op("Expand", &[zero, shape]);
        let cleared = add_scatter(importer, x.id, index, zeros, "none");
        add_scatter(importer, cleared, index, updates, "add")
    };
    importer.set_output(op, "Out", result)
}

fn lower_put_along<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("Reduce", &["assign", "add", "mul", "multiply", "amin", "amax"])?;
    let reduction = match op.text_attribute("Reduce") {
        "" | "assign" => "none",
        "add" => "add",
        "amin" => "min",
        "amax" => "max",
        _ => "mul",
    };
    let (x, index, value) =
        (importer.input(op, "Input")?, importer.input(op, "Index")?, importer.input(op, "Value")?);
    let mut updates = value.id;
    if value.dims.is_none() || value.dims != index.dims {
        let shape = importer.add_op("Shape", &[index.id]);
        updates = importer.add_op("Expand", &[updates, shape]);
    }
    let attributes = build_attributes([
        ("axis", int_attribute(x.normalize_axis(op.int_attribute("Axis", 0))?)),
        ("reduction", text_attribute(reduction)),
    ]);
    let result = importer.add_op_with("ScatterElements", &[x.id, index.id, updates], attributes);
    importer.set_output(op, "Result", result)
}

/// Assigns to a slice. Its element positions are the same slice of a tensor of all positions.
fn lower_set_value<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "Input")?;
    if !op.ints_attribute("none_axes").is_empty() {
        return Err(Error::unimplemented(
            "expected a slice with the dimensions of its tensor, found one with more",
        ));
    }
    let (none, flat) = (importer.add_ints(&[]), importer.add_ints(&[-1]));
    let (begin, step) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let (shape, count) = (importer.add_op("Shape", &[x.id]), importer.add_op("Size", &[x.id]));
    let count = importer.add_op("Reshape", &[count, none]);
    let places = importer.add_op("Range", &[begin, count, step]);
    let places = importer.add_op("Reshape", &[places, shape]);
    let places = slice_operand(importer, op, x, places)?;
    let mut value = match importer.optional_input(op, "ValueTensor")? {
        Some(given) => given.id,
        None => attribute_values(importer, op, x.dtype())?,
    };
    let dropped = op.ints_attribute("decrease_axes");
    let mut of_slice = places;
    if !dropped.is_empty() {
        let dropped = importer.add_ints(&dropped);
        of_slice = importer.add_op("Squeeze", &[places, dropped]);
    }
    let shape_of_slice = importer.add_op("Shape", &[of_slice]);
    value = importer.add_op("Expand", &[value, shape_of_slice]);
    let operands = [x.id, places, value].map(|it| importer.add_op("Reshape", &[it, flat]));
    let changed =
        importer.add_op_with("ScatterElements", &operands, build_attributes([("axis", int_attribute(0))]));
    let result = importer.add_op_with("Reshape", &[changed, shape], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// The values that an op has as an attribute, whatever their type.
fn attribute_values<'m>(importer: &mut PaddleImporter<'m>, op: &OpDesc, dtype: Dtype) -> Result<ValueId> {
    let names = ["values", "fp32_values", "fp64_values", "fp16_values"].map(|name| op.floats_attribute(name));
    let whole = ["values", "bool_values", "int32_values", "int64_values"].map(|name| op.ints_attribute(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        names.into_iter().chain(whole).find(|values: &Vec<f64>| !values.is_empty()).unwrap_or_default();
    let dims = op.ints_attribute("shape");
    Ok(importer.add_constant(Constant::new(dtype, &dims, encode_numbers(&values, dtype)?)?))
}

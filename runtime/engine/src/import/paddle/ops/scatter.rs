//! Tensors of which some elements are replaced.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::indexing::sliced;
use super::{Table, bytes_of, int, text};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};
use oarlock_core::Constant;

pub(super) const OPS: Table = &[
    ("put_along_axis", put_along),
    ("scatter", scatter),
    ("scatter_nd_add", |program, op| {
        let operands = ["X", "Index", "Updates"].map(|name| program.input(op, name).map(|it| it.id));
        let [x, index, updates] = operands;
        let made = scattered(program, x?, index?, updates?, "add");
        program.give(op, "Out", made)
    }),
    ("set_value", set_value),
];

/// Whole parts of a tensor, by their places, replaced or added to.
fn scattered(
    program: &mut Program,
    x: ValueId,
    index: ValueId,
    updates: ValueId,
    reduction: &str,
) -> ValueId {
    let index = program.cast(index, Dtype::I64);
    program.node("ScatterND", &[x, index, updates], with([("reduction", text(reduction))]))
}

/// Rows are replaced, or are the sums of all that are meant for them.
fn scatter<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, updates) = (program.input(op, "X")?, program.input(op, "Updates")?.id);
    let flat = program.ints(&[-1, 1]);
    let index = program.input(op, "Ids")?.id;
    let index = program.apply("Reshape", &[index, flat]);
    let made = if op.flag("overwrite", true) {
        scattered(program, x.id, index, updates, "none")
    } else {
        let zero = super::like(program, x, 0.0)?;
        let shape = program.apply("Shape", &[updates]);
        let zeros = program.apply("Expand", &[zero, shape]);
        let cleared = scattered(program, x.id, index, zeros, "none");
        scattered(program, cleared, index, updates, "add")
    };
    program.give(op, "Out", made)
}

fn put_along<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("Reduce", &["assign", "add", "mul", "multiply", "amin", "amax"])?;
    let reduction = match op.text("Reduce") {
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
        let shape = program.apply("Shape", &[index.id]);
        updates = program.apply("Expand", &[updates, shape]);
    }
    let attributes = with([("axis", int(x.axis(op.int("Axis", 0))?)), ("reduction", text(reduction))]);
    let made = program.node("ScatterElements", &[x.id, index.id, updates], attributes);
    program.give(op, "Result", made)
}

/// A slice is replaced: the places of its elements are a slice of the places of all.
fn set_value<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "Input")?;
    if !op.ints("none_axes").is_empty() {
        return Err(Error::unimplemented(
            "expected a slice with the dimensions of its tensor, found one with more",
        ));
    }
    let (none, flat) = (program.ints(&[]), program.ints(&[-1]));
    let (begin, step) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let (shape, count) = (program.apply("Shape", &[x.id]), program.apply("Size", &[x.id]));
    let count = program.apply("Reshape", &[count, none]);
    let places = program.apply("Range", &[begin, count, step]);
    let places = program.apply("Reshape", &[places, shape]);
    let places = sliced(program, op, x, places)?;
    let mut value = match program.maybe(op, "ValueTensor")? {
        Some(given) => given.id,
        None => written(program, op, x.dtype())?,
    };
    let dropped = op.ints("decrease_axes");
    let mut of_slice = places;
    if !dropped.is_empty() {
        let dropped = program.ints(&dropped);
        of_slice = program.apply("Squeeze", &[places, dropped]);
    }
    let shape_of_slice = program.apply("Shape", &[of_slice]);
    value = program.apply("Expand", &[value, shape_of_slice]);
    let operands = [x.id, places, value].map(|it| program.apply("Reshape", &[it, flat]));
    let changed = program.node("ScatterElements", &operands, with([("axis", int(0))]));
    let made = program.node("Reshape", &[changed, shape], Attributes::new());
    program.give(op, "Out", made)
}

/// The values that an op has among its attributes.
fn written<'m>(program: &mut Program<'m>, op: &OpDesc, dtype: Dtype) -> Result<ValueId> {
    let names = ["values", "fp32_values", "fp64_values", "fp16_values"].map(|name| op.floats(name));
    let whole = ["values", "bool_values", "int32_values", "int64_values"].map(|name| op.ints(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        names.into_iter().chain(whole).find(|values: &Vec<f64>| !values.is_empty()).unwrap_or_default();
    let dims = op.ints("shape");
    Ok(program.constant(Constant::new(dtype, &dims, bytes_of(&values, dtype)?)?))
}

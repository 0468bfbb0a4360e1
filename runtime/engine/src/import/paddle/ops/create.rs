//! Values that come from nothing, and changes of type.

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result};

use super::{Translate, bytes_of, int};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::parameters::dtype;
use crate::import::paddle::program::{Program, with};
use crate::import::place::{quoted, wrong};

/// The most elements that are written down for an op which fills a shape, such as those of shapes and axes.
const FEW: u64 = 64;

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "assign" => |program, op| {
            let x = program.input(op, "X")?.id;
            program.give(op, "Out", x)
        },
        "assign_value" => assign_value,
        "cast" => cast,
        "dropout" => dropout,
        "fill_constant" => fill,
        "fill_any_like" => fill_like,
        "fill_constant_batch_size_like" => fill_batch,
        "range" => range,
        "shape" => shape,
        _ => return None,
    })
}

fn cast<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype(i32::try_from(op.int("out_dtype", -1)).unwrap_or(-1))?;
    super::unary(program, op, "Cast", with([("to", int(to.onnx_number()))]))
}

/// In inference it hands on what it gets, or a part of it where training did not make up for what it dropped.
fn dropout<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    op.expect("dropout_implementation", &["upscale_in_train", "downgrade_in_infer"])?;
    if op.text("dropout_implementation") == "upscale_in_train" {
        return program.give(op, "Out", x);
    }
    let kept = 1.0 - op.float("dropout_prob", 0.5);
    let kept = program.number(kept, program.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
    let made = program.node("Mul", &[x, kept], Attributes::new());
    program.give(op, "Out", made)
}

/// The sizes of the dimensions, as `i32`.
fn shape<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let made = program.node("Shape", &[input], Attributes::new());
    let made = match program.output_dtype(op, "Out") {
        Some(Dtype::I64) => made,
        _ => program.node("Cast", &[made], with([("to", int(Dtype::I32.onnx_number()))])),
    };
    program.give(op, "Out", made)
}

/// What a shape is filled with; as a text, it has all its digits.
fn value(op: &OpDesc) -> Result<f64> {
    match op.text("str_value") {
        "" => Ok(op.float("value", 0.0)),
        text => text.parse().map_err(|_| wrong("a number as `str_value`", quoted(text))),
    }
}

fn fill<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    for name in ["ShapeTensor", "ShapeTensorList", "ValueTensor"] {
        if !program.inputs(op, name)?.is_empty() {
            return Err(Error::unimplemented(format!("expected a known shape and value, found `{name}`")));
        }
    }
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let (value, dims) = (value(op)?, op.ints("shape"));
    let count = oarlock_core::shape::element_count(&dims)?;
    let made = if count <= FEW {
        let bytes = bytes_of(&vec![value; count as usize], to)?;
        program.constant(Constant::new(to, &dims, bytes)?)
    } else {
        let shape = program.ints(&dims);
        let value = Attribute::Tensor(Constant::new(to, &[1], bytes_of(&[value], to)?)?);
        program.node("ConstantOfShape", &[shape], with([("value", value)]))
    };
    program.give(op, "Out", made)
}

fn assign_value<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let named = ["values", "fp32_values", "fp64_values"].map(|name| op.floats(name));
    let whole = ["values", "int32_values", "int64_values", "int8_values"].map(|name| op.ints(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        named.into_iter().chain(whole).find(|values| !values.is_empty()).unwrap_or_default();
    let bytes = bytes_of(&values, to)?;
    let made = program.constant(Constant::new(to, &op.ints("shape"), bytes)?);
    program.give(op, "Out", made)
}

/// A value in the shape of an operand.
fn fill_like<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let to = match i32::try_from(op.int("dtype", -1)) {
        Ok(number) if number >= 0 => dtype(number)?,
        _ => program.input_dtype(op, "X").unwrap_or(Dtype::F32),
    };
    let shape = program.node("Shape", &[x], Attributes::new());
    filled(program, op, shape, to)
}

/// A value in a shape of which one size is that of an operand.
fn fill_batch<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let (from, into) = (op.int("input_dim_idx", 0), op.int("output_dim_idx", 0));
    let dims = op.ints("shape");
    let Some(at) = usize::try_from(into).ok().filter(|at| *at < dims.len()) else {
        return Err(wrong(format!("one of {} dimensions", dims.len()), into));
    };
    let size = with([("start", int(from)), ("end", int(from.saturating_add(1)))]);
    let size = program.node("Shape", &[input], size);
    let (before, behind) = (program.ints(&dims[..at]), program.ints(&dims[at + 1..]));
    let shape = program.node("Concat", &[before, size, behind], with([("axis", int(0))]));
    filled(program, op, shape, to)
}

fn filled<'m>(program: &mut Program<'m>, op: &'m OpDesc, shape: ValueId, to: Dtype) -> Result<()> {
    let value = Attribute::Tensor(Constant::new(to, &[1], bytes_of(&[value(op)?], to)?)?);
    let made = program.node("ConstantOfShape", &[shape], with([("value", value)]));
    program.give(op, "Out", made)
}

/// Numbers at equal distances. Its operands have one element, and ONNX's no dimension.
fn range<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let none = program.ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "End", "Step"] {
        let operand = program.input(op, name)?.id;
        operands.push(program.node("Reshape", &[operand, none], Attributes::new()));
    }
    let made = program.node("Range", &operands, Attributes::new());
    program.give(op, "Out", made)
}

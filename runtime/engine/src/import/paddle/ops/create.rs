//! Values that come from nothing, and changes of type.

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result};

use super::{Table, bytes_of, float, int, ints, known_int, known_list, list};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::parameters::dtype;
use crate::import::paddle::program::{Program, with};
use crate::import::place::{quoted, wrong};

/// The most elements that are written down for an op which fills a shape, such as those of shapes and axes.
const FEW: u64 = 64;

pub(super) const OPS: Table = &[
    ("assign", |program, op| pass_on(program, op, "X")),
    ("assign_value", assign_value),
    ("cast", cast),
    ("dropout", dropout),
    ("empty", fill),
    ("eye", eye),
    ("fill_any_like", fill_like),
    ("fill_constant", fill),
    ("fill_constant_batch_size_like", fill_batch),
    ("fill_zeros_like", fill_like),
    ("gaussian_random", |program, op| random(program, op, "RandomNormal", [("mean", 0.0), ("scale", 1.0)])),
    ("linspace", linspace),
    ("range", range),
    ("shape", shape),
    ("share_data", |program, op| pass_on(program, op, "X")),
    ("size", size),
    ("uniform_random", |program, op| random(program, op, "RandomUniform", [("low", -1.0), ("high", 1.0)])),
];

fn pass_on<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, name)?.id;
    program.give(op, "Out", x)
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
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let known = known_list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
    if let Some(given) = program.maybe(op, "ValueTensor")? {
        let shape = list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        let none = program.ints(&[]);
        let value = program.cast(given.id, to);
        let value = program.apply("Reshape", &[value, none]);
        let made = program.apply("Expand", &[value, shape]);
        return program.give(op, "Out", made);
    }
    let Some(dims) = known else {
        let shape = list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        return filled(program, op, shape, to);
    };
    let (value, count) = (value(op)?, oarlock_core::shape::element_count(&dims)?);
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
    let named = ["values", "fp32_values", "double_values"].map(|name| op.floats(name));
    let whole =
        ["values", "bool_values", "int32_values", "int64_values", "int8_values"].map(|name| op.ints(name));
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
        let operand = program.input(op, name)?;
        let one = program.apply("Reshape", &[operand.id, none]);
        operands.push(match program.output_dtype(op, "Out") {
            Some(dtype) if operand.stated != Some(dtype) => program.cast(one, dtype),
            _ => one,
        });
    }
    let made = program.node("Range", &operands, Attributes::new());
    program.give(op, "Out", made)
}

/// How many elements there are.
fn size<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let made = program.apply("Size", &[input]);
    super::give_one(program, op, "Out", made)
}

/// Ones on the diagonal of a matrix of zeros.
fn eye<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let rows = known_int(program, op, "num_rows", "RowsTensor", -1)?;
    let columns = match known_int(program, op, "num_columns", "ColumnsTensor", -1)? {
        -1 => rows,
        columns => columns,
    };
    let shape = program.ints(&[rows, columns]);
    let zeros = program.apply("ConstantOfShape", &[shape]);
    let made = program.node("EyeLike", &[zeros], with([("dtype", int(to.onnx_number()))]));
    program.give(op, "Out", made)
}

/// So many numbers at equal distances, from one to another.
fn linspace<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let none = program.ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "Stop", "Num"] {
        let operand = program.input(op, name)?.id;
        let operand = program.apply("Reshape", &[operand, none]);
        operands.push(program.cast(operand, if name == "Num" { Dtype::I64 } else { Dtype::F64 }));
    }
    let [start, stop, count] = operands[..] else { return Err(wrong("three operands", operands.len())) };
    let (zero, one) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let places = program.apply("Range", &[zero, count, one]);
    let places = program.cast(places, Dtype::F64);
    let last = program.apply("Sub", &[count, one]);
    let last = program.apply("Max", &[last, one]);
    let last = program.cast(last, Dtype::F64);
    let distance = program.apply("Sub", &[stop, start]);
    let step = program.apply("Div", &[distance, last]);
    let way = program.apply("Mul", &[places, step]);
    let made = program.apply("Add", &[start, way]);
    let made = program.cast(made, to);
    program.give(op, "Out", made)
}

/// Numbers by chance. Paddle's are others with the same seed.
fn random<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    name: &str,
    numbers: [(&str, f64); 2],
) -> Result<()> {
    let to = dtype(i32::try_from(op.int("dtype", 5)).unwrap_or(-1))?;
    let dims = known_list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?
        .ok_or_else(|| Error::unimplemented("expected a known shape, found one that is computed"))?;
    let paddle = |name| match name {
        "scale" => "std",
        "low" => "min",
        "high" => "max",
        other => other,
    };
    let mut attributes = with([("shape", ints(&dims)), ("dtype", int(to.onnx_number()))]);
    for (name, default) in numbers {
        attributes.set(name, float(op.float(paddle(name), default)));
    }
    let made = program.node(name, &[], attributes);
    program.give(op, "Out", made)
}

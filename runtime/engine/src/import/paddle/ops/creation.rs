//! Values that come from nothing, and changes of type.

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result};

use super::{
    TranslatorTable, encode_numbers, float_attribute, int_attribute, ints_attribute, known_int, known_list,
    list_operand,
};
use crate::graph::ValueId;
use crate::import::error_location::{invalid_model, quote_name};
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::parameters::dtype_from_number;

/// The most elements that are written down for an op which fills a shape, such as those of shapes and axes.
const MOST_WRITTEN_ELEMENTS: u64 = 64;

pub(super) const CREATION_OPS: TranslatorTable = &[
    ("assign", |program, op| lower_rename(program, op, "X")),
    ("assign_value", lower_assign_value),
    ("cast", lower_cast),
    ("dropout", lower_dropout),
    ("empty", lower_fill),
    ("eye", lower_eye),
    ("fill_any_like", lower_fill_like),
    ("fill_constant", lower_fill),
    ("fill_constant_batch_size_like", lower_fill_batch),
    ("fill_zeros_like", lower_fill_like),
    ("gaussian_random", |program, op| {
        lower_random(program, op, "RandomNormal", [("mean", 0.0), ("scale", 1.0)])
    }),
    ("linspace", lower_linspace),
    ("range", lower_range),
    ("shape", lower_shape),
    ("share_data", |program, op| lower_rename(program, op, "X")),
    ("size", lower_size),
    ("uniform_random", |program, op| {
        lower_random(program, op, "RandomUniform", [("low", -1.0), ("high", 1.0)])
    }),
];

fn lower_rename<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, name)?.id;
    program.set_output(op, "Out", x)
}

fn lower_cast<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("out_dtype", -1)).unwrap_or(-1))?;
    super::lower_unary(program, op, "Cast", build_attributes([("to", int_attribute(to.onnx_number()))]))
}

/// In inference it hands on what it gets, or a part of it where training did not make up for what it dropped.
fn lower_dropout<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    op.expect_attribute("dropout_implementation", &["upscale_in_train", "downgrade_in_infer"])?;
    if op.text_attribute("dropout_implementation") == "upscale_in_train" {
        return program.set_output(op, "Out", x);
    }
    let kept = 1.0 - op.float_attribute("dropout_prob", 0.5);
    let kept = program.add_scalar(kept, program.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
    let made = program.add_op_with("Mul", &[x, kept], Attributes::new());
    program.set_output(op, "Out", made)
}

/// The sizes of the dimensions, as `i32`.
fn lower_shape<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let made = program.add_op_with("Shape", &[input], Attributes::new());
    let made = match program.output_dtype(op, "Out") {
        Some(Dtype::I64) => made,
        _ => program.add_op_with(
            "Cast",
            &[made],
            build_attributes([("to", int_attribute(Dtype::I32.onnx_number()))]),
        ),
    };
    program.set_output(op, "Out", made)
}

/// What a shape is filled with; as a text, it has all its digits.
fn fill_value(op: &OpDesc) -> Result<f64> {
    match op.text_attribute("str_value") {
        "" => Ok(op.float_attribute("value", 0.0)),
        text => text.parse().map_err(|_| invalid_model("a number as `str_value`", quote_name(text))),
    }
}

fn lower_fill<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let known = known_list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
    if let Some(given) = program.optional_input(op, "ValueTensor")? {
        let shape = list_operand(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        let none = program.add_ints(&[]);
        let value = program.add_cast(given.id, to);
        let value = program.add_op("Reshape", &[value, none]);
        let made = program.add_op("Expand", &[value, shape]);
        return program.set_output(op, "Out", made);
    }
    let Some(dims) = known else {
        let shape = list_operand(program, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        return lower_fill_shape(program, op, shape, to);
    };
    let (value, count) = (fill_value(op)?, oarlock_core::shape::element_count(&dims)?);
    let made = if count <= MOST_WRITTEN_ELEMENTS {
        let bytes = encode_numbers(&vec![value; count as usize], to)?;
        program.add_constant(Constant::new(to, &dims, bytes)?)
    } else {
        let shape = program.add_ints(&dims);
        let value = Attribute::Tensor(Constant::new(to, &[1], encode_numbers(&[value], to)?)?);
        program.add_op_with("ConstantOfShape", &[shape], build_attributes([("value", value)]))
    };
    program.set_output(op, "Out", made)
}

fn lower_assign_value<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let named = ["values", "fp32_values", "double_values"].map(|name| op.floats_attribute(name));
    let whole = ["values", "bool_values", "int32_values", "int64_values", "int8_values"]
        .map(|name| op.ints_attribute(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        named.into_iter().chain(whole).find(|values| !values.is_empty()).unwrap_or_default();
    let bytes = encode_numbers(&values, to)?;
    let made = program.add_constant(Constant::new(to, &op.ints_attribute("shape"), bytes)?);
    program.set_output(op, "Out", made)
}

/// A value in the shape of an operand.
fn lower_fill_like<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let to = match i32::try_from(op.int_attribute("dtype", -1)) {
        Ok(number) if number >= 0 => dtype_from_number(number)?,
        _ => program.input_dtype(op, "X").unwrap_or(Dtype::F32),
    };
    let shape = program.add_op_with("Shape", &[x], Attributes::new());
    lower_fill_shape(program, op, shape, to)
}

/// A value in a shape of which one size is that of an operand.
fn lower_fill_batch<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let (from, into) = (op.int_attribute("input_dim_idx", 0), op.int_attribute("output_dim_idx", 0));
    let dims = op.ints_attribute("shape");
    let Some(at) = usize::try_from(into).ok().filter(|at| *at < dims.len()) else {
        return Err(invalid_model(format!("one of {} dimensions", dims.len()), into));
    };
    let size =
        build_attributes([("start", int_attribute(from)), ("end", int_attribute(from.saturating_add(1)))]);
    let size = program.add_op_with("Shape", &[input], size);
    let (before, behind) = (program.add_ints(&dims[..at]), program.add_ints(&dims[at + 1..]));
    let shape = program.add_op_with(
        "Concat",
        &[before, size, behind],
        build_attributes([("axis", int_attribute(0))]),
    );
    lower_fill_shape(program, op, shape, to)
}

fn lower_fill_shape<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    shape: ValueId,
    to: Dtype,
) -> Result<()> {
    let value = Attribute::Tensor(Constant::new(to, &[1], encode_numbers(&[fill_value(op)?], to)?)?);
    let made = program.add_op_with("ConstantOfShape", &[shape], build_attributes([("value", value)]));
    program.set_output(op, "Out", made)
}

/// Numbers at equal distances. Its operands have one element, and ONNX's no dimension.
fn lower_range<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let none = program.add_ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "End", "Step"] {
        let operand = program.input(op, name)?;
        let one = program.add_op("Reshape", &[operand.id, none]);
        operands.push(match program.output_dtype(op, "Out") {
            Some(dtype) if operand.stated != Some(dtype) => program.add_cast(one, dtype),
            _ => one,
        });
    }
    let made = program.add_op_with("Range", &operands, Attributes::new());
    program.set_output(op, "Out", made)
}

/// How many elements there are.
fn lower_size<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let made = program.add_op("Size", &[input]);
    super::set_scalar_output(program, op, "Out", made)
}

/// Ones on the diagonal of a matrix of zeros.
fn lower_eye<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let rows = known_int(program, op, "num_rows", "RowsTensor", -1)?;
    let columns = match known_int(program, op, "num_columns", "ColumnsTensor", -1)? {
        -1 => rows,
        columns => columns,
    };
    let shape = program.add_ints(&[rows, columns]);
    let zeros = program.add_op("ConstantOfShape", &[shape]);
    let made = program.add_op_with(
        "EyeLike",
        &[zeros],
        build_attributes([("dtype", int_attribute(to.onnx_number()))]),
    );
    program.set_output(op, "Out", made)
}

/// So many numbers at equal distances, from one to another.
fn lower_linspace<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let none = program.add_ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "Stop", "Num"] {
        let operand = program.input(op, name)?.id;
        let operand = program.add_op("Reshape", &[operand, none]);
        operands.push(program.add_cast(operand, if name == "Num" { Dtype::I64 } else { Dtype::F64 }));
    }
    let [start, stop, count] = operands[..] else {
        return Err(invalid_model("three operands", operands.len()));
    };
    let (zero, one) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let places = program.add_op("Range", &[zero, count, one]);
    let places = program.add_cast(places, Dtype::F64);
    let last = program.add_op("Sub", &[count, one]);
    let last = program.add_op("Max", &[last, one]);
    let last = program.add_cast(last, Dtype::F64);
    let distance = program.add_op("Sub", &[stop, start]);
    let step = program.add_op("Div", &[distance, last]);
    let way = program.add_op("Mul", &[places, step]);
    let made = program.add_op("Add", &[start, way]);
    let made = program.add_cast(made, to);
    program.set_output(op, "Out", made)
}

/// Numbers by chance. Paddle's are others with the same seed.
fn lower_random<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    numbers: [(&str, f64); 2],
) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let dims = known_list(program, op, "shape", "ShapeTensor", "ShapeTensorList")?
        .ok_or_else(|| Error::unimplemented("expected a known shape, found one that is computed"))?;
    let paddle = |name| match name {
        "scale" => "std",
        "low" => "min",
        "high" => "max",
        other => other,
    };
    let mut attributes =
        build_attributes([("shape", ints_attribute(&dims)), ("dtype", int_attribute(to.onnx_number()))]);
    for (name, default) in numbers {
        attributes.set(name, float_attribute(op.float_attribute(paddle(name), default)));
    }
    let made = program.add_op_with(name, &[], attributes);
    program.set_output(op, "Out", made)
}

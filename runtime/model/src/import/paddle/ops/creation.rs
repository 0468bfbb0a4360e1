//! Constants, random values, and casts.

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

/// Limit on constants that are materialized at import, such as shapes and axes; larger ones are filled during the run.
const MAX_WRITTEN_ELEMENTS: u64 = 64;

pub(super) const CREATION_OPS: TranslatorTable = &[
    ("assign", |importer, op| lower_rename(importer, op, "X")),
    ("assign_value", lower_assign_value),
    ("bernoulli", |importer, op| super::lower_unary(importer, op, "Bernoulli", Attributes::new())),
    ("cast", lower_cast),
    ("dropout", lower_dropout),
    ("empty", lower_fill),
    ("eye", lower_eye),
    ("fill_any_like", lower_fill_like),
    ("fill_constant", lower_fill),
    ("fill_constant_batch_size_like", lower_fill_batch),
    ("fill_zeros_like", lower_fill_like),
    ("gaussian_random", |importer, op| {
        lower_random(importer, op, "RandomNormal", [("mean", 0.0), ("scale", 1.0)])
    }),
    ("linspace", |importer, op| {
        let (places, to) = add_line(importer, op)?;
        let result = importer.add_cast(places, to);
        importer.set_output(op, "Out", result)
    }),
    ("logspace", |importer, op| {
        let (places, to) = add_line(importer, op)?;
        let (base, none) = (importer.input(op, "Base")?.id, importer.add_ints(&[]));
        let base = importer.add_cast(base, Dtype::F64);
        let base = importer.add_op("Reshape", &[base, none]);
        let result = importer.add_op("Pow", &[base, places]);
        let result = importer.add_cast(result, to);
        importer.set_output(op, "Out", result)
    }),
    ("range", lower_range),
    ("shape", lower_shape),
    ("share_data", |importer, op| lower_rename(importer, op, "X")),
    ("size", lower_size),
    ("uniform_random", |importer, op| {
        lower_random(importer, op, "RandomUniform", [("low", -1.0), ("high", 1.0)])
    }),
];

fn lower_rename<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, name)?.id;
    importer.set_output(op, "Out", x)
}

fn lower_cast<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("out_dtype", -1)).unwrap_or(-1))?;
    super::lower_unary(importer, op, "Cast", build_attributes([("to", int_attribute(to.onnx_number()))]))
}

/// In inference, dropout is the identity, or a scale if training did not compensate for dropped elements.
fn lower_dropout<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    op.expect_attribute("dropout_implementation", &["upscale_in_train", "downgrade_in_infer"])?;
    if op.text_attribute("dropout_implementation") == "upscale_in_train" {
        return importer.set_output(op, "Out", x);
    }
    let kept = 1.0 - op.float_attribute("dropout_prob", 0.5);
    let kept = importer.add_scalar(kept, importer.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
    let result = importer.add_op_with("Mul", &[x, kept], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// The shape, as i32.
fn lower_shape<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = importer.input(op, "Input")?.id;
    let result = importer.add_op_with("Shape", &[input], Attributes::new());
    let result = match importer.output_dtype(op, "Out") {
        Some(Dtype::I64) => result,
        _ => importer.add_op_with(
            "Cast",
            &[result],
            build_attributes([("to", int_attribute(Dtype::I32.onnx_number()))]),
        ),
    };
    importer.set_output(op, "Out", result)
}

/// The fill value; the string form has full precision.
fn fill_value(op: &OpDesc) -> Result<f64> {
    match op.text_attribute("str_value") {
        "" => Ok(op.float_attribute("value", 0.0)),
        text => text.parse().map_err(|_| invalid_model("a number as `str_value`", quote_name(text))),
    }
}

fn lower_fill<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let known = known_list(importer, op, "shape", "ShapeTensor", "ShapeTensorList")?;
    if let Some(given) = importer.optional_input(op, "ValueTensor")? {
        let shape = list_operand(importer, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        let none = importer.add_ints(&[]);
        let value = importer.add_cast(given.id, to);
        let value = importer.add_op("Reshape", &[value, none]);
        let result = importer.add_op("Expand", &[value, shape]);
        return importer.set_output(op, "Out", result);
    }
    let Some(dims) = known else {
        let shape = list_operand(importer, op, "shape", "ShapeTensor", "ShapeTensorList")?;
        return lower_fill_shape(importer, op, shape, to);
    };
    let (value, count) = (fill_value(op)?, oarlock_core::shape::element_count(&dims)?);
    let result = if count <= MAX_WRITTEN_ELEMENTS {
        let bytes = encode_numbers(&vec![value; count as usize], to)?;
        importer.add_constant(Constant::new(to, &dims, bytes)?)
    } else {
        let shape = importer.add_ints(&dims);
        let value = Attribute::Tensor(Constant::new(to, &[1], encode_numbers(&[value], to)?)?);
        importer.add_op_with("ConstantOfShape", &[shape], build_attributes([("value", value)]))
    };
    importer.set_output(op, "Out", result)
}

fn lower_assign_value<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let named = ["values", "fp32_values", "double_values"].map(|name| op.floats_attribute(name));
    let whole = ["values", "bool_values", "int32_values", "int64_values", "int8_values"]
        .map(|name| op.ints_attribute(name));
    let whole = whole.into_iter().map(|values| values.into_iter().map(|value| value as f64).collect());
    let values: Vec<f64> =
        named.into_iter().chain(whole).find(|values| !values.is_empty()).unwrap_or_default();
    let bytes = encode_numbers(&values, to)?;
    let result = importer.add_constant(Constant::new(to, &op.ints_attribute("shape"), bytes)?);
    importer.set_output(op, "Out", result)
}

/// Fills the shape of an operand.
fn lower_fill_like<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let to = match i32::try_from(op.int_attribute("dtype", -1)) {
        Ok(number) if number >= 0 => dtype_from_number(number)?,
        _ => importer.input_dtype(op, "X").unwrap_or(Dtype::F32),
    };
    let shape = importer.add_op_with("Shape", &[x], Attributes::new());
    lower_fill_shape(importer, op, shape, to)
}

/// Fills a shape with one size taken from an operand.
fn lower_fill_batch<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = importer.input(op, "Input")?.id;
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let (from, into) = (op.int_attribute("input_dim_idx", 0), op.int_attribute("output_dim_idx", 0));
    let dims = op.ints_attribute("shape");
    let Some(at) = usize::try_from(into).ok().filter(|at| *at < dims.len()) else {
        return Err(invalid_model(format!("one of {} dimensions", dims.len()), into));
    };
    let size =
        build_attributes([("start", int_attribute(from)), ("end", int_attribute(from.saturating_add(1)))]);
    let size = importer.add_op_with("Shape", &[input], size);
    let (before, behind) = (importer.add_ints(&dims[..at]), importer.add_ints(&dims[at + 1..]));
    let shape = importer.add_op_with(
        "Concat",
        &[before, size, behind],
        build_attributes([("axis", int_attribute(0))]),
    );
    lower_fill_shape(importer, op, shape, to)
}

fn lower_fill_shape<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    shape: ValueId,
    to: Dtype,
) -> Result<()> {
    let value = Attribute::Tensor(Constant::new(to, &[1], encode_numbers(&[fill_value(op)?], to)?)?);
    let result = importer.add_op_with("ConstantOfShape", &[shape], build_attributes([("value", value)]));
    importer.set_output(op, "Out", result)
}

/// Evenly spaced numbers. Operands have one element; ONNX wants scalars.
fn lower_range<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let none = importer.add_ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "End", "Step"] {
        let operand = importer.input(op, name)?;
        let one = importer.add_op("Reshape", &[operand.id, none]);
        operands.push(match importer.output_dtype(op, "Out") {
            Some(dtype) if operand.stated != Some(dtype) => importer.add_cast(one, dtype),
            _ => one,
        });
    }
    let result = importer.add_op_with("Range", &operands, Attributes::new());
    importer.set_output(op, "Out", result)
}

/// The number of elements.
fn lower_size<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = importer.input(op, "Input")?.id;
    let result = importer.add_op("Size", &[input]);
    super::set_scalar_output(importer, op, "Out", result)
}

/// The identity matrix.
fn lower_eye<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let rows = known_int(importer, op, "num_rows", "RowsTensor", -1)?;
    let columns = match known_int(importer, op, "num_columns", "ColumnsTensor", -1)? {
        -1 => rows,
        columns => columns,
    };
    let shape = importer.add_ints(&[rows, columns]);
    let zeros = importer.add_op("ConstantOfShape", &[shape]);
    let result = importer.add_op_with(
        "EyeLike",
        &[zeros],
        build_attributes([("dtype", int_attribute(to.onnx_number()))]),
    );
    importer.set_output(op, "Out", result)
}

/// A given number of evenly spaced values between two endpoints.
fn add_line<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<(ValueId, Dtype)> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let none = importer.add_ints(&[]);
    let mut operands = Vec::new();
    for name in ["Start", "Stop", "Num"] {
        let operand = importer.input(op, name)?.id;
        let operand = importer.add_op("Reshape", &[operand, none]);
        operands.push(importer.add_cast(operand, if name == "Num" { Dtype::I64 } else { Dtype::F64 }));
    }
    let [start, stop, count] = operands[..] else {
        return Err(invalid_model("three operands", operands.len()));
    };
    let (zero, one) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let places = importer.add_op("Range", &[zero, count, one]);
    let places = importer.add_cast(places, Dtype::F64);
    let last = importer.add_op("Sub", &[count, one]);
    let last = importer.add_op("Max", &[last, one]);
    let last = importer.add_cast(last, Dtype::F64);
    let distance = importer.add_op("Sub", &[stop, start]);
    let step = importer.add_op("Div", &[distance, last]);
    let offset = importer.add_op("Mul", &[places, step]);
    Ok((importer.add_op("Add", &[start, offset]), to))
}

/// Random numbers. The same seed gives other numbers than in Paddle.
fn lower_random<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    numbers: [(&str, f64); 2],
) -> Result<()> {
    let to = dtype_from_number(i32::try_from(op.int_attribute("dtype", 5)).unwrap_or(-1))?;
    let dims = known_list(importer, op, "shape", "ShapeTensor", "ShapeTensorList")?
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
    let result = importer.add_op_with(name, &[], attributes);
    importer.set_output(op, "Out", result)
}

//! Converts elements to Python objects and to text.

use half::{bf16, f16};
use num_complex::Complex;
use oarlock_core::{Dtype, Element, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString};

use super::cast_tensor;
use crate::error::OrRaise as _;

/// Larger arrays are abbreviated.
const MAX_SHOWN_ELEMENTS: u64 = 1000;
/// Indices shown at either end.
const EDGE_ELEMENTS: usize = 3;
const MAX_LINE_WIDTH: usize = 88;

#[derive(Clone, Debug)]
enum PrintedElement {
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    /// A number, and true if it has the precision of `f64`.
    Float(f64, bool),
    Complex(f64, f64),
    Text(String),
}

fn read_values(py: Python<'_>, tensor: &Tensor) -> PyResult<Vec<PrintedElement>> {
    fn convert_elements<T: Element>(
        tensor: &Tensor,
        value: impl Fn(T) -> PrintedElement,
    ) -> PyResult<Vec<PrintedElement>> {
        Ok(tensor.to_vec::<T>().or_raise()?.into_iter().map(value).collect())
    }
    match tensor.dtype() {
        Dtype::Bool => convert_elements(tensor, PrintedElement::Bool),
        Dtype::I8 => convert_elements(tensor, |value: i8| PrintedElement::Integer(value.into())),
        Dtype::I16 => convert_elements(tensor, |value: i16| PrintedElement::Integer(value.into())),
        Dtype::I32 => convert_elements(tensor, |value: i32| PrintedElement::Integer(value.into())),
        Dtype::I64 => convert_elements(tensor, PrintedElement::Integer),
        Dtype::U8 => convert_elements(tensor, |value: u8| PrintedElement::Unsigned(value.into())),
        Dtype::U16 => convert_elements(tensor, |value: u16| PrintedElement::Unsigned(value.into())),
        Dtype::U32 => convert_elements(tensor, |value: u32| PrintedElement::Unsigned(value.into())),
        Dtype::U64 => convert_elements(tensor, PrintedElement::Unsigned),
        Dtype::F16 => convert_elements(tensor, |value: f16| PrintedElement::Float(value.into(), false)),
        Dtype::BF16 => convert_elements(tensor, |value: bf16| PrintedElement::Float(value.into(), false)),
        Dtype::F32 => convert_elements(tensor, |value: f32| PrintedElement::Float(value.into(), false)),
        Dtype::F64 => convert_elements(tensor, |value| PrintedElement::Float(value, true)),
        Dtype::C64 => convert_elements(tensor, |value: Complex<f32>| {
            PrintedElement::Complex(value.re.into(), value.im.into())
        }),
        Dtype::C128 => {
            convert_elements(tensor, |value: Complex<f64>| PrintedElement::Complex(value.re, value.im))
        }
        Dtype::String => Ok(tensor.to_strings().or_raise()?.into_iter().map(PrintedElement::Text).collect()),
        Dtype::I2 | Dtype::I4 => read_values(py, &cast_tensor(py, tensor, Dtype::I8)?),
        Dtype::U2 | Dtype::U4 => read_values(py, &cast_tensor(py, tensor, Dtype::U8)?),
        _ => read_values(py, &cast_tensor(py, tensor, Dtype::F32)?),
    }
}

impl PrintedElement {
    fn to_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            Self::Integer(value) => PyInt::new(py, *value).into_any(),
            Self::Unsigned(value) => PyInt::new(py, *value).into_any(),
            Self::Float(value, _) => PyFloat::new(py, *value).into_any(),
            Self::Complex(real, imaginary) => PyComplex::from_doubles(py, *real, *imaginary).into_any(),
            Self::Text(text) => PyString::new(py, text).into_any(),
        })
    }

    fn to_text(&self) -> String {
        match self {
            Self::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Float(value, is_wide) => format_float(*value, *is_wide),
            Self::Complex(real, imaginary) => {
                let sign = if imaginary.is_sign_negative() { "" } else { "+" };
                format!("{}{sign}{}j", format_float(*real, false), format_float(*imaginary, false))
            }
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

/// The shortest text that parses back to the same value of this precision.
fn format_float(value: f64, is_wide: bool) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let is_far = value != 0.0 && !(1e-4..1e16).contains(&value.abs());
    let text = match (is_wide, is_far) {
        (true, true) => format!("{value:e}"),
        (true, false) => value.to_string(),
        (false, true) => format!("{:e}", value as f32),
        (false, false) => (value as f32).to_string(),
    };
    if is_far || text.contains('.') { text } else { format!("{text}.") }
}

/// The single element as a Python object.
pub(super) fn single_item<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let count = tensor.element_count();
    if count != 1 {
        return Err(PyValueError::new_err(format!(
            "expected one element, found {count} in the shape {:?}\nhint: `all` or `any` makes one truth of many",
            tensor.dims()
        )));
    }
    read_values(py, tensor)?[0].to_object(py)
}

/// Formats a scalar as Python formats its number; other arrays support no format specification.
pub(super) fn format_item<'py>(
    format: &Bound<'py, PyString>,
    tensor: &Tensor,
) -> PyResult<Bound<'py, PyAny>> {
    let py = format.py();
    if format.is_empty()? {
        return Ok(PyString::new(py, &tensor_repr(py, tensor)?).into_any());
    }
    if tensor.dims().is_empty() {
        return single_item(py, tensor)?.call_method1("__format__", (format,));
    }
    Err(PyTypeError::new_err(format!(
        "expected an array without dimensions for the format `{format}`, found one of shape {:?}\nhint: format `array.item()` where \
         it has one element, each number of `array.tolist()` where it has more, or its text `str(array)`",
        tensor.dims()
    )))
}

pub(super) fn nested_lists<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    fn build_list<'py>(
        py: Python<'py>,
        dims: &[i64],
        values: &[PrintedElement],
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((first, rest)) = dims.split_first() else { return values[0].to_object(py) };
        let count = usize::try_from(*first)?;
        let size = values.len().checked_div(count).unwrap_or(0);
        let parts = (0..count).map(|at| build_list(py, rest, &values[at * size..(at + 1) * size]));
        Ok(PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }
    build_list(py, tensor.dims(), &read_values(py, tensor)?)
}

pub(super) fn tensor_repr(py: Python<'_>, tensor: &Tensor) -> PyResult<String> {
    let dims = tensor.dims();
    let body = if tensor.element_count() == 0 { "[]".to_owned() } else { format_elements(py, tensor)? };
    Ok(format!(
        "Tensor(shape={dims:?}, dtype={}, place=Place({}), stop_gradient=True,\n       {})",
        tensor.dtype().numpy_name(),
        tensor.device(),
        body.replace('\n', "\n       ")
    ))
}

/// Formats a tensor that has elements.
fn format_elements(py: Python<'_>, tensor: &Tensor) -> PyResult<String> {
    let dims = tensor.dims();
    let is_long = tensor.element_count() > MAX_SHOWN_ELEMENTS;
    // Do not read elements that are not shown: a large array is cut to its ends first.
    let mut shown = tensor.clone();
    if is_long {
        for axis in 0..dims.len() {
            shown = edge_indices(py, &shown, axis)?;
        }
    }
    let texts: Vec<String> = read_values(py, &shown)?.iter().map(PrintedElement::to_text).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    let mut body = String::new();
    write_nested(&mut body, dims, shown.dims(), &texts, (width, 1));
    Ok(body)
}

/// Indices at both ends of an axis.
fn edge_indices(py: Python<'_>, tensor: &Tensor, axis: usize) -> PyResult<Tensor> {
    let size = tensor.dims()[axis].unsigned_abs();
    let ends = EDGE_ELEMENTS as u64;
    if size <= 2 * ends || tensor.dtype().is_packed() {
        return Ok(tensor.clone());
    }
    let at = axis as i64;
    let parts = [(0, ends), (size - ends, size)].map(|(from, to)| tensor.slice(at, from, to, 1).or_raise());
    let [first, last] = parts;
    let attributes = oarlock_core::Attributes::new().with_attribute("axis", oarlock_core::Attribute::Int(at));
    super::single_output(crate::op_call::call_named_op(
        py,
        "Concat",
        &[Some(&first?), Some(&last?)],
        attributes,
        1,
    )?)
}

/// Writes nested brackets. `dims` is the full shape, `shown` that of the abbreviated tensor.
fn write_nested(
    into: &mut String,
    dims: &[i64],
    shown: &[i64],
    texts: &[String],
    (width, depth): (usize, usize),
) {
    let (Some((size, dims)), Some((count, inner))) = (dims.split_first(), shown.split_first()) else {
        return into.push_str(texts.first().map_or("", String::as_str));
    };
    let count = usize::try_from(*count).unwrap_or(0);
    let each = texts.len().checked_div(count).unwrap_or(0);
    let separator =
        if inner.is_empty() { " ".to_owned() } else { "\n".repeat(inner.len()) + &" ".repeat(depth) };
    into.push('[');
    let mut column = depth;
    for at in 0..count {
        if at > 0 {
            into.push(',');
            if inner.is_empty() && column + width + 2 > MAX_LINE_WIDTH {
                into.push('\n');
                into.push_str(&" ".repeat(depth));
                column = depth;
            } else {
                into.push_str(&separator);
            }
        }
        if at == EDGE_ELEMENTS && *size > count as i64 {
            into.push_str("...,");
            into.push_str(&separator);
        }
        if inner.is_empty() {
            into.push_str(&" ".repeat(width - texts[at].len()));
            into.push_str(&texts[at]);
            column += width + 2;
        } else {
            write_nested(into, dims, inner, &texts[at * each..(at + 1) * each], (width, depth + 1));
        }
    }
    into.push(']');
}

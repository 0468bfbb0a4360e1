//! Converts elements to Python objects and to text.

use half::{bf16, f16};
use num_complex::Complex;
use oarlock_core::{Dtype, Element, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString};

use super::cast_tensor;
use super::print_options::{PrintOptions, print_options};
use crate::error::OrRaise as _;
use crate::trace::{is_traced, refuse_read};

/// Lists of more elements let other threads run, and signals be heard, every so many elements.
const ELEMENTS_BETWEEN_PAUSES: usize = 1 << 16;

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
    refuse_read(tensor)?;
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

    fn to_text(&self, options: &PrintOptions) -> String {
        match self {
            Self::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Float(value, is_wide) => format_float(*value, *is_wide, options),
            Self::Complex(real, imaginary) => {
                let sign = if imaginary.is_sign_negative() { "" } else { "+" };
                let part = |value: f64| format_float(value, false, options);
                format!("{}{sign}{}j", part(*real), part(*imaginary))
            }
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

/// The shortest text that parses back to the same value of this precision, unless fewer digits are asked for.
fn format_float(value: f64, is_wide: bool, options: &PrintOptions) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let is_far = value != 0.0 && !(1e-4..1e16).contains(&value.abs()) && !options.is_plain;
    let shortest = match (is_wide, is_far) {
        (true, true) => format!("{value:e}"),
        (true, false) => value.to_string(),
        (false, true) => format!("{:e}", value as f32),
        (false, false) => (value as f32).to_string(),
    };
    let text = match options.precision {
        Some(digits) if digits_behind_point(&shortest) > digits && is_far => format!("{value:.digits$e}"),
        Some(digits) if digits_behind_point(&shortest) > digits => {
            let rounded = format!("{value:.digits$}");
            if rounded.contains('.') { rounded.trim_end_matches('0').to_owned() } else { rounded }
        }
        _ => shortest,
    };
    if is_far || text.contains('.') { text } else { format!("{text}.") }
}

fn digits_behind_point(number: &str) -> usize {
    let mantissa = number.split('e').next().unwrap_or_default();
    mantissa.split_once('.').map_or(0, |(_, digits)| digits.len())
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
    match common_value(tensor)? {
        Some(value) => value.to_object(py),
        None => read_values(py, tensor)?[0].to_object(py),
    }
}

/// The first element of a common dtype in the memory of the host, without a list.
fn common_value(tensor: &Tensor) -> PyResult<Option<PrintedElement>> {
    refuse_read(tensor)?;
    let Some(bytes) = tensor.host_bytes().or_raise()? else { return Ok(None) };
    Ok(match (tensor.dtype(), bytes) {
        (Dtype::F32, &[a, b, c, d]) => {
            Some(PrintedElement::Float(f32::from_ne_bytes([a, b, c, d]).into(), false))
        }
        (Dtype::F64, bytes) => {
            bytes.try_into().ok().map(|bytes| PrintedElement::Float(f64::from_ne_bytes(bytes), true))
        }
        (Dtype::I64, bytes) => {
            bytes.try_into().ok().map(|bytes| PrintedElement::Integer(i64::from_ne_bytes(bytes)))
        }
        (Dtype::Bool, &[truth]) => Some(PrintedElement::Bool(truth != 0)),
        _ => None,
    })
}

/// Formats a scalar as Python formats its number; other arrays support no format specification.
pub(super) fn format_item<'py>(
    format: &Bound<'py, PyString>,
    tensor: &Tensor,
) -> PyResult<Bound<'py, PyAny>> {
    let py = format.py();
    if format.is_empty()? && (!tensor.dims().is_empty() || is_traced(tensor)) {
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
    refuse_read(tensor)?;
    let dims = tensor.dims();
    // Common dtypes need no list of printed elements.
    match tensor.dtype() {
        Dtype::F32 => build_lists(py, dims, &tensor.to_vec::<f32>().or_raise()?, &|value| {
            Ok(PyFloat::new(py, f64::from(*value)).into_any())
        }),
        Dtype::F64 => build_lists(py, dims, &tensor.to_vec().or_raise()?, &|value| {
            Ok(PyFloat::new(py, *value).into_any())
        }),
        Dtype::I64 => build_lists(py, dims, &tensor.to_vec::<i64>().or_raise()?, &|value| {
            Ok(PyInt::new(py, *value).into_any())
        }),
        _ => build_lists(py, dims, &read_values(py, tensor)?, &|value| value.to_object(py)),
    }
}

/// Nested lists of values, each made an object.
fn build_lists<'py, T>(
    py: Python<'py>,
    dims: &[i64],
    values: &[T],
    to_object: &impl Fn(&T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    fn build_list<'py, T>(
        py: Python<'py>,
        dims: &[i64],
        values: &[T],
        to_object: &impl Fn(&T) -> PyResult<Bound<'py, PyAny>>,
        made: &mut usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((first, rest)) = dims.split_first() else {
            *made += 1;
            if made.is_multiple_of(ELEMENTS_BETWEEN_PAUSES) {
                py.detach(|| ());
                py.check_signals()?;
            }
            return to_object(&values[0]);
        };
        let count = usize::try_from(*first)?;
        let size = values.len().checked_div(count).unwrap_or(0);
        let parts =
            (0..count).map(|at| build_list(py, rest, &values[at * size..(at + 1) * size], to_object, made));
        Ok(PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }
    build_list(py, dims, values, to_object, &mut 0)
}

pub(super) fn tensor_repr(py: Python<'_>, tensor: &Tensor) -> PyResult<String> {
    let dims = tensor.dims();
    if is_traced(tensor) {
        // Its elements are those of the first call only.
        return Ok(format!("Tensor(shape={dims:?}, dtype={}, traced)", tensor.dtype().numpy_name()));
    }
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
    let options = print_options();
    let is_long = tensor.element_count() > options.threshold;
    // Do not read elements that are not shown: a large array is cut to its ends first.
    let mut shown = tensor.clone();
    if is_long {
        for axis in 0..dims.len() {
            shown = edge_indices(py, &shown, axis, options.edge_items as u64)?;
        }
    }
    let texts: Vec<String> = read_values(py, &shown)?.iter().map(|value| value.to_text(&options)).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    let mut body = String::new();
    let layout = PrintLayout { width, depth: 1, options };
    layout.write_nested(&mut body, dims, shown.dims(), &texts);
    Ok(body)
}

/// Indices at both ends of an axis.
fn edge_indices(py: Python<'_>, tensor: &Tensor, axis: usize, ends: u64) -> PyResult<Tensor> {
    let size = tensor.dims()[axis].unsigned_abs();
    if size <= ends.saturating_mul(2) || tensor.dtype().is_packed() {
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

/// How elements are laid out.
#[derive(Clone, Copy)]
struct PrintLayout {
    /// The width of an element.
    width: usize,
    /// The brackets that are open.
    depth: usize,
    options: PrintOptions,
}

impl PrintLayout {
    /// Writes nested brackets. `dims` is the full shape, `shown` that of the abbreviated tensor.
    fn write_nested(self, into: &mut String, dims: &[i64], shown: &[i64], texts: &[String]) {
        let (Some((size, dims)), Some((count, inner))) = (dims.split_first(), shown.split_first()) else {
            return into.push_str(texts.first().map_or("", String::as_str));
        };
        let Self { width, depth, options } = self;
        let count = usize::try_from(*count).unwrap_or(0);
        let each = texts.len().checked_div(count).unwrap_or(0);
        let separator =
            if inner.is_empty() { " ".to_owned() } else { "\n".repeat(inner.len()) + &" ".repeat(depth) };
        into.push('[');
        let mut column = depth;
        for at in 0..count {
            if at > 0 {
                into.push(',');
                if inner.is_empty() && column + width + 2 > options.line_width {
                    into.push('\n');
                    into.push_str(&" ".repeat(depth));
                    column = depth;
                } else {
                    into.push_str(&separator);
                }
            }
            if at == options.edge_items && *size > count as i64 {
                into.push_str("...,");
                into.push_str(&separator);
            }
            if inner.is_empty() {
                into.push_str(&" ".repeat(width - texts[at].len()));
                into.push_str(&texts[at]);
                column += width + 2;
            } else {
                let within = Self { depth: depth + 1, ..self };
                within.write_nested(into, dims, inner, &texts[at * each..(at + 1) * each]);
            }
        }
        into.push(']');
    }
}

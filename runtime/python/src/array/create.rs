//! Creates arrays from a shape, and reshapes arrays.

use oarlock_core::{Attribute, Attributes, Device, Dtype, Tensor};
use pyo3::exceptions::{PyIndexError, PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use super::operand::array_argument;
use super::python_number::PythonNumber;
use super::view::{is_seen_contiguous, view_of};
use super::{PyTensor, copy_tensor, single_output};
use crate::array_view::ArrayView;
use crate::device::resolve_device;
use crate::dtype::DtypeLike;
use crate::error::{OrRaise as _, call_exception, rename_op, type_name, with_function_name};
use crate::exchange::from_python;
use crate::op_call::{StaticOp, call_named_op};
use crate::promote::default_dtype;
use crate::trace::is_traced;
use crate::views::{complex_view, real_view, reshape_view};

/// A shape argument: one size or several.
pub(crate) struct ShapeArgument(Vec<i64>);

impl ShapeArgument {
    /// Parses a shape or a list of dimensions; errors name `function`.
    fn from_argument(object: &Bound<'_, PyAny>, function: &str) -> PyResult<Self> {
        if object.is_instance_of::<PyInt>() {
            return Ok(Self(vec![parse_size(object, function)?]));
        }
        match object.try_iter() {
            Ok(sizes) => sizes.map(|each| parse_size(&each?, function)).collect::<PyResult<_>>().map(Self),
            // Anything else with `__index__`.
            Err(_) => Ok(Self(vec![parse_size(object, function)?])),
        }
    }
}

fn parse_size(object: &Bound<'_, PyAny>, function: &str) -> PyResult<i64> {
    object.extract().map_err(|error: PyErr| {
        let py = object.py();
        let wrong = if error.is_instance_of::<PyOverflowError>(py) {
            PyOverflowError::new_err(format!(
                "`{function}` expected sizes of a shape of at most 2^63 - 1, found {object}\nhint: look at what the sizes are \
                 computed from"
            ))
        } else {
            let found = type_name(object);
            PyTypeError::new_err(format!(
                "`{function}` expected whole numbers as sizes of a shape, found {found}\nhint: give a number, or a tuple of them \
                 such as `(2, 3)`"
            ))
        };
        with_function_name(py, function, wrong)
    })
}

/// An array filled with a number.
///
/// >>> full((2, 2), 7)
/// Tensor(shape=[2, 2], dtype=int64, place=Place(cpu:0), stop_gradient=True,
///        [[7, 7],
///         [7, 7]])
#[pyfunction]
#[pyo3(signature = (shape, fill_value, *, dtype=None, device=None))]
pub(crate) fn full(
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let (py, shape) = (fill_value.py(), ShapeArgument::from_argument(shape, "full")?);
    let Some(number) = PythonNumber::from_object(fill_value)? else {
        let one = from_python::asarray(fill_value, dtype, device, None)?.get().tensor();
        return full_of_element(py, &shape.0, &one)
            .map(PyTensor::new)
            .map_err(|error| rename_op(py, "full", error));
    };
    let dtype = dtype.map_or_else(|| default_dtype(number.dtype_kind()), |dtype| dtype.0);
    full_of_number(py, "full", &shape.0, (number, dtype), &resolve_device(py, device)?)
}

/// An array of zeros. The sizes may be one shape or several numbers, and the dtype may follow a shape.
///
/// >>> zeros(2, 3)
/// Tensor(shape=[2, 3], dtype=float32, place=Place(cpu:0), stop_gradient=True,
///        [[0., 0., 0.],
///         [0., 0., 0.]])
#[pyfunction]
#[pyo3(signature = (shape, *sizes, dtype=None, device=None))]
pub(crate) fn zeros(
    shape: &Bound<'_, PyAny>,
    sizes: &Bound<'_, PyTuple>,
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    filled_array("zeros", 0, (shape, sizes), dtype, device)
}

/// An array of ones. The sizes may be one shape or several numbers, and the dtype may follow a shape.
#[pyfunction]
#[pyo3(signature = (shape, *sizes, dtype=None, device=None))]
pub(crate) fn ones(
    shape: &Bound<'_, PyAny>,
    sizes: &Bound<'_, PyTuple>,
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    filled_array("ones", 1, (shape, sizes), dtype, device)
}

fn filled_array(
    function: &str,
    number: i128,
    (shape, sizes): (&Bound<'_, PyAny>, &Bound<'_, PyTuple>),
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let py = shape.py();
    let second = sizes.get_item(0).ok().filter(|_| sizes.len() == 1 && dtype.is_none());
    let (shape, dtype) = match second.filter(is_dtype) {
        Some(second) => (ShapeArgument::from_argument(shape, function)?, Some(second.extract()?)),
        None if sizes.is_empty() => (ShapeArgument::from_argument(shape, function)?, dtype),
        None => {
            let sizes = std::iter::once(shape.clone()).chain(sizes);
            let sizes = sizes.map(|size| parse_size(&size, function)).collect::<PyResult<_>>()?;
            (ShapeArgument(sizes), dtype)
        }
    };
    let number = (PythonNumber::Integer(number), dtype.map_or(Dtype::F32, |dtype| dtype.0));
    full_of_number(py, function, &shape.0, number, &resolve_device(py, device)?)
}

/// True for dtypes, but not for sizes.
fn is_dtype(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyInt>() && object.extract::<DtypeLike>().is_ok()
}

/// Fills a shape with a number; errors name `function`.
fn full_of_number(
    py: Python<'_>,
    function: &str,
    shape: &[i64],
    (number, dtype): (PythonNumber, Dtype),
    device: &Device,
) -> PyResult<PyTensor> {
    let mut bytes = Vec::with_capacity(16);
    number.write_element(dtype, &mut bytes)?;
    let result = if device.shares_host_memory() || bytes.iter().all(|byte| *byte == bytes[0]) {
        fill_tensor(function, shape, (&bytes, dtype), device)
    } else {
        repeat_element(py, &Tensor::from_bytes(device, dtype, &[], &bytes).or_raise()?, shape)
    };
    result.map(PyTensor::new).map_err(|error| rename_op(py, function, error))
}

fn fill_tensor(
    function: &str,
    shape: &[i64],
    (bytes, dtype): (&[u8], Dtype),
    device: &Device,
) -> PyResult<Tensor> {
    let result = Tensor::filled(device, dtype, shape, bytes);
    result.map_err(|error| call_exception(error.with_op(function).with_device(device)))
}

/// Fills a shape with one element.
fn full_of_element(py: Python<'_>, shape: &[i64], one: &Tensor) -> PyResult<Tensor> {
    let is_number = one.dims().is_empty() && one.dtype() != Dtype::String && !one.dtype().is_packed();
    if !is_number || !one.device().shares_host_memory() || is_traced(one) {
        return repeat_element(py, one, shape);
    }
    fill_tensor("full", shape, (&one.to_bytes().or_raise()?, one.dtype()), one.device())
}

/// Broadcasts an element on its device, or on the host for a device that only computes.
fn repeat_element(py: Python<'_>, one: &Tensor, shape: &[i64]) -> PyResult<Tensor> {
    static EXPAND: StaticOp = StaticOp::new("Expand");
    if shape.is_empty() {
        return Ok(one.clone());
    }
    let host = super::host_memory_device(py)?;
    let sizes = Tensor::from_slice(&host, &[i64::try_from(shape.len())?], shape).or_raise()?;
    match EXPAND.call(py, &[one, &sizes]) {
        Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
            let result = EXPAND.call(py, &[&one.to_device(&host).or_raise()?, &sizes])?;
            result.to_device(one.device()).or_raise()
        }
        result => result,
    }
}

/// `count` numbers from `start` in steps of `step`: int64 if both are integers, otherwise float64, or float32 if `is_narrow`.
/// Each is computed from its index, so rounding errors do not add up.
#[pyfunction]
#[pyo3(signature = (count, start, step, device, is_narrow=false))]
pub(crate) fn _steps(
    count: &Bound<'_, PyAny>,
    start: &Bound<'_, PyAny>,
    step: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    is_narrow: bool,
) -> PyResult<PyTensor> {
    let (py, count) = (start.py(), parse_size(count, "arange")?);
    if count < 0 {
        return Err(PyValueError::new_err(format!(
            "expected a number of elements of at least 0, found {count}"
        )));
    }
    let device = resolve_device(py, device)?;
    let result = if start.is_instance_of::<PyInt>() && step.is_instance_of::<PyInt>() {
        let (start, step): (i64, i64) = (start.extract()?, step.extract()?);
        Tensor::from_fn(&device, &[count], |at| (at as i64).wrapping_mul(step).wrapping_add(start))
    } else {
        let (start, step): (f64, f64) = (start.extract()?, step.extract()?);
        let number = |at| at as f64 * step + start;
        if is_narrow {
            Tensor::from_fn(&device, &[count], |at| number(at) as f32)
        } else {
            Tensor::from_fn(&device, &[count], number)
        }
    };
    let result = result.map_err(|error| call_exception(error.with_op("arange").with_device(&device)));
    result.map(PyTensor::new)
}

/// Changes the shape; one size may be -1 and is then inferred. The result shares memory unless the elements are not
/// contiguous or `copy` is true.
#[pyfunction]
#[pyo3(signature = (x, /, shape, *, copy=None))]
pub(crate) fn reshape(
    x: &Bound<'_, PyAny>,
    shape: &Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    let array = array_argument(x, "reshape", "x")?;
    let (py, tensor) = (x.py(), array.get().tensor());
    let shape = ShapeArgument::from_argument(shape, "reshape")?;
    if let Some(sizes) = resolve_sizes(i64::try_from(tensor.element_count())?, &shape.0) {
        if is_seen_contiguous(array.get()) {
            if copy == Some(true) {
                return copy_tensor(py, &reshape_view(py, &tensor, &sizes)?).map(PyTensor::new);
            }
            return view_of(&array, ArrayView::Shape(sizes));
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "expected an array that can be seen in another shape without a copy, found one whose elements do not lie one \
                 after the other\nhint: leave out `copy=False`",
            ));
        }
    }
    let sizes =
        Tensor::from_slice(&super::host_memory_device(py)?, &[i64::try_from(shape.0.len())?], &shape.0)
            .or_raise()?;
    let attributes = Attributes::new().with_attribute("allowzero", Attribute::Int(1));
    let result =
        call_named_op(py, "Reshape", &[Some(&tensor), Some(&sizes)], attributes, 1).and_then(single_output);
    result.map(PyTensor::new).map_err(|error| rename_op(py, "reshape", error))
}

/// Replaces a -1 by the remaining size; `None` if the sizes do not fit the element count.
fn resolve_sizes(count: i64, shape: &[i64]) -> Option<Vec<i64>> {
    let mut known = shape.iter().filter(|size| **size != -1);
    let known = known.try_fold(1i64, |product, size| product.checked_mul(*size))?;
    let left = shape.iter().filter(|size| **size == -1).count();
    let fits = match left {
        0 => known == count,
        1 => known > 0 && count % known == 0,
        _ => false,
    };
    let sizes = shape.iter().map(|size| if *size == -1 { count / known } else { *size });
    (fits && shape.iter().all(|size| *size >= -1)).then(|| sizes.collect())
}

/// Permutes the axes of an array.
#[pyfunction]
#[pyo3(signature = (x, /, axes))]
pub(crate) fn permute_dims(x: &Bound<'_, PyAny>, axes: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let axes = ShapeArgument::from_argument(axes, "permute_dims")?;
    let array = array_argument(x, "permute_dims", "x")?;
    let rank = i64::try_from(array.get().tensor().dims().len())?;
    let mut order = Vec::with_capacity(axes.0.len());
    for axis in &axes.0 {
        let from_first = if *axis < 0 { *axis + rank } else { *axis };
        if !(0..rank).contains(&from_first) {
            return Err(PyIndexError::new_err(format!(
                "expected a dimension of -{rank} to before {rank}, found {axis}"
            )));
        }
        order.push(from_first as usize);
    }
    let is_once = (0..rank as usize).all(|axis| order.iter().filter(|other| **other == axis).count() == 1);
    if order.len() != rank as usize || !is_once {
        return Err(PyValueError::new_err(format!(
            "expected each of {rank} dimensions once, found {:?}",
            axes.0
        )));
    }
    view_of(&array, ArrayView::Permutation(order))
}

/// Complex numbers as their parts, in a last dimension of two. No element moves.
#[pyfunction]
#[pyo3(signature = (x, /))]
pub(crate) fn _parts(x: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    real_view(x.py(), &x.get().tensor()).map(PyTensor::new)
}

/// The complex numbers that have these parts, in a last dimension of two. No element moves.
#[pyfunction]
#[pyo3(signature = (x, /))]
pub(crate) fn _of_parts(x: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    complex_view(x.py(), &x.get().tensor()).map(PyTensor::new)
}

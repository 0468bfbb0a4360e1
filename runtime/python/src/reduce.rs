//! Reductions: functions that combine many elements into one, along axes.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::convert::cast_tensor;
use crate::dtype::DtypeLike;
use crate::error::{OrRaise as _, with_function_name};
use crate::op_call::StaticOp;
use crate::operand::array_argument;
use crate::promote::{DtypeKind, dtype_kind, is_unsigned, wide_dtype};
use crate::scalar_cache;
use crate::startup::host_memory_device;
use crate::tensor::PyTensor;

/// ONNX's reductions: dropping the reduced dimensions, and keeping them with size 1.
static REDUCE_OPS: [(&str, [StaticOp; 2]); 5] = [
    reduce_op_pair("ReduceMax"),
    reduce_op_pair("ReduceMean"),
    reduce_op_pair("ReduceMin"),
    reduce_op_pair("ReduceProd"),
    reduce_op_pair("ReduceSum"),
];

const fn reduce_op_pair(name: &'static str) -> (&'static str, [StaticOp; 2]) {
    (name, [StaticOp::with_attributes(name, &[("keepdims", 0)]), StaticOp::new(name)])
}

/// Reduces with an op along axes, or along all if none is named. Of complex numbers, both parts are reduced separately.
#[pyfunction]
#[pyo3(signature = (name, x, axis, keepdims))]
pub(crate) fn _reduced(
    name: &str,
    x: &Bound<'_, PyAny>,
    axis: &Bound<'_, PyAny>,
    keepdims: &Bound<'_, PyAny>,
) -> PyResult<PyTensor> {
    static REAL: StaticOp = StaticOp::oarlock_op("Real");
    static IMAG: StaticOp = StaticOp::oarlock_op("Imag");
    static COMPLEX: StaticOp = StaticOp::oarlock_op("Complex");
    let (py, x) = (x.py(), _numbers(x)?.get().tensor());
    let ways = REDUCE_OPS.iter().find(|(known, _)| *known == name).map(|(_, ways)| ways);
    let ways =
        ways.ok_or_else(|| PyValueError::new_err(format!("expected an op that reduces, found `{name}`")))?;
    let op = &ways[usize::from(keepdims.is_truthy()?)];
    let (axes, dims) = (_axes(axis, x.dims().len())?, x.dims());
    if axes.is_empty() {
        // The op treats an empty list of axes as all axes.
        return Ok(PyTensor::new(x));
    }
    if dtype_kind(x.dtype()) == Some(DtypeKind::Complex) {
        let part = |part: &'static StaticOp| reduce_axes(py, op, &part.call(py, &[&x])?, &axes);
        return COMPLEX.call(py, &[&part(&REAL)?, &part(&IMAG)?]).map(PyTensor::new);
    }
    let is_extreme = matches!(name, "ReduceMax" | "ReduceMin");
    if is_extreme && axes.iter().any(|axis| dims[*axis] == 0) {
        return Err(PyValueError::new_err(format!(
            "expected an element at least, found none in the shape {dims:?}"
        )));
    }
    // No kernels add narrow integers. Wide sums wrap to the same narrow result.
    let is_byte = matches!(x.dtype(), Dtype::I8 | Dtype::U8);
    let taken = if is_extreme && is_byte { x.dtype() } else { wide_dtype(x.dtype()) };
    let result = reduce_axes(py, op, &cast_tensor(py, &x, taken)?, &axes)?;
    cast_tensor(py, &result, x.dtype()).map(PyTensor::new)
}

/// Reduces a tensor of a dtype that has kernels.
fn reduce_axes(py: Python<'_>, op: &'static StaticOp, x: &Tensor, axes: &[usize]) -> PyResult<Tensor> {
    if axes.len() == x.dims().len() {
        return op.call(py, &[x]);
    }
    let device = host_memory_device(py)?;
    let axes = if let [axis] = axes {
        scalar_cache::single_element_list(*axis as i64, &device)?
    } else {
        let axes: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
        Tensor::from_slice(&device, &[axes.len() as i64], &axes).or_raise()?
    };
    op.call(py, &[x, &axes])
}

/// Converts elements to the dtype of their sum or product: for integers, the widest one.
#[pyfunction]
#[pyo3(signature = (x, dtype))]
pub(crate) fn _summands<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<DtypeLike>,
) -> PyResult<Bound<'py, PyTensor>> {
    let (array, py) = (_numbers(x)?, x.py());
    let tensor = array.get().tensor();
    let own = tensor.dtype();
    let dtype = match (dtype, dtype_kind(own)) {
        (Some(dtype), _) => dtype.0,
        (None, Some(DtypeKind::Float | DtypeKind::Complex)) => own,
        (None, _) if is_unsigned(own) => Dtype::U64,
        (None, _) => Dtype::I64,
    };
    if dtype == own {
        return Ok(array);
    }
    Bound::new(py, PyTensor::new(cast_tensor(py, &tensor, dtype)?))
}

/// Refuses arrays of text, which ops would read as numbers. The error names the called function.
#[pyfunction]
#[pyo3(signature = (x))]
pub(crate) fn _numbers<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    let array = array_argument(x, "_numbers", "x")?;
    if array.get().tensor().dtype() != Dtype::String {
        return Ok(array);
    }
    let error = PyTypeError::new_err(
        "`_numbers` expected numbers, found an array of str\nhint: text that spells numbers is converted by `astype`",
    );
    Err(with_function_name(x.py(), "_numbers", error))
}

/// Axes counted from the first, without duplicates; all if none is named.
#[pyfunction]
#[pyo3(signature = (axes, rank))]
pub(crate) fn _axes(axes: &Bound<'_, PyAny>, rank: usize) -> PyResult<Vec<usize>> {
    if axes.is_none() {
        return Ok((0..rank).collect());
    }
    let list = if axes.is_instance_of::<PyInt>() { None } else { axes.try_iter().ok() };
    let Some(list) = list else { return Ok(vec![_axis(axes, rank)?]) };
    let found = list.map(|axis| _axis(&axis?, rank)).collect::<PyResult<Vec<_>>>()?;
    let is_once = found.iter().enumerate().all(|(at, axis)| !found[..at].contains(axis));
    if is_once {
        return Ok(found);
    }
    Err(PyValueError::new_err(format!("expected each dimension once, found {}", axes.str()?)))
}

/// A dimension counted from the first one.
#[pyfunction]
#[pyo3(signature = (axis, rank))]
pub(crate) fn _axis(axis: &Bound<'_, PyAny>, rank: usize) -> PyResult<usize> {
    let found = axis.extract::<isize>();
    if let Err(error) = &found
        && error.is_instance_of::<PyTypeError>(axis.py())
    {
        let found = axis.repr()?;
        return Err(PyTypeError::new_err(format!("expected a whole number as a dimension, found {found}")));
    }
    if rank == 0 {
        return Err(PyIndexError::new_err(format!(
            "expected an array that has dimensions, found one without for dimension {axis}"
        )));
    }
    // An integer of more than 64 bits is out of range too.
    let from_first =
        found.ok().and_then(|at| if at < 0 { rank.checked_add_signed(at) } else { Some(at as usize) });
    from_first.filter(|at| *at < rank).ok_or_else(|| {
        PyIndexError::new_err(format!("expected a dimension of -{rank} to before {rank}, found {axis}"))
    })
}

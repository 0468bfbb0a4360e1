//! Functions that make one number of many, along dimensions.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::array::operand::{Number, array_given};
use crate::array::{Array, cast, host, recent};
use crate::call::Fixed;
use crate::error::{OrRaise as _, told_of};
use crate::promote::{Kind, kind, wide};

/// The ops of ONNX that reduce.
static OPS: [(&str, Fixed); 5] = [
    ("ReduceMax", Fixed::new("ReduceMax")),
    ("ReduceMean", Fixed::new("ReduceMean")),
    ("ReduceMin", Fixed::new("ReduceMin")),
    ("ReduceProd", Fixed::new("ReduceProd")),
    ("ReduceSum", Fixed::new("ReduceSum")),
];

/// What an op makes of the elements along dimensions, of all where none is named. Of complex numbers each part is taken by itself.
#[pyfunction]
#[pyo3(signature = (name, x, axis, keepdims))]
pub(crate) fn _reduced(
    name: &str,
    x: &Bound<'_, PyAny>,
    axis: &Bound<'_, PyAny>,
    keepdims: &Bound<'_, PyAny>,
) -> PyResult<Array> {
    let (py, x) = (x.py(), _numbers(x)?.get().tensor());
    let op = OPS.iter().find(|(known, _)| *known == name).map(|(_, op)| op);
    let op =
        op.ok_or_else(|| PyValueError::new_err(format!("expected an op that reduces, found `{name}`")))?;
    let axes = _axes(axis, x.dims().len())?;
    if axes.is_empty() {
        // To the op it would mean all.
        return Ok(Array::new(x));
    }
    let made = if kind(x.dtype()) == Some(Kind::Complex) {
        static REAL: Fixed = Fixed::own("Real");
        static IMAG: Fixed = Fixed::own("Imag");
        static COMPLEX: Fixed = Fixed::own("Complex");
        let part = |part: &'static Fixed| along(py, op, &part.call(py, &[&x])?, &axes);
        COMPLEX.call(py, &[&part(&REAL)?, &part(&IMAG)?])?
    } else {
        // There are no kernels that add narrow integers, of which sums are taken as wide ones wrap.
        let is_extreme = matches!(name, "ReduceMax" | "ReduceMin");
        if is_extreme && axes.iter().any(|axis| x.dims()[*axis] == 0) {
            let found = x.dims();
            return Err(PyValueError::new_err(format!(
                "expected an element at least, found none in the shape {found:?}"
            )));
        }
        let is_byte = matches!(x.dtype(), Dtype::I8 | Dtype::U8);
        let taken = if is_extreme && is_byte { x.dtype() } else { wide(x.dtype()) };
        let made = along(py, op, &cast(py, &x, taken)?, &axes)?;
        cast(py, &made, x.dtype())?
    };
    if keepdims.is_truthy()? {
        return Ok(Array::new(made));
    }
    let left = x.dims().iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    let left: Vec<i64> = left.map(|(_, size)| *size).collect();
    made.reshape(&left).or_raise().map(Array::new)
}

/// The same of what kernels take, with a size of 1 in the place of each dimension.
fn along(py: Python<'_>, op: &'static Fixed, x: &Tensor, axes: &[usize]) -> PyResult<Tensor> {
    if axes.len() == x.dims().len() {
        return op.call(py, &[x]);
    }
    let device = host(py)?;
    let axes = if let [axis] = axes {
        recent::tensor(Number::Integer(*axis as i128), &device, Dtype::I64)?.unsqueeze(0)
    } else {
        let axes: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
        Tensor::from_slice(&device, &[axes.len() as i64], &axes)
    };
    op.call(py, &[x, &axes.or_raise()?])
}

/// An array that is not of text, which ops would read numbers from. The function that it is given to stands in its place in what
/// is told.
#[pyfunction]
#[pyo3(signature = (x))]
pub(crate) fn _numbers<'a, 'py>(x: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Array>> {
    let array = array_given(x, "_numbers", "x")?;
    if array.get().tensor().dtype() != Dtype::String {
        return Ok(array);
    }
    let error = PyTypeError::new_err(
        "`_numbers` expected numbers, found an array of str\nhint: text that spells numbers is converted by `astype`",
    );
    Err(told_of(x.py(), "_numbers", error))
}

/// Dimensions counted from the first one, each once; all where none is named.
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
    // A number of more bits is out of range, too.
    let from_first =
        found.ok().and_then(|at| if at < 0 { rank.checked_add_signed(at) } else { Some(at as usize) });
    from_first.filter(|at| *at < rank).ok_or_else(|| {
        PyIndexError::new_err(format!("expected a dimension of -{rank} to before {rank}, found {axis}"))
    })
}

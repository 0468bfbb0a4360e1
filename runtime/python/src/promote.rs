//! Type promotion of mixed operands.
//!
//! Follows the Python array API standard. Where the standard leaves mixed kinds open, follows most libraries: integers
//! combine with floats to floats of the same width, and a Python number takes the array's dtype if that can hold its kind.

use oarlock_core::Dtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyTuple};

use crate::dtype::{self, DType, DtypeLike};
use crate::tensor::PyTensor;

/// Kinds of dtypes, each able to hold the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum DtypeKind {
    Bool,
    Integer,
    Float,
    Complex,
}

/// `None` for text.
pub(crate) fn dtype_kind(dtype: Dtype) -> Option<DtypeKind> {
    match dtype {
        Dtype::Bool => Some(DtypeKind::Bool),
        Dtype::String => None,
        Dtype::C64 | Dtype::C128 => Some(DtypeKind::Complex),
        dtype if is_signed(dtype) || is_unsigned(dtype) => Some(DtypeKind::Integer),
        _ => Some(DtypeKind::Float),
    }
}

pub(crate) fn is_signed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::I2 | Dtype::I4 | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
}

pub(crate) fn is_unsigned(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::U2 | Dtype::U4 | Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64)
}

/// The dtype of a Python number that stands alone.
pub(crate) fn default_dtype(kind: DtypeKind) -> Dtype {
    match kind {
        DtypeKind::Bool => Dtype::Bool,
        DtypeKind::Integer => Dtype::I64,
        DtypeKind::Float => Dtype::F32,
        DtypeKind::Complex => Dtype::C64,
    }
}

/// The common dtype of two arrays.
pub(crate) fn promote_dtypes(left: Dtype, right: Dtype) -> PyResult<Dtype> {
    if left == right {
        return Ok(left);
    }
    let mixed = || {
        PyTypeError::new_err(format!(
            "expected dtypes that have one in common, found {} and {}\nhint: convert one with `astype`",
            left.numpy_name(),
            right.numpy_name()
        ))
    };
    let (Some(left_kind), Some(right_kind)) = (dtype_kind(left), dtype_kind(right)) else {
        return Err(mixed());
    };
    if left_kind != right_kind {
        let (narrow, wide) = if left_kind < right_kind { (left, right) } else { (right, left) };
        // Only `f64` widens the complex numbers it combines with.
        return Ok(if narrow == Dtype::F64 && wide == Dtype::C64 { Dtype::C128 } else { wide });
    }
    let (small, large) = if left.bits() <= right.bits() { (left, right) } else { (right, left) };
    match left_kind {
        DtypeKind::Bool | DtypeKind::Complex => Ok(large),
        // Two formats of the same size hold different values; the next size holds both.
        DtypeKind::Float if small.bits() == large.bits() => Ok(Dtype::F32),
        DtypeKind::Float => Ok(large),
        DtypeKind::Integer if is_signed(left) == is_signed(right) => Ok(large),
        DtypeKind::Integer if is_signed(large) && large.bits() > small.bits() => Ok(large),
        DtypeKind::Integer => {
            let wider = match large.bits() {
                ..8 => Some(Dtype::I8),
                8 => Some(Dtype::I16),
                16 => Some(Dtype::I32),
                32 => Some(Dtype::I64),
                _ => None,
            };
            wider.ok_or_else(mixed)
        }
    }
}

/// The dtype to compute sums and products of narrow integers in, for which there are no kernels; other dtypes stay.
pub(crate) fn wide_dtype(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::I8 | Dtype::I16 => Dtype::I32,
        Dtype::U8 | Dtype::U16 => Dtype::U32,
        other => other,
    }
}

/// The common dtype of an array and a Python number.
pub(crate) fn promote_with_number(array: Dtype, number: DtypeKind) -> PyResult<Dtype> {
    let Some(own) = dtype_kind(array) else {
        return Err(PyTypeError::new_err("expected text beside an array of text, found a number"));
    };
    if number <= own {
        return Ok(array);
    }
    Ok(match (number, array) {
        (DtypeKind::Complex, Dtype::F64) => Dtype::C128,
        _ => default_dtype(number),
    })
}

/// `None` if the object is not one of Python's own numbers.
pub(crate) fn number_kind(object: &Bound<'_, PyAny>) -> Option<DtypeKind> {
    if object.is_instance_of::<PyFloat>() {
        Some(DtypeKind::Float)
    } else if object.is_instance_of::<PyBool>() {
        Some(DtypeKind::Bool)
    } else if object.is_instance_of::<PyInt>() {
        Some(DtypeKind::Integer)
    } else if object.is_instance_of::<PyComplex>() {
        Some(DtypeKind::Complex)
    } else {
        None
    }
}

/// The dtype that arrays, dtypes and Python numbers promote to.
///
/// >>> oarlock.result_type(oarlock.int8, oarlock.uint8)
/// oarlock.int16
#[pyfunction]
#[pyo3(signature = (*arrays_and_dtypes))]
pub(crate) fn result_type(arrays_and_dtypes: &Bound<'_, PyTuple>) -> PyResult<Py<DType>> {
    let (mut all, mut number) = (None, None);
    for object in arrays_and_dtypes {
        let found = match (object.cast::<PyTensor>(), number_kind(&object)) {
            (Ok(array), _) => array.get().tensor().dtype(),
            (_, Some(kind)) => {
                number = number.max(Some(kind));
                continue;
            }
            _ => object.extract::<DtypeLike>()?.0,
        };
        all = Some(all.map_or(Ok(found), |known| promote_dtypes(known, found))?);
    }
    let found = match (all, number) {
        (Some(array), Some(number)) => promote_with_number(array, number)?,
        (Some(array), None) => array,
        (None, Some(number)) => default_dtype(number),
        (None, None) => {
            return Err(PyValueError::new_err("expected an array, a dtype or a number, found none"));
        }
    };
    dtype::dtype_object(arrays_and_dtypes.py(), found)
}

//! What goes into a run and comes out of it, as objects of Python.

use oarlock_engine::Datum;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::Array;
use crate::array::read::asarray;

/// What an object of Python is to a model: an array, a list of them, or nothing.
pub(super) fn datum(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    if object.is_none() {
        return Ok(Datum::Nothing);
    }
    if let Ok(array) = object.cast::<Array>() {
        return Ok(Datum::Tensor(array.get().tensor()));
    }
    if let Ok(list) = object.cast::<PyList>()
        && list.iter().all(|item| item.is_instance_of::<Array>())
    {
        return list.iter().map(|item| datum(&item)).collect::<PyResult<Vec<_>>>().map(Datum::Sequence);
    }
    let array = asarray(object, None, None, None)?;
    Ok(Datum::Tensor(array.get().tensor()))
}

pub(super) fn object(py: Python<'_>, datum: Datum) -> PyResult<Bound<'_, PyAny>> {
    match datum {
        Datum::Tensor(tensor) => Ok(Bound::new(py, Array::new(tensor))?.into_any()),
        Datum::Sequence(all) => {
            let all = all.into_iter().map(|datum| object(py, datum)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, all)?.into_any())
        }
        Datum::Nothing => Ok(py.None().into_bound(py)),
    }
}

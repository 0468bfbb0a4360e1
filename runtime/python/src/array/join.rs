//! Concatenates and stacks arrays.

use oarlock_core::{Attribute, Attributes, DimSelection};
use pyo3::prelude::*;

use super::{PyTensor, cast_tensor, single_output};
use crate::op_call::call_named_op;
use crate::promote::promote_dtypes;
use crate::views::selection_view;

/// Joins arrays along an axis in their common dtype; along a new axis if `is_new`.
#[pyfunction]
#[pyo3(signature = (arrays, axis, is_new))]
pub(crate) fn _joined(
    py: Python<'_>,
    arrays: Vec<Bound<'_, PyTensor>>,
    axis: usize,
    is_new: bool,
) -> PyResult<PyTensor> {
    let mut tensors: Vec<_> = arrays.iter().map(|array| array.get().tensor()).collect();
    let mut dtypes = tensors.iter().map(oarlock_core::Tensor::dtype);
    let Some(first) = dtypes.next() else {
        return Err(pyo3::exceptions::PyValueError::new_err(
            "expected an array to join at least, found none",
        ));
    };
    let dtype = dtypes.try_fold(first, promote_dtypes)?;
    let shape = tensors[0].dims();
    if is_new && let Some(other) = tensors.iter().find(|other| other.dims() != shape) {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "`stack` on `{}`: expected arrays of one shape, found {shape:?} and {:?}",
            other.device(),
            other.dims()
        )));
    }
    let place = [vec![DimSelection::Whole; axis], vec![DimSelection::New]].concat();
    for tensor in &mut tensors {
        let part = cast_tensor(py, tensor, dtype)?;
        *tensor = if is_new { selection_view(py, &part, &place)? } else { part };
    }
    let tensors: Vec<_> = tensors.iter().map(Some).collect();
    let along = Attributes::new().with_attribute("axis", Attribute::Int(i64::try_from(axis)?));
    single_output(call_named_op(py, "Concat", &tensors, along, 1)?).map(PyTensor::new)
}

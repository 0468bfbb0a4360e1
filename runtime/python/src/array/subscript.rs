//! What `x[key]` is.

use oarlock_core::{DimSelection, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PyTuple};

use super::PyTensor;
use super::assignment::root_tensor;
use super::index::{IndexKey, MAX_COPIED_HERE, normalize_index, select_elements};
use super::view::view_of;
use crate::array_view::ArrayView;
use crate::error::OrRaise as _;
use crate::trace::is_traced;
use crate::views::selection_view;

/// The part that a key selects: a view where neither elements are gathered nor axes reversed. A single element is no view.
pub(super) fn index_array(array: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let (py, tensor) = (array.py(), array.get().tensor());
    let picks = match pick_by_numbers(tensor.dims(), key)? {
        Some((picks, count)) => picks[..count].to_vec(),
        None => {
            let key = IndexKey::new(&tensor, key)?;
            if !key.is_view() {
                return select_elements(py, &tensor, &key).map(PyTensor::new);
            }
            key.picks
        }
    };
    let is_element = picks.len() == tensor.dims().len()
        && picks.iter().all(|pick| matches!(pick, DimSelection::At(_)))
        && !key
            .cast::<PyTuple>()
            .is_ok_and(|parts| parts.iter().any(|part| part.is_instance_of::<PyEllipsis>()));
    if is_element {
        let element = selection_view(py, &tensor, &picks)?;
        // An element in memory of its own does not keep an assignment to a large array from being made in place. To copy a small
        // array then takes no longer than to make the element.
        let is_shared = is_traced(&element) || root_tensor(array.get()).element_count() <= MAX_COPIED_HERE;
        let own = if is_shared { None } else { element.host_bytes().or_raise()? };
        let made =
            own.map(|bytes| Tensor::from_bytes(element.device(), element.dtype(), &[], bytes)).transpose();
        return Ok(PyTensor::new(made.or_raise()?.unwrap_or(element)));
    }
    view_of(array, ArrayView::Selection(picks))
}

const MAX_NUMBERS: usize = 4;

/// The selections of whole numbers, the most common key, and how many there are; `None` for other keys.
fn pick_by_numbers(
    dims: &[i64],
    key: &Bound<'_, PyAny>,
) -> PyResult<Option<([DimSelection; MAX_NUMBERS], usize)>> {
    let mut picks = [DimSelection::Whole; MAX_NUMBERS];
    let mut count = 0;
    let mut add = |index: &Bound<'_, PyAny>| -> PyResult<bool> {
        if count == MAX_NUMBERS.min(dims.len()) || !index.is_exact_instance_of::<PyInt>() {
            return Ok(false);
        }
        // A number that no index can be is refused elsewhere.
        let Ok(place) = index.extract() else { return Ok(false) };
        picks[count] = DimSelection::At(normalize_index(place, dims[count], count)?);
        count += 1;
        Ok(true)
    };
    let is_plain = match key.cast_exact::<PyTuple>() {
        Ok(tuple) => {
            let mut is_plain = !tuple.is_empty();
            for index in tuple {
                is_plain = is_plain && add(&index)?;
            }
            is_plain
        }
        Err(_) => add(key)?,
    };
    Ok(is_plain.then_some((picks, count)))
}

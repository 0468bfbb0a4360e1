//! Assignments to elements, through views too.
//!
//! Integers and slices write to the elements in place, or to a copy if the memory is shared; masks and index arrays make a new tensor.

use oarlock_core::{DimSelection, Dtype, SelectionSource, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::index::{GatherIndices, IndexKey, make_contiguous, select_elements};
use super::operand::text_operand;
use super::python_number::PythonNumber;
use super::{ArrayOperand, PyTensor, cast_tensor, copy_tensor};
use crate::array_view::{ArrayView, compose_selections, permute_selection, place_of_element};
use crate::error::OrRaise as _;
use crate::op_call::StaticOp;
use crate::promote::dtype_kind;
use crate::trace::is_traced;
use crate::views::{expand_view, reshape_view};

/// Assigns to the part that a key selects.
pub(super) fn assign_index(
    py: Python<'_>,
    array: &PyTensor,
    key: &Bound<'_, PyAny>,
    value: ArrayOperand,
) -> PyResult<()> {
    let tensor = array.tensor();
    let (dtype, device) = (tensor.dtype(), tensor.device().clone());
    let key = IndexKey::new(&tensor, key)?;
    array.check_assignment(match &value {
        ArrayOperand::Array(value) | ArrayOperand::Imported(value) => Some(value),
        _ => None,
    })?;
    // A graph has no writes: a traced array is replaced by the result of an op.
    let is_constant = match &value {
        ArrayOperand::Array(value) | ArrayOperand::Imported(value) => !is_traced(value),
        _ => true,
    };
    let can_write = key.is_view() && is_constant && is_writable(&tensor);
    if can_write && let ArrayOperand::Number(number) = value {
        let mut bytes = Vec::with_capacity(16);
        check_number(number, dtype)?.write_element(dtype, &mut bytes)?;
        drop(tensor);
        return write_elements(py, array, &key.picks, SelectionSource::One(&bytes));
    }
    let value = match value {
        ArrayOperand::Refused(error) => return Err(error.clone_ref(py)),
        ArrayOperand::Number(number) => check_number(number, dtype)?.to_tensor(&device, dtype)?,
        ArrayOperand::Text(text) => text_operand(&tensor, text)?,
        ArrayOperand::Array(value) | ArrayOperand::Imported(value) => {
            if crate::promote::promote_dtypes(dtype, value.dtype())? != dtype
                && dtype_kind(value.dtype()) > dtype_kind(dtype)
            {
                return Err(PyTypeError::new_err(format!(
                    "expected elements that {} has, found {}\nhint: convert them with `astype`",
                    dtype.numpy_name(),
                    value.dtype().numpy_name()
                )));
            }
            cast_tensor(py, &value.to_device(&device).or_raise()?, dtype)?
        }
    };
    if can_write {
        // A value in the memory that is written to is copied, rather than all of that memory.
        let value = if may_overlap(&value, &root_tensor(array))? { copy_tensor(py, &value)? } else { value };
        let value = broadcast_value(py, &value, &tensor.selected_dims(&key.picks).or_raise()?)?;
        drop(tensor);
        return write_elements(py, array, &key.picks, SelectionSource::Of(&value));
    }
    let written = match &key.gathered[..] {
        [(0, GatherIndices::Mask(mask))]
            if value.dims().is_empty() && key.turned.is_empty() && mask.dims() == tensor.dims() =>
        {
            static WHERE: StaticOp = StaticOp::new("Where");
            WHERE.call(py, &[mask, &value, &tensor])?
        }
        _ => scatter_elements(py, &tensor, &key, &value)?,
    };
    array.replace_tensor(py, written)
}

/// A copy of a tensor with other elements in a part.
fn scatter_selection(
    py: Python<'_>,
    tensor: &Tensor,
    picks: &[DimSelection],
    value: &Tensor,
) -> PyResult<Tensor> {
    scatter_elements(py, tensor, &IndexKey { picks: picks.to_vec(), ..IndexKey::default() }, value)
}

/// Broadcasts a value to the shape of its target.
fn broadcast_value(py: Python<'_>, value: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
    // Like NumPy, a value may have more dimensions than its target, as long as they have size 1.
    let excess = value.dims().len().saturating_sub(dims.len());
    if excess > 0 && value.dims()[..excess].iter().all(|size| *size == 1) {
        let value = reshape_view(py, &make_contiguous(py, value)?, &value.dims()[excess..])?;
        return broadcast_value(py, &value, dims);
    }
    let fits = oarlock_core::shape::broadcast_dims(value.dims(), dims).is_ok_and(|found| *found == *dims);
    if fits {
        return expand_view(py, value, dims);
    }
    Err(PyValueError::new_err(format!(
        "expected elements whose shape repeats to {dims:?}, found {:?}",
        value.dims()
    )))
}

/// Writes elements by index arrays: the same key is resolved on a tensor of positions.
fn scatter_elements(py: Python<'_>, tensor: &Tensor, key: &IndexKey, value: &Tensor) -> PyResult<Tensor> {
    static SCATTER: StaticOp = StaticOp::new("ScatterElements");
    let places: Vec<i64> = (0..i64::try_from(tensor.element_count())?).collect();
    let places = Tensor::from_slice(tensor.device(), tensor.dims(), &places).or_raise()?;
    let places = select_elements(py, &places, key)?;
    let value = broadcast_value(py, value, places.dims())?;
    let flat = |tensor: &Tensor| {
        let whole = make_contiguous(py, tensor)?;
        reshape_view(py, &whole, &[i64::try_from(whole.element_count())?])
    };
    let written = SCATTER.call(py, &[&flat(tensor)?, &flat(&places)?, &flat(&value)?])?;
    reshape_view(py, &written, tensor.dims())
}

/// Checks that the dtype can hold this kind of number.
fn check_number(number: PythonNumber, dtype: Dtype) -> PyResult<PythonNumber> {
    if Some(number.dtype_kind()) <= dtype_kind(dtype) {
        return Ok(number);
    }
    if dtype == Dtype::Bool {
        return Ok(PythonNumber::Bool(match number {
            PythonNumber::Bool(truth) => truth,
            PythonNumber::Integer(number) => number != 0,
            PythonNumber::Float(number) => number != 0.0,
            PythonNumber::Complex(real, imaginary) => real != 0.0 || imaginary != 0.0,
        }));
    }
    if dtype == Dtype::String {
        return Err(PyTypeError::new_err("expected text for an array of str, found a number"));
    }
    Err(PyTypeError::new_err(format!(
        "expected a number that {} has, found one of another kind\nhint: convert the array with `astype`",
        dtype.numpy_name()
    )))
}

/// True if the elements can be written where they are. A graph has no writes: a traced array is replaced by the result of an op.
fn is_writable(tensor: &Tensor) -> bool {
    !is_traced(tensor)
        && tensor.device().shares_host_memory()
        && tensor.dtype().byte_size().is_some()
        && tensor.dtype() != Dtype::String
}

/// Assigns elements of the right dtype and shape to a part.
pub(super) fn assign_selection(
    py: Python<'_>,
    array: &PyTensor,
    picks: &[DimSelection],
    value: &Tensor,
) -> PyResult<()> {
    let tensor = array.tensor();
    if is_writable(&tensor) && is_writable(value) {
        drop(tensor);
        return write_elements(py, array, picks, SelectionSource::Of(value));
    }
    let is_whole = picks.is_empty();
    let written =
        if is_whole { make_contiguous(py, value)? } else { scatter_selection(py, &tensor, picks, value)? };
    array.replace_tensor(py, written)
}

/// Writes elements into a part of an array; the part of a view is one of the array that it is a view of.
fn write_elements(
    py: Python<'_>,
    array: &PyTensor,
    picks: &[DimSelection],
    elements: SelectionSource<'_>,
) -> PyResult<()> {
    let Some(source) = array.source() else {
        return array.update_tensor(|tensor| tensor.write_selection(picks, elements)).or_raise();
    };
    let whole = source.array();
    match source.view() {
        ArrayView::Selection(outer) => {
            if let Some(composed) = compose_selections(outer, picks) {
                return write_elements(py, whole, &composed, elements);
            }
        }
        ArrayView::Permutation(order) => {
            if let Some((turned, kept)) = permute_selection(order, picks) {
                return match elements {
                    SelectionSource::One(_) => write_elements(py, whole, &turned, elements),
                    SelectionSource::Of(value) => {
                        let value = value.transpose(&kept).or_raise()?;
                        write_elements(py, whole, &turned, SelectionSource::Of(&value))
                    }
                };
            }
        }
        ArrayView::Shape(dims) => {
            if let Some(place) = place_of_element(dims, picks, whole.tensor().dims()) {
                return write_elements(py, whole, &place, elements);
            }
        }
    }
    let mut tensor = array.tensor();
    tensor.write_selection(picks, elements).or_raise()?;
    source.write_back(py, array, tensor)
}

/// The tensor of the array that a view is in the end a view of.
pub(super) fn root_tensor(array: &PyTensor) -> Tensor {
    array.source().map_or_else(|| array.own_tensor(), |source| root_tensor(source.array()))
}

/// True if two tensors may share memory of the host.
fn may_overlap(one: &Tensor, other: &Tensor) -> PyResult<bool> {
    let range = |tensor: &Tensor| -> PyResult<Option<(usize, usize)>> {
        let begin = tensor.host_address().or_raise()?.map(|address| address.addr());
        let steps = tensor.dims().iter().zip(tensor.strides());
        let last: i64 = steps.map(|(size, stride)| (size - 1).max(0) * stride).sum();
        let size = tensor.dtype().byte_size().unwrap_or(1) as usize;
        Ok(begin.map(|begin| (begin, begin + (last as usize + 1) * size)))
    };
    let (Some(one), Some(other)) = (range(one)?, range(other)?) else { return Ok(false) };
    Ok(one.0 < other.1 && other.0 < one.1)
}

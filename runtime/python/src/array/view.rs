//! Arrays that are views of others, as in NumPy: a change of one is a change of the other.
//!
//! Tensors are values, so a view makes its tensor of that of the array for each use, and an assignment to the view is carried over to
//! the array. In a graph, a view keeps its tensor until the array changes, or the graph would have a node for each use.

use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_core::{DimSelection, Tensor};
use pyo3::prelude::*;

use super::assignment::assign_selection;
use super::index::make_contiguous;
use crate::array_view::ArrayView;
use crate::convert::copy_tensor;
use crate::tensor::{PyTensor, ViewSource};
use crate::trace::{innermost_scope, is_active, is_traced, is_tracing};
use crate::views::{reshape_view, selection_view, transpose_view};

/// The array that a view is of.
struct ViewedArray {
    array: Py<PyTensor>,
    view: ArrayView,
    /// The version of the array that the traced tensor of the view is of, and the trace that it is of.
    seen: AtomicU64,
    scope: AtomicU64,
    /// The number of views on the way to an array that is none.
    depth: u8,
}

/// A view of more views is a copy: each use of a view makes the tensors of all on the way.
const MAX_DEPTH: u8 = 32;

/// No version that an array ever has.
const NEVER: u64 = u64::MAX;

/// A view of an array.
pub(super) fn view_of(array: &Bound<'_, PyTensor>, view: ArrayView) -> PyResult<PyTensor> {
    let py = array.py();
    let source = ViewedArray::new(array, view);
    if source.depth > MAX_DEPTH {
        let made = tensor_of_view(py, &source.view, &source.array.get().tensor())?;
        return copy_tensor(py, &made).map(PyTensor::new);
    }
    let made = PyTensor::of_source(py, Box::new(source))?;
    if is_tracing() {
        // The line that makes the view is the one that its node is named after.
        made.tensor();
    }
    Ok(made)
}

impl ViewSource for ViewedArray {
    fn array(&self) -> &PyTensor {
        self.array.get()
    }

    fn handle(&self, py: Python<'_>) -> Py<PyTensor> {
        self.array.clone_ref(py)
    }

    fn view(&self) -> &ArrayView {
        &self.view
    }

    fn depth(&self) -> u8 {
        self.depth
    }

    #[inline]
    fn tensor_of(&self, view: &PyTensor) -> Tensor {
        let tensor = self.array.get().tensor();
        if is_traced(&tensor) { self.traced_tensor(view, &tensor) } else { self.known_tensor(&tensor) }
    }

    fn write_back(&self, py: Python<'_>, view: &PyTensor, made: Tensor) -> PyResult<()> {
        let array = self.array.get();
        let ArrayView::Selection(picks) = &self.view else {
            // Elements are copied, so that the array stays contiguous.
            let dims = array.tensor().dims().to_vec();
            return assign_selection(py, array, &[], &tensor_behind_view(py, &self.view, &made, &dims)?);
        };
        assign_selection(py, array, picks, &made)?;
        if is_traced(&made) {
            self.keep_tensor(view, made, array.version());
        }
        Ok(())
    }
}

impl ViewedArray {
    /// A view of a view is one of what that is a view of, where one step says both.
    fn new(array: &Bound<'_, PyTensor>, view: ArrayView) -> Self {
        let source = array.get().source();
        let together = source.and_then(|source| source.view().followed_by(&view));
        let (array, view) = match (source, together) {
            (Some(source), Some(together)) => (source.handle(array.py()), together),
            _ => (array.clone().unbind(), view),
        };
        let depth = array.get().source().map_or(0, ViewSource::depth) + 1;
        Self { array, view, seen: AtomicU64::new(NEVER), scope: AtomicU64::new(0), depth }
    }

    #[inline]
    fn known_tensor(&self, array: &Tensor) -> Tensor {
        let made = match &self.view {
            ArrayView::Selection(picks) => array.select_view(picks),
            ArrayView::Permutation(order) => array.transpose(order),
            ArrayView::Shape(dims) if array.is_contiguous() => array.reshape(dims),
            view @ ArrayView::Shape(_) => {
                return Python::attach(|py| tensor_of_view(py, view, array))
                    .unwrap_or_else(|_| array.clone());
            }
        };
        // An array keeps its shape, so what could be made of it when the view was made still can.
        made.unwrap_or_else(|_| array.clone())
    }

    #[cold]
    fn traced_tensor(&self, view: &PyTensor, array: &Tensor) -> Tensor {
        let version = self.array.get().version();
        // A tensor of a branch or of the body of a loop is none of what is around it.
        let is_known =
            self.seen.load(Ordering::Acquire) == version && is_active(self.scope.load(Ordering::Acquire));
        if !is_known && let Ok(made) = Python::attach(|py| tensor_of_view(py, &self.view, array)) {
            self.keep_tensor(view, made, version);
        }
        view.own_tensor()
    }

    fn keep_tensor(&self, view: &PyTensor, made: Tensor, version: u64) {
        view.put_tensor(made);
        self.seen.store(version, Ordering::Release);
        self.scope.store(innermost_scope(), Ordering::Release);
    }
}

/// The tensor of a view of an array.
fn tensor_of_view(py: Python<'_>, view: &ArrayView, array: &Tensor) -> PyResult<Tensor> {
    match view {
        ArrayView::Selection(picks) => selection_view(py, array, picks),
        ArrayView::Permutation(order) => transpose_view(py, array, order),
        ArrayView::Shape(dims) => contiguous_in_shape(py, array, dims),
    }
}

/// The tensor of an array, whose dimensions are given, by that of a view of all its elements.
fn tensor_behind_view(py: Python<'_>, view: &ArrayView, seen: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
    let ArrayView::Permutation(order) = view else { return contiguous_in_shape(py, seen, dims) };
    let place = |axis: usize| order.iter().position(|from| *from == axis);
    let back: Vec<usize> = (0..order.len()).filter_map(place).collect();
    transpose_view(py, seen, &back)
}

/// True if the elements lie one after the other, so that they can be seen in another shape. Tensors of views that were written to may
/// have other strides than those of views that were not, and traced ones always lie so; the answer must not depend on that.
pub(super) fn is_seen_contiguous(array: &PyTensor) -> bool {
    let tensor = array.tensor();
    let mut expected = 1;
    let mut placed = tensor.dims().iter().zip(seen_strides(array)).rev();
    tensor.dims().contains(&0)
        || placed.all(|(size, stride)| {
            let fits = *size == 1 || stride == expected;
            expected *= size;
            fits
        })
}

/// The strides that a view has while nobody writes to it.
fn seen_strides(array: &PyTensor) -> Vec<i64> {
    let tensor = array.tensor();
    let Some(source) = array.source() else { return tensor.strides().to_vec() };
    let mut strides = seen_strides(source.array()).into_iter();
    match source.view() {
        ArrayView::Permutation(order) => {
            let strides: Vec<i64> = strides.collect();
            order.iter().map(|axis| strides[*axis]).collect()
        }
        ArrayView::Selection(picks) => {
            let mut seen = Vec::new();
            for pick in picks {
                match pick {
                    DimSelection::New => seen.push(0),
                    DimSelection::At(_) => drop(strides.next()),
                    DimSelection::Whole => seen.extend(strides.next()),
                    DimSelection::Range { step, .. } => {
                        seen.extend(strides.next().map(|stride| stride * *step as i64));
                    }
                }
            }
            seen.into_iter().chain(strides).collect()
        }
        ArrayView::Shape(dims) => {
            let behind = |axis: usize| dims[axis + 1..].iter().product();
            (0..dims.len()).map(behind).collect()
        }
    }
}

fn contiguous_in_shape(py: Python<'_>, tensor: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
    reshape_view(py, &make_contiguous(py, tensor)?, dims)
}

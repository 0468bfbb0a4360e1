//! Arrays that are views of others, as in NumPy: a change of one is a change of the other.
//!
//! Tensors are values, so a view makes its tensor of that of the array for each use, and an assignment to the view is carried over to
//! the array. In a graph, a view keeps its tensor until the array changes, or the graph would have a node for each use.

use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_core::{DimSelection, Tensor};
use pyo3::prelude::*;

use crate::array::assign_selection;
use crate::error::OrRaise as _;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;
use crate::trace::is_traced;
use crate::views::{reshape_view, selection_view, transpose_view};

/// What an array is a view of.
pub(crate) struct ViewSource {
    pub(crate) array: Py<PyTensor>,
    pub(crate) view: ArrayView,
    /// The version of the array that the traced tensor of the view is of.
    seen: AtomicU64,
}

/// How a view sees its array.
pub(crate) enum ArrayView {
    /// A part.
    Selection(Vec<DimSelection>),
    /// The dimensions in another order.
    Permutation(Vec<usize>),
    /// The elements in another shape.
    Shape(Vec<i64>),
}

/// No version that an array ever has.
const NEVER: u64 = u64::MAX;

impl ViewSource {
    pub(crate) fn new(array: &Bound<'_, PyTensor>, view: ArrayView) -> Self {
        Self { array: array.clone().unbind(), view, seen: AtomicU64::new(NEVER) }
    }

    /// The tensor of a view, which this is the source of.
    #[inline]
    pub(crate) fn tensor_of(&self, view: &PyTensor) -> Tensor {
        let tensor = self.array.get().tensor();
        if is_traced(&tensor) { self.traced_tensor(view, &tensor) } else { self.made_tensor(&tensor) }
    }

    #[inline]
    fn made_tensor(&self, array: &Tensor) -> Tensor {
        let made = match &self.view {
            ArrayView::Selection(picks) => array.select_view(picks),
            ArrayView::Permutation(order) => array.transpose(order),
            ArrayView::Shape(dims) if array.is_contiguous() => array.reshape(dims),
            view @ ArrayView::Shape(_) => {
                return Python::attach(|py| view.tensor_of(py, array)).unwrap_or_else(|_| array.clone());
            }
        };
        // An array keeps its shape, so what could be made of it when the view was made still can.
        made.unwrap_or_else(|_| array.clone())
    }

    #[cold]
    fn traced_tensor(&self, view: &PyTensor, array: &Tensor) -> Tensor {
        let version = self.array.get().version();
        if self.seen.load(Ordering::Acquire) != version
            && let Ok(made) = Python::attach(|py| self.view.tensor_of(py, array))
        {
            view.put_tensor(made);
            self.seen.store(version, Ordering::Release);
        }
        view.own_tensor()
    }

    /// Carries the elements of a view over to the array.
    pub(crate) fn write_back(&self, py: Python<'_>, view: &PyTensor, made: Tensor) -> PyResult<()> {
        let array = self.array.get();
        let ArrayView::Selection(picks) = &self.view else {
            // Elements are copied, so that the array stays contiguous.
            let dims = array.tensor().dims().to_vec();
            return assign_selection(py, array, &[], &self.view.array_of(py, &made, &dims)?);
        };
        assign_selection(py, array, picks, &made)?;
        if is_traced(&made) {
            view.put_tensor(made);
            self.seen.store(array.version(), Ordering::Release);
        }
        Ok(())
    }
}

impl ArrayView {
    /// The tensor of the view of an array.
    pub(crate) fn tensor_of(&self, py: Python<'_>, array: &Tensor) -> PyResult<Tensor> {
        match self {
            Self::Selection(picks) => selection_view(py, array, picks),
            Self::Permutation(order) => transpose_view(py, array, order),
            Self::Shape(dims) => contiguous_in_shape(py, array, dims),
        }
    }

    /// The tensor of the array, whose dimensions are given, by that of a view of all its elements.
    pub(crate) fn array_of(&self, py: Python<'_>, view: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
        let Self::Permutation(order) = self else { return contiguous_in_shape(py, view, dims) };
        let place = |axis: usize| order.iter().position(|from| *from == axis);
        let back: Vec<usize> = (0..order.len()).filter_map(place).collect();
        transpose_view(py, view, &back)
    }
}

/// True if the elements lie one after the other, so that they can be seen in another shape. Tensors of views that were written to may
/// have other strides than those of views that were not, and traced ones always lie so; the answer must not depend on that.
pub(crate) fn is_seen_contiguous(array: &PyTensor) -> bool {
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
    let mut strides = seen_strides(source.array.get()).into_iter();
    match &source.view {
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
    if tensor.is_contiguous() {
        return reshape_view(py, tensor, dims);
    }
    let stream = tensor.device().default_stream().or_raise()?;
    reshape_view(py, &shared_runtime(py)?.make_contiguous(tensor, stream).or_raise()?, dims)
}

/// The part of an array that `inner` selects of the part that `outer` selects; `None` if no single selection says it.
pub(crate) fn compose_selections(
    outer: &[DimSelection],
    inner: &[DimSelection],
) -> Option<Vec<DimSelection>> {
    let mut inner = inner.iter().copied();
    let mut made = Vec::with_capacity(outer.len() + inner.len());
    for outer in outer {
        if let DimSelection::At(_) = outer {
            made.push(*outer);
            continue;
        }
        let inner = loop {
            match inner.next() {
                Some(DimSelection::New) => made.push(DimSelection::New),
                found => break found.unwrap_or(DimSelection::Whole),
            }
        };
        match (*outer, inner) {
            (DimSelection::New, DimSelection::At(_)) => {}
            (outer, DimSelection::Whole) => made.push(outer),
            (DimSelection::Whole, inner) => made.push(inner),
            (DimSelection::Range { begin, step, .. }, DimSelection::At(place)) => {
                made.push(DimSelection::At(begin + place * step));
            }
            (
                DimSelection::Range { begin, step, .. },
                DimSelection::Range { begin: first, count, step: stride },
            ) => made.push(DimSelection::Range { begin: begin + first * step, count, step: step * stride }),
            _ => return None,
        }
    }
    made.extend(inner);
    Some(made)
}

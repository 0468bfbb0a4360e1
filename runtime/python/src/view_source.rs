//! Arrays that are views of others, as in NumPy: a change of one is a change of the other.
//!
//! Tensors are values, so a view holds a tensor of its own. It is made again when the array has changed since, and an assignment to
//! the view is carried over to the array.

use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_core::{DimSelection, Tensor};
use pyo3::prelude::*;

use crate::error::OrRaise as _;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;
use crate::views::{reshape_view, selection_view, transpose_view};

/// What an array is a view of.
pub(crate) struct ViewSource {
    pub(crate) array: Py<PyTensor>,
    pub(crate) view: ArrayView,
    /// The version of the array that the tensor of the view is of.
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
    /// The tensor of a view, and where it comes from.
    pub(crate) fn new(array: &Bound<'_, PyTensor>, view: ArrayView) -> PyResult<(Tensor, Self)> {
        // A change in between is noticed, since the version is read first.
        let seen = AtomicU64::new(array.get().version());
        let tensor = view.tensor_of(array.py(), &array.get().tensor())?;
        Ok((tensor, Self { array: array.clone().unbind(), view, seen }))
    }

    /// The tensor of the view if the array changed since it was last seen.
    #[inline]
    pub(crate) fn changed_tensor(&self) -> Option<Tensor> {
        let array = self.array.get();
        array.refresh();
        let version = array.version();
        if self.seen.load(Ordering::Acquire) == version { None } else { self.new_tensor(version) }
    }

    #[cold]
    fn new_tensor(&self, version: u64) -> Option<Tensor> {
        // An array keeps its shape, so this fails only where memory runs out; the old elements are better than none.
        let made = Python::attach(|py| self.view.tensor_of(py, &self.array.get().tensor())).ok()?;
        self.seen.store(version, Ordering::Release);
        Some(made)
    }

    /// Has the tensor made again when it is next needed.
    pub(crate) fn forget_tensor(&self) {
        self.seen.store(NEVER, Ordering::Release);
    }

    /// Carries the elements of the view over to the array.
    pub(crate) fn write_back(&self, py: Python<'_>, made: &Tensor) -> PyResult<()> {
        let array = self.array.get();
        if let ArrayView::Selection(picks) = &self.view {
            crate::array::assign_selection(py, array, picks, made)?;
            self.seen.store(array.version(), Ordering::Release);
            return Ok(());
        }
        // Elements are copied, so that the array stays contiguous. The view is made again, with the strides that it had.
        let dims = array.tensor().dims().to_vec();
        crate::array::assign_selection(py, array, &[], &self.view.array_of(py, made, &dims)?)?;
        self.forget_tensor();
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

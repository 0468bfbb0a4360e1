//! What an array holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use oarlock_core::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::trace::{TraceMark, check_assignment, is_traced};
use crate::view_source::{ArrayView, ViewSource};

/// Elements of one dtype in a shape, on a device.
///
/// Created by `oarlock.asarray` and other functions of the namespace, which follows the Python array API standard.
/// `==` compares elementwise with another array, a number or text; compared with `None` it is False.
#[pyclass(frozen, weakref, module = "oarlock", name = "Tensor")]
pub(crate) struct PyTensor {
    /// A shared tensor never changes. Writing to an array replaces its tensor, or modifies the tensor in place if it has no
    /// other owner.
    tensor: Mutex<Tensor>,
    mark: TraceMark,
    /// Grows with every change, so that views notice it.
    version: AtomicU64,
    source: Option<Box<ViewSource>>,
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> Self {
        let mark = TraceMark::new(&tensor);
        Self { tensor: Mutex::new(tensor), mark, version: AtomicU64::new(0), source: None }
    }

    /// A view of an array.
    pub(crate) fn view_of(array: &Bound<'_, Self>, view: ArrayView) -> PyResult<Self> {
        let (tensor, source) = ViewSource::new(array, view)?;
        Ok(Self { source: Some(Box::new(source)), ..Self::new(tensor) })
    }

    /// What the array is a view of.
    #[inline]
    pub(crate) fn source(&self) -> Option<&ViewSource> {
        self.source.as_deref()
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Makes the tensor of a view again if its array has changed.
    #[inline]
    pub(crate) fn refresh(&self) {
        if let Some(made) = self.source().and_then(ViewSource::changed_tensor) {
            self.put_tensor(made);
        }
    }

    /// Clones the handle, not the elements.
    #[inline]
    pub(crate) fn tensor(&self) -> Tensor {
        self.refresh();
        self.own_tensor()
    }

    /// Refuses to change the array if a graph would not.
    pub(crate) fn check_assignment(&self, value: Option<&Tensor>) -> PyResult<()> {
        if let Some(source) = self.source() {
            source.array.get().check_assignment(value)?;
        }
        let is_dependent = is_traced(&self.tensor()) || value.is_some_and(is_traced);
        check_assignment(&self.mark, is_dependent)
    }

    /// Puts another tensor in the place of the own one, after an assignment.
    pub(crate) fn replace_tensor(&self, py: Python<'_>, made: Tensor) -> PyResult<()> {
        self.put_tensor(made.clone());
        self.source().map_or(Ok(()), |source| source.write_back(py, &made))
    }

    /// The tensor as it is, whether or not the array has changed.
    pub(crate) fn own_tensor(&self) -> Tensor {
        self.tensor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the tensor of a view go until it is next needed.
    pub(crate) fn give_up_tensor(&self, placeholder: Tensor) {
        self.update_tensor(|tensor| *tensor = placeholder);
        if let Some(source) = self.source() {
            source.forget_tensor();
        }
    }

    fn put_tensor(&self, made: Tensor) {
        self.mark.count_if_traced(&made);
        self.update_tensor(|tensor| *tensor = made);
    }

    /// Modifies the tensor under its lock. The closure must not call Python, which could come back here.
    pub(crate) fn update_tensor<R>(&self, by: impl FnOnce(&mut Tensor) -> R) -> R {
        let result = by(&mut self.tensor.lock().unwrap_or_else(PoisonError::into_inner));
        self.version.fetch_add(1, Ordering::Release);
        result
    }
}

/// The output of an op that has one.
pub(crate) fn single_output(made: Vec<Tensor>) -> PyResult<Tensor> {
    made.into_iter().next().ok_or_else(|| PyTypeError::new_err("expected an output, found none"))
}

//! What an array holds.

use std::sync::{Mutex, PoisonError};

use oarlock_core::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::trace::{TraceMark, check_assignment, is_traced};

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
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> Self {
        let mark = TraceMark::new(&tensor);
        Self { tensor: Mutex::new(tensor), mark }
    }

    /// Clones the handle, not the elements.
    #[inline]
    pub(crate) fn tensor(&self) -> Tensor {
        self.tensor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses to change the array if a graph would not.
    pub(crate) fn check_assignment(&self, value: Option<&Tensor>) -> PyResult<()> {
        let is_dependent = is_traced(&self.tensor()) || value.is_some_and(is_traced);
        check_assignment(&self.mark, is_dependent)
    }

    /// Puts another tensor in the place of the own one, after an assignment.
    pub(crate) fn replace_tensor(&self, made: Tensor) {
        self.mark.count_if_traced(&made);
        self.update_tensor(|tensor| *tensor = made);
    }

    /// Modifies the tensor under its lock. The closure must not call Python, which could come back here.
    pub(crate) fn update_tensor<R>(&self, by: impl FnOnce(&mut Tensor) -> R) -> R {
        by(&mut self.tensor.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The output of an op that has one.
pub(crate) fn single_output(made: Vec<Tensor>) -> PyResult<Tensor> {
    made.into_iter().next().ok_or_else(|| PyTypeError::new_err("expected an output, found none"))
}

//! What an array holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array_view::ArrayView;
use crate::error::OrRaise as _;
use crate::startup::host_memory_device;
use crate::trace::{TraceMark, check_assignment, is_traced};

/// Elements of one dtype in a shape, on a device.
///
/// Created by `oarlock.asarray` and other functions of the namespace, which follows the Python array API standard.
/// `==` compares elementwise with another array, a number or text; compared with `None` it is False.
#[pyclass(frozen, weakref, module = "oarlock", name = "Tensor")]
pub(crate) struct PyTensor {
    /// A shared tensor never changes. Writing to an array replaces its tensor, or modifies the tensor in place if it has no
    /// other owner. That of a view is made for each use, unless a graph has it.
    tensor: Mutex<Tensor>,
    mark: TraceMark,
    /// Grows with every change, so that traced views notice it.
    version: AtomicU64,
    source: Option<Box<dyn ViewSource>>,
}

/// What an array is a view of.
pub(crate) trait ViewSource: Send + Sync {
    /// The array that the view is of.
    fn array(&self) -> &PyTensor;
    /// The same as an object of Python.
    fn handle(&self, py: Python<'_>) -> Py<PyTensor>;
    /// How the view sees it.
    fn view(&self) -> &ArrayView;
    /// The number of views on the way to an array that is none.
    fn depth(&self) -> u8;
    /// The tensor of the view.
    fn tensor_of(&self, view: &PyTensor) -> Tensor;
    /// Carries new elements of the view over to the array.
    fn write_back(&self, py: Python<'_>, view: &PyTensor, made: Tensor) -> PyResult<()>;
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> Self {
        let mark = TraceMark::new(&tensor);
        Self { tensor: Mutex::new(tensor), mark, version: AtomicU64::new(0), source: None }
    }

    /// A view, which makes its tensor of its source.
    pub(crate) fn of_source(py: Python<'_>, source: Box<dyn ViewSource>) -> PyResult<Self> {
        Ok(Self { source: Some(source), ..Self::new(placeholder(py)?) })
    }

    /// What the array is a view of.
    #[inline]
    pub(crate) fn source(&self) -> Option<&dyn ViewSource> {
        self.source.as_deref()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Clones the handle, not the elements.
    #[inline]
    pub(crate) fn tensor(&self) -> Tensor {
        self.source().map_or_else(|| self.own_tensor(), |source| source.tensor_of(self))
    }

    /// Refuses to change the array if a graph would not.
    pub(crate) fn check_assignment(&self, value: Option<&Tensor>) -> PyResult<()> {
        if let Some(source) = self.source() {
            source.array().check_assignment(value)?;
        }
        let is_dependent = is_traced(&self.tensor()) || value.is_some_and(is_traced);
        check_assignment(&self.mark, is_dependent)
    }

    /// Puts another tensor in the place of the own one, after an assignment.
    pub(crate) fn replace_tensor(&self, py: Python<'_>, made: Tensor) -> PyResult<()> {
        if let Some(source) = self.source() {
            return source.write_back(py, self, made);
        }
        self.put_tensor(made);
        Ok(())
    }

    /// The tensor that the array holds, which is none of a view.
    pub(crate) fn own_tensor(&self) -> Tensor {
        self.tensor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put_tensor(&self, made: Tensor) {
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

/// The tensor that views hold, in whose place they make their own.
pub(crate) fn placeholder(py: Python<'_>) -> PyResult<Tensor> {
    static PLACEHOLDER: OnceLock<Tensor> = OnceLock::new();
    if let Some(known) = PLACEHOLDER.get() {
        return Ok(known.clone());
    }
    let made = Tensor::from_bytes(&host_memory_device(py)?, Dtype::U8, &[0], &[]).or_raise()?;
    Ok(PLACEHOLDER.get_or_init(|| made).clone())
}

/// The output of an op that has one.
pub(crate) fn single_output(made: Vec<Tensor>) -> PyResult<Tensor> {
    made.into_iter().next().ok_or_else(|| PyTypeError::new_err("expected an output, found none"))
}

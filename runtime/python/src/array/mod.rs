//! The class `Tensor`.

#![expect(
    unsafe_code,
    reason = "the interpreter asks for buffers through functions that are not safe to call"
)]

mod assignment;
pub(crate) mod create;
mod display;
mod index;
pub(crate) mod join;
mod operators;
pub(crate) mod pickle;
pub(crate) mod print_options;
mod subscript;
mod view;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyTuple};

use self::operators::refuse_modulo;
use self::view::view_of;
use crate::array_view::ArrayView;
use crate::convert::{cast_tensor, copy_tensor};
use crate::device::{self, PyDevice};
use crate::dtype::{self, DType};
use crate::elementwise as ops;
use crate::error::OrRaise as _;
use crate::exchange::{buffer, dlpack, numpy_arrays};
use crate::operand::{self, ArrayOperand};
use crate::python_number;
use crate::startup::host_memory_device;
use crate::tensor::{PyTensor, single_output};
use crate::{recorder, scalar_cache, trace};

#[pymethods]
impl PyTensor {
    /// The dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<DType>> {
        dtype::dtype_object(py, self.tensor().dtype())
    }

    /// The device.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.tensor().device().clone())
    }

    /// The device; Paddle's name for `device`.
    #[getter]
    fn place(&self) -> PyDevice {
        self.device()
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor().dims())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().dims().len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.tensor().element_count()
    }

    /// The size of the elements in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        let tensor = self.tensor();
        (tensor.element_count() * u64::from(tensor.dtype().bits())).div_ceil(8)
    }

    /// Always true: arrays have no gradients.
    #[getter]
    fn stop_gradient(&self) -> bool {
        true
    }

    /// The array with its axes in reverse order: the transpose of a matrix.
    #[getter(T)]
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Self> {
        let order = (0..slf.get().tensor().dims().len()).rev().collect();
        view_of(slf, ArrayView::Permutation(order))
    }

    /// The array with its last two axes swapped.
    #[getter(mT)]
    fn matrix_transposed(slf: &Bound<'_, Self>) -> PyResult<Self> {
        let rank = slf.get().tensor().dims().len();
        if rank < 2 {
            return Err(PyValueError::new_err(format!(
                "expected at least two dimensions for `mT`, found {rank}"
            )));
        }
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        view_of(slf, ArrayView::Permutation(order))
    }

    /// The elements in another shape, given as numbers or as a tuple. One size may be -1 and is then inferred. With the order `F`,
    /// the first axis is that of neighbors.
    #[pyo3(signature = (*shape, order=None, copy=None))]
    fn reshape<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyTuple>,
        order: Option<&str>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let sizes = if shape.len() == 1 { shape.get_item(0)? } else { shape.clone().into_any() };
        if matches!(order, None | Some("C")) {
            return Ok(Bound::new(py, create::reshape(slf, &sizes, copy)?)?.into_any());
        }
        let keywords = PyDict::new(py);
        keywords.set_item("order", order)?;
        keywords.set_item("copy", copy)?;
        py.import("oarlock._shapes")?.call_method("reshape", (slf, sizes), Some(&keywords))
    }

    /// The array on a device, without a copy if it is already there.
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device(&self, device: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        if stream.is_some() {
            return Err(PyValueError::new_err(
                "expected no stream, found one: arrays are there when they are used",
            ));
        }
        let py = device.py();
        let (device, tensor) = (device::resolve_device(py, Some(device))?, self.tensor());
        // A graph runs on the devices of its session, wherever the function moves arrays.
        if trace::is_traced(&tensor) {
            return Ok(Self::new(tensor));
        }
        let copied = py.detach(|| match recorder::active_recording() {
            Some(recording) if !tensor.device().is_same_device(&device) => {
                recording.record_copy(&tensor, &device)
            }
            _ => tensor.to_device(&device),
        });
        copied.or_raise().map(Self::new)
    }

    /// Its elements as another dtype, in memory of their own unless `copy` is off and the dtype is the same.
    #[pyo3(signature = (dtype, /, *, copy=true))]
    fn astype(slf: Bound<'_, Self>, dtype: dtype::DtypeLike, copy: bool) -> PyResult<Bound<'_, Self>> {
        let (py, tensor) = (slf.py(), slf.get().tensor());
        if tensor.dtype() != dtype.0 {
            return Bound::new(py, Self::new(cast_tensor(py, &tensor, dtype.0)?));
        }
        if copy { Bound::new(py, Self::new(copy_tensor(py, &tensor)?)) } else { Ok(slf) }
    }

    /// An element as a Python number: the only one, the one of a place in the flat array, or that of an index for each axis.
    #[pyo3(signature = (*at))]
    fn item<'py>(slf: &Bound<'py, Self>, at: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (slf.py(), slf.get());
        if at.is_empty() {
            return display::single_item(py, &array.tensor());
        }
        let key = if at.len() == 1 { at.get_item(0)? } else { at.clone().into_any() };
        let element = if key.is_instance_of::<PyTuple>() {
            Self::__getitem__(slf, &key)?
        } else {
            let flat = create::reshape(slf, (-1_i64).into_pyobject(py)?.as_any(), None)?;
            Self::__getitem__(&Bound::new(py, flat)?, &key)?
        };
        display::single_item(py, &element.tensor())
    }

    /// The elements as nested lists of Python numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        display::nested_lists(py, &self.tensor())
    }

    /// The elements as a NumPy array, which shares the memory if NumPy can access it.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor();
        trace::refuse_read(&tensor)?;
        let here = tensor.to_device(&host_memory_device(py)?).or_raise()?;
        if !buffer::has_buffer_format(here.dtype()) {
            return numpy_arrays::write_numpy(py, &here);
        }
        py.import("numpy")?.call_method1("asarray", (Self::new(here),))
    }

    /// The same for NumPy, which calls this if there is no buffer to share.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor();
        trace::refuse_read(&tensor)?;
        if buffer::has_buffer_format(tensor.dtype()) {
            // The elements form a buffer, but in memory that Python cannot reach.
            return Err(PyTypeError::new_err(format!(
                "expected an array in the memory of the host, found one on {}\nhint: copy it with `numpy()`",
                tensor.device()
            )));
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "expected what needs no copy, found elements that have no buffer",
            ));
        }
        let made = numpy_arrays::write_numpy(py, &tensor)?;
        match dtype {
            Some(dtype) => made.call_method1("astype", (dtype,)),
            None => Ok(made),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        copy_tensor(py, &self.tensor()).map(Self::new)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Self> {
        self.__copy__(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<pickle::PickleReduction<'py>> {
        pickle::pickle_tensor(py, &self.tensor())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        display::tensor_repr(py, &self.tensor())
    }

    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        const VERSIONS: [&str; 5] = ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12"];
        match api_version {
            Some(version) if !VERSIONS.contains(&version) => Err(PyValueError::new_err(format!(
                "expected a version of the array API standard ({}), found `{version}`",
                VERSIONS.join(", ")
            ))),
            _ => Ok(py.import("oarlock")?.into_any()),
        }
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = stream;
        let max_version = dlpack::optional_argument(max_version, "max_version", "two numbers")?;
        let device = dlpack::optional_argument(dl_device, "dl_device", "two numbers")?;
        let copy = dlpack::optional_argument(copy, "copy", "True, False or None")?;
        dlpack::export_tensor(py, &self.tensor(), &dlpack::ExportRequest { max_version, device, copy })
    }

    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        dlpack::dlpack_device(&self.tensor())
    }

    /// # Safety
    ///
    /// The interpreter calls it with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        let tensor = slf.get().tensor();
        buffer::fill_view(slf.into_any(), tensor, view, flags, false)
    }

    /// # Safety
    ///
    /// The interpreter calls it with a view that was filled.
    unsafe fn __releasebuffer__(&self, view: *mut pyo3::ffi::Py_buffer) {
        buffer::release_view(view);
    }

    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        subscript::index_array(slf, key)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: ArrayOperand) -> PyResult<()> {
        assignment::assign_index(key.py(), self, key, value)
    }

    fn __iter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().tensor().dims().is_empty() {
            return Err(PyTypeError::new_err(
                "expected an array with dimensions for `iter`, found one without",
            ));
        }
        // SAFETY: an array has `__getitem__`, so it is a sequence; the result is a new reference or null with an error set.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), pyo3::ffi::PySeqIter_New(slf.as_ptr())) }
    }

    fn __len__(&self) -> PyResult<usize> {
        let size = self.tensor().dims().first().map(|size| usize::try_from(*size).unwrap_or(usize::MAX));
        size.ok_or_else(|| {
            PyTypeError::new_err("expected an array with dimensions for `len`, found one without")
        })
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        display::single_item(py, &self.tensor())?.is_truthy()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyInt>().call1((display::single_item(py, &self.tensor())?,))
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyFloat>().call1((display::single_item(py, &self.tensor())?,))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyComplex>().call1((display::single_item(py, &self.tensor())?,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = self.tensor().dtype();
        if crate::promote::dtype_kind(dtype) != Some(crate::promote::DtypeKind::Integer) {
            let found = dtype.numpy_name();
            return Err(PyTypeError::new_err(format!(
                "expected an array of integers as an index, found {found}"
            )));
        }
        display::single_item(py, &self.tensor())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, by: CompareOp, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match operators::comparison_operand(other, by)? {
            Some(other) => Ok(Py::new(py, self.compare_elements(py, &other, by)?)?.into_any()),
            None => Ok(py.NotImplemented()),
        }
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Self> {
        ops::abs(py, self)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        ops::negative(py, self)
    }

    fn __pos__(&self) -> Self {
        Self::new(self.tensor())
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_invert(py, self)
    }

    fn __add__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::add(py, self, &other)
    }

    fn __radd__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::add(py, &other, self)
    }

    fn __sub__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::subtract(py, self, &other)
    }

    fn __rsub__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::subtract(py, &other, self)
    }

    fn __mul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::multiply(py, self, &other)
    }

    fn __rmul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::multiply(py, &other, self)
    }

    fn __truediv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::divide(py, self, &other)
    }

    fn __rtruediv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::divide(py, &other, self)
    }

    fn __floordiv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::floor_divide(py, self, &other)
    }

    fn __rfloordiv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::floor_divide(py, &other, self)
    }

    fn __mod__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::remainder(py, self, &other)
    }

    fn __rmod__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::remainder(py, &other, self)
    }

    fn __lshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_left_shift(py, self, &other)
    }

    fn __rlshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_left_shift(py, &other, self)
    }

    fn __rshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_right_shift(py, self, &other)
    }

    fn __rrshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_right_shift(py, &other, self)
    }

    fn __pow__(
        &self,
        other: ArrayOperand,
        modulo: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        refuse_modulo(modulo)?;
        ops::pow(py, self, &other)
    }

    fn __rpow__(
        &self,
        other: ArrayOperand,
        modulo: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        refuse_modulo(modulo)?;
        ops::pow(py, &other, self)
    }

    fn __and__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_and(py, self, &other)
    }

    fn __rand__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_and(py, &other, self)
    }

    fn __or__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_or(py, self, &other)
    }

    fn __ror__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_or(py, &other, self)
    }

    fn __xor__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_xor(py, self, &other)
    }

    fn __rxor__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::bitwise_xor(py, &other, self)
    }

    fn __matmul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::matmul(py, self, &other)
    }

    fn __rmatmul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<Self> {
        ops::matmul(py, &other, self)
    }

    fn __iadd__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "+=", ops::add(py, self, &other)?)
    }

    fn __isub__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "-=", ops::subtract(py, self, &other)?)
    }

    fn __imul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "*=", ops::multiply(py, self, &other)?)
    }

    fn __itruediv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "/=", ops::divide(py, self, &other)?)
    }

    fn __ifloordiv__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "//=", ops::floor_divide(py, self, &other)?)
    }

    fn __imod__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "%=", ops::remainder(py, self, &other)?)
    }

    fn __ilshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "<<=", ops::bitwise_left_shift(py, self, &other)?)
    }

    fn __irshift__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, ">>=", ops::bitwise_right_shift(py, self, &other)?)
    }

    fn __ipow__(
        &self,
        other: ArrayOperand,
        modulo: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        refuse_modulo(modulo)?;
        self.store_result(py, "**=", ops::pow(py, self, &other)?)
    }

    fn __iand__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "&=", ops::bitwise_and(py, self, &other)?)
    }

    fn __ior__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "|=", ops::bitwise_or(py, self, &other)?)
    }

    fn __ixor__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "^=", ops::bitwise_xor(py, self, &other)?)
    }

    fn __imatmul__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<()> {
        self.store_result(py, "@=", ops::matmul(py, self, &other)?)
    }

    fn __format__<'py>(&self, format: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        display::format_item(format, &self.tensor())
    }

    fn __divmod__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<(Self, Self)> {
        Ok((ops::floor_divide(py, self, &other)?, ops::remainder(py, self, &other)?))
    }

    fn __rdivmod__(&self, other: ArrayOperand, py: Python<'_>) -> PyResult<(Self, Self)> {
        Ok((ops::floor_divide(py, &other, self)?, ops::remainder(py, &other, self)?))
    }
}

//! Creates arrays from Python objects: numbers, nested lists, buffers and arrays of other libraries.

use oarlock_core::{Device, Dtype, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyString, PyTuple, PyType};

use super::memory_import::check_copy_allowed;
use super::{buffer, dlpack, numpy_arrays};
use crate::convert::{cast_tensor, copy_tensor};
use crate::device::resolve_device;
use crate::dtype::DtypeLike;
use crate::error::OrRaise as _;
use crate::promote::{DtypeKind, default_dtype, promote_dtypes, promote_with_number};
use crate::python_number::{PythonNumber, numpy_scalar, python_number};
use crate::startup::host_memory_device;
use crate::tensor::PyTensor;
use crate::trace::refuse_read;

/// Maximum nesting of lists.
const MAX_LIST_DEPTH: usize = 32;

/// Makes an array from an array, a number, text, nested lists of them, or an object with `__dlpack__` or a buffer.
///
/// With `copy=None`, the memory of a buffer is shared if possible; with `copy=True`, never; with `copy=False`, a necessary copy
/// raises a `ValueError`.
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, device=None, copy=None))]
pub(crate) fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = obj.py();
    create_array(obj, dtype.map(|dtype| dtype.0), device, copy).map_err(|error| {
        // The array API standard demands another exception here than for `from_dlpack`.
        let is_refused = copy == Some(false) && error.is_instance_of::<PyBufferError>(py);
        if is_refused { PyValueError::new_err(error.value(py).to_string()) } else { error }
    })
}

fn create_array<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<Dtype>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = obj.py();
    if let Ok(array) = obj.cast::<PyTensor>() {
        let tensor = array.get().tensor();
        let place = device.map(|device| resolve_device(py, Some(device))).transpose()?;
        let is_here = place.as_ref().is_none_or(|place| place.is_same_device(tensor.device()));
        let is_same = dtype.is_none_or(|dtype| dtype == tensor.dtype());
        if is_here && is_same && copy != Some(true) {
            return Ok(array.clone());
        }
        if !is_here || !is_same {
            check_copy_allowed(copy, "another dtype or device")?;
        }
        let tensor = match dtype {
            Some(dtype) if !is_same => cast_tensor(py, &tensor, dtype)?,
            _ if copy == Some(true) => copy_tensor(py, &tensor)?,
            _ => tensor,
        };
        let place = place.unwrap_or_else(|| tensor.device().clone());
        return Bound::new(py, PyTensor::new(py.detach(|| tensor.to_device(&place)).or_raise()?));
    }
    let device = resolve_device(py, device)?;
    let tensor = match import_foreign(obj, &device, copy)? {
        Some(tensor) => {
            if dtype.is_some_and(|dtype| dtype != tensor.dtype()) {
                check_copy_allowed(copy, "another dtype")?;
            }
            cast_tensor(py, &tensor, dtype.unwrap_or(tensor.dtype()))?
        }
        None => {
            check_copy_allowed(copy, "numbers of Python")?;
            tensor_from_objects(obj, &device, dtype)?
        }
    };
    Bound::new(py, PyTensor::new(tensor))
}

/// Makes an array from another library's array, and shares its memory if possible. With `copy=False`, a necessary copy raises
/// a `BufferError`.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub(crate) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    if x.is_instance_of::<PyTensor>() {
        return create_array(x, None, device, copy).map(|result| PyTensor::new(result.get().tensor()));
    }
    let device = match device {
        Some(device) => resolve_device(x.py(), Some(device))?,
        None => host_memory_device(x.py())?,
    };
    dlpack::import_tensor(x, &device, copy).map(PyTensor::new)
}

/// Imports an array of another library or a buffer; `None` if the object is neither.
fn import_foreign(obj: &Bound<'_, PyAny>, device: &Device, copy: Option<bool>) -> PyResult<Option<Tensor>> {
    // Check common cases by type first, which needs no attribute lookup.
    if python_number(obj)?.is_some()
        || obj.is_instance_of::<PyList>()
        || obj.is_instance_of::<PyTuple>()
        || obj.is_instance_of::<PyString>()
    {
        return Ok(None);
    }
    numpy_arrays::refuse_masks(obj)?;
    let mut refusal = None;
    if obj.hasattr("__dlpack__")? {
        match dlpack::import_tensor(obj, device, copy) {
            Ok(tensor) => return Ok(Some(tensor)),
            // Its elements may be in a buffer all the same, or be of a kind that DLPack does not have.
            Err(error) if error.is_instance_of::<PyBufferError>(obj.py()) => refusal = Some(error),
            Err(error) => return Err(error),
        }
    }
    let unknown = match buffer::read_buffer(obj, device, copy) {
        Ok(Some(tensor)) => return Ok(Some(tensor)),
        Err(error) if error.is_instance_of::<PyBufferError>(obj.py()) => return Err(error),
        other => other,
    };
    if numpy_arrays::is_numpy(obj) {
        return numpy_arrays::read_numpy(obj, device, copy);
    }
    if let Some(refusal) = refusal {
        return Err(refused_export(obj, refusal));
    }
    if is_convertible(obj)? {
        check_copy_allowed(copy, "an object that NumPy has to convert")?;
        let array = obj.py().import("numpy")?.call_method1("asarray", (obj,))?;
        return import_foreign(&array, device, None);
    }
    unknown
}

/// True for images, tables and other objects that NumPy makes an array of.
fn is_convertible(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!obj.is_instance_of::<PyType>()
        && (obj.hasattr("__array__")? || obj.hasattr("__array_interface__")?))
}

/// The error for an array that its library does not give out, such as one with gradients.
#[cold]
fn refused_export(obj: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
    let py = obj.py();
    let found = obj.get_type().fully_qualified_name().map_or_else(|_| String::new(), |name| name.to_string());
    let detach = if obj.hasattr("requires_grad").unwrap_or(false) {
        "; gradients are left out by `detach()`"
    } else {
        ""
    };
    let error = PyBufferError::new_err(format!(
        "expected an array whose elements can be read, found `{found}` whose library refuses: {}\nhint: make a plain array of it \
         with its library first{detach}",
        cause.value(py)
    ));
    error.set_cause(py, Some(cause));
    error
}

/// The flattened contents of nested lists.
#[derive(Default)]
struct ListLeaves {
    numbers: Vec<PythonNumber>,
    texts: Vec<String>,
    /// Arrays, each with the count of numbers before it.
    arrays: Vec<(usize, Tensor)>,
    dims: Vec<i64>,
}

/// Makes a tensor from numbers, texts, arrays, and nested lists of them.
fn tensor_from_objects(obj: &Bound<'_, PyAny>, device: &Device, dtype: Option<Dtype>) -> PyResult<Tensor> {
    let mut leaves = ListLeaves::default();
    leaves.collect_leaves(obj, 0)?;
    let ListLeaves { numbers, texts, arrays, dims } = leaves;
    if !texts.is_empty() {
        if !numbers.is_empty() || !arrays.is_empty() {
            return Err(PyTypeError::new_err("expected numbers only or text only, found both"));
        }
        if let Some(dtype) = dtype.filter(|dtype| *dtype != Dtype::String) {
            return Err(PyTypeError::new_err(format!(
                "expected numbers for an array of {}, found text\nhint: text that spells numbers is converted by `astype`, \
                 once it is an array",
                dtype.numpy_name()
            )));
        }
        return Tensor::from_strings(device, &dims, texts).or_raise();
    }
    if !arrays.is_empty() {
        return stack_arrays(obj.py(), &arrays, &numbers, &dims, device, dtype);
    }
    let dtype = dtype.unwrap_or_else(|| {
        default_dtype(numbers.iter().map(|number| number.dtype_kind()).max().unwrap_or(DtypeKind::Float))
    });
    let mut bytes = Vec::with_capacity(numbers.len() * dtype.byte_size().unwrap_or(1) as usize);
    numbers.iter().try_for_each(|number| number.write_element(dtype, &mut bytes))?;
    Tensor::from_bytes(device, dtype, &dims, &bytes).or_raise()
}

impl ListLeaves {
    fn collect_leaves(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Some(number) = python_number(object)? {
            self.check_depth(depth)?;
            self.numbers.push(number);
            return Ok(());
        }
        if let Ok(text) = object.cast::<PyString>() {
            self.check_depth(depth)?;
            self.texts.push(text.to_str()?.to_owned());
            return Ok(());
        }
        if let Ok(array) = object.cast::<PyTensor>() {
            return self.add_array(array.get().tensor(), depth);
        }
        if let Ok(list) = object.cast::<PyList>() {
            return self.collect_items(list.len(), list.iter(), depth);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return self.collect_items(tuple.len(), tuple.iter(), depth);
        }
        if let Ok(sequence) = object.cast::<PySequence>() {
            let all = sequence.to_list()?;
            return self.collect_items(all.len(), all.iter(), depth);
        }
        // Arrays of other libraries, and NumPy scalars, which have a dtype.
        if (object.hasattr("__dlpack__")? || object.hasattr("dtype")? || is_convertible(object)?)
            && let Some(tensor) = import_foreign(object, &host_memory_device(object.py())?, None)?
        {
            return self.add_array(tensor, depth);
        }
        // Refuse NumPy scalars that are more precise than any dtype.
        numpy_scalar(object)?;
        // Numbers of other libraries convert through their special methods.
        for method in ["__index__", "__float__", "__complex__"] {
            if object.hasattr(method)? {
                return self.collect_leaves(&object.call_method0(method)?, depth);
            }
        }
        let found = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected numbers, text, arrays or lists of them, found {found}")))
    }

    fn add_array(&mut self, array: Tensor, depth: usize) -> PyResult<()> {
        self.check_depth(depth)?;
        self.arrays.push((self.numbers.len(), array));
        Ok(())
    }

    fn collect_items<'py>(
        &mut self,
        length: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<()> {
        if depth >= MAX_LIST_DEPTH {
            return Err(PyValueError::new_err(format!(
                "expected lists nested at most {MAX_LIST_DEPTH} deep, found more"
            )));
        }
        let length = i64::try_from(length)?;
        match self.dims.get(depth) {
            Some(known) if *known != length => return Err(ragged_error(*known, length)),
            Some(_) => {}
            None if self.is_empty() => self.dims.push(length),
            None => {
                return Err(PyValueError::new_err("expected lists of one depth, found numbers beside lists"));
            }
        }
        items.into_iter().try_for_each(|item| self.collect_leaves(&item, depth + 1))
    }

    /// All leaves must have the same depth.
    fn check_depth(&self, depth: usize) -> PyResult<()> {
        if depth == self.dims.len() {
            return Ok(());
        }
        Err(PyValueError::new_err("expected lists of one depth, found numbers beside lists"))
    }

    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.texts.is_empty() && self.arrays.is_empty()
    }
}

#[cold]
fn ragged_error(expected: i64, found: i64) -> PyErr {
    PyValueError::new_err(format!(
        "expected lists of {expected} items beside each other, found one of {found}"
    ))
}

/// Stacks arrays; numbers between them are arrays too.
fn stack_arrays(
    py: Python<'_>,
    arrays: &[(usize, Tensor)],
    numbers: &[PythonNumber],
    dims: &[i64],
    device: &Device,
    dtype: Option<Dtype>,
) -> PyResult<Tensor> {
    let common = match dtype {
        Some(dtype) => dtype,
        None => {
            let of_arrays = arrays[1..]
                .iter()
                .try_fold(arrays[0].1.dtype(), |dtype, (_, array)| promote_dtypes(dtype, array.dtype()))?;
            numbers
                .iter()
                .try_fold(of_arrays, |dtype, number| promote_with_number(dtype, number.dtype_kind()))?
        }
    };
    let inner = if numbers.is_empty() { arrays[0].1.dims().to_vec() } else { Vec::new() };
    if let Some((_, other)) = arrays.iter().find(|(_, array)| array.dims() != inner) {
        return Err(PyValueError::new_err(format!(
            "expected arrays of one shape in a list, found {inner:?} and {:?}",
            other.dims()
        )));
    }
    let mut bytes = Vec::new();
    let mut rest = numbers;
    for (before, array) in arrays {
        let between;
        (between, rest) = rest.split_at(before + rest.len() - numbers.len());
        between.iter().try_for_each(|number| number.write_element(common, &mut bytes))?;
        refuse_read(array)?;
        bytes.extend(cast_tensor(py, array, common)?.to_bytes().or_raise()?);
    }
    rest.iter().try_for_each(|number| number.write_element(common, &mut bytes))?;
    let all: Vec<i64> = dims.iter().chain(&inner).copied().collect();
    Tensor::from_bytes(device, common, &all, &bytes).or_raise()
}

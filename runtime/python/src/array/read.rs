//! Arrays from what Python has: numbers, nested lists, buffers and arrays of other libraries.

use bytes::Bytes;
use oarlock_core::{Constant, Device, Dtype, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyString, PyTuple};

use super::operand::{Number, own_number, scalar};
use super::{Array, cast, copied, dlpack};
use crate::device::chosen;
use crate::dtype::DtypeLike;
use crate::error::OrRaise as _;
use crate::promote::{Kind, default_of, of_two, with_number};

/// Lists are nested at most this deep.
const MOST_DEPTH: usize = 32;

/// An array of what it is given: an array, a number, text, nested lists of them, or what has `__dlpack__` or a buffer.
///
/// With `copy=None` the memory of a buffer is shared where that can be; with `copy=True` never, and with `copy=False` a copy
/// is a `ValueError`.
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, device=None, copy=None))]
pub(crate) fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeLike>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    let py = obj.py();
    made(obj, dtype.map(|dtype| dtype.0), device, copy).map_err(|error| {
        // The standard has another exception here than for `from_dlpack`.
        let is_refused = copy == Some(false) && error.is_instance_of::<PyBufferError>(py);
        if is_refused { PyValueError::new_err(error.value(py).to_string()) } else { error }
    })
}

fn made<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<Dtype>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, Array>> {
    let py = obj.py();
    if let Ok(array) = obj.cast::<Array>() {
        let tensor = array.get().tensor();
        let place = device.map(|device| chosen(py, Some(device))).transpose()?;
        let is_here = place.as_ref().is_none_or(|place| place.is(tensor.device()));
        let is_same = dtype.is_none_or(|dtype| dtype == tensor.dtype());
        if is_here && is_same && copy != Some(true) {
            return Ok(array.clone());
        }
        if !is_here || !is_same {
            may_copy(copy, "another dtype or device")?;
        }
        let tensor = match dtype {
            Some(dtype) if !is_same => cast(py, &tensor, dtype)?,
            _ if copy == Some(true) => copied(py, &tensor)?,
            _ => tensor,
        };
        let place = place.unwrap_or_else(|| tensor.device().clone());
        return Bound::new(py, Array::new(py.detach(|| tensor.to(&place)).or_raise()?));
    }
    let device = chosen(py, device)?;
    let tensor = match foreign(obj, &device, copy)? {
        Some(tensor) => {
            if dtype.is_some_and(|dtype| dtype != tensor.dtype()) {
                may_copy(copy, "another dtype")?;
            }
            cast(py, &tensor, dtype.unwrap_or(tensor.dtype()))?
        }
        None => {
            may_copy(copy, "numbers of Python")?;
            of_objects(obj, &device, dtype)?
        }
    };
    Bound::new(py, Array::new(tensor))
}

/// An array of another library's array, which shares its memory where that can be. With `copy=False` a copy is a
/// `BufferError`.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub(crate) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Array> {
    if x.is_instance_of::<Array>() {
        return made(x, None, device, copy).map(|made| Array::new(made.get().tensor()));
    }
    let device = match device {
        Some(device) => chosen(x.py(), Some(device))?,
        None => super::host(x.py())?,
    };
    dlpack::import(x, &device, copy).map(Array::new)
}

/// Refuses a copy where none is wanted.
pub(super) fn may_copy(copy: Option<bool>, found: &str) -> PyResult<()> {
    if copy != Some(false) {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "expected what needs no copy, found {found}\nhint: leave out `copy=False`"
    )))
}

/// The array of elements that lie in memory of somebody else: in that memory, where it can be and may be, or a copy.
pub(super) fn of_memory(
    device: &Device,
    dtype: Dtype,
    dims: &[i64],
    memory: Bytes,
    copy: Option<bool>,
) -> PyResult<Tensor> {
    if copy == Some(true) {
        return Tensor::from_bytes(device, dtype, dims, &memory).or_raise();
    }
    let constant = Constant::new(dtype, dims, memory).or_raise()?;
    let tensor = Tensor::of_constant(device, &constant.aligned()).or_raise()?;
    let start = constant.bytes().as_ptr();
    if !constant.bytes().is_empty() && tensor.host_address().or_raise()? != Some(start) {
        may_copy(copy, &format!("{} that {device} cannot use where they lie", dtype.numpy_name()))?;
    }
    Ok(tensor)
}

/// The array of another library or a buffer; nothing where the object is neither.
fn foreign(obj: &Bound<'_, PyAny>, device: &Device, copy: Option<bool>) -> PyResult<Option<Tensor>> {
    // What is nearly always given is known by its type, without asking it for anything.
    if own_number(obj)?.is_some()
        || obj.is_instance_of::<PyList>()
        || obj.is_instance_of::<PyTuple>()
        || obj.is_instance_of::<PyString>()
    {
        return Ok(None);
    }
    if obj.hasattr("__dlpack__")? {
        match dlpack::import(obj, device, copy) {
            Ok(tensor) => return Ok(Some(tensor)),
            // Whoever lends no writable memory this way may do it as a buffer.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyBufferError>(obj.py()) => {}
            Err(error) => return Err(error),
        }
    }
    match super::buffer::read(obj, device, copy) {
        Ok(Some(tensor)) => Ok(Some(tensor)),
        Err(error) if error.is_instance_of::<PyBufferError>(obj.py()) => Err(error),
        other => match super::unusual::read(obj, device, copy)? {
            Some(tensor) => Ok(Some(tensor)),
            None => other,
        },
    }
}

/// What nested lists hold.
#[derive(Default)]
struct Leaves {
    numbers: Vec<Number>,
    texts: Vec<String>,
    /// Arrays, each with how many numbers stand before it.
    arrays: Vec<(usize, Tensor)>,
    dims: Vec<i64>,
}

/// An array of numbers, texts or arrays, and of nested lists of them.
fn of_objects(obj: &Bound<'_, PyAny>, device: &Device, dtype: Option<Dtype>) -> PyResult<Tensor> {
    let mut leaves = Leaves::default();
    leaves.gather(obj, 0)?;
    let Leaves { numbers, texts, arrays, dims } = leaves;
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
        return Tensor::from_texts(device, &dims, texts).or_raise();
    }
    if !arrays.is_empty() {
        return stacked(obj.py(), &arrays, &numbers, &dims, device, dtype);
    }
    let dtype = dtype.unwrap_or_else(|| {
        default_of(numbers.iter().map(|number| number.kind()).max().unwrap_or(Kind::Float))
    });
    let mut bytes = Vec::with_capacity(numbers.len() * dtype.bytes().unwrap_or(1) as usize);
    numbers.iter().try_for_each(|number| number.write(dtype, &mut bytes))?;
    Tensor::from_bytes(device, dtype, &dims, &bytes).or_raise()
}

impl Leaves {
    fn gather(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Some(number) = own_number(object)? {
            self.reached(depth)?;
            self.numbers.push(number);
            return Ok(());
        }
        if let Ok(text) = object.cast::<PyString>() {
            self.reached(depth)?;
            self.texts.push(text.to_str()?.to_owned());
            return Ok(());
        }
        if let Ok(array) = object.cast::<Array>() {
            return self.stack(array.get().tensor(), depth);
        }
        if let Ok(list) = object.cast::<PyList>() {
            return self.each(list.len(), list.iter(), depth);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return self.each(tuple.len(), tuple.iter(), depth);
        }
        if let Ok(sequence) = object.cast::<PySequence>() {
            let all = sequence.to_list()?;
            return self.each(all.len(), all.iter(), depth);
        }
        // Arrays of other libraries, and scalars of NumPy, which have a dtype.
        if (object.hasattr("__dlpack__")? || object.hasattr("dtype")?)
            && let Some(tensor) = foreign(object, &super::host(object.py())?, None)?
        {
            return self.stack(tensor, depth);
        }
        // One of NumPy that is more exact than any dtype is refused.
        scalar(object)?;
        // Numbers of other libraries say what they are as numbers.
        for way in ["__index__", "__float__", "__complex__"] {
            if object.hasattr(way)? {
                return self.gather(&object.call_method0(way)?, depth);
            }
        }
        let found = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected numbers, text, arrays or lists of them, found {found}")))
    }

    fn stack(&mut self, array: Tensor, depth: usize) -> PyResult<()> {
        self.reached(depth)?;
        self.arrays.push((self.numbers.len(), array));
        Ok(())
    }

    fn each<'py>(
        &mut self,
        length: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<()> {
        if depth >= MOST_DEPTH {
            return Err(PyValueError::new_err(format!(
                "expected lists nested at most {MOST_DEPTH} deep, found more"
            )));
        }
        let length = i64::try_from(length)?;
        match self.dims.get(depth) {
            Some(known) if *known != length => return Err(ragged(*known, length)),
            Some(_) => {}
            None if self.is_empty() => self.dims.push(length),
            None => {
                return Err(PyValueError::new_err("expected lists of one depth, found numbers beside lists"));
            }
        }
        items.into_iter().try_for_each(|item| self.gather(&item, depth + 1))
    }

    /// A leaf is as deep as all others.
    fn reached(&self, depth: usize) -> PyResult<()> {
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
fn ragged(expected: i64, found: i64) -> PyErr {
    PyValueError::new_err(format!(
        "expected lists of {expected} items beside each other, found one of {found}"
    ))
}

/// Arrays in lists as one array, and numbers between arrays that are numbers themselves.
fn stacked(
    py: Python<'_>,
    arrays: &[(usize, Tensor)],
    numbers: &[Number],
    dims: &[i64],
    device: &Device,
    dtype: Option<Dtype>,
) -> PyResult<Tensor> {
    let common = match dtype {
        Some(dtype) => dtype,
        None => {
            let of_arrays = arrays[1..]
                .iter()
                .try_fold(arrays[0].1.dtype(), |dtype, (_, array)| of_two(dtype, array.dtype()))?;
            numbers.iter().try_fold(of_arrays, |dtype, number| with_number(dtype, number.kind()))?
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
        between.iter().try_for_each(|number| number.write(common, &mut bytes))?;
        bytes.extend(cast(py, array, common)?.to_bytes().or_raise()?);
    }
    rest.iter().try_for_each(|number| number.write(common, &mut bytes))?;
    let all: Vec<i64> = dims.iter().chain(&inner).copied().collect();
    Tensor::from_bytes(device, common, &all, &bytes).or_raise()
}

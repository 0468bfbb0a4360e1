//! NumPy arrays that have no buffer: text, the narrow types of the package `ml_dtypes` such as `bfloat16`, and numbers in
//! foreign byte order.

use oarlock_core::{Device, Dtype, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::memory_import::check_copy_allowed;
use crate::dtype::dtype_by_name;
use crate::error::{OrRaise as _, type_name};
use crate::trace::refuse_read;

/// True for arrays and scalars of NumPy.
pub(crate) fn is_numpy(object: &Bound<'_, PyAny>) -> bool {
    let dtype = object.getattr("dtype").map(|dtype| dtype.get_type());
    dtype.is_ok_and(|dtype| dtype.hasattr("newbyteorder").unwrap_or(false))
        && object.hasattr("tobytes").unwrap_or(false)
}

/// Refuses masked arrays, whose mask would be lost.
pub(crate) fn refuse_masks(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if object.get_type().name()? == "MaskedArray" {
        return Err(PyTypeError::new_err(
            "expected an array without a mask, found `numpy.ma.MaskedArray`\nhint: put numbers in the masked places with `filled(…)`",
        ));
    }
    Ok(())
}

/// `None` if the object is no such array.
pub(crate) fn read_numpy(
    object: &Bound<'_, PyAny>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Option<Tensor>> {
    let Ok(dtype) = object.getattr("dtype") else { return Ok(None) };
    let (Ok(kind), Ok(name)) =
        (dtype.getattr("kind").and_then(|kind| kind.extract::<char>()), dtype.getattr("name"))
    else {
        return Ok(None);
    };
    let dims: Vec<i64> = object.getattr("shape")?.extract()?;
    if matches!(kind, 'O' | 'U' | 'S' | 'T') {
        check_copy_allowed(copy, "text, which has no buffer")?;
        let flat = object.call_method0("ravel")?.call_method0("tolist")?;
        let texts = flat.try_iter()?.map(|item| item_text(&item?)).collect::<PyResult<Vec<String>>>()?;
        return Tensor::from_strings(device, &dims, texts).or_raise().map(Some);
    }
    let name: String = name.extract()?;
    let Some(known) = dtype_by_name(&name) else { return Err(unknown_dtype(kind, &name)) };
    check_copy_allowed(copy, "elements that have no buffer")?;
    let is_native = dtype.getattr("isnative").and_then(|native| native.is_truthy()).unwrap_or(true);
    let bytes = if is_native {
        object.call_method0("tobytes")?
    } else {
        object.call_method0("byteswap")?.call_method0("tobytes")?
    };
    let bytes = pack_elements(known, bytes.extract()?);
    Tensor::from_bytes(device, known, &dims, &bytes).or_raise().map(Some)
}

#[cold]
fn unknown_dtype(kind: char, name: &str) -> PyErr {
    let hint = match kind {
        'M' | 'm' => "count its units with `astype(\"int64\")` first",
        'V' => "take its fields one by one, such as `array[\"name\"]`",
        _ => "convert it with `astype` first",
    };
    PyTypeError::new_err(format!(
        "expected numbers, truth values or text, found elements of {name}\nhint: {hint}"
    ))
}

/// Creates a NumPy array from a tensor that has no buffer.
pub(crate) fn write_numpy<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    refuse_read(tensor)?;
    let numpy = py.import("numpy")?;
    let dims = tensor.dims().to_vec();
    if tensor.dtype() == Dtype::String {
        let result = numpy.call_method1("empty", (tensor.element_count(), "O"))?;
        let texts = PyList::new(py, tensor.to_strings().or_raise()?)?;
        result.set_item(pyo3::types::PySlice::full(py), texts)?;
        return result.call_method1("reshape", (dims,));
    }
    let name = tensor.dtype().numpy_name();
    let known = py.import("ml_dtypes").and_then(|package| package.getattr(name));
    let dtype = known.map_err(|_| {
        PyTypeError::new_err(format!(
            "expected a dtype that NumPy has, found {name}\nhint: `pip install ml_dtypes`, which adds it to NumPy, or convert \
             the array with `astype(oarlock.float32)` first"
        ))
    })?;
    let count = usize::try_from(tensor.element_count()).unwrap_or(usize::MAX);
    let bytes = unpack_elements(tensor.dtype(), tensor.to_bytes().or_raise()?, count);
    numpy.call_method1("frombuffer", (PyBytes::new(py, &bytes), dtype))?.call_method1("reshape", (dims,))
}

fn item_text(item: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(bytes) = item.cast::<PyBytes>() {
        let text = std::str::from_utf8(bytes.as_bytes());
        return text.map(str::to_owned).map_err(|error| PyValueError::new_err(error.to_string()));
    }
    item.extract().map_err(|_| {
        let found = type_name(item);
        PyTypeError::new_err(format!(
            "expected text in an array of objects, found {found}\nhint: convert numbers with `astype(float)` first"
        ))
    })
}

/// Packs elements from one per byte to the tensor's layout: the first in the lowest bits.
fn pack_elements(dtype: Dtype, bytes: Vec<u8>) -> Vec<u8> {
    let bits = dtype.bits();
    if bits >= 8 {
        return bytes;
    }
    let mask = (1u8 << bits) - 1;
    let of_byte =
        |all: &[u8]| all.iter().rev().fold(0, |packed, element| (packed << bits) | (element & mask));
    bytes.chunks(8 / bits as usize).map(of_byte).collect()
}

/// The reverse of [`pack_elements`]. Signed elements are sign-extended.
fn unpack_elements(dtype: Dtype, bytes: Vec<u8>, count: usize) -> Vec<u8> {
    let bits = dtype.bits();
    if bits >= 8 {
        return bytes;
    }
    let spare = 8 - bits;
    let element = |byte: u8, at: u32| {
        let high = (byte >> (at * bits)) << spare;
        match dtype {
            Dtype::I2 | Dtype::I4 => (high.cast_signed() >> spare).cast_unsigned(),
            _ => high >> spare,
        }
    };
    bytes.into_iter().flat_map(|byte| (0..8 / bits).map(move |at| element(byte, at))).take(count).collect()
}

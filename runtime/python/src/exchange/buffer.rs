//! Arrays as Python buffers, and Python buffers as arrays, which share memory with NumPy and others.

#![expect(unsafe_code, reason = "a view of the interpreter is a struct of pointers that is filled and read")]

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Tensor};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::memory_import::{check_copy_allowed, tensor_from_memory};
use crate::error::OrRaise as _;

/// Format characters of Python's `struct` module.
const BUFFER_FORMATS: [(Dtype, &str); 14] = [
    (Dtype::Bool, "?"),
    (Dtype::I8, "b"),
    (Dtype::U8, "B"),
    (Dtype::I16, "h"),
    (Dtype::U16, "H"),
    (Dtype::I32, "i"),
    (Dtype::U32, "I"),
    (Dtype::I64, "q"),
    (Dtype::U64, "Q"),
    (Dtype::F16, "e"),
    (Dtype::F32, "f"),
    (Dtype::F64, "d"),
    (Dtype::C64, "Zf"),
    (Dtype::C128, "Zd"),
];

/// True if Python's buffer protocol has a format for the dtype.
pub(crate) fn has_buffer_format(dtype: Dtype) -> bool {
    BUFFER_FORMATS.iter().any(|(known, _)| *known == dtype)
}

/// The owner behind an exported view.
struct BufferExport {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    format: CString,
    _tensor: Tensor,
}

/// Fills a view that keeps the tensor alive. It is writable only if the tensor has no other owner.
pub(crate) fn fill_view(
    owner: Bound<'_, PyAny>,
    tensor: Tensor,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    may_write: bool,
) -> PyResult<()> {
    let refused = |message: String| Err(PyBufferError::new_err(message));
    if view.is_null() {
        return refused("expected a view to fill, found none".to_owned());
    }
    crate::trace::refuse_read(&tensor)?;
    // SAFETY: the interpreter passes a view that may be written.
    unsafe { (*view).obj = ptr::null_mut() };
    if !may_write && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return refused(
            "expected a reader, found one that writes: arrays share memory with others".to_owned(),
        );
    }
    let dtype = tensor.dtype();
    let Some((_, format)) = BUFFER_FORMATS.iter().find(|(known, _)| *known == dtype) else {
        let name = dtype.numpy_name();
        return refused(format!(
            "expected a dtype that buffers have, found {name}\nhint: convert it with `astype(oarlock.float32)` first"
        ));
    };
    let Some(address) = tensor.host_address().or_raise()? else {
        let device = tensor.device();
        return refused(format!(
            "expected an array in the memory of the host, found one on {device}\nhint: copy it with `to_device(\"cpu\")`"
        ));
    };
    let asks = |flag: c_int| flags & flag == flag;
    if !tensor.is_contiguous() && !asks(ffi::PyBUF_STRIDES) {
        return refused("expected a contiguous array, found one with strides".to_owned());
    }
    let size = dtype.byte_size().unwrap_or(1).cast_signed() as ffi::Py_ssize_t;
    let narrow = |value: i64| ffi::Py_ssize_t::try_from(value).unwrap_or(ffi::Py_ssize_t::MAX);
    let lent = Box::new(BufferExport {
        shape: tensor.dims().iter().map(|dim| narrow(*dim)).collect(),
        strides: tensor.strides().iter().map(|stride| narrow(*stride) * size).collect(),
        format: CString::new(*format)?,
        _tensor: tensor.clone(),
    });
    let lent = Box::into_raw(lent);
    // SAFETY: `view` may be written, as above. Its pointers lead into `lent`, which lives until the interpreter hands back
    // `internal` on release; the elements live as long as the tensor in it.
    unsafe {
        let (view, lent) = (&mut *view, &mut *lent);
        view.buf = address.cast_mut().cast::<c_void>();
        view.len = narrow((tensor.element_count() as i64).saturating_mul(size as i64));
        view.readonly = c_int::from(!may_write);
        view.itemsize = size;
        view.format = if asks(ffi::PyBUF_FORMAT) { lent.format.as_ptr().cast_mut() } else { ptr::null_mut() };
        view.ndim = lent.shape.len() as c_int;
        view.shape = if asks(ffi::PyBUF_ND) { lent.shape.as_mut_ptr() } else { ptr::null_mut() };
        view.strides = if asks(ffi::PyBUF_STRIDES) { lent.strides.as_mut_ptr() } else { ptr::null_mut() };
        view.suboffsets = ptr::null_mut();
        view.internal = ptr::from_mut(lent).cast::<c_void>();
        view.obj = owner.into_ptr();
    }
    Ok(())
}

/// Releases the owner behind a view.
pub(crate) fn release_view(view: *mut ffi::Py_buffer) {
    // SAFETY: the interpreter hands back, once, a view that `fill_view` filled.
    let lent = unsafe { std::mem::replace(&mut (*view).internal, ptr::null_mut()) };
    if !lent.is_null() {
        // SAFETY: as above; `internal` is the box that `fill_view` made.
        drop(unsafe { Box::from_raw(lent.cast::<BufferExport>()) });
    }
}

/// A buffer of another object, held while an array uses it.
struct BorrowedBuffer(PyUntypedBuffer);

impl AsRef<[u8]> for BorrowedBuffer {
    fn as_ref(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer was checked to be contiguous, has that many bytes, and is held. Its owner may write to it
        // meanwhile, which is what sharing means to NumPy too; every bit pattern is a valid number.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), self.0.len_bytes()) }
    }
}

/// `None` if the object has no buffer.
pub(crate) fn read_buffer(
    object: &Bound<'_, PyAny>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Option<Tensor>> {
    let py = object.py();
    let Ok(buffer) = PyUntypedBuffer::get(object) else {
        // Drop the error, since the caller tries another way.
        return Ok(None);
    };
    let dtype = buffer_dtype(&buffer)?;
    let dims: Vec<i64> = buffer.shape().iter().map(|dim| i64::try_from(*dim).unwrap_or(i64::MAX)).collect();
    if !buffer.is_c_contiguous() {
        check_copy_allowed(copy, "elements with gaps between them")?;
        // The owner of a strided buffer can copy it contiguously.
        let bytes =
            py.import("builtins")?.getattr("memoryview")?.call1((object,))?.call_method0("tobytes")?;
        let bytes: Vec<u8> = bytes.extract()?;
        return Tensor::from_bytes(device, dtype, &dims, &bytes).or_raise().map(Some);
    }
    tensor_from_memory(device, dtype, &dims, Bytes::from_owner(BorrowedBuffer(buffer)), copy).map(Some)
}

fn buffer_dtype(buffer: &PyUntypedBuffer) -> PyResult<Dtype> {
    let text = buffer.format().to_str().unwrap_or("");
    // `@` and `=` mean native byte order, and so does `<` on all supported machines.
    let plain = text.strip_prefix(['@', '=', '<']).unwrap_or(text);
    let size = buffer.item_size() as u64;
    let same = match plain {
        "l" | "n" | "q" => Some(Dtype::I64),
        "L" | "N" | "Q" => Some(Dtype::U64),
        "c" => Some(Dtype::U8),
        _ => BUFFER_FORMATS.iter().find(|(_, format)| *format == plain).map(|(dtype, _)| *dtype),
    };
    let found = same.filter(|dtype| dtype.byte_size() == Some(size));
    found.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "expected elements that arrays have, such as `f` or `q`, found `{text}` of {size} bytes"
        ))
    })
}

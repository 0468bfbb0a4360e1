//! How elements come out of tensors.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::c_void;
use std::ptr;

use oarlock_core::{Error, Result};

use super::ValueHandle;
use crate::interface::Text;
use crate::pointer::{held, place, put};

pub(crate) unsafe fn wait(value: *const ValueHandle) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { held(value, "value")? }.datum.tensor()?.wait()
}

pub(crate) unsafe fn read(value: *const ValueHandle, target: *mut c_void, size: u64) -> Result<()> {
    // SAFETY: as the caller says.
    let tensor = unsafe { held(value, "value")? }.datum.tensor()?;
    let gathered;
    let bytes = match tensor.host_bytes()? {
        Some(bytes) => bytes,
        None => {
            gathered = tensor.to_bytes()?;
            &gathered
        }
    };
    if bytes.len() as u64 != size {
        let expected = bytes.len();
        return Err(Error::invalid_argument(format!("expected room for {expected} bytes, found {size}"))
            .hint("`oarlock_tensor_size` says how many there are"));
    }
    if target.is_null() && size > 0 {
        return Err(Error::invalid_argument("expected `target`, found NULL"));
    }
    if size > 0 {
        // SAFETY: the caller has room for so many bytes, which nobody else writes and which are none of the tensor's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.cast::<u8>(), bytes.len()) };
    }
    Ok(())
}

pub(crate) unsafe fn data(value: *const ValueHandle, data: *mut *const c_void) -> Result<()> {
    // SAFETY: as the caller says; a place for a pointer to what is read is one for a pointer.
    let place = unsafe { place(data.cast::<*mut c_void>(), "data")? };
    // SAFETY: as the caller says.
    let tensor = unsafe { held(value, "value")? }.datum.tensor()?;
    let bytes = tensor.host_bytes()?.ok_or_else(|| {
        Error::unimplemented("expected numbers in memory that the host reads, found others")
            .on_device(tensor.device())
            .hint("copy them with `oarlock_tensor_read`, or strings with `oarlock_tensor_text`")
    })?;
    *place = bytes.as_ptr().cast::<c_void>().cast_mut();
    Ok(())
}

pub(crate) unsafe fn text(value: *const ValueHandle, index: u64, text: *mut Text) -> Result<()> {
    // SAFETY: as the caller says.
    let value = unsafe { held(value, "value")? };
    let texts = match value.texts.get() {
        Some(texts) => texts,
        None => {
            let read = value.datum.tensor()?.to_texts()?;
            value.texts.get_or_init(|| read)
        }
    };
    let found = usize::try_from(index).ok().and_then(|index| texts.get(index)).ok_or_else(|| {
        let count = texts.len();
        Error::out_of_range(format!("expected an index below {count}, found {index}"))
    })?;
    let found = Text { data: found.as_ptr().cast(), size: found.len() as u64 };
    // SAFETY: as the caller says.
    unsafe { put(text, found, "text") }
}

//! Reads elements out of tensors.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::c_void;
use std::ptr;

use oarlock_core::{Error, Result};

use super::ValueHandle;
use crate::c_types::Text;
use crate::pointer::{clear_output_handle, deref_required, write_output};

pub(crate) unsafe fn wait_for_tensor(value: *const ValueHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_required(value, "value")? }.runtime_value.as_tensor()?.wait()
}

pub(crate) unsafe fn read_tensor(value: *const ValueHandle, target: *mut c_void, size: u64) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let tensor = unsafe { deref_required(value, "value")? }.runtime_value.as_tensor()?;
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
            .with_advice("`oarlock_tensor_size` says how many there are"));
    }
    if target.is_null() && size > 0 {
        return Err(Error::invalid_argument("expected `target`, found NULL"));
    }
    if size > 0 {
        // SAFETY: the caller provides room for that many bytes, which no one else writes and which do not overlap the tensor.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.cast::<u8>(), bytes.len()) };
    }
    Ok(())
}

pub(crate) unsafe fn tensor_data(value: *const ValueHandle, data: *mut *const c_void) -> Result<()> {
    // SAFETY: guaranteed by the caller; a place for a pointer to what is read is one for a pointer.
    let place = unsafe { clear_output_handle(data.cast::<*mut c_void>(), "data")? };
    // SAFETY: guaranteed by the caller.
    let tensor = unsafe { deref_required(value, "value")? }.runtime_value.as_tensor()?;
    let bytes = tensor.host_bytes()?.ok_or_else(|| {
        Error::unimplemented("expected numbers in memory that the host reads, found others")
            .with_device(tensor.device())
            .with_advice("copy them with `oarlock_tensor_read`, or strings with `oarlock_tensor_text`")
    })?;
    *place = bytes.as_ptr().cast::<c_void>().cast_mut();
    Ok(())
}

pub(crate) unsafe fn tensor_text(value: *const ValueHandle, index: u64, text: *mut Text) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let value = unsafe { deref_required(value, "value")? };
    let texts = match value.texts.get() {
        Some(texts) => texts,
        None => {
            let read = value.runtime_value.as_tensor()?.to_strings()?;
            value.texts.get_or_init(|| read)
        }
    };
    let found = usize::try_from(index).ok().and_then(|index| texts.get(index)).ok_or_else(|| {
        let count = texts.len();
        Error::out_of_range(format!("expected an index below {count}, found {index}"))
    })?;
    let found = Text { data: found.as_ptr().cast(), size: found.len() as u64 };
    // SAFETY: guaranteed by the caller.
    unsafe { write_output(text, found, "text") }
}

//! Reads models from files or memory.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::{c_char, c_void};
use std::ffi::CString;
use std::path::Path;
use std::ptr;

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_engine::{Model, import};

use crate::borrowed_memory::BorrowedMemory;
use crate::c_types::ReleaseCallback;
use crate::pointer::{
    clear_output_handle, deref_nullable, into_raw_handle, read_array, read_optional_text, read_text,
    to_c_string,
};

pub(crate) use crate::pointer::free_handle;

/// A model with its texts in C's representation.
pub struct ModelHandle {
    model: Model,
    format: CString,
    producer: CString,
}

impl ModelHandle {
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    fn allocate_handle(model: Model) -> *mut Self {
        let (format, producer) = (to_c_string(&model.format), to_c_string(&model.producer));
        into_raw_handle(Self { model, format, producer })
    }
}

pub(crate) unsafe fn load_model(path: *const c_char, model: *mut *mut ModelHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, path) = unsafe { (clear_output_handle(model, "model")?, read_text(path, "path")?) };
    *place = ModelHandle::allocate_handle(import::load_model(Path::new(path))?);
    Ok(())
}

pub(crate) unsafe fn decode_model(
    data: *const c_void,
    size: u64,
    release: ReleaseCallback,
    context: *mut c_void,
    directory: *const c_char,
    model: *mut *mut ModelHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller. Made first, so that the memory is released on every error.
    let lent = unsafe { BorrowedMemory::new(data, size, release, context) };
    // SAFETY: guaranteed by the caller.
    let (place, directory) =
        unsafe { (clear_output_handle(model, "model")?, read_optional_text(directory, "directory")?) };
    let bytes = match release {
        ReleaseCallback(Some(_)) => lent.into_bytes()?,
        ReleaseCallback(None) => {
            // SAFETY: guaranteed by the caller.
            let bytes = unsafe { read_array(data.cast::<u8>(), size, "data")? };
            Bytes::copy_from_slice(bytes)
        }
    };
    *place = ModelHandle::allocate_handle(import::onnx::decode_onnx(bytes, directory.map(Path::new))?);
    Ok(())
}

pub(crate) unsafe fn model_format(model: *const ModelHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(model) }.map_or(ptr::null(), |model| model.format.as_ptr())
}

pub(crate) unsafe fn model_producer(model: *const ModelHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(model) }.map_or(ptr::null(), |model| model.producer.as_ptr())
}

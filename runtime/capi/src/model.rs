//! Models: from a file or from memory.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::{c_char, c_void};
use std::ffi::CString;
use std::path::Path;
use std::ptr;

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_engine::{Model, import};

use crate::interface::ReleaseCallback;
use crate::lent::Lent;
use crate::pointer::{c_text, give, list, look, place, text, text_if_any};

pub(crate) use crate::pointer::free;

/// A model with its texts as C has them.
pub struct ModelHandle {
    model: Model,
    format: CString,
    producer: CString,
}

impl ModelHandle {
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    fn give(model: Model) -> *mut Self {
        let (format, producer) = (c_text(&model.format), c_text(&model.producer));
        give(Self { model, format, producer })
    }
}

pub(crate) unsafe fn load(path: *const c_char, model: *mut *mut ModelHandle) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, path) = unsafe { (place(model, "model")?, text(path, "path")?) };
    *place = ModelHandle::give(import::load(Path::new(path))?);
    Ok(())
}

pub(crate) unsafe fn decode(
    data: *const c_void,
    size: u64,
    release: ReleaseCallback,
    context: *mut c_void,
    directory: *const c_char,
    model: *mut *mut ModelHandle,
) -> Result<()> {
    // SAFETY: as the caller says. Made first, so that whatever comes the memory is given back.
    let lent = unsafe { Lent::new(data, size, release, context) };
    // SAFETY: as the caller says.
    let (place, directory) = unsafe { (place(model, "model")?, text_if_any(directory, "directory")?) };
    let bytes = match release {
        ReleaseCallback(Some(_)) => lent.into_bytes()?,
        // SAFETY: as the caller says.
        ReleaseCallback(None) => Bytes::copy_from_slice(unsafe { list(data.cast::<u8>(), size, "data")? }),
    };
    *place = ModelHandle::give(import::onnx::decode(bytes, directory.map(Path::new))?);
    Ok(())
}

pub(crate) unsafe fn format(model: *const ModelHandle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { look(model) }.map_or(ptr::null(), |model| model.format.as_ptr())
}

pub(crate) unsafe fn producer(model: *const ModelHandle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { look(model) }.map_or(ptr::null(), |model| model.producer.as_ptr())
}

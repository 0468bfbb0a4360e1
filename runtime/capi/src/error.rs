//! Errors as C holds them.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::ptr;

use oarlock_core::Error;

use crate::interface::Code;
use crate::pointer::{c_text, look};

pub(crate) use crate::pointer::free;

/// What went wrong.
pub struct ErrorHandle {
    code: Code,
    message: CString,
    hint: Option<CString>,
    is_device_lost: bool,
}

impl ErrorHandle {
    /// An error that the program is to free.
    #[cold]
    pub(crate) fn give(error: &Error) -> *mut Self {
        Box::into_raw(Box::new(Self {
            code: Code(error.kind() as u32),
            message: c_text(&error.to_string()),
            hint: error.advice().map(c_text),
            is_device_lost: error.is_device_lost(),
        }))
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &CStr {
        &self.message
    }
}

pub(crate) unsafe fn code(error: *const ErrorHandle) -> Code {
    // SAFETY: as the caller says.
    unsafe { look(error) }.map_or(Code(0), |error| error.code)
}

pub(crate) unsafe fn message(error: *const ErrorHandle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { look(error) }.map_or(ptr::null(), |error| error.message.as_ptr())
}

pub(crate) unsafe fn hint(error: *const ErrorHandle) -> *const c_char {
    // SAFETY: as the caller says.
    let error = unsafe { look(error) };
    error.and_then(|error| error.hint.as_deref()).map_or(ptr::null(), CStr::as_ptr)
}

pub(crate) unsafe fn is_device_lost(error: *const ErrorHandle) -> u32 {
    // SAFETY: as the caller says.
    unsafe { look(error) }.is_some_and(|error| error.is_device_lost).into()
}

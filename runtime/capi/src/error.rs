//! Errors in C's representation.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::ptr;

use oarlock_core::Error;

use crate::c_types::Code;
use crate::pointer::{deref_nullable, to_c_string};

pub(crate) use crate::pointer::free_handle;

/// An error with its texts as C strings.
pub struct ErrorHandle {
    code: Code,
    message: CString,
    hint: Option<CString>,
    is_device_lost: bool,
}

impl ErrorHandle {
    /// The program has to free it.
    #[cold]
    pub(crate) fn allocate_handle(error: &Error) -> *mut Self {
        Box::into_raw(Box::new(Self {
            code: Code(error.kind() as u32),
            message: to_c_string(&error.to_string()),
            hint: error.advice().map(to_c_string),
            is_device_lost: error.is_device_lost(),
        }))
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &CStr {
        &self.message
    }
}

pub(crate) unsafe fn error_code(error: *const ErrorHandle) -> Code {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(error) }.map_or(Code(0), |error| error.code)
}

pub(crate) unsafe fn error_message(error: *const ErrorHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(error) }.map_or(ptr::null(), |error| error.message.as_ptr())
}

pub(crate) unsafe fn error_hint(error: *const ErrorHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let error = unsafe { deref_nullable(error) };
    error.and_then(|error| error.hint.as_deref()).map_or(ptr::null(), CStr::as_ptr)
}

pub(crate) unsafe fn is_device_lost(error: *const ErrorHandle) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(error) }.is_some_and(|error| error.is_device_lost).into()
}

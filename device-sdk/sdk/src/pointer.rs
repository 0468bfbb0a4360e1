//! Addresses and callbacks that the host passes to a plugin.

#![expect(unsafe_code, reason = "callbacks are C functions, addresses are the host's")]

use core::ffi::c_void;

use oarlock_abi as abi;

use crate::error::{PluginError, Result};

/// An address in host memory.
///
/// Asynchronous copies get an address instead of a slice, since the memory is still in use after the call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPointer(*mut c_void);

// SAFETY: an address alone may cross threads; code that dereferences it argues why it may.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// Wraps an address. If it is null, the error calls it `name`.
    pub fn new(address: *mut c_void, name: &str) -> Result<Self> {
        if address.is_null() {
            return Err(PluginError::invalid_argument(format!(
                "expected an address for `{name}`, found null"
            )));
        }
        Ok(Self(address))
    }

    /// The address, for a driver that takes a raw pointer.
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }

    /// The memory at the address as a slice.
    ///
    /// # Safety
    ///
    /// `size` bytes at the address stay readable for `'a`, as the host promises until the stream is past the call.
    pub unsafe fn as_bytes<'a>(self, size: usize) -> &'a [u8] {
        // SAFETY: not null by construction, and the caller vouches for the bytes.
        unsafe { core::slice::from_raw_parts(self.0.cast(), size) }
    }

    /// The memory at the address as a mutable slice.
    ///
    /// # Safety
    ///
    /// As for [`HostPointer::as_bytes`], and nobody else touches them.
    pub unsafe fn as_bytes_mut<'a>(self, size: usize) -> &'a mut [u8] {
        // SAFETY: not null by construction, and the caller vouches for the bytes.
        unsafe { core::slice::from_raw_parts_mut(self.0.cast(), size) }
    }
}

/// A callback of the host, for when a stream reaches a certain point. It must be called exactly once, so calling consumes it.
#[derive(Debug)]
pub struct StreamReached {
    function: abi::StreamReached,
    /// Passed back to the host's function.
    user: *mut c_void,
}

// SAFETY: the contract permits calls of callbacks on any thread (rule T-2).
unsafe impl Send for StreamReached {}
// SAFETY: as above.
unsafe impl Sync for StreamReached {}

impl StreamReached {
    pub(crate) fn new(function: Option<abi::StreamReached>, user: *mut c_void) -> Result<Self> {
        match function {
            Some(function) => Ok(Self { function, user }),
            None => Err(PluginError::invalid_argument("expected a function to call back, found null")),
        }
    }

    /// Reports that the stream reached the point.
    pub fn notify(self, device: u32, stream: abi::Stream) {
        // SAFETY: the host passed this function and this value together.
        unsafe { (self.function)(device, stream, self.user, abi::Error::NONE) }
    }

    /// Reports that the stream failed before it reached the point.
    pub fn notify_failure(
        self,
        host: &crate::HostServices,
        device: u32,
        stream: abi::Stream,
        error: &PluginError,
    ) {
        // SAFETY: as above; the receiver releases the error.
        unsafe { (self.function)(device, stream, self.user, host.report_error(error)) }
    }
}

//! Addresses and callbacks that the host hands over.

#![expect(unsafe_code, reason = "callbacks are C functions, addresses are the host's")]

use core::ffi::c_void;

use oarlock_abi as abi;

use crate::error::{PluginError, Result};

/// An address in the host's memory.
///
/// Asynchronous copies name host memory by such an address, since it must stay valid after the call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPointer(*mut c_void);

// SAFETY: an address may travel; whoever follows it argues why it may.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// An address that is not null.
    pub fn new(address: *mut c_void, name: &str) -> Result<Self> {
        if address.is_null() {
            return Err(PluginError::invalid_argument(format!(
                "expected an address for `{name}`, found null"
            )));
        }
        Ok(Self(address))
    }

    /// The address.
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }

    /// The bytes at the address.
    ///
    /// # Safety
    ///
    /// `size` bytes at the address stay readable for `'a`, as the host promises until the stream is past the call.
    pub unsafe fn as_bytes<'a>(self, size: usize) -> &'a [u8] {
        // SAFETY: not null by construction, and the caller vouches for the bytes.
        unsafe { core::slice::from_raw_parts(self.0.cast(), size) }
    }

    /// The bytes at the address, to be written.
    ///
    /// # Safety
    ///
    /// As for [`HostPointer::as_bytes`], and nobody else touches them.
    pub unsafe fn as_bytes_mut<'a>(self, size: usize) -> &'a mut [u8] {
        // SAFETY: not null by construction, and the caller vouches for the bytes.
        unsafe { core::slice::from_raw_parts_mut(self.0.cast(), size) }
    }
}

/// Wants to know when a stream has come to a point. Is called once, so it is used up by it.
#[derive(Debug)]
pub struct StreamReached {
    function: abi::StreamReached,
    /// What the host wants back.
    user: *mut c_void,
}

// SAFETY: the contract has callbacks called on any thread (rule T-2).
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

    /// Tells the host that the stream is there.
    pub fn notify(self, device: u32, stream: abi::Stream) {
        // SAFETY: the host gave this function and this value for each other.
        unsafe { (self.function)(device, stream, self.user, abi::Error::NONE) }
    }

    /// Tells the host that the stream failed on the way.
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

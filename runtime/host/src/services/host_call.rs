//! A kernel's requests to the host during a call.

#![expect(unsafe_code, reason = "the object is behind a pointer that the plugin passes back")]

use std::ffi::c_void;

use oarlock_abi as abi;

use super::errors::{Code, PluginFailure};

/// Callbacks for a kernel during a call, possibly from another thread.
pub trait CallServices: Sync {
    /// Allocates an output and updates the tensor of the call to show its dtype, shape and memory.
    fn allocate_output(&self, _index: u32, _dtype: abi::Dtype, _dims: &[i64]) -> Result<(), PluginFailure> {
        Err(no_memory_failure())
    }

    /// Receives the kernel's description of how it will run the call that it is being prepared for.
    fn describe_kernel(&self, _way: String) {}

    /// Brings the elements of a constant into memory: until the kernel is prepared, or as long as it is if `keep` is set.
    fn read_constant(&self, _index: u32, _keep: bool) -> Result<(), PluginFailure> {
        Ok(())
    }
}

/// The object behind the `host_call` field of a call.
pub struct HostCall<'a>(&'a dyn CallServices);

impl<'a> HostCall<'a> {
    /// Wraps the callbacks for one call.
    pub fn new(services: &'a dyn CallServices) -> Self {
        Self(services)
    }

    /// The value for the `host_call` field, valid as long as `self` is not moved.
    pub fn as_ptr(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    /// Forwards a request for the memory of an output to the maker of the call.
    ///
    /// # Safety
    ///
    /// `call` is a call that the host made and that is still running.
    pub(crate) unsafe fn allocate_output(
        call: *const abi::Call,
        index: u32,
        dtype: abi::Dtype,
        dims: &[i64],
    ) -> Result<(), PluginFailure> {
        // SAFETY: as the caller vouches.
        unsafe { Self::from_call(call) }.ok_or_else(no_memory_failure)?.0.allocate_output(index, dtype, dims)
    }

    /// Forwards a description to the maker of the call. It is dropped if the call has no `host_call`.
    ///
    /// # Safety
    ///
    /// As for [`HostCall::allocate_output`].
    pub(crate) unsafe fn describe_kernel(call: *const abi::Call, way: String) {
        // SAFETY: as the caller vouches.
        if let Some(record) = unsafe { Self::from_call(call) } {
            record.0.describe_kernel(way);
        }
    }

    /// Forwards a request for the elements of a constant to the maker of the call.
    ///
    /// # Safety
    ///
    /// As for [`HostCall::allocate_output`].
    pub(crate) unsafe fn read_constant(
        call: *const abi::Call,
        index: u32,
        keep: bool,
    ) -> Result<(), PluginFailure> {
        // SAFETY: as the caller vouches.
        unsafe { Self::from_call(call) }.map_or(Ok(()), |record| record.0.read_constant(index, keep))
    }

    /// # Safety
    ///
    /// As for [`HostCall::allocate_output`].
    unsafe fn from_call<'call>(call: *const abi::Call) -> Option<&'call HostCall<'call>> {
        // SAFETY: the caller vouches for the call.
        let record = unsafe { (&raw const (*call).host_call).read() }.cast::<HostCall<'_>>();
        // SAFETY: the `host_call` of a running call is null or was set by the maker of the call, from `HostCall::as_ptr`.
        unsafe { record.as_ref() }
    }
}

fn no_memory_failure() -> PluginFailure {
    let message = "expected a call in which outputs may be allocated, found one that has no memory to give; give the \
                   kernel the flag `allocates_outputs`, and pass the call on as it was given";
    PluginFailure::new("host", Code::PRECONDITION_NOT_MET, message)
}

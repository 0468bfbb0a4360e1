//! The context of a kernel's proxy.

#![expect(unsafe_code, reason = "contexts are pointers, and calls are read through them")]

use oarlock_abi as abi;

use super::connection::ChildConnection;
use super::crossed_memory::is_in_host_memory;

/// A kernel of the child, by its number.
#[derive(Debug)]
pub(crate) struct KernelProxy {
    connection: *const ChildConnection,
    pub(crate) index: u32,
    is_asynchronous: bool,
}

// SAFETY: the connection may be used on any thread, and outlives the proxy.
unsafe impl Send for KernelProxy {}
// SAFETY: as above.
unsafe impl Sync for KernelProxy {}

impl KernelProxy {
    /// # Safety
    ///
    /// The connection lives at this address as long as the proxy.
    pub(crate) unsafe fn new(connection: *const ChildConnection, index: u32, is_asynchronous: bool) -> Self {
        Self { connection, index, is_asynchronous }
    }

    pub(crate) fn connection(&self) -> &ChildConnection {
        // SAFETY: whoever made the proxy vouches for the address.
        unsafe { &*self.connection }
    }

    /// True if nobody has to wait for a run: the kernel only adds work to the stream, and all operands are on the device.
    ///
    /// # Safety
    ///
    /// The call is as the contract describes it.
    pub(crate) unsafe fn may_post(&self, call: *const abi::Call) -> bool {
        // SAFETY: the caller vouches for the call.
        let queue = abi::Stream(unsafe { stream_of_call(call) });
        // SAFETY: as above.
        let device = unsafe { (&raw const (*call).device).read() };
        if !self.is_asynchronous || !self.connection().handles().has_stream(device, queue) {
            return false;
        }
        let has_host_memory = |list: *const *const abi::Tensor, count: u64| {
            // SAFETY: the caller vouches for the lists and for the tensors in them.
            (0..count as usize).any(|index| unsafe { is_in_host_memory(&*list.add(index).read()) })
        };
        // SAFETY: as above.
        let call = unsafe { &*call };
        !has_host_memory(call.inputs, call.inputs_count) && !has_host_memory(call.outputs, call.outputs_count)
    }
}

/// The number of the stream that a call runs in.
///
/// # Safety
///
/// The call is as the contract describes it.
pub(crate) unsafe fn stream_of_call(call: *const abi::Call) -> u64 {
    // SAFETY: the caller vouches for the call.
    unsafe { (&raw const (*call).queue).read() }.0
}

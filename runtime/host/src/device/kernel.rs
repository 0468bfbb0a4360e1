//! Handles to kernels for the runtime: each keeps its plugin loaded, and a prepared one owns its state.
//!
//! Calls cross this boundary unchecked: the operands are in memory of the core's pool, so only the core can guarantee that their
//! descriptions are correct. So these functions are unsafe; everything that can be checked earlier is checked there.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::generated::KernelCalls;
use crate::live_handles::HandleKind;
use crate::services::errors::PluginFailure;
use crate::{KernelInfo, LoadedPlugin};

/// A handle to a kernel. It keeps the plugin loaded.
#[derive(Clone)]
pub struct KernelHandle {
    plugin: Arc<LoadedPlugin>,
    index: usize,
}

impl LoadedPlugin {
    /// Handles to all kernels of the plugin.
    pub fn kernel_handles(self: &Arc<Self>) -> impl Iterator<Item = KernelHandle> {
        (0..self.kernels().len()).map(|index| KernelHandle { plugin: self.clone(), index })
    }
}

impl KernelHandle {
    /// The plugin that provides the kernel.
    pub fn plugin(&self) -> &Arc<LoadedPlugin> {
        &self.plugin
    }

    /// Its op, versions, properties and requirements on operands.
    pub fn info(&self) -> &KernelInfo {
        &self.plugin.kernels()[self.index].info
    }

    fn kernel_calls(&self) -> &KernelCalls {
        &self.plugin.kernels()[self.index].calls
    }

    /// Asks the kernel whether it accepts this call. A kernel without the slot accepts all calls that meet its requirements.
    ///
    /// # Safety
    ///
    /// Everything that the call points to is as the contract describes it.
    pub unsafe fn supports(&self, call: &abi::Call) -> Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().supports(call) }.unwrap_or(Ok(()))
    }

    /// True if the kernel has its own shape inference, see [`KernelHandle::infer_shapes`].
    pub fn infers_shapes(&self) -> bool {
        self.kernel_calls().table.infer.is_some()
    }

    /// Lets the kernel compute the dtypes and shapes of its outputs, which it passes to the call's [`HostCall`](crate::HostCall).
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`].
    pub unsafe fn infer_shapes(&self, call: &abi::Call) -> Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().infer(call) }.unwrap_or(Ok(()))
    }

    /// The scratch memory that the kernel needs for the call, in bytes.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`].
    pub unsafe fn workspace_size(&self, call: &abi::Call) -> Result<u64, PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().workspace(call) }.unwrap_or(Ok(0))
    }

    /// Prepares the kernel for one call site. It may describe its algorithm to the [`HostCall`](crate::HostCall) of the call.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`]; operands that are marked constant do not change until the state is dropped.
    pub unsafe fn prepare(&self, call: &abi::Call) -> Result<PreparedKernel, PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { PreparedKernel::new(self.plugin.clone(), *self.kernel_calls(), call) }
    }
}

impl fmt::Debug for KernelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.info().op, self.plugin.info().name)
    }
}

/// A kernel that is prepared for one call site. Dropping it frees the kernel's state.
pub struct PreparedKernel {
    plugin: Arc<LoadedPlugin>,
    calls: KernelCalls,
    state: *mut c_void,
    has_state: bool,
}

// SAFETY: several threads may run one state at once, and any thread may free it (rules K-4 and T-1).
unsafe impl Send for PreparedKernel {}
// SAFETY: as above.
unsafe impl Sync for PreparedKernel {}

impl PreparedKernel {
    /// # Safety
    ///
    /// `calls` are those of a kernel of the plugin, and the call is as for [`KernelHandle::prepare`].
    pub(crate) unsafe fn new(
        plugin: Arc<LoadedPlugin>,
        calls: KernelCalls,
        call: &abi::Call,
    ) -> Result<Self, PluginFailure> {
        // SAFETY: the caller vouches for the call.
        let prepared = unsafe { calls.prepare(call) }.transpose()?;
        plugin.handle_counter().note_taken(HandleKind::KernelState);
        let has_state = prepared.is_some();
        Ok(Self { plugin, calls, state: prepared.unwrap_or(std::ptr::null_mut()), has_state })
    }

    /// Runs the kernel.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`]. The operands match those of the call that the kernel was prepared with, except for
    /// their memory.
    #[inline]
    pub unsafe fn run(&self, call: &abi::Call) -> Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the call, and the state is alive.
        unsafe { self.calls.run(self.state, call) }
    }
}

impl Drop for PreparedKernel {
    fn drop(&mut self) {
        if self.has_state {
            // SAFETY: the kernel made this state, and it is not used again.
            let released = unsafe { self.calls.release(self.state) };
            if let Some(Err(failure)) = released {
                self.plugin.log_warning(&format!("a state of a kernel was not freed: {failure}"));
            }
        }
        self.plugin.handle_counter().note_returned(HandleKind::KernelState);
    }
}

impl fmt::Debug for PreparedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedKernel").field("plugin", &self.plugin.info().name).finish_non_exhaustive()
    }
}

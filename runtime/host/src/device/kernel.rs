//! Kernels as the floors above hold them: each keeps its plugin loaded, and a prepared one keeps its state.
//!
//! What crosses the boundary here is a raw call: the core describes operands in memory of its own pool, where nothing but
//! the core can say that they are right. So these functions are unsafe, and everything that can be checked before is
//! checked there.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::device::live_handles::HandleKind;
use crate::generated::KernelCalls;
use crate::services::errors::{Code, PluginFailure};
use crate::{KernelInfo, LoadedPlugin};

/// What a kernel may ask the maker of a call for while it is at it, on whatever thread.
pub trait CallServices: Sync {
    /// Gives the output its dtype, shape and memory, and makes the call's own tensor show them.
    fn allocate_output(&self, _index: u32, _dtype: abi::Dtype, _dims: &[i64]) -> Result<(), PluginFailure> {
        Err(no_memory_failure())
    }

    /// Hears how the kernel that is being readied will do such calls.
    fn describe_kernel(&self, _way: String) {}
}

/// What `host_call` of a call points to.
pub struct HostCall<'a>(&'a dyn CallServices);

impl<'a> HostCall<'a> {
    /// A call whose kernel is served from here.
    pub fn new(services: &'a dyn CallServices) -> Self {
        Self(services)
    }

    /// For the field `host_call`. Good as long as this is where it is.
    pub fn as_ptr(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    /// Gives an output of a running call its memory.
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

    /// Hears how a kernel does a call; nobody wants to know of one that has no record.
    ///
    /// # Safety
    ///
    /// As for [`HostCall::allocate`].
    pub(crate) unsafe fn describe_kernel(call: *const abi::Call, way: String) {
        // SAFETY: as the caller vouches.
        if let Some(record) = unsafe { Self::from_call(call) } {
            record.0.describe_kernel(way);
        }
    }

    /// # Safety
    ///
    /// As for [`HostCall::allocate`].
    unsafe fn from_call<'call>(call: *const abi::Call) -> Option<&'call HostCall<'call>> {
        // SAFETY: the caller vouches for the call.
        let record = unsafe { (&raw const (*call).host_call).read() }.cast::<HostCall<'_>>();
        // SAFETY: what is behind `host_call` of a running call was put there by its maker, as `HostCall::address`.
        unsafe { record.as_ref() }
    }
}

fn no_memory_failure() -> PluginFailure {
    let message = "expected a call in which outputs may be allocated, found one that has no memory to give; give the \
                   kernel the flag `allocates_outputs`, and pass the call on as it was given";
    PluginFailure::new("host", Code::PRECONDITION_NOT_MET, message)
}

/// A kernel of a loaded plugin.
#[derive(Clone)]
pub struct KernelHandle {
    plugin: Arc<LoadedPlugin>,
    index: usize,
}

impl LoadedPlugin {
    /// Its kernels, each of which keeps the plugin loaded.
    pub fn kernel_handles(self: &Arc<Self>) -> impl Iterator<Item = KernelHandle> {
        (0..self.kernels().len()).map(|index| KernelHandle { plugin: self.clone(), index })
    }
}

impl KernelHandle {
    /// The plugin it came from.
    pub fn plugin(&self) -> &Arc<LoadedPlugin> {
        &self.plugin
    }

    /// What it does and demands.
    pub fn info(&self) -> &KernelInfo {
        &self.plugin.kernels()[self.index].info
    }

    fn kernel_calls(&self) -> &KernelCalls {
        &self.plugin.kernels()[self.index].calls
    }

    /// Whether it takes this very call. Without the slot it takes whatever meets its demands.
    ///
    /// # Safety
    ///
    /// Everything the call points to is what the contract says.
    pub unsafe fn supports(&self, call: &abi::Call) -> Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().supports(call) }.unwrap_or(Ok(()))
    }

    /// Whether it says the dtypes and shapes of its outputs itself, with [`KernelHandle::infer_shapes`].
    pub fn infers_shapes(&self) -> bool {
        self.kernel_calls().table.infer.is_some()
    }

    /// Has it say the dtypes and shapes of its outputs, through the call's [`HostCall`].
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`].
    pub unsafe fn infer_shapes(&self, call: &abi::Call) -> Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().infer(call) }.unwrap_or(Ok(()))
    }

    /// How much scratch memory it needs for the call, in bytes.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`].
    pub unsafe fn workspace_size(&self, call: &abi::Call) -> Result<u64, PluginFailure> {
        // SAFETY: the caller vouches for the call.
        unsafe { self.kernel_calls().workspace(call) }.unwrap_or(Ok(0))
    }

    /// Readies it for one call site. The call's [`HostCall`] hears how it will do it.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`]; operands that are marked constant stay as they are until the state is dropped.
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

/// A kernel that is ready to run for one call site, with its state, which is freed when this is dropped.
pub struct PreparedKernel {
    plugin: Arc<LoadedPlugin>,
    calls: KernelCalls,
    state: *mut c_void,
    has_state: bool,
}

// SAFETY: several threads may run one state at once, and free it on any thread (rules K-4 and T-1).
unsafe impl Send for PreparedKernel {}
// SAFETY: as above.
unsafe impl Sync for PreparedKernel {}

impl PreparedKernel {
    /// # Safety
    ///
    /// The callers are of the plugin, and the call is as for [`KernelHandle::prepare`].
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

    /// Does the work.
    ///
    /// # Safety
    ///
    /// As for [`KernelHandle::supports`]; the operands are as they were in the call it was readied with, except for the
    /// memory they lie in.
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

//! A plugin, loaded the way a host loads it.

#![expect(unsafe_code, reason = "this plays the host, which calls through pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use oarlock_sdk::{Code, Dtype, abi};
use oarlock_small_host::{HostedPlugin, ReportedError};

/// A plugin with an open device 0.
pub struct PluginMachine {
    loaded: HostedPlugin,
    pub(super) context: *mut c_void,
    pub(super) core: abi::CoreTable,
    kernels: Vec<abi::Kernel>,
    /// False if the device only records sources; outputs are not compared then.
    pub(super) computes: bool,
}

// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Send for PluginMachine {}
// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Sync for PluginMachine {}

/// Plugins of this workspace number devices from 0.
pub(super) const DEVICE: u32 = 0;

impl PluginMachine {
    /// Loads a plugin and initializes it. The error says why it has no device.
    pub fn start_plugin(query: abi::PluginQuery) -> Result<Self, String> {
        let start = || {
            let loaded = HostedPlugin::new(query, &[])?;
            loaded.start_devices()?;
            Ok(loaded)
        };
        let loaded = start().map_err(ReportedError::into_text)?;
        let (context, core, kernels) =
            (loaded.abi_plugin().context, loaded.core_table(), loaded.kernel_records());
        Ok(Self { loaded, context, core, kernels, computes: true })
    }

    /// Converts an error of the plugin and frees it.
    fn call_outcome(&self, error: abi::Error) -> Result<(), (Code, String)> {
        self.loaded.result_from_error(error).map_err(|failure| (failure.code, failure.into_text()))
    }

    /// Calls an optional function of a kernel record; without one the call succeeds.
    pub(super) fn call_optional<F>(
        &self,
        function: Option<F>,
        call: impl FnOnce(F) -> abi::Error,
    ) -> Result<(), (Code, String)> {
        function.map_or(Ok(()), |function| self.call_outcome(call(function)))
    }

    /// Finds the kernel record for an op version and for inputs of these dtypes and ranks; `None` is an omitted operand.
    pub(super) fn find_kernel(
        &self,
        op: &str,
        version: u32,
        inputs: &[Option<(Dtype, usize)>],
    ) -> &abi::Kernel {
        let fits = |kernel: &abi::Kernel| {
            // SAFETY: the name lives as long as the plugin.
            let name = unsafe { kernel.op.text() };
            let operands = input_operands(kernel);
            let of = |index: usize| operands.get(index).or(operands.last().filter(|last| is_variadic(last)));
            name == Some(op)
                && kernel.version_min <= version
                && (kernel.version_max == 0 || version <= kernel.version_max)
                && inputs.iter().enumerate().all(|(index, input)| match (of(index), input) {
                    (Some(operand), Some((dtype, rank))) => {
                        operand.dtypes.contains(abi::DtypeSet(1 << dtype.0))
                            && (operand.rank_min as usize..=operand.rank_max as usize).contains(rank)
                    }
                    (Some(operand), None) => operand.bits.contains(abi::OperandFlags::OPTIONAL),
                    (None, _) => false,
                })
        };
        let found = self.kernels.iter().find(|kernel| fits(kernel));
        found.unwrap_or_else(|| panic!("expected a kernel for `{op}` {version} of {inputs:?}, found none"))
    }

    /// Allocates device memory and fills it with `bytes`.
    pub(super) fn upload_bytes(&self, bytes: &[u8]) -> abi::Memory {
        let mut block = abi::Memory(0);
        let (allocate, copy) = (self.core.memory_allocate, self.core.memory_copy_h2d);
        let (allocate, copy) = (allocate.expect("memory_allocate"), copy.expect("memory_copy_h2d"));
        // SAFETY: the context belongs to the plugin, `block` is a local that it may write, and the bytes outlive the call.
        unsafe {
            self.call_outcome(allocate(self.context, DEVICE, bytes.len() as u64, &raw mut block))
                .expect("memory");
            let source = bytes.as_ptr().cast();
            self.call_outcome(copy(self.context, DEVICE, block, 0, source, bytes.len() as u64))
                .expect("a copy");
        }
        block
    }

    /// Reads device memory, then frees it.
    pub(super) fn download_bytes(&self, block: abi::Memory, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        let (copy, deallocate) = (self.core.memory_copy_d2h, self.core.memory_deallocate);
        let (copy, deallocate) = (copy.expect("memory_copy_d2h"), deallocate.expect("memory_deallocate"));
        // SAFETY: the context belongs to the plugin, and the target has `size` bytes that outlive the call.
        unsafe {
            let target = bytes.as_mut_ptr().cast();
            self.call_outcome(copy(self.context, DEVICE, target, size as u64, block, 0)).expect("a copy");
            self.call_outcome(deallocate(self.context, DEVICE, block, size as u64))
                .expect("memory given back");
        }
        bytes
    }
}

/// Operand specs of a kernel's inputs.
pub(super) fn input_operands(kernel: &abi::Kernel) -> Vec<abi::Operand> {
    let count = kernel.inputs_count as usize;
    // SAFETY: the lists of a record live as long as the plugin and match their counts.
    (0..count).map(|index| unsafe { **kernel.inputs.add(index) }).collect()
}

pub(super) fn is_variadic(operand: &abi::Operand) -> bool {
    operand.bits.contains(abi::OperandFlags::VARIADIC)
}

/// Initial value for the state pointer that `prepare` fills.
pub(super) fn no_state() -> *mut c_void {
    null_mut()
}

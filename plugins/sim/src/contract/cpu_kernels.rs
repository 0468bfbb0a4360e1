//! Kernels of the simulated device: wrapped kernels of the CPU plugin.
//!
//! The CPU plugin is linked in and queried as a host would query it. Each of its kernels is registered as one of this device.
//! Support and workspace queries go straight to the CPU kernel. A run is deferred until its stream gets to it, and then works on
//! copies of its operands. Kernels that compute the shapes of their outputs cannot be deferred: they wait for their stream.

#![expect(
    unsafe_code,
    reason = "kernels are called through pointers from C, and shown as records of the contract"
)]

use std::ffi::c_void;
use std::sync::Arc;

use oarlock_sdk::{
    DtypeSet, HostServices, KernelFlags, PluginError, Result, abi, copy_sized, guard_call,
    instance_from_context,
};

use super::deferred_call::DeferredCall;
use super::staged_call::{OutputAllocate, PendingHostCall, allocate_output, run_staged};
use super::{SimPlugin, to_sim_error};
use crate::device::SimDevice;
use crate::error::SimError;

/// The name of a kernel run in scripts.
pub(super) const RUN_CALL: &str = "run";

/// The CPU plugin, and its kernels as this device registers them.
pub(super) struct SimKernels {
    _cpu: LoadedCpuPlugin,
    #[expect(clippy::vec_box, reason = "a record holds the address of its row")]
    _rows: Vec<Box<SimKernel>>,
    _records: Vec<*const abi::Kernel>,
    table: Box<abi::KernelTable>,
    /// The host's services as the CPU plugin sees them.
    _services: Box<abi::HostTable>,
}

/// Unloads the CPU plugin when dropped.
struct LoadedCpuPlugin(abi::Plugin);

struct SimKernel {
    shown: abi::Kernel,
    cpu: abi::Kernel,
    host: HostServices,
    /// The host's function for allocating outputs.
    allocate: Option<OutputAllocate>,
    /// Context of the simulator plugin.
    plugin: *mut c_void,
    /// Backing storage for the pointers in the registered record.
    _operands: [Vec<abi::Operand>; 2],
    _pointers: [Vec<*const abi::Operand>; 2],
}

// SAFETY: the pointers lead into lists of the same struct, which is never modified, and to plugins that may be called on any
// thread (rule T-1).
unsafe impl Send for SimKernels {}
// SAFETY: as above.
unsafe impl Sync for SimKernels {}

impl SimKernels {
    /// Queries the CPU plugin for its kernels and selects those of `ops`, or all.
    ///
    /// # Safety
    ///
    /// `host` is the host that queries this plugin and outlives it, and `plugin` is the context in this plugin's answer.
    pub(super) unsafe fn new(
        host: *const abi::Host,
        plugin: *mut c_void,
        ops: Option<&[String]>,
    ) -> Result<Self> {
        // SAFETY: the caller guarantees the host, and with it the services.
        let (asking, services) = unsafe {
            let asking = copy_sized(host, abi::Host::EMPTY);
            (asking, copy_sized(asking.services, abi::HostTable::EMPTY))
        };
        let allocate = services.output_allocate;
        let services = Box::new(abi::HostTable { output_allocate: Some(allocate_output), ..services });
        let asking = abi::Host { services: &raw const *services, ..asking };
        let mut cpu = abi::Plugin::EMPTY;
        // SAFETY: both structs are complete, and the services live until the CPU plugin is unloaded.
        let failure = unsafe { oarlock_plugin_cpu::QUERY(&raw const asking, &raw mut cpu) };
        // SAFETY: the caller guarantees the context.
        let (_, host) = unsafe { instance_from_context::<SimPlugin>(plugin) };
        host.result_from_error(failure)?;
        let cpu = LoadedCpuPlugin(cpu);
        // SAFETY: the CPU plugin has kernels, and its table lives until it is unloaded.
        let rows: Vec<Box<SimKernel>> = unsafe {
            let table = *cpu.0.kernels;
            let kernels = (0..table.kernels_count as usize).map(|index| **table.kernels.add(index));
            let kernels = select_kernels(kernels.collect(), ops)?.into_iter();
            kernels.filter_map(|kernel| SimKernel::new(kernel, host, allocate, plugin)).collect()
        };
        let records: Vec<*const abi::Kernel> = rows.iter().map(|row| &raw const row.shown).collect();
        let table = Box::new(abi::KernelTable {
            kernels: records.as_ptr(),
            kernels_count: records.len() as u64,
            ..abi::KernelTable::EMPTY
        });
        Ok(Self { _cpu: cpu, _rows: rows, _records: records, table, _services: services })
    }

    /// The kernel table for the host.
    pub(super) fn kernel_table(&self) -> *const abi::KernelTable {
        &raw const *self.table
    }
}

/// Selects the kernels of the ops that a script names; an unknown name is an error, since it would select nothing.
///
/// # Safety
///
/// The records belong to a loaded plugin.
unsafe fn select_kernels(mut kernels: Vec<abi::Kernel>, ops: Option<&[String]>) -> Result<Vec<abi::Kernel>> {
    let Some(ops) = ops else { return Ok(kernels) };
    // SAFETY: the names live as long as the plugin.
    let is_of = |kernel: &abi::Kernel, op: &String| unsafe { kernel.op.text() } == Some(op);
    if let Some(unknown) = ops.iter().find(|op| !kernels.iter().any(|kernel| is_of(kernel, op))) {
        return Err(PluginError::invalid_argument(format!(
            "the sim script: expected ops that the CPU has kernels of, found `{unknown}`"
        )));
    }
    kernels.retain(|kernel| ops.iter().any(|op| is_of(kernel, op)));
    Ok(kernels)
}

impl Drop for LoadedCpuPlugin {
    fn drop(&mut self) {
        if let Some(unload) = self.0.unload {
            // SAFETY: the host is done with this plugin, and this plugin with the CPU plugin. An error here has no remedy.
            _ = unsafe { unload(self.0.context) };
        }
    }
}

impl SimKernel {
    /// Wraps a kernel of the CPU. Returns `None` for kernels that only take strings, which stay in host memory.
    ///
    /// # Safety
    ///
    /// The lists of the record match their counts.
    unsafe fn new(
        cpu: abi::Kernel,
        host: HostServices,
        allocate: Option<OutputAllocate>,
        plugin: *mut c_void,
    ) -> Option<Box<Self>> {
        let list = |operands: *const *const abi::Operand, count: u64| -> Option<Vec<abi::Operand>> {
            let numbers = |index| {
                // SAFETY: the caller guarantees the list.
                let operand = unsafe { **operands.add(index) };
                let dtypes = DtypeSet(operand.dtypes.0 & !DtypeSet::STRING.0);
                (dtypes.0 != 0).then_some(abi::Operand { dtypes, ..operand })
            };
            (0..count as usize).map(numbers).collect()
        };
        let operands = [list(cpu.inputs, cpu.inputs_count)?, list(cpu.outputs, cpu.outputs_count)?];
        let pointers =
            operands.each_ref().map(|list| list.iter().map(std::ptr::from_ref).collect::<Vec<_>>());
        let bits = if allocates_outputs(&cpu) { cpu.bits } else { cpu.bits | KernelFlags::ASYNCHRONOUS };
        let shown = abi::Kernel {
            bits,
            inputs: pointers[0].as_ptr(),
            outputs: pointers[1].as_ptr(),
            supports: cpu.supports.and(Some(kernel_supports)),
            infer: None,
            workspace: cpu.workspace.and(Some(kernel_workspace)),
            prepare: Some(kernel_prepare),
            run: Some(kernel_run),
            release: Some(kernel_release),
            ..cpu
        };
        let mut row =
            Box::new(Self { shown, cpu, host, allocate, plugin, _operands: operands, _pointers: pointers });
        row.shown.context = (&raw const *row).cast_mut().cast();
        Some(row)
    }

    /// The kernel behind a record's context.
    ///
    /// # Safety
    ///
    /// `context` is the context of a record that this plugin registered.
    unsafe fn from_context<'a>(context: *mut c_void) -> &'a Self {
        // SAFETY: the caller guarantees the context; a kernel is never modified and lives as long as the plugin.
        unsafe { &*context.cast::<Self>() }
    }
}

fn allocates_outputs(kernel: &abi::Kernel) -> bool {
    kernel.bits.contains(KernelFlags::ALLOCATES_OUTPUTS)
}

/// State of a CPU kernel. Work that waits in a stream keeps it alive.
struct CpuKernelState {
    cpu: abi::Kernel,
    state: *mut c_void,
    host: HostServices,
    /// The call that `prepare` saw, copied: the host's constants stay unchanged only until the host drops the state.
    call: DeferredCall,
}

// SAFETY: several threads may run one state at once, and any thread may free it (rules K-4 and T-1).
unsafe impl Send for CpuKernelState {}
// SAFETY: as above.
unsafe impl Sync for CpuKernelState {}

impl CpuKernelState {
    fn new(row: &SimKernel, call: DeferredCall) -> std::result::Result<Self, abi::Error> {
        let mut made = Self { cpu: row.cpu, state: std::ptr::null_mut(), host: row.host, call };
        let (prepare, state) = (row.cpu.prepare, &raw mut made.state);
        // SAFETY: the call is complete, and `state` is a local that the kernel may write.
        let prepare =
            |call: &abi::Call| prepare.map(|prepare| unsafe { prepare(row.cpu.context, call, state) });
        match made.call.with_call(prepare).filter(|failure| failure.is_some()) {
            Some(failure) => Err(failure),
            None => Ok(made),
        }
    }

    /// Runs the kernel on a call whose operands are staged in host memory.
    fn run_deferred(
        &self,
        kept: DeferredCall,
        host: Option<PendingHostCall<'_>>,
        device: &SimDevice,
    ) -> Result<(), SimError> {
        run_staged(kept, host, device, |call| {
            // SAFETY: the operands lie in memory that lives until the kernel returns, and the state is alive.
            let failure = self
                .cpu
                .run
                .map_or(abi::Error::NONE, |run| unsafe { run(self.cpu.context, self.state, call) });
            self.host.result_from_error(failure).map_err(|error| to_sim_error(&error))
        })
    }
}

impl Drop for CpuKernelState {
    fn drop(&mut self) {
        if let Some(release) = self.cpu.release {
            // SAFETY: the kernel created this state, and it is not used again.
            let failure = unsafe { release(self.cpu.context, self.state) };
            // An error has no remedy here, but its number must go back to the host.
            _ = self.host.result_from_error(failure);
        }
    }
}

/// Forwards a query about a call to the CPU kernel. The host reads the answer.
///
/// # Safety
///
/// `context` is the context of a record that this plugin registered, and `call` is one that the host asks about.
unsafe fn ask_cpu_kernel(
    context: *mut c_void,
    call: *const abi::Call,
    question: impl FnOnce(&SimKernel, DeferredCall) -> abi::Error,
) -> abi::Error {
    // SAFETY: the caller guarantees both.
    let (row, call) = unsafe { (SimKernel::from_context(context), call.as_ref()) };
    let mut answer = abi::Error::NONE;
    let failure = guard_call(&row.host, || {
        let call = call.ok_or_else(|| PluginError::invalid_argument("expected a call, found null"))?;
        // SAFETY: the caller guarantees the call.
        answer = question(row, unsafe { DeferredCall::copy_call(call) });
        Ok(())
    });
    if failure.is_some() { failure } else { answer }
}

unsafe extern "C" fn kernel_supports(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the host passes the context of a record together with its own call, and the kernel gets a copy of the call.
    unsafe {
        ask_cpu_kernel(context, call, |row, kept| match row.cpu.supports {
            Some(supports) => kept.with_call(|call| supports(row.cpu.context, call)),
            None => abi::Error::NONE,
        })
    }
}

unsafe extern "C" fn kernel_workspace(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host passes the context of a record together with its own call, and `size` may be written.
    unsafe {
        ask_cpu_kernel(context, call, |row, kept| match row.cpu.workspace {
            Some(workspace) => kept.with_call(|call| workspace(row.cpu.context, call, size)),
            None => abi::Error::NONE,
        })
    }
}

unsafe extern "C" fn kernel_prepare(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes the context of a record together with its own call, and `state` may be written.
    unsafe {
        ask_cpu_kernel(context, call, |row, kept| match CpuKernelState::new(row, kept) {
            Ok(made) => {
                state.write(Box::into_raw(Box::new(Arc::new(made))).cast());
                abi::Error::NONE
            }
            Err(failure) => failure,
        })
    }
}

unsafe extern "C" fn kernel_run(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host passes the context of a record.
    let row = unsafe { SimKernel::from_context(context) };
    guard_call(&row.host, || {
        // SAFETY: the host makes the call with a state that `prepare` created and `release` has not freed.
        let (call, state) = unsafe { (call.as_ref(), state.cast::<Arc<CpuKernelState>>().as_ref()) };
        let (Some(call), Some(state)) = (call, state) else {
            return Err(PluginError::invalid_argument("expected a call and a state, found null"));
        };
        // SAFETY: the host is making the call.
        let kept = unsafe { DeferredCall::copy_call(call) };
        let (device, state) = (call.device, Arc::clone(state));
        // SAFETY: a kernel holds the context of this plugin.
        let (sim, _) = unsafe { instance_from_context::<SimPlugin>(row.plugin) };
        sim.submit_work(device, call.queue, |engine, stream| {
            if let Some(allocate) = row.allocate.filter(|_| allocates_outputs(&row.cpu)) {
                let host = Some(PendingHostCall { call, allocate });
                return engine.execute_kernel(RUN_CALL, device, stream, |device| {
                    state.run_deferred(kept, host, device)
                });
            }
            engine.enqueue_kernel(RUN_CALL, device, stream, move |device| {
                state.run_deferred(kept, None, device)
            })
        })
    })
}

unsafe extern "C" fn kernel_release(context: *mut c_void, state: *mut c_void) -> abi::Error {
    // SAFETY: the host passes the context of a record.
    let row = unsafe { SimKernel::from_context(context) };
    guard_call(&row.host, || {
        if !state.is_null() {
            // SAFETY: `prepare` created this state, and it is freed only once.
            drop(unsafe { Box::from_raw(state.cast::<Arc<CpuKernelState>>()) });
        }
        Ok(())
    })
}

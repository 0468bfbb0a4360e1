//! The kernels of the device: those of the CPU, with a detour.
//!
//! The CPU plugin is linked in and asked as a host asks it. Each of its kernels is shown as one of this device. Questions
//! about a call go straight to the CPU's functions. A run is kept until its stream gets to it, and is then done on copies
//! of its operands. Kernels that find out the shapes of their outputs cannot leave work behind: they wait for their stream.

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

/// What scripts call a run of a kernel.
pub(super) const RUN_CALL: &str = "run";

/// The CPU plugin, and its kernels as this device shows them.
pub(super) struct SimKernels {
    _cpu: LoadedCpuPlugin,
    #[expect(clippy::vec_box, reason = "a record holds the address of its row")]
    _rows: Vec<Box<SimKernel>>,
    _records: Vec<*const abi::Kernel>,
    table: Box<abi::KernelTable>,
    /// The services of the host, as the CPU plugin sees them.
    _services: Box<abi::HostTable>,
}

/// The CPU plugin, unloaded when dropped.
struct LoadedCpuPlugin(abi::Plugin);

/// One kernel.
struct SimKernel {
    shown: abi::Kernel,
    cpu: abi::Kernel,
    host: HostServices,
    /// How the host gives outputs their memory.
    allocate: Option<OutputAllocate>,
    /// The context of this plugin.
    plugin: *mut c_void,
    /// What the shown record points to.
    _operands: [Vec<abi::Operand>; 2],
    _pointers: [Vec<*const abi::Operand>; 2],
}

// SAFETY: the pointers lead into lists of the same struct, which is never changed, and to plugins that may be called on
// any thread (rule T-1).
unsafe impl Send for SimKernels {}
// SAFETY: as above.
unsafe impl Sync for SimKernels {}

impl SimKernels {
    /// Asks the CPU plugin for its kernels, and takes those of some ops, or all.
    ///
    /// # Safety
    ///
    /// `host` is the host that asks this plugin, which outlives it, and `plugin` the context of this plugin's answer.
    pub(super) unsafe fn new(
        host: *const abi::Host,
        plugin: *mut c_void,
        ops: Option<&[String]>,
    ) -> Result<Self> {
        // SAFETY: the caller vouches for the host and so for its services.
        let (asking, services) = unsafe {
            let asking = copy_sized(host, abi::Host::EMPTY);
            (asking, copy_sized(asking.services, abi::HostTable::EMPTY))
        };
        let allocate = services.output_allocate;
        let services = Box::new(abi::HostTable { output_allocate: Some(allocate_output), ..services });
        let asking = abi::Host { services: &raw const *services, ..asking };
        let mut cpu = abi::Plugin::EMPTY;
        // SAFETY: both structs are whole, and the services live until the CPU plugin is unloaded.
        let failure = unsafe { oarlock_plugin_cpu::QUERY(&raw const asking, &raw mut cpu) };
        // SAFETY: the caller vouches for the context.
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

    /// The table to show the host.
    pub(super) fn kernel_table(&self) -> *const abi::KernelTable {
        &raw const *self.table
    }
}

/// The kernels of the ops that a script names. A misspelt name would mean none.
///
/// # Safety
///
/// The records are those of a plugin that is loaded.
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
            // SAFETY: the host is done with this plugin, and this plugin with the CPU's. There is nothing to do about an error.
            _ = unsafe { unload(self.0.context) };
        }
    }
}

impl SimKernel {
    /// A kernel of the CPU as one of this device; none where it is for strings alone, which lie in the host's memory.
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
                // SAFETY: the caller vouches for the list.
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

    /// The row behind a context.
    ///
    /// # Safety
    ///
    /// `context` is the context of a record that this plugin has shown.
    unsafe fn from_context<'a>(context: *mut c_void) -> &'a Self {
        // SAFETY: the caller vouches for the context; a row is never changed, and lives as long as the plugin.
        unsafe { &*context.cast::<Self>() }
    }
}

fn allocates_outputs(kernel: &abi::Kernel) -> bool {
    kernel.bits.contains(KernelFlags::ALLOCATES_OUTPUTS)
}

/// The state of a kernel of the CPU. Work that waits in a stream keeps it.
struct CpuKernelState {
    cpu: abi::Kernel,
    state: *mut c_void,
    host: HostServices,
    /// The call it was made for. The host's constants stay as they are only until the host drops the state.
    call: DeferredCall,
}

// SAFETY: several threads may run one state at once, and free it on any thread (rules K-4 and T-1).
unsafe impl Send for CpuKernelState {}
// SAFETY: as above.
unsafe impl Sync for CpuKernelState {}

impl CpuKernelState {
    fn new(row: &SimKernel, call: DeferredCall) -> std::result::Result<Self, abi::Error> {
        let mut made = Self { cpu: row.cpu, state: std::ptr::null_mut(), host: row.host, call };
        let (prepare, state) = (row.cpu.prepare, &raw mut made.state);
        // SAFETY: the call is whole, and the state is there to be written.
        let prepare =
            |call: &abi::Call| prepare.map(|prepare| unsafe { prepare(row.cpu.context, call, state) });
        match made.call.with_call(prepare).filter(|failure| failure.is_some()) {
            Some(failure) => Err(failure),
            None => Ok(made),
        }
    }

    /// Runs the kernel on a call whose operands are taken out of the device.
    fn run_deferred(
        &self,
        kept: DeferredCall,
        host: Option<PendingHostCall<'_>>,
        device: &SimDevice,
    ) -> Result<(), SimError> {
        run_staged(kept, host, device, |call| {
            // SAFETY: the operands lie in memory that is there until the kernel returns, and the state is alive.
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
            // SAFETY: the kernel made this state, and it is not used again.
            let failure = unsafe { release(self.cpu.context, self.state) };
            // There is nothing to do about an error, but its number goes back to the host.
            _ = self.host.result_from_error(failure);
        }
    }
}

/// Puts a question about a call to the CPU's kernel. What it answers is the host's to read.
///
/// # Safety
///
/// `context` is the context of a record that this plugin has shown, and `call` one that the host asks about.
unsafe fn ask_cpu_kernel(
    context: *mut c_void,
    call: *const abi::Call,
    question: impl FnOnce(&SimKernel, DeferredCall) -> abi::Error,
) -> abi::Error {
    // SAFETY: the caller vouches for both.
    let (row, call) = unsafe { (SimKernel::from_context(context), call.as_ref()) };
    let mut answer = abi::Error::NONE;
    let failure = guard_call(&row.host, || {
        let call = call.ok_or_else(|| PluginError::invalid_argument("expected a call, found null"))?;
        // SAFETY: the caller vouches for the call.
        answer = question(row, unsafe { DeferredCall::copy_call(call) });
        Ok(())
    });
    if failure.is_some() { failure } else { answer }
}

unsafe extern "C" fn kernel_supports(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the host hands back the context of a record with a call of its own, of which the kernel gets a copy.
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
    // SAFETY: as above, and the size is the host's to have written.
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
    // SAFETY: as above, and the state is the host's to have written.
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
    // SAFETY: the host hands back the context of a record.
    let row = unsafe { SimKernel::from_context(context) };
    guard_call(&row.host, || {
        // SAFETY: the host makes the call with a state that `prepare` made and `release` has not freed.
        let (call, state) = unsafe { (call.as_ref(), state.cast::<Arc<CpuKernelState>>().as_ref()) };
        let (Some(call), Some(state)) = (call, state) else {
            return Err(PluginError::invalid_argument("expected a call and a state, found null"));
        };
        // SAFETY: the host is making the call.
        let kept = unsafe { DeferredCall::copy_call(call) };
        let (device, state) = (call.device, Arc::clone(state));
        // SAFETY: a row has the context of this plugin.
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
    // SAFETY: the host hands back the context of a record.
    let row = unsafe { SimKernel::from_context(context) };
    guard_call(&row.host, || {
        if !state.is_null() {
            // SAFETY: the state is one that `prepare` made, and it is freed once.
            drop(unsafe { Box::from_raw(state.cast::<Arc<CpuKernelState>>()) });
        }
        Ok(())
    })
}

//! A call when it runs: its operands are copied out of device memory, and its outputs are copied back.
//!
//! A CPU kernel works on copies in host memory, so it can reach nothing of the device but what its call names. Everything it
//! writes, workspace included, arrives on the device at once after the kernel, so if two calls were wrongly given the same
//! memory, one of them loses its data.

#![expect(unsafe_code, reason = "a call is a struct of pointers, and kernels are called through a C table")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Dtype, MemoryKind, abi};

use super::deferred_call::{DeferredCall, OperandBuffer};
use crate::device::SimDevice;
use crate::error::SimError;
use crate::memory::{DeviceAddress, FRESH_POISON};

/// The host's function for allocating an output.
pub(super) type OutputAllocate =
    unsafe extern "C" fn(*mut c_void, *const abi::Call, u32, abi::Dtype, *const i64, u64) -> abi::Error;

/// A call whose operands are staged in host memory.
pub(super) struct StagedCall<'a> {
    /// Staged inputs.
    _inputs: Vec<OperandBuffer>,
    outputs: Vec<UnsafeCell<abi::Tensor>>,
    /// Staged outputs, to be copied back to the device.
    written: Mutex<Vec<(DeviceAddress, OperandBuffer)>>,
    host: Option<PendingHostCall<'a>>,
}

/// The call that the host is making right now, and its function for allocating outputs.
#[derive(Clone, Copy)]
pub(super) struct PendingHostCall<'a> {
    pub(super) call: &'a abi::Call,
    pub(super) allocate: OutputAllocate,
}

/// Runs a kernel on copies of a call's operands; `run` gets the staged call. With a pending host call, the kernel may allocate
/// outputs.
pub(super) fn run_staged(
    mut kept: DeferredCall,
    host: Option<PendingHostCall<'_>>,
    device: &SimDevice,
    run: impl FnOnce(&abi::Call) -> Result<(), SimError>,
) -> Result<(), SimError> {
    let mut inputs = Vec::new();
    for input in kept.inputs.iter_mut().filter(|input| is_on_device(input)) {
        let mut buffer = OperandBuffer::filled_with(input.size_in_bytes as usize, 0);
        device.with_bytes(operand_address(input), input.size_in_bytes, |bytes| {
            buffer.as_bytes_mut().copy_from_slice(bytes);
        })?;
        check_bools(input, buffer.as_bytes())?;
        (input.block, input.offset) = (buffer.as_device_memory(), 0);
        inputs.push(buffer);
    }
    let opened = StagedCall {
        _inputs: inputs,
        outputs: kept.outputs.iter().map(|output| UnsafeCell::new(*output)).collect(),
        written: Mutex::default(),
        host,
    };
    for (index, output) in kept.outputs.iter().enumerate().filter(|(_, output)| is_on_device(output)) {
        // Report freed memory before the kernel runs in vain.
        device.with_bytes(operand_address(output), output.size_in_bytes, |_| ())?;
        opened.stage_output(index, output);
    }
    let scratch = DeviceAddress::new(kept.call.workspace.0, kept.call.workspace_offset);
    let mut workspace = OperandBuffer::filled_with(kept.call.workspace_size as usize, FRESH_POISON);
    let inputs: Vec<*const abi::Tensor> = kept.inputs.iter().map(std::ptr::from_ref).collect();
    let outputs: Vec<*const abi::Tensor> =
        opened.outputs.iter().map(|output| output.get().cast_const()).collect();
    let call = abi::Call {
        inputs: inputs.as_ptr(),
        outputs: outputs.as_ptr(),
        workspace: workspace.as_device_memory(),
        workspace_offset: 0,
        host_call: (&raw const opened).cast_mut().cast(),
        ..kept.call
    };
    run(&call)?;
    let written = opened.written.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (place, buffer) in written.iter().chain([&(scratch, workspace)]) {
        let bytes = buffer.as_bytes();
        device.with_bytes_mut(*place, bytes.len() as u64, |target| target.copy_from_slice(bytes))?;
        device.charge_bytes(bytes.len() as u64);
    }
    Ok(())
}

impl StagedCall<'_> {
    /// Stages an output that the host has allocated; it is copied back when the kernel is done.
    fn stage_output(&self, index: usize, output: &abi::Tensor) {
        let poison = if output.dtype == Dtype::BOOL { 1 } else { FRESH_POISON };
        let mut buffer = OperandBuffer::filled_with(output.size_in_bytes as usize, poison);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = self.outputs.get(index) {
            let opened = abi::Tensor { block: buffer.as_device_memory(), offset: 0, ..*output };
            // SAFETY: nothing else writes while the lock is held, and the kernel that reads is waiting for this function.
            unsafe { shown.get().write(opened) };
            written.push((operand_address(output), buffer));
        }
    }
}

/// The host's output-allocation service as CPU kernels see it: an output that the host allocates is staged like the others.
///
/// # Safety
///
/// `call` is one that a CPU kernel is running, and the other arguments follow the contract.
pub(super) unsafe extern "C" fn allocate_output(
    context: *mut c_void,
    call: *const abi::Call,
    index: u32,
    dtype: abi::Dtype,
    dims: *const i64,
    dims_count: u64,
) -> abi::Error {
    // SAFETY: `host_call` of a call that a kernel sees is null, or was set by `run_staged`, which waits for the kernel.
    let opened = unsafe { (*call).host_call.cast::<StagedCall<'_>>().as_ref() };
    let Some((opened, PendingHostCall { call, allocate })) =
        opened.and_then(|opened| Some((opened, opened.host?)))
    else {
        // The kernel asks where it must not. The host issued no error number for this, since it was not asked.
        return abi::Error(u64::MAX);
    };
    // SAFETY: the host gets back the call that it is making, and describes in it the output it allocates.
    let failure = unsafe { allocate(context, call, index, dtype, dims, dims_count) };
    if !failure.is_some() {
        // SAFETY: as above; the host has just reported that this output exists.
        let output = unsafe { **call.outputs.add(index as usize) };
        opened.stage_output(index as usize, &output);
    }
    failure
}

fn operand_address(tensor: &abi::Tensor) -> DeviceAddress {
    DeviceAddress::new(tensor.block.0, tensor.offset)
}

fn is_on_device(tensor: &abi::Tensor) -> bool {
    let is_left_out = tensor.bits.contains(abi::TensorFlags::ABSENT);
    tensor.place == MemoryKind::DEVICE && !is_left_out && tensor.size_in_bytes > 0
}

/// Refuses a `bool` that is neither 0 nor 1. Every byte pattern is valid for every other dtype, and in the gaps of an operand with
/// strides.
fn check_bools(tensor: &abi::Tensor, bytes: &[u8]) -> Result<(), SimError> {
    let is_checked = tensor.dtype == Dtype::BOOL && tensor.strides_count == 0;
    match bytes.iter().find(|byte| is_checked && **byte > 1) {
        Some(byte) => Err(SimError::invalid_argument(format!(
            "expected bytes of 0 and 1 in an operand of bool, found {byte:#x}, as in memory that nobody wrote"
        ))),
        None => Ok(()),
    }
}

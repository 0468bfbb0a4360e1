//! A call at the moment it runs: its operands are taken out of the device's memory, and put back behind it.
//!
//! A kernel of the CPU gets copies in the host's memory, so it can reach nothing of the device but what its call names. What
//! it writes, scratch memory included, arrives on the device in one go, so whoever was wrongly given the same memory
//! loses what is in it.

#![expect(unsafe_code, reason = "a call is a struct of pointers, and kernels are called through a C table")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Dtype, MemoryKind, abi};

use super::kept::{Buffer, Kept};
use crate::device::SimDevice;
use crate::error::SimError;
use crate::memory::{FRESH_POISON, Place};

/// How the host gives an output its memory.
pub(super) type OutputAllocate =
    unsafe extern "C" fn(*mut c_void, *const abi::Call, u32, abi::Dtype, *const i64, u64) -> abi::Error;

/// A call whose operands lie in memory of the host's.
pub(super) struct Opened<'a> {
    /// What was taken out of the device to be read.
    _inputs: Vec<Buffer>,
    outputs: Vec<UnsafeCell<abi::Tensor>>,
    /// What goes back to the device.
    written: Mutex<Vec<(Place, Buffer)>>,
    host: Option<Making<'a>>,
}

/// The host's own call, while the host is making it, and how it gives outputs their memory.
#[derive(Clone, Copy)]
pub(super) struct Making<'a> {
    pub(super) call: &'a abi::Call,
    pub(super) allocate: OutputAllocate,
}

/// Runs a kernel on copies of what a call names; `run` gets the call. While the host is making its own call, the kernel may
/// ask for outputs.
pub(super) fn run_opened(
    mut kept: Kept,
    host: Option<Making<'_>>,
    device: &SimDevice,
    run: impl FnOnce(&abi::Call) -> Result<(), SimError>,
) -> Result<(), SimError> {
    let mut inputs = Vec::new();
    for input in kept.inputs.iter_mut().filter(|input| is_on_device(input)) {
        let mut buffer = Buffer::filled(input.size_in_bytes as usize, 0);
        device.with_bytes(place(input), input.size_in_bytes, |bytes| {
            buffer.bytes_mut().copy_from_slice(bytes);
        })?;
        check_bools(input, buffer.bytes())?;
        (input.block, input.offset) = (buffer.address(), 0);
        inputs.push(buffer);
    }
    let opened = Opened {
        _inputs: inputs,
        outputs: kept.outputs.iter().map(|output| UnsafeCell::new(*output)).collect(),
        written: Mutex::default(),
        host,
    };
    for (index, output) in kept.outputs.iter().enumerate().filter(|(_, output)| is_on_device(output)) {
        // Memory that is gone is found before the kernel runs in vain.
        device.with_bytes(place(output), output.size_in_bytes, |_| ())?;
        opened.open(index, output);
    }
    let scratch = Place::new(kept.call.workspace.0, kept.call.workspace_offset);
    let mut workspace = Buffer::filled(kept.call.workspace_size as usize, FRESH_POISON);
    let inputs: Vec<*const abi::Tensor> = kept.inputs.iter().map(std::ptr::from_ref).collect();
    let outputs: Vec<*const abi::Tensor> =
        opened.outputs.iter().map(|output| output.get().cast_const()).collect();
    let call = abi::Call {
        inputs: inputs.as_ptr(),
        outputs: outputs.as_ptr(),
        workspace: workspace.address(),
        workspace_offset: 0,
        host_call: (&raw const opened).cast_mut().cast(),
        ..kept.call
    };
    run(&call)?;
    let written = opened.written.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (place, buffer) in written.iter().chain([&(scratch, workspace)]) {
        let bytes = buffer.bytes();
        device.with_bytes_mut(*place, bytes.len() as u64, |target| target.copy_from_slice(bytes))?;
        device.charge(bytes.len() as u64);
    }
    Ok(())
}

impl Opened<'_> {
    /// Gives an output memory of the host's, which is copied to its own when the kernel is done.
    fn open(&self, index: usize, output: &abi::Tensor) {
        let poison = if output.dtype == Dtype::BOOL { 1 } else { FRESH_POISON };
        let mut buffer = Buffer::filled(output.size_in_bytes as usize, poison);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = self.outputs.get(index) {
            let opened = abi::Tensor { block: buffer.address(), offset: 0, ..*output };
            // SAFETY: nobody else writes while the lock is held, and the kernel that reads waits for this.
            unsafe { shown.get().write(opened) };
            written.push((place(output), buffer));
        }
    }
}

/// The host's service for outputs, as kernels of the CPU see it: what the host gives an output is opened like the others.
///
/// # Safety
///
/// `call` is one that a kernel of the CPU is looking at, and the rest is as the contract says.
pub(super) unsafe extern "C" fn allocate_output(
    context: *mut c_void,
    call: *const abi::Call,
    index: u32,
    dtype: abi::Dtype,
    dims: *const i64,
    dims_count: u64,
) -> abi::Error {
    // SAFETY: `host_call` of a call that a kernel looks at is null, or was put there by `run_opened`, which waits for it.
    let opened = unsafe { (*call).host_call.cast::<Opened<'_>>().as_ref() };
    let Some((opened, Making { call, allocate })) = opened.and_then(|opened| Some((opened, opened.host?)))
    else {
        // A kernel that asks where it must not. The host has no error for that, as it is not asked.
        return abi::Error(u64::MAX);
    };
    // SAFETY: the host gets back the call it is making, in which it describes the output it gives.
    let failure = unsafe { allocate(context, call, index, dtype, dims, dims_count) };
    if !failure.is_some() {
        // SAFETY: as above; the host has just said that there is this output.
        let output = unsafe { **call.outputs.add(index as usize) };
        opened.open(index as usize, &output);
    }
    failure
}

fn place(tensor: &abi::Tensor) -> Place {
    Place::new(tensor.block.0, tensor.offset)
}

fn is_on_device(tensor: &abi::Tensor) -> bool {
    let is_left_out = tensor.bits.contains(abi::TensorFlags::ABSENT);
    tensor.place == MemoryKind::DEVICE && !is_left_out && tensor.size_in_bytes > 0
}

/// Any byte is an element of every other dtype.
fn check_bools(tensor: &abi::Tensor, bytes: &[u8]) -> Result<(), SimError> {
    match bytes.iter().find(|byte| tensor.dtype == Dtype::BOOL && **byte > 1) {
        Some(byte) => Err(SimError::invalid(format!(
            "expected bytes of 0 and 1 in an operand of bool, found {byte:#x}, as in memory that nobody wrote"
        ))),
        None => Ok(()),
    }
}

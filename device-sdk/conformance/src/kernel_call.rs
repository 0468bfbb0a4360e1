//! Calls of kernels under test, and their prepared states.

#![expect(unsafe_code, reason = "kernels are called through raw pointers")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::bench::{CallError, TestBench, Verdict, slot};
use crate::device::{DeviceUnderTest, TestBlock};
use crate::kernel_record::KernelUnderTest;

impl<'a> KernelUnderTest<'a> {
    /// Asks the kernel whether it accepts a call; the inner result is its answer.
    pub(crate) fn supports(self, bench: &TestBench, call: &abi::Call) -> Verdict<Result<(), CallError>> {
        if self.raw.supports.is_none() {
            return Ok(Ok(()));
        }
        Ok(slot!(bench, self.raw.context => self.raw, supports(call)))
    }

    pub(crate) fn workspace_size(self, bench: &TestBench, call: &abi::Call) -> Verdict<u64> {
        let mut size = 0;
        if self.raw.workspace.is_some() {
            slot!(bench, self.raw.context => self.raw, workspace(call, &raw mut size))?;
        }
        Ok(size)
    }

    /// Prepares the kernel for calls like this one.
    pub(crate) fn prepare(self, bench: &'a TestBench, call: &abi::Call) -> Verdict<PreparedState<'a>> {
        let mut state = std::ptr::null_mut();
        if self.raw.prepare.is_some() {
            slot!(bench, self.raw.context => self.raw, prepare(call, &raw mut state))?;
        }
        Ok(PreparedState { kernel: self, bench, state })
    }
}

/// The prepared state of a kernel, released when dropped.
pub(crate) struct PreparedState<'a> {
    kernel: KernelUnderTest<'a>,
    bench: &'a TestBench,
    state: *mut c_void,
}

// SAFETY: one state may be used by several threads at once (rule K-4).
unsafe impl Sync for PreparedState<'_> {}

impl PreparedState<'_> {
    pub(crate) fn run(&self, call: &abi::Call) -> Verdict {
        Ok(slot!(self.bench, self.kernel.raw.context => self.kernel.raw, run(self.state, call))?)
    }

    fn release_state(&self) -> Verdict {
        Ok(slot!(self.bench, self.kernel.raw.context => self.kernel.raw, release(self.state))?)
    }
}

impl Drop for PreparedState<'_> {
    fn drop(&mut self) {
        if self.kernel.raw.release.is_some() {
            // The result of the check matters more than this.
            let _ = self.release_state();
        }
    }
}

/// A contiguous tensor in device memory, as a call describes it.
#[derive(Clone)]
pub(crate) struct TestTensor {
    pub(crate) block: abi::Memory,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) dtype: abi::Dtype,
    pub(crate) dims: Vec<i64>,
}

/// Builds a call of these operands on a stream, with the workspace if there is one, and passes it to `work`.
pub(crate) fn with_call<T>(
    device: DeviceUnderTest<'_>,
    queue: abi::Stream,
    (inputs, outputs): (&[TestTensor], &[TestTensor]),
    scratch: Option<&TestBlock<'_>>,
    work: impl FnOnce(&abi::Call) -> T,
) -> T {
    let describe = |shown: &TestTensor| abi::Tensor {
        block: shown.block,
        offset: shown.offset,
        size_in_bytes: shown.size,
        dtype: shown.dtype,
        dims: shown.dims.as_ptr(),
        dims_count: shown.dims.len() as u64,
        ..abi::Tensor::EMPTY
    };
    let (inputs, outputs): (Vec<_>, Vec<_>) =
        (inputs.iter().map(describe).collect(), outputs.iter().map(describe).collect());
    let pointers =
        |tensors: &[abi::Tensor]| tensors.iter().map(|tensor| &raw const *tensor).collect::<Vec<_>>();
    let (input_pointers, output_pointers) = (pointers(&inputs), pointers(&outputs));
    work(&abi::Call {
        device: device.id,
        queue,
        inputs: input_pointers.as_ptr(),
        inputs_count: input_pointers.len() as u64,
        outputs: output_pointers.as_ptr(),
        outputs_count: output_pointers.len() as u64,
        workspace: scratch.map_or(abi::Memory(0), |block| block.handle),
        workspace_size: scratch.map_or(0, |block| block.size),
        ..abi::Call::EMPTY
    })
}

//! Prepared calls whose operands are bound to memory for each run.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::sync::Arc;

use oarlock_abi as abi;

use super::resolved_call::{InputBinding, ResolvedKernel};
use crate::runtime::{RandomGenerator, Runtime};
use crate::stream::Stream;
use crate::{Error, Result, Tensor};

/// A position in device memory: a block, and the offset in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLocation {
    pub(super) memory: abi::Memory,
    pub(super) offset: u64,
}

impl MemoryLocation {
    /// The location of a tensor's first element.
    #[inline]
    pub fn from_tensor(tensor: &Tensor) -> Self {
        let (memory, offset) = tensor.memory_location();
        Self { memory, offset }
    }

    /// A location inside an allocation, `offset` bytes from its start.
    pub fn from_allocation(allocation: &crate::memory::DeviceAllocation, offset: u64) -> Self {
        Self { memory: allocation.block_handle(), offset: allocation.offset() + offset }
    }
}

/// A prepared call whose operands can be rebound to memory for every run. A run is one call of the kernel.
pub struct BoundCall {
    call: abi::Call,
    resolved: Arc<ResolvedKernel>,
    stream: Stream,
    is_immediate: bool,
    /// Set for a call that draws random numbers.
    random: Option<Arc<RandomGenerator>>,
    operand_descriptors: Box<[abi::Tensor]>,
    _pointers: Box<[*const abi::Tensor]>,
}

// SAFETY: the call points only to descriptors, attributes and values that it and the prepared kernel own on the heap,
// so moving it to another thread keeps the pointers valid.
unsafe impl Send for BoundCall {}

impl BoundCall {
    pub(super) fn new(resolved: Arc<ResolvedKernel>, runtime: &Runtime, stream: &Stream) -> Self {
        let operand_descriptors = resolved.operand_descriptors.clone();
        let pointers: Box<[*const abi::Tensor]> =
            operand_descriptors.iter().map(std::ptr::from_ref).collect();
        let (inputs, outputs) = pointers.split_at(resolved.inputs.len());
        let mut call = resolved.abi_call(stream, inputs, outputs);
        call.workspace_size = resolved.workspace;
        Self {
            call,
            random: (resolved.draws > 0).then(|| runtime.random_generator().clone()),
            is_immediate: stream.is_immediate(),
            stream: stream.clone(),
            operand_descriptors,
            _pointers: pointers,
            resolved,
        }
    }

    pub(super) fn resolved_kernel(&self) -> &ResolvedKernel {
        &self.resolved
    }

    /// True if the kernel may call other ops, for which [`with_nested_ops`](crate::with_nested_ops) is needed.
    #[inline]
    pub fn may_call_ops(&self) -> bool {
        self.resolved.may_call_ops
    }

    /// The stream that the call runs on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Binds an input to its memory. Does nothing for an input that the kernel has already received as a value or a constant.
    #[inline]
    pub fn bind_input(&mut self, index: usize, location: MemoryLocation) {
        let Some(input) = self.resolved.inputs.get(index) else { return };
        if input.binding == InputBinding::Direct
            && !input.descriptor.bits.contains(abi::TensorFlags::CONSTANT)
        {
            let descriptor = &mut self.operand_descriptors[index];
            (descriptor.block, descriptor.offset) = (location.memory, location.offset);
        }
    }

    /// Binds an output to its memory.
    #[inline]
    pub fn bind_output(&mut self, index: usize, location: MemoryLocation) {
        let first = self.resolved.inputs.len();
        if let Some(descriptor) = self.operand_descriptors.get_mut(first + index) {
            (descriptor.block, descriptor.offset) = (location.memory, location.offset);
        }
    }

    /// Binds the workspace to its memory.
    pub fn bind_workspace(&mut self, location: MemoryLocation) {
        (self.call.workspace, self.call.workspace_offset) = (location.memory, location.offset);
    }

    /// Makes the stream of the call wait for a tensor that another stream wrote.
    #[inline]
    pub fn wait_for_tensor(&self, tensor: &Tensor) -> Result<()> {
        self.resolved.wait_for_tensor(&self.stream, tensor)
    }

    /// Runs the call. It returns when the kernel returns, which may be before the work in the stream is done.
    ///
    /// # Safety
    ///
    /// Every operand and the workspace must be bound to sufficient memory of the device. Until the stream is past the
    /// call, that memory must stay allocated, nobody else may write to it, and nobody may read the outputs.
    #[inline]
    pub unsafe fn run(&mut self) -> Result<()> {
        let resolved = &*self.resolved;
        if let Some(random) = &self.random {
            (self.call.random_seed, self.call.random_offset) = random.draw_numbers(resolved.draws);
        }
        // SAFETY: the operands are those the kernel was prepared with, and the caller vouches for their memory.
        let run = || unsafe { resolved.kernel.run(&self.call) };
        if self.is_immediate {
            return run().map_err(|failure| resolved.failure_error(failure));
        }
        self.stream
            .launch(resolved.op, run)
            .map_err(|error: Error| error.with_op(resolved.op).with_device(&resolved.device))
    }
}

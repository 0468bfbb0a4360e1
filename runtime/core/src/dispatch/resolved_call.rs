//! Resolved calls: everything that can be computed before a call with a certain signature is made.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::sync::Arc;

use bytes::Bytes;
use oarlock_abi as abi;
use oarlock_host::{HostCall, PreparedKernel};
use smallvec::SmallVec;

use super::allocating_outputs::AllocatingOutputs;
use super::descriptors::{self, AbiAttributes, OperandDescriptors};
use super::op_invocation::OpOutputs;
use super::signature::CallSignature;
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::tensor::{StringBuffers, TensorLayout, TensorStorage};
use crate::{Constant, Device, Dtype, Error, Result, Tensor};

/// An entry of a call site's cache.
pub(crate) struct ResolvedCall {
    pub(crate) signature: CallSignature,
    pub(crate) target: CallTarget,
}

pub(crate) enum CallTarget {
    /// A kernel of the device.
    Kernel(Arc<ResolvedKernel>),
    /// The device has no kernel, and the user permits the CPU to run the call.
    Fallback,
}

/// A prepared kernel with the descriptors of its operands.
pub(crate) struct ResolvedKernel {
    pub(crate) op: &'static str,
    pub(crate) device: Device,
    pub(crate) kernel: PreparedKernel,
    /// The kernel's own description of how it runs such calls; empty if it gives none.
    pub(crate) description: String,
    pub(crate) inputs: Vec<ResolvedInput>,
    pub(crate) outputs: Vec<ResolvedOutput>,
    /// The descriptors of all inputs, then of all outputs. Each call starts from a copy of them.
    pub(crate) operand_descriptors: Box<[abi::Tensor]>,
    pub(crate) attributes: Arc<AbiAttributes>,
    pub(crate) workspace: u64,
    /// True if an input has strides that the kernel does not support, so that it must be copied first.
    pub(crate) copies: bool,
    /// True if the kernel requests the memory of an output while it runs.
    pub(crate) allocates: bool,
    /// The maximum number of counter values that a call may use from the random generator.
    pub(crate) draws: u64,
    /// True if an operand holds strings.
    pub(crate) has_texts: bool,
    /// True if the kernel may call other ops: it belongs to an op without a schema, and its operands are in host memory.
    pub(crate) may_call_ops: bool,
    /// Keeps the constants that the kernel was prepared with.
    pub(crate) _constants: Vec<Tensor>,
    /// Keeps the addresses of constants whose bytes the kernel asked for.
    pub(crate) _on_demand: Vec<Constant>,
    /// Keeps the bytes of those that the kernel reads when it runs.
    pub(crate) _kept_bytes: Vec<Bytes>,
}

pub(crate) struct ResolvedInput {
    /// Points into the layout beside it.
    pub(crate) descriptor: abi::Tensor,
    pub(crate) binding: InputBinding,
    pub(crate) _layout: Option<Arc<TensorLayout>>,
    /// The value that the descriptor points to.
    pub(crate) _value: Option<Constant>,
}

/// How an input reaches the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputBinding {
    /// Left out.
    Absent,
    /// By value: the signature and the descriptor contain it.
    Value,
    /// Unchanged.
    Direct,
    /// As a contiguous copy, since the kernel does not support strides.
    Contiguous,
}

pub(crate) struct ResolvedOutput {
    /// Points into the layout.
    pub(crate) descriptor: abi::Tensor,
    /// `None` if the kernel determines it while it runs.
    pub(crate) layout: Option<Arc<TensorLayout>>,
}

impl ResolvedOutput {
    /// True if the caller did not request it.
    pub(crate) fn is_absent(&self) -> bool {
        self.descriptor.bits.contains(abi::TensorFlags::ABSENT)
    }

    /// Allocates the output, unless its size is not known yet.
    #[inline]
    pub(crate) fn allocate_tensor(&self, stream: &Stream, op: &'static str) -> Result<Option<Tensor>> {
        match &self.layout {
            Some(layout) => match Tensor::uninitialized_with_layout(stream, layout, op) {
                Ok(tensor) => Ok(Some(tensor)),
                Err(error) => Err(error.with_op(op)),
            },
            None => Ok(None),
        }
    }
}

// SAFETY: the descriptors point to shapes, values and attributes that the struct owns and never changes.
unsafe impl Send for ResolvedKernel {}
// SAFETY: as above.
unsafe impl Sync for ResolvedKernel {}

impl ResolvedKernel {
    /// The hot path: binds the operands, allocates the outputs and launches the kernel.
    pub(crate) fn run_call(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
        outputs: &mut OpOutputs,
    ) -> Result<()> {
        let copies;
        let mut contiguous = if self.copies {
            copies = self.make_contiguous(runtime, stream, inputs)?;
            copies.iter()
        } else {
            [].iter()
        };
        // Update each descriptor in the place where the kernel reads it. To patch it first and then copy all of it would
        // load fields together that were just stored separately; this defeats store forwarding and stalls.
        let mut operand_descriptors = OperandDescriptors::new();
        operand_descriptors.extend_from_slice(&self.operand_descriptors);
        let (given, wanted) = operand_descriptors.split_at_mut(self.inputs.len());
        for ((descriptor, input), given) in given.iter_mut().zip(&self.inputs).zip(inputs) {
            let tensor = match input.binding {
                InputBinding::Absent | InputBinding::Value => None,
                InputBinding::Direct => *given,
                InputBinding::Contiguous => contiguous.next(),
            };
            if let Some(tensor) = tensor {
                self.wait_for_tensor(stream, tensor)?;
                descriptors::bind_memory(descriptor, tensor);
            }
        }
        for (descriptor, output) in wanted.iter_mut().zip(&self.outputs) {
            let tensor = output.allocate_tensor(stream, self.op)?;
            if let Some(tensor) = &tensor {
                descriptors::bind_memory(descriptor, tensor);
            }
            outputs.push(tensor);
        }
        if self.allocates {
            self.run_allocating(runtime, stream, given, wanted, outputs)?;
        } else {
            let mut pointers: SmallVec<[*const abi::Tensor; 8]> = SmallVec::new();
            pointers.extend(operand_descriptors.iter().map(std::ptr::from_ref));
            let (given, wanted) = pointers.split_at(self.inputs.len());
            self.launch_kernel(runtime, stream, given, wanted, None)?;
        }
        if self.has_texts {
            keep_strings(outputs, inputs);
        }
        runtime.post_kernel_checks().check_outputs(self.op, stream, outputs)
    }

    /// Runs a kernel that requests the memory of outputs.
    fn run_allocating(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[abi::Tensor],
        wanted: &[abi::Tensor],
        outputs: &mut OpOutputs,
    ) -> Result<()> {
        let tensors = outputs.drain(..).collect();
        let allocating =
            AllocatingOutputs::new(&self.device, stream, self.op, wanted.iter().copied(), tensors);
        let given: Vec<*const abi::Tensor> = inputs.iter().map(std::ptr::from_ref).collect();
        let host_call = HostCall::new(&allocating);
        let ran =
            self.launch_kernel(runtime, stream, &given, &allocating.descriptor_pointers(), Some(&host_call));
        let (tensors, error) = allocating.into_tensors();
        // The error raised here is more precise than the error that the kernel made from it, and is returned even if the
        // kernel ignored it.
        if let Some(error) = error {
            return Err(error.with_op(self.op).with_device(&self.device));
        }
        ran?;
        for (index, (tensor, output)) in tensors.iter().zip(&self.outputs).enumerate() {
            if tensor.is_none() && !output.is_absent() {
                let message =
                    format!("expected memory for output {index}, found that the kernel asked for none");
                return Err(Error::fatal(message).with_op(self.op).with_device(&self.device));
            }
        }
        outputs.extend(tensors);
        Ok(())
    }

    #[inline]
    fn launch_kernel(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[*const abi::Tensor],
        outputs: &[*const abi::Tensor],
        host_call: Option<&HostCall<'_>>,
    ) -> Result<()> {
        let mut call = self.abi_call(stream, inputs, outputs);
        // The workspace returns to the pool when this function returns. The stream reuses it in order, so work that is still
        // queued is safe.
        let workspace;
        if self.workspace > 0 {
            workspace = self.device.memory_pool()?.allocate(self.workspace, stream.id(), self.op)?;
            (call.workspace, call.workspace_offset) = (workspace.block_handle(), workspace.offset());
            call.workspace_size = self.workspace;
        }
        if self.draws > 0 {
            (call.random_seed, call.random_offset) = runtime.random_generator().draw_numbers(self.draws);
        }
        if let Some(host_call) = host_call {
            call.host_call = host_call.as_ptr();
        }
        // SAFETY: the descriptors are those the kernel was prepared with, and the memory in them belongs to tensors
        // that live until the call returns; if a stream still uses that memory afterwards, the pool reuses it in
        // stream order.
        let run = || unsafe { self.kernel.run(&call) };
        if stream.is_immediate() {
            return run().map_err(|failure| self.failure_error(failure));
        }
        stream.launch(self.op, run).map_err(|error| error.with_op(self.op).with_device(&self.device))
    }

    #[cold]
    pub(crate) fn failure_error(&self, failure: oarlock_host::PluginFailure) -> Error {
        Error::from(failure).with_op(self.op).with_device(&self.device)
    }

    #[inline]
    pub(crate) fn abi_call(
        &self,
        stream: &Stream,
        inputs: &[*const abi::Tensor],
        outputs: &[*const abi::Tensor],
    ) -> abi::Call {
        let attributes = self.attributes.attribute_pointers();
        abi::Call {
            device: self.device.id(),
            queue: stream.handle(),
            inputs: inputs.as_ptr(),
            inputs_count: inputs.len() as u64,
            outputs: outputs.as_ptr(),
            outputs_count: outputs.len() as u64,
            attributes: attributes.as_ptr(),
            attributes_count: attributes.len() as u64,
            ..abi::Call::EMPTY
        }
    }

    /// Makes the stream wait for a tensor that another stream wrote.
    #[inline]
    pub(crate) fn wait_for_tensor(&self, stream: &Stream, tensor: &Tensor) -> Result<()> {
        let storage = tensor.storage();
        if storage.allocation.stream() == stream.id() {
            return Ok(());
        }
        wait_for_storage(stream, storage).map_err(|error| error.with_op(self.op).with_device(&self.device))
    }

    /// Copies of the inputs whose strides the kernel does not support.
    #[cold]
    fn make_contiguous(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<Vec<Tensor>> {
        let mut result = Vec::new();
        for (input, given) in self.inputs.iter().zip(inputs) {
            if let (InputBinding::Contiguous, Some(tensor)) = (input.binding, given) {
                // `Identity` makes the copies for all other ops, so it cannot rely on itself for its own input.
                let is_the_copy = self.op == "Identity";
                result.push(if is_the_copy {
                    tensor.gather_through_host()?
                } else {
                    let copy = runtime.make_contiguous(tensor, stream);
                    copy.map_err(|error| error.with_operand(format!("a contiguous copy for `{}`", self.op)))?
                });
            }
        }
        Ok(result)
    }
}

#[cold]
fn wait_for_storage(stream: &Stream, storage: &TensorStorage) -> Result<()> {
    stream.wait_for_stream(storage.written_on())?;
    storage.allocation.mark_used_on(stream);
    Ok(())
}

/// A kernel may copy strings by pointer, so the outputs keep the text of the inputs alive.
#[cold]
fn keep_strings(outputs: &mut OpOutputs, inputs: &[Option<&Tensor>]) {
    let mut texts = StringBuffers::default();
    for input in inputs.iter().flatten() {
        if let Some(own) = &input.storage().texts {
            texts.extend_from(own);
        }
    }
    for output in outputs.iter_mut().flatten().filter(|output| output.dtype() == Dtype::String) {
        output.keep_strings(texts.clone());
    }
}

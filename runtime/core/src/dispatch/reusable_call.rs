//! Calls that are bound once and run many times.

#![expect(unsafe_code, reason = "a call is run on operands that only its maker can vouch for")]

use std::sync::Arc;

use super::op_invocation::OpOutputs;

use super::bound_call::{BoundCall, MemoryLocation};
use super::resolved_call::{CallTarget, InputBinding, ResolvedCall, ResolvedKernel};
use crate::memory::DeviceAllocation;
use crate::post_kernel_checks::PostKernelChecks;
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::{Error, Result, Tensor};

/// A call that owns its operands, workspace and stream; running it is one call of the kernel.
///
/// Every run overwrites the same outputs, so they are never exposed as tensors; they are only read through this type.
pub struct ReusableCall {
    bound_call: BoundCall,
    outputs: OpOutputs,
    watch: Arc<PostKernelChecks>,
    /// Keeps the memory that the call points to.
    _inputs: Vec<Option<Tensor>>,
    _workspace: Option<DeviceAllocation>,
}

impl ReusableCall {
    pub(crate) fn new(
        resolved: &ResolvedCall,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<Self> {
        let kernel = expect_kernel(resolved)?;
        let mut bound_call = BoundCall::new(kernel.clone(), runtime, stream);
        for (index, (input, given)) in kernel.inputs.iter().zip(inputs).enumerate() {
            if input.binding == InputBinding::Contiguous {
                return Err(reuse_error(kernel, "contiguous inputs", "one with strides"));
            }
            if let Some(tensor) = given.filter(|_| input.binding == InputBinding::Direct) {
                kernel.wait_for_tensor(stream, tensor)?;
                bound_call.bind_input(index, MemoryLocation::from_tensor(tensor));
            }
        }
        let mut outputs = OpOutputs::new();
        for (index, output) in kernel.outputs.iter().enumerate() {
            let tensor = output.allocate_tensor(stream, kernel.op)?;
            if let Some(tensor) = &tensor {
                bound_call.bind_output(index, MemoryLocation::from_tensor(tensor));
            } else if !output.is_absent() {
                return Err(reuse_error(
                    kernel,
                    "outputs of known shapes",
                    "one whose shape depends on data",
                ));
            }
            outputs.push(tensor);
        }
        let workspace = match kernel.workspace {
            0 => None,
            size => Some(kernel.device.memory_pool()?.allocate(size, stream.id(), kernel.op)?),
        };
        if let Some(workspace) = &workspace {
            bound_call.bind_workspace(MemoryLocation::from_allocation(workspace, 0));
        }
        Ok(Self {
            bound_call,
            outputs,
            watch: runtime.post_kernel_checks().clone(),
            _inputs: inputs.iter().map(|input| input.cloned()).collect(),
            _workspace: workspace,
        })
    }

    /// Runs the call. It returns when the kernel returns, which may be before the work in the stream is done.
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        // SAFETY: the operands are tensors that this call owns, the workspace is its own, and nobody else gets its outputs.
        unsafe { self.bound_call.run()? };
        self.watch.check_outputs(
            self.bound_call.resolved_kernel().op,
            self.bound_call.stream(),
            &self.outputs,
        )
    }

    /// Waits for the work and copies an output to the host.
    pub fn read_output(&self, index: usize) -> Result<Vec<u8>> {
        self.bound_call.stream().synchronize()?;
        let output = self.outputs.get(index).and_then(Option::as_ref);
        let missing =
            || Error::out_of_range(format!("expected one of {} outputs, found {index}", self.outputs.len()));
        output.ok_or_else(missing)?.to_bytes()
    }
}

fn expect_kernel(resolved: &ResolvedCall) -> Result<&Arc<ResolvedKernel>> {
    match &resolved.target {
        CallTarget::Kernel(kernel) => Ok(kernel),
        CallTarget::Fallback => {
            Err(Error::unimplemented("expected a kernel of the device, found that the CPU does this call"))
        }
    }
}

#[cold]
fn reuse_error(kernel: &ResolvedKernel, expected: &str, found: &str) -> Error {
    Error::unimplemented(format!(
        "expected {expected}, found {found}, which cannot be bound ahead of its runs"
    ))
    .with_op(kernel.op)
    .with_device(&kernel.device)
}

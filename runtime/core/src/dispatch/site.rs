//! A call site: everything that is known before a call with a certain signature is made.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use oarlock_abi as abi;
use oarlock_host::{HostCall, PreparedKernel};
use smallvec::SmallVec;

use super::op::Outputs;
use super::outputs::Allocating;
use super::raw::{self, RawAttributes};
use super::signature::{Signature, Values};
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::tensor::Texts;
use crate::{Device, Dims, Dtype, Error, Result, Tensor};

/// Descriptions of operands. Calls with more operands than this take memory for them.
type Descriptions = SmallVec<[abi::Tensor; 8]>;

/// How calls with one signature are run.
pub(crate) struct Site {
    pub(crate) signature: Signature,
    pub(crate) way: Way,
}

/// What runs them.
pub(crate) enum Way {
    /// A kernel of the device.
    Kernel(Box<KernelSite>),
    /// No kernel of the device: the CPU does it, as the user wishes.
    Fallback,
}

/// A kernel that is ready, with the descriptions of its operands.
pub(crate) struct KernelSite {
    pub(crate) op: &'static str,
    pub(crate) device: Device,
    pub(crate) kernel: PreparedKernel,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) attributes: RawAttributes,
    pub(crate) workspace: u64,
    /// Whether the kernel takes memory for some output itself.
    pub(crate) allocates: bool,
    /// How many numbers a call may draw from the random generator.
    pub(crate) draws: u64,
    /// Whether some operand holds strings.
    pub(crate) has_texts: bool,
    /// Keeps the values that descriptions point to.
    pub(crate) _values: Values,
}

/// One input of a site.
pub(crate) struct Input {
    /// The description; it points to the shape beside it.
    pub(crate) raw: abi::Tensor,
    pub(crate) way: InputWay,
    pub(crate) _shape: Box<(Dims, Option<Dims>)>,
}

/// How an input gets to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputWay {
    /// It is left out.
    Absent,
    /// Its value is part of the signature and the description.
    Value,
    /// As it is.
    Direct,
    /// The kernel takes no strides, so its elements are put one after the other.
    Contiguous,
}

/// One output of a site.
pub(crate) struct Output {
    pub(crate) raw: abi::Tensor,
    pub(crate) shape: OutputShape,
}

/// What is known of an output.
pub(crate) enum OutputShape {
    /// Dtype and shape. The description points to the shape.
    Known(Dtype, Box<Dims>),
    /// The kernel says it while it runs.
    Asked,
}

// SAFETY: the descriptions point to shapes, values and attributes that the site owns and never changes.
unsafe impl Send for Site {}
// SAFETY: as above.
unsafe impl Sync for Site {}

impl KernelSite {
    /// Makes one call.
    pub(crate) fn run(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<Outputs> {
        let contiguous = self.contiguous(runtime, stream, inputs)?;
        let mut contiguous = contiguous.iter();
        let mut descriptions = Descriptions::new();
        for (input, given) in self.inputs.iter().zip(inputs) {
            let mut description = input.raw;
            let tensor = match input.way {
                InputWay::Absent | InputWay::Value => None,
                InputWay::Direct => *given,
                InputWay::Contiguous => contiguous.next(),
            };
            if let Some(tensor) = tensor {
                raw::place(&mut description, tensor);
                self.order(stream, tensor)?;
            }
            descriptions.push(description);
        }
        let outputs = if self.allocates {
            self.run_allocating(runtime, stream, &descriptions)?
        } else {
            self.run_sized(runtime, stream, &mut descriptions)?
        };
        let outputs = if self.has_texts { with_texts(outputs, inputs) } else { outputs };
        runtime.watch().after(self.op, stream, &outputs)?;
        Ok(outputs)
    }

    /// Runs a kernel whose outputs have their shapes before.
    #[inline]
    fn run_sized(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        descriptions: &mut Descriptions,
    ) -> Result<Outputs> {
        let mut outputs = Outputs::new();
        for output in &self.outputs {
            let tensor = match &output.shape {
                OutputShape::Known(dtype, dims) => {
                    let size = output.raw.size_in_bytes;
                    let taken = Tensor::of_size(&self.device, stream, *dtype, dims, size, self.op);
                    Some(taken.map_err(|error| error.of_op(self.op))?)
                }
                OutputShape::Asked => None,
            };
            let mut description = output.raw;
            if let Some(tensor) = &tensor {
                raw::place(&mut description, tensor);
            }
            descriptions.push(description);
            outputs.push(tensor);
        }
        let pointers: SmallVec<[*const abi::Tensor; 8]> =
            descriptions.iter().map(std::ptr::from_ref).collect();
        let (given, wanted) = pointers.split_at(self.inputs.len());
        self.launch(runtime, stream, given, wanted, None)?;
        Ok(outputs)
    }

    /// Runs a kernel that takes memory for outputs itself.
    fn run_allocating(&self, runtime: &Runtime, stream: &Stream, inputs: &Descriptions) -> Result<Outputs> {
        let mut tensors = Vec::new();
        let mut descriptions = Vec::new();
        for output in &self.outputs {
            let mut description = output.raw;
            let tensor = match &output.shape {
                OutputShape::Known(dtype, dims) => {
                    let tensor = Tensor::uninitialized(&self.device, stream, *dtype, dims, self.op)?;
                    raw::place(&mut description, &tensor);
                    Some(tensor)
                }
                OutputShape::Asked => None,
            };
            tensors.push(tensor);
            descriptions.push(description);
        }
        let outputs = Allocating::new(&self.device, stream, self.op, descriptions, tensors);
        let given: Vec<*const abi::Tensor> = inputs.iter().map(std::ptr::from_ref).collect();
        let host_call = HostCall::new(&outputs);
        let ran = self.launch(runtime, stream, &given, &outputs.pointers(), Some(&host_call));
        let (tensors, error) = outputs.finish();
        match (ran, error) {
            (Err(_), Some(error)) => return Err(error.of_op(self.op).on_device(&self.device)),
            (ran, _) => ran?,
        }
        for (index, (tensor, output)) in tensors.iter().zip(&self.outputs).enumerate() {
            let is_absent = output.raw.bits.contains(abi::TensorFlags::ABSENT);
            if tensor.is_none() && !is_absent {
                let message =
                    format!("expected memory for output {index}, found that the kernel asked for none");
                return Err(Error::fatal(message).of_op(self.op).on_device(&self.device));
            }
        }
        Ok(tensors.into())
    }

    /// Calls the kernel.
    #[inline]
    fn launch(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[*const abi::Tensor],
        outputs: &[*const abi::Tensor],
        host_call: Option<&HostCall<'_>>,
    ) -> Result<()> {
        let mut call = self.call(stream, inputs, outputs);
        // Scratch memory is given back when the call returns, and reused in the order of the stream.
        let workspace;
        if self.workspace > 0 {
            workspace = self.device.pool()?.allocate(self.workspace, stream.id(), self.op)?;
            (call.workspace, call.workspace_offset) = (workspace.memory(), workspace.offset());
            call.workspace_size = self.workspace;
        }
        if self.draws > 0 {
            (call.random_seed, call.random_offset) = runtime.random().draw(self.draws);
        }
        if let Some(host_call) = host_call {
            call.host_call = host_call.address();
        }
        // SAFETY: the descriptions are those the kernel was readied with, and the memory in them belongs to tensors that
        // live until the call returns; what a stream still uses of them afterwards the pool keeps in its order.
        let run = || unsafe { self.kernel.run(&call) };
        if stream.is_immediate() {
            return run().map_err(|failure| self.failed(failure));
        }
        stream.launch(self.op, run).map_err(|error| error.of_op(self.op).on_device(&self.device))
    }

    #[cold]
    pub(crate) fn failed(&self, failure: oarlock_host::Failure) -> Error {
        Error::from(failure).of_op(self.op).on_device(&self.device)
    }

    /// A call with these operands.
    #[inline]
    pub(crate) fn call(
        &self,
        stream: &Stream,
        inputs: &[*const abi::Tensor],
        outputs: &[*const abi::Tensor],
    ) -> abi::Call {
        let attributes = self.attributes.pointers();
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

    /// Has the stream wait for a tensor that another one wrote.
    #[inline]
    pub(crate) fn order(&self, stream: &Stream, tensor: &Tensor) -> Result<()> {
        if tensor.storage.stream.id() == stream.id() {
            return Ok(());
        }
        stream.wait_for_stream(&tensor.storage.stream)?;
        tensor.storage.allocation.used_on(stream);
        Ok(())
    }

    /// The inputs that the kernel takes only contiguous, made so.
    #[inline]
    fn contiguous(
        &self,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<SmallVec<[Tensor; 2]>> {
        let mut made = SmallVec::new();
        for (input, given) in self.inputs.iter().zip(inputs) {
            if let (InputWay::Contiguous, Some(tensor)) = (input.way, given) {
                // What copies for others cannot have its own input copied by itself.
                let is_the_copy = self.op == "Identity";
                made.push(if is_the_copy {
                    tensor.gathered_again()?
                } else {
                    runtime.contiguous(tensor, stream)?
                });
            }
        }
        Ok(made)
    }
}

/// Strings that a kernel copied point to text of its inputs, so the outputs keep that.
#[cold]
fn with_texts(outputs: Outputs, inputs: &[Option<&Tensor>]) -> Outputs {
    let mut texts = Texts::default();
    for input in inputs.iter().flatten() {
        if let Some(own) = &input.storage.texts {
            texts.join(own);
        }
    }
    let keep = |output: Option<Tensor>| {
        let mut output = output?;
        if let Some(storage) =
            std::sync::Arc::get_mut(&mut output.storage).filter(|_| output.dtype == Dtype::String)
        {
            storage.texts = Some(texts.clone());
        }
        Some(output)
    };
    outputs.into_iter().map(keep).collect()
}

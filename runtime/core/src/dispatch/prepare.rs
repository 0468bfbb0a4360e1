//! Calls that are prepared before their operands exist; plans of the engine are made of them.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
use smallvec::SmallVec;

use super::op::{Op, OpOutputs};
use super::resolve::{CallResolver, InputDescriptor, ResolveOutcome};
use super::resolved_call::{InputBinding, ResolvedKernel};
use super::signature::InputValues;
use crate::infer::TensorFact;
use crate::registry::{DispatchExplanation, KernelEntry};
use crate::runtime::{RandomGenerator, Runtime};
use crate::stream::Stream;
use crate::tensor::TensorLayout;
use crate::{Constant, Device, Dtype, Error, Result, Tensor};

/// An input of a call that will be made later.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedInput<'a> {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape. The input will be contiguous.
    pub dims: &'a [i64],
    /// True if it is the same in every call, so that a kernel may prepare for it, such as pack weights.
    pub is_constant: bool,
    /// Its elements, if they are known. Inputs that determine shapes or axes need them.
    pub value: Option<&'a Constant>,
}

/// The result of [`Op::prepare_call`].
#[derive(Debug)]
pub enum PrepareOutcome {
    /// A kernel is prepared.
    Kernel(PreparedCall),
    /// The choice depends on values that are not known before the call.
    NeedsValues,
    /// No kernel of the device accepts the call.
    Nothing(DispatchExplanation),
}

/// A kernel that is prepared for operands of known shapes, wherever they will be in memory. Clones share the kernel.
#[derive(Clone)]
pub struct PreparedCall {
    pub(super) site: Arc<ResolvedKernel>,
    row: KernelEntry,
}

impl Op {
    /// Infers the outputs from what is known about the inputs. Returns `None` for an op whose shapes only its kernels know.
    pub fn infer_outputs(
        &self,
        inputs: &[Option<TensorFact>],
        outputs: usize,
    ) -> Result<Option<Vec<TensorFact>>> {
        self.node.infer_outputs(inputs, outputs).map_err(|error| error.with_op(self.node.name))
    }

    /// Prepares a kernel of a device for calls in one of its streams. For each constant input, `constant` returns its
    /// tensor on that device; its arguments are the index of the input and whether the elements may be unaligned.
    pub fn prepare_call(
        &self,
        runtime: &Runtime,
        device: &Device,
        stream: &Stream,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
        constant: impl Fn(usize, bool) -> Result<Tensor>,
    ) -> Result<PrepareOutcome> {
        let of_op = |error: Error| error.with_op(self.node.name).with_device(device);
        let (values, forms) = (expected_values(inputs), expected_layouts(device, inputs).map_err(of_op)?);
        let expected = expected_descriptors(&forms, inputs);
        let request = self.resolve_request(runtime, device, stream, &expected, outputs, &values);
        let attempt = CallResolver::new(request).map_err(of_op)?;
        let row = match attempt.select_kernel().map_err(of_op)? {
            ResolveOutcome::NeedsValues(_) => return Ok(PrepareOutcome::NeedsValues),
            ResolveOutcome::Done(Some(row)) => row,
            ResolveOutcome::Done(None) => {
                return Ok(match attempt.explain_candidates().map_err(of_op)? {
                    ResolveOutcome::Done(explanation) => PrepareOutcome::Nothing(explanation),
                    ResolveOutcome::NeedsValues(_) => PrepareOutcome::NeedsValues,
                });
            }
        };
        let demands = &row.info().inputs;
        let tensor = |(index, input): (usize, &Option<ExpectedInput<'_>>)| {
            let demand = demands.get(index).or(demands.last());
            let takes_value = demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0);
            let is_wanted = input.as_ref().is_some_and(|input| input.is_constant) && !takes_value;
            let takes_any = demand.is_some_and(|demand| demand.unaligned);
            is_wanted.then(|| constant(index, takes_any)).transpose()
        };
        let constants: Vec<Option<Tensor>> = inputs.iter().enumerate().map(tensor).collect::<Result<_>>()?;
        let given: SmallVec<[Option<InputDescriptor<'_>>; 8]> = forms
            .iter()
            .zip(&constants)
            .map(|(form, constant)| match constant {
                Some(tensor) => Some(InputDescriptor { is_constant: true, ..InputDescriptor::from(tensor) }),
                None => Some(unbound_descriptor(form.as_ref()?, false)),
            })
            .collect();
        let mut site = attempt.with_inputs(&given).prepare_kernel(&row).map_err(of_op)?;
        drop(given);
        site._constants = constants.into_iter().flatten().collect();
        Ok(PrepareOutcome::Kernel(PreparedCall { site: Arc::new(site), row }))
    }

    /// Tells which kernels of a device would accept such calls, and why others would not. Returns `None` if a kernel
    /// needs to know more about the inputs. Prepares nothing, so constants need not exist.
    pub fn explain_candidates(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
    ) -> Result<Option<DispatchExplanation>> {
        self.try_resolve(runtime, device, inputs, outputs, |attempt| attempt.explain_candidates())
    }

    /// Returns the kernel that would run such calls: `None` if no kernel accepts them, or if the choice depends on
    /// more than is known about the inputs. Prepares nothing, so constants need not exist.
    pub fn select_kernel(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
    ) -> Result<Option<Option<KernelEntry>>> {
        self.try_resolve(runtime, device, inputs, outputs, |attempt| attempt.select_kernel())
    }

    /// Queries a call whose operands have no memory yet. Returns `None` if kernels need to know more about the inputs.
    fn try_resolve<T>(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
        ask: impl FnOnce(&CallResolver<'_>) -> Result<ResolveOutcome<T>>,
    ) -> Result<Option<T>> {
        let values = expected_values(inputs);
        let stream = device.default_stream()?;
        let asked = || {
            let forms = expected_layouts(device, inputs)?;
            let given = expected_descriptors(&forms, inputs);
            let attempt =
                CallResolver::new(self.resolve_request(runtime, device, stream, &given, outputs, &values))?;
            match ask(&attempt)? {
                ResolveOutcome::Done(answer) => Ok(Some(answer)),
                ResolveOutcome::NeedsValues(_) => Ok(None),
            }
        };
        asked().map_err(|error: Error| error.with_op(self.node.name).with_device(device))
    }
}

fn expected_values(inputs: &[Option<ExpectedInput<'_>>]) -> InputValues {
    inputs.iter().map(|input| input.as_ref().and_then(|input| input.value.cloned())).collect()
}

fn expected_layouts(
    device: &Device,
    inputs: &[Option<ExpectedInput<'_>>],
) -> Result<Vec<Option<Arc<TensorLayout>>>> {
    let form = |ExpectedInput { dtype, dims, .. }: &ExpectedInput<'_>| {
        TensorLayout::contiguous(device, *dtype, dims)
    };
    inputs.iter().map(|input| input.as_ref().map(form).transpose()).collect()
}

fn expected_descriptors<'a>(
    forms: &'a [Option<Arc<TensorLayout>>],
    inputs: &[Option<ExpectedInput<'_>>],
) -> SmallVec<[Option<InputDescriptor<'a>>; 8]> {
    let given = |(form, input): (&'a Option<Arc<TensorLayout>>, &Option<ExpectedInput<'_>>)| {
        Some(unbound_descriptor(form.as_ref()?, input.as_ref()?.is_constant))
    };
    forms.iter().zip(inputs).map(given).collect()
}

/// Describes an input that has no memory yet.
fn unbound_descriptor(form: &Arc<TensorLayout>, is_constant: bool) -> InputDescriptor<'_> {
    InputDescriptor { form, place: (abi::Memory(0), 0), is_constant }
}

impl PreparedCall {
    /// The registry entry that was chosen.
    pub fn kernel_entry(&self) -> &KernelEntry {
        &self.row
    }

    /// The kernel's own description of how it runs such calls, such as the algorithm; empty if it gives none.
    pub fn description(&self) -> &str {
        &self.site.description
    }

    /// Dtype and shape of each output; `None` if only the kernel determines them while it runs.
    pub fn output_types(&self) -> impl ExactSizeIterator<Item = Option<(Dtype, &[i64])>> {
        self.site.outputs.iter().map(|output| output.form.as_ref().map(|form| (form.dtype, &*form.dims)))
    }

    /// Bytes of workspace that a call needs.
    pub fn workspace_size(&self) -> u64 {
        self.site.workspace
    }

    /// True if a kernel determines the shape of an output while it runs, or if an operand holds strings. Such calls
    /// need tensors rather than bare memory, so they go through [`Op::invoke`].
    pub fn requires_tensors(&self) -> bool {
        self.site.allocates
            || self.site.has_texts
            || self.site.outputs.iter().any(|output| output.form.is_none())
    }

    /// True if the kernel permits an output to share the memory of an input.
    pub fn can_run_in_place(&self, output: usize, input: usize) -> bool {
        let pairs = &self.row.info().in_place;
        pairs.iter().any(|pair| (pair.0 as usize, pair.1 as usize) == (output, input))
    }

    /// Allocates the tensor of an output for a call in a stream.
    #[inline]
    pub fn allocate_output(&self, index: usize, stream: &Stream) -> Result<Tensor> {
        let output = self.site.outputs.get(index).map(|output| output.allocate_tensor(stream, self.site.op));
        let missing =
            || Error::fatal("expected an output of a known shape, found none").with_op(self.site.op);
        output.transpose()?.flatten().ok_or_else(missing)
    }

    /// Runs the checks that flags ask for after every kernel, such as the search for NaN.
    pub fn check_outputs(&self, runtime: &Runtime, stream: &Stream, outputs: &OpOutputs) -> Result<()> {
        runtime.post_kernel_checks().check_outputs(self.site.op, stream, outputs)
    }

    /// Creates a call whose operands have yet to be bound to memory.
    pub fn create_bound_call(&self, runtime: &Runtime, stream: &Stream) -> BoundCall {
        BoundCall::new(self.site.clone(), runtime, stream)
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready({} by {})", self.site.op, self.row)
    }
}

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

/// A prepared call whose operands can be bound to memory again and again. Running it is one call of the kernel.
pub struct BoundCall {
    call: abi::Call,
    site: Arc<ResolvedKernel>,
    stream: Stream,
    is_immediate: bool,
    /// Set for a call that draws random numbers.
    random: Option<Arc<RandomGenerator>>,
    descriptions: Box<[abi::Tensor]>,
    _pointers: Box<[*const abi::Tensor]>,
}

// SAFETY: the call points only to descriptors, attributes and values that it and the prepared kernel own on the heap,
// so moving it to another thread keeps the pointers valid.
unsafe impl Send for BoundCall {}

impl BoundCall {
    pub(super) fn new(site: Arc<ResolvedKernel>, runtime: &Runtime, stream: &Stream) -> Self {
        let descriptions = site.descriptions.clone();
        let pointers: Box<[*const abi::Tensor]> = descriptions.iter().map(std::ptr::from_ref).collect();
        let (given, wanted) = pointers.split_at(site.inputs.len());
        let mut call = site.abi_call(stream, given, wanted);
        call.workspace_size = site.workspace;
        Self {
            call,
            random: (site.draws > 0).then(|| runtime.random_generator().clone()),
            is_immediate: stream.is_immediate(),
            stream: stream.clone(),
            descriptions,
            _pointers: pointers,
            site,
        }
    }

    pub(super) fn resolved_kernel(&self) -> &ResolvedKernel {
        &self.site
    }

    /// The stream that the call runs on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Binds an input to its memory. Does nothing for an input that the kernel already got as a value or a constant.
    #[inline]
    pub fn bind_input(&mut self, index: usize, place: MemoryLocation) {
        let Some(input) = self.site.inputs.get(index) else { return };
        if input.way == InputBinding::Direct && !input.raw.bits.contains(abi::TensorFlags::CONSTANT) {
            let raw = &mut self.descriptions[index];
            (raw.block, raw.offset) = (place.memory, place.offset);
        }
    }

    /// Binds an output to its memory.
    #[inline]
    pub fn bind_output(&mut self, index: usize, place: MemoryLocation) {
        let first = self.site.inputs.len();
        if let Some(raw) = self.descriptions.get_mut(first + index) {
            (raw.block, raw.offset) = (place.memory, place.offset);
        }
    }

    /// Binds the workspace to its memory.
    pub fn bind_workspace(&mut self, place: MemoryLocation) {
        (self.call.workspace, self.call.workspace_offset) = (place.memory, place.offset);
    }

    /// Makes the stream of the call wait for a tensor that another stream wrote.
    #[inline]
    pub fn wait_for_tensor(&self, tensor: &Tensor) -> Result<()> {
        self.site.wait_for_tensor(&self.stream, tensor)
    }

    /// Runs the call. It returns when the kernel returns, which may be before the work in the stream is done.
    ///
    /// # Safety
    ///
    /// Every operand and the workspace must be bound to sufficient memory of the device. Until the stream is past the
    /// call, that memory must stay allocated, nobody else may write it, and nobody may read what the call writes.
    #[inline]
    pub unsafe fn run(&mut self) -> Result<()> {
        let site = &*self.site;
        if let Some(random) = &self.random {
            (self.call.random_seed, self.call.random_offset) = random.draw_numbers(site.draws);
        }
        // SAFETY: the operands are those the kernel was prepared with, and the caller vouches for their memory.
        let run = || unsafe { site.kernel.run(&self.call) };
        if self.is_immediate {
            return run().map_err(|failure| site.failure_error(failure));
        }
        self.stream
            .launch(site.op, run)
            .map_err(|error: Error| error.with_op(site.op).with_device(&site.device))
    }
}

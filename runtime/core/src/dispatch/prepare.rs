//! Calls that are prepared before their operands exist. The engine's plans consist of such calls.

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
use oarlock_host::OperandInfo;
use smallvec::SmallVec;

use super::bound_call::BoundCall;
use super::op::Op;
use super::op_invocation::OpOutputs;
use super::resolve::{CallResolver, InputDescriptor, ResolveOutcome};
use super::resolved_call::ResolvedKernel;
use super::signature::InputValues;
use crate::infer::TensorFact;
use crate::registry::{DispatchExplanation, KernelEntry};
use crate::runtime::Runtime;
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
    /// True if it is the same in every call, so a kernel may use its contents in `prepare`, for example to pack weights.
    pub is_constant: bool,
    /// Its elements, if they are known. Inputs that determine shapes or axes need them.
    pub value: Option<&'a Constant>,
}

/// A constant input, as a kernel is prepared with it.
#[derive(Debug)]
pub enum ConstantInput {
    /// On the device.
    Tensor(Tensor),
    /// On the host, which is the device. The kernel asks for the bytes.
    OnDemand(Constant),
}

/// The result of [`Op::prepare_call`].
#[derive(Debug)]
pub enum PrepareOutcome {
    /// A kernel is prepared.
    Kernel(PreparedCall),
    /// The choice depends on values that are not known before the call.
    NeedsValues,
    /// No kernel of the device accepts the call.
    NoKernel(DispatchExplanation),
}

/// A kernel that is prepared for operands of known shapes, whose memory is bound later. Clones share the kernel.
#[derive(Clone)]
pub struct PreparedCall {
    pub(super) resolved: Arc<ResolvedKernel>,
    entry: KernelEntry,
}

impl Op {
    /// Infers the outputs from what is known about the inputs. Returns `None` for an op whose shapes only its kernels know.
    pub fn infer_outputs(
        &self,
        inputs: &[Option<TensorFact>],
        outputs: usize,
    ) -> Result<Option<Vec<TensorFact>>> {
        self.definition.infer_outputs(inputs, outputs).map_err(|error| error.with_op(self.definition.name))
    }

    /// Prepares a kernel of a device for calls in one of its streams. For each constant input, `constant` returns its
    /// tensor on that device; its arguments are the index of the input and what the kernel requires of it.
    pub fn prepare_call(
        &self,
        runtime: &Runtime,
        device: &Device,
        stream: &Stream,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
        constant: impl Fn(usize, Option<&OperandInfo>) -> Result<ConstantInput>,
    ) -> Result<PrepareOutcome> {
        let with_context = |error: Error| error.with_op(self.definition.name).with_device(device);
        let (values, layouts) =
            (expected_values(inputs), expected_layouts(device, inputs).map_err(with_context)?);
        let expected = expected_descriptors(&layouts, inputs);
        let request = self.resolve_request(runtime, device, stream, &expected, outputs, &values);
        let resolver = CallResolver::new(request).map_err(with_context)?;
        let entry = match resolver.select_kernel().map_err(with_context)? {
            ResolveOutcome::NeedsValues(_) => return Ok(PrepareOutcome::NeedsValues),
            ResolveOutcome::Done(Some(entry)) => entry,
            ResolveOutcome::Done(None) => {
                return Ok(match resolver.explain_candidates().map_err(with_context)? {
                    ResolveOutcome::Done(explanation) => PrepareOutcome::NoKernel(explanation),
                    ResolveOutcome::NeedsValues(_) => PrepareOutcome::NeedsValues,
                });
            }
        };
        let operand_specs = &entry.info().inputs;
        let constant_input = |(index, input): (usize, &Option<ExpectedInput<'_>>)| {
            let operand_spec = operand_specs.get(index).or(operand_specs.last());
            let takes_value =
                operand_spec.is_some_and(|operand_spec| operand_spec.place == abi::MemoryKind::HOST.0);
            let is_wanted = input.as_ref().is_some_and(|input| input.is_constant) && !takes_value;
            is_wanted.then(|| constant(index, operand_spec)).transpose()
        };
        let mut on_demand: Vec<Option<Constant>> = vec![None; inputs.len()];
        let mut constants: Vec<Option<Tensor>> = vec![None; inputs.len()];
        for input in inputs.iter().enumerate() {
            match constant_input(input)? {
                Some(ConstantInput::Tensor(tensor)) => constants[input.0] = Some(tensor),
                Some(ConstantInput::OnDemand(constant)) => on_demand[input.0] = Some(constant),
                None => {}
            }
        }
        let given: SmallVec<[Option<InputDescriptor<'_>>; 8]> = layouts
            .iter()
            .zip(constants.iter().zip(&on_demand))
            .map(|(layout, constant)| match constant {
                (Some(tensor), _) => {
                    Some(InputDescriptor { is_constant: true, ..InputDescriptor::from(tensor) })
                }
                (None, Some(constant)) => Some(InputDescriptor {
                    place: (abi::Memory(constant.address() as u64), 0),
                    ..unbound_descriptor(layout.as_ref()?, true)
                }),
                (None, None) => Some(unbound_descriptor(layout.as_ref()?, false)),
            })
            .collect();
        let mut resolved =
            resolver.with_inputs(&given).prepare_kernel(&entry, &on_demand).map_err(with_context)?;
        drop(given);
        resolved._constants = constants.into_iter().flatten().collect();
        Ok(PrepareOutcome::Kernel(PreparedCall { resolved: Arc::new(resolved), entry }))
    }

    /// Explains which kernels of a device would accept such calls, and why others would not. Returns `None` if a kernel
    /// needs more information about the inputs. Prepares nothing, so constants need not exist.
    pub fn explain_candidates(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
    ) -> Result<Option<DispatchExplanation>> {
        self.try_resolve(runtime, device, inputs, outputs, |resolver| resolver.explain_candidates())
    }

    /// Returns the kernel that would run such calls: `None` if no kernel accepts them, or if the choice depends on unknown
    /// properties of the inputs. Prepares nothing, so constants need not exist.
    pub fn select_kernel(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<ExpectedInput<'_>>],
        outputs: usize,
    ) -> Result<Option<Option<KernelEntry>>> {
        self.try_resolve(runtime, device, inputs, outputs, |resolver| resolver.select_kernel())
    }

    /// Queries a call whose operands have no memory yet. Returns `None` if kernels need more information about the inputs.
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
        let resolve = || {
            let layouts = expected_layouts(device, inputs)?;
            let given = expected_descriptors(&layouts, inputs);
            let resolver =
                CallResolver::new(self.resolve_request(runtime, device, stream, &given, outputs, &values))?;
            match ask(&resolver)? {
                ResolveOutcome::Done(answer) => Ok(Some(answer)),
                ResolveOutcome::NeedsValues(_) => Ok(None),
            }
        };
        resolve().map_err(|error: Error| error.with_op(self.definition.name).with_device(device))
    }
}

fn expected_values(inputs: &[Option<ExpectedInput<'_>>]) -> InputValues {
    inputs.iter().map(|input| input.as_ref().and_then(|input| input.value.cloned())).collect()
}

fn expected_layouts(
    device: &Device,
    inputs: &[Option<ExpectedInput<'_>>],
) -> Result<Vec<Option<Arc<TensorLayout>>>> {
    let layout = |ExpectedInput { dtype, dims, .. }: &ExpectedInput<'_>| {
        TensorLayout::contiguous(device, *dtype, dims)
    };
    inputs.iter().map(|input| input.as_ref().map(layout).transpose()).collect()
}

fn expected_descriptors<'a>(
    layouts: &'a [Option<Arc<TensorLayout>>],
    inputs: &[Option<ExpectedInput<'_>>],
) -> SmallVec<[Option<InputDescriptor<'a>>; 8]> {
    let given = |(layout, input): (&'a Option<Arc<TensorLayout>>, &Option<ExpectedInput<'_>>)| {
        Some(unbound_descriptor(layout.as_ref()?, input.as_ref()?.is_constant))
    };
    layouts.iter().zip(inputs).map(given).collect()
}

/// Describes an input that has no memory yet.
fn unbound_descriptor(layout: &Arc<TensorLayout>, is_constant: bool) -> InputDescriptor<'_> {
    InputDescriptor { layout, place: (abi::Memory(0), 0), is_constant }
}

impl PreparedCall {
    /// The registry entry that was chosen.
    pub fn kernel_entry(&self) -> &KernelEntry {
        &self.entry
    }

    /// The kernel's own description of how it runs such calls, such as the algorithm; empty if it provides none.
    pub fn description(&self) -> &str {
        &self.resolved.description
    }

    /// Dtype and shape of each output; `None` if only the kernel determines them while it runs.
    pub fn output_types(&self) -> impl ExactSizeIterator<Item = Option<(Dtype, &[i64])>> {
        self.resolved
            .outputs
            .iter()
            .map(|output| output.layout.as_ref().map(|layout| (layout.dtype, &*layout.dims)))
    }

    /// Bytes of workspace that a call needs.
    pub fn workspace_size(&self) -> u64 {
        self.resolved.workspace
    }

    /// True if a kernel determines the shape of an output while it runs, or if an operand holds strings. Such calls
    /// need tensors rather than bare memory, so they go through [`Op::invoke`].
    pub fn requires_tensors(&self) -> bool {
        self.resolved.allocates
            || self.resolved.has_texts
            || self.resolved.outputs.iter().any(|output| output.layout.is_none())
    }

    /// True if the kernel permits an output to share the memory of an input.
    pub fn can_run_in_place(&self, output: usize, input: usize) -> bool {
        let pairs = &self.entry.info().in_place;
        pairs.iter().any(|pair| (pair.0 as usize, pair.1 as usize) == (output, input))
    }

    /// Allocates the tensor of an output for a call in a stream.
    #[inline]
    pub fn allocate_output(&self, index: usize, stream: &Stream) -> Result<Tensor> {
        let output =
            self.resolved.outputs.get(index).map(|output| output.allocate_tensor(stream, self.resolved.op));
        let missing =
            || Error::fatal("expected an output of a known shape, found none").with_op(self.resolved.op);
        output.transpose()?.flatten().ok_or_else(missing)
    }

    /// Runs the checks that flags enable after every kernel, such as the search for NaN.
    pub fn check_outputs(&self, runtime: &Runtime, stream: &Stream, outputs: &OpOutputs) -> Result<()> {
        runtime.post_kernel_checks().check_outputs(self.resolved.op, stream, outputs)
    }

    /// Creates a call whose operands have yet to be bound to memory.
    pub fn create_bound_call(&self, runtime: &Runtime, stream: &Stream) -> BoundCall {
        BoundCall::new(self.resolved.clone(), runtime, stream)
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedCall({} by {})", self.resolved.op, self.entry)
    }
}

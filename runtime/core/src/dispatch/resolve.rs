//! Resolves the first call with a new signature: infers its outputs and finds the kernel for it.

#![expect(unsafe_code, reason = "kernels are asked about a call, which is a struct of pointers")]

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use oarlock_abi as abi;
use oarlock_host::{CallServices, HostCall, KernelHandle, PluginFailure};
use smallvec::SmallVec;

use super::allocating_outputs::AllocatingOutputs;
use super::descriptors::{self, AbiAttributes};
use super::fallback::CpuFallback;
use super::op_definition::{MAX_OUTPUTS, OpDefinition, too_many_outputs};
use super::op_invocation::OpInvocation;
use super::resolved_call::{
    CallTarget, InputBinding, ResolvedCall, ResolvedInput, ResolvedKernel, ResolvedOutput,
};
use super::signature::{CallSignature, InputValues};
use crate::infer::TensorFact;
use crate::registry::matching::{KernelMismatch, KernelQuery, OperandType, match_kernel};
use crate::registry::{ConsideredKernel, DispatchExplanation, KernelEntry, KernelRegistry};
use crate::runtime::Runtime;
use crate::schema::{OpFact, has_fact};
use crate::stream::Stream;
use crate::tensor::TensorLayout;
use crate::{Constant, Device, Dtype, Error, Result, Tensor};

/// Counter values that a kernel may use for each element it produces.
const DRAWS_PER_ELEMENT: u64 = 4;

pub(crate) enum ResolveOutcome<T> {
    Done(T),
    /// The chosen kernel needs the values of these inputs, as bits.
    NeedsValues(u64),
}

/// The properties of an input that the preparation of a kernel depends on.
#[derive(Clone, Copy)]
pub(crate) struct InputDescriptor<'a> {
    pub(crate) layout: &'a Arc<TensorLayout>,
    /// Block and offset. Unless the input is constant, no query of a kernel reads them.
    pub(crate) place: (abi::Memory, u64),
    /// True if neither its contents nor its location change as long as the prepared kernel lives.
    pub(crate) is_constant: bool,
}

impl<'a> From<&'a Tensor> for InputDescriptor<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self { layout: tensor.layout(), place: tensor.memory_location(), is_constant: false }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct ResolveRequest<'a> {
    pub(crate) definition: &'a OpDefinition,
    pub(crate) runtime: &'a Runtime,
    pub(crate) device: &'a Device,
    pub(crate) stream: &'a Stream,
    /// The inputs; `None` for one that is left out.
    pub(crate) inputs: &'a [Option<InputDescriptor<'a>>],
    /// The number of outputs to compute.
    pub(crate) outputs: usize,
    /// The values of inputs, if they are known.
    pub(crate) values: &'a InputValues,
}

/// A request with its inferred outputs, ready to be matched with kernels.
pub(crate) struct CallResolver<'a> {
    request: ResolveRequest<'a>,
    attributes: Arc<AbiAttributes>,
    /// The inferred outputs; `None` if only kernels know them.
    facts: Option<Vec<TensorFact>>,
}

/// What a kernel asks for while it is prepared.
struct PrepareServices<'a> {
    /// For each input, the constant whose bytes need not be in memory.
    on_demand: &'a [Option<Constant>],
    answers: Mutex<PrepareAnswers>,
}

#[derive(Default)]
struct PrepareAnswers {
    description: String,
    /// The bytes that the kernel reads, and whether it also reads them when it runs.
    read: Vec<(Bytes, bool)>,
}

impl CallServices for PrepareServices<'_> {
    fn describe_kernel(&self, way: String) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).description = way;
    }

    fn read_constant(&self, index: u32, keep: bool) -> std::result::Result<(), PluginFailure> {
        let Some(Some(constant)) = self.on_demand.get(index as usize) else { return Ok(()) };
        let failed =
            |error: Error| PluginFailure::new("core", abi::Code(error.kind() as u32), error.to_string());
        let bytes = constant.bytes().map_err(failed)?;
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).read.push((bytes, keep));
        Ok(())
    }
}

/// The operands of a call, in the form that registry entries are matched against.
struct OperandTypes {
    inputs: SmallVec<[Option<OperandType>; 8]>,
    outputs: SmallVec<[Option<OperandType>; 4]>,
}

impl OperandTypes {
    fn kernel_query<'a>(&'a self, resolver: &'a CallResolver<'_>, is_explained: bool) -> KernelQuery<'a> {
        let ResolveRequest { definition, runtime, device, .. } = resolver.request;
        KernelQuery {
            version: definition.version,
            device_type: device.device_type(),
            inputs: &self.inputs,
            outputs: &self.outputs,
            knows_outputs: resolver.facts.is_some(),
            must_be_deterministic: runtime.flags().is_deterministic(),
            is_explained,
        }
    }
}

/// Finds and prepares the kernel for calls like this one, or decides on the fallback.
pub(crate) fn resolve_call(
    request: ResolveRequest<'_>,
    call: &OpInvocation<'_>,
    constant_inputs: u64,
) -> Result<ResolveOutcome<ResolvedCall>> {
    let ResolveRequest { definition, runtime, device, values, .. } = request;
    let resolver = CallResolver::new(request)?;
    let chosen = match resolver.select_kernel()? {
        ResolveOutcome::Done(chosen) => chosen,
        ResolveOutcome::NeedsValues(more) => return Ok(ResolveOutcome::NeedsValues(more)),
    };
    let target = match chosen {
        Some(entry) => CallTarget::Kernel(Arc::new(resolver.prepare_kernel(&entry, &[])?)),
        None if definition.cpu_fallback(runtime) != CpuFallback::Never && device.device_type() != "cpu" => {
            CallTarget::Fallback
        }
        None => match resolver.explain_candidates()? {
            ResolveOutcome::Done(explanation) => return Err(explanation.to_error()),
            ResolveOutcome::NeedsValues(more) => return Ok(ResolveOutcome::NeedsValues(more)),
        },
    };
    Ok(ResolveOutcome::Done(ResolvedCall {
        signature: CallSignature::new(device, call.inputs, values, call.outputs, constant_inputs),
        target,
    }))
}

impl<'a> CallResolver<'a> {
    pub(crate) fn new(request: ResolveRequest<'a>) -> Result<Self> {
        let ResolveRequest { definition, outputs, .. } = request;
        let facts = match definition.schema {
            None if outputs > MAX_OUTPUTS => return Err(too_many_outputs(outputs, MAX_OUTPUTS)),
            None => None,
            Some(_) => {
                let fact = |(index, input): (usize, &Option<InputDescriptor<'_>>)| {
                    let layout = input.as_ref()?.layout;
                    Some(match request.values.get(index) {
                        Some(Some(value)) => TensorFact::from_value(value.clone()),
                        _ => TensorFact::from_shape(layout.dtype, &layout.dims),
                    })
                };
                let inputs: Vec<Option<TensorFact>> = request.inputs.iter().enumerate().map(fact).collect();
                definition.infer_outputs(&inputs, outputs)?
            }
        };
        Ok(Self { request, attributes: definition.complete_attributes()?, facts })
    }

    /// Replaces the inputs by others of the same layouts, such as constants that now have memory.
    pub(crate) fn with_inputs<'b>(self, inputs: &'b [Option<InputDescriptor<'b>>]) -> CallResolver<'b>
    where
        'a: 'b,
    {
        CallResolver { request: ResolveRequest { inputs, ..self.request }, ..self }
    }

    /// The first entry that accepts the call; `None` if none does.
    pub(crate) fn select_kernel(&self) -> Result<ResolveOutcome<Option<KernelEntry>>> {
        let (operands, registry) = (self.operand_types(), self.request.runtime.registry());
        for entry in self.ranked_entries(&registry) {
            match self.find_mismatch(entry, &operands.kernel_query(self, false))? {
                ResolveOutcome::Done(None) => return Ok(ResolveOutcome::Done(Some(entry.clone()))),
                ResolveOutcome::Done(Some(_)) => {}
                ResolveOutcome::NeedsValues(more) => return Ok(ResolveOutcome::NeedsValues(more)),
            }
        }
        Ok(ResolveOutcome::Done(None))
    }

    /// Matches every entry of the op, and records why entries do not accept the call.
    pub(crate) fn explain_candidates(&self) -> Result<ResolveOutcome<DispatchExplanation>> {
        let ResolveRequest { definition, device, .. } = self.request;
        let (operands, registry) = (self.operand_types(), self.request.runtime.registry());
        let mut considered: Vec<ConsideredKernel> = Vec::new();
        for entry in self.ranked_entries(&registry) {
            match self.find_mismatch(entry, &operands.kernel_query(self, true))? {
                ResolveOutcome::Done(mismatch) => {
                    considered.push(ConsideredKernel { entry: entry.clone(), mismatch });
                }
                // The values do not matter: an earlier entry already accepts the call.
                ResolveOutcome::NeedsValues(_)
                    if considered.iter().any(|before| before.mismatch.is_none()) =>
                {
                    considered.push(ConsideredKernel { entry: entry.clone(), mismatch: None });
                }
                ResolveOutcome::NeedsValues(more) => return Ok(ResolveOutcome::NeedsValues(more)),
            }
        }
        Ok(ResolveOutcome::Done(DispatchExplanation {
            op: definition.name.to_owned(),
            version: definition.version,
            device: device.name().to_owned(),
            considered,
        }))
    }

    /// The entries of the op, the preferred ones first.
    fn ranked_entries<'r>(&self, registry: &'r KernelRegistry) -> SmallVec<[&'r KernelEntry; 8]> {
        let ResolveRequest { definition, inputs, .. } = self.request;
        let has_strides: SmallVec<[bool; 8]> =
            inputs.iter().map(|given| given.is_some_and(|given| given.layout.strides.is_some())).collect();
        let mut entries: SmallVec<[&KernelEntry; 8]> =
            registry.entries_for_op(&definition.domain, definition.name).collect();
        registry.rank_entries(&mut entries, &has_strides);
        entries
    }

    fn operand_types(&self) -> OperandTypes {
        let of_given = |given: &InputDescriptor<'_>| OperandType {
            dtype: given.layout.dtype,
            rank: Some(given.layout.dims.len()),
        };
        let of_fact = |fact: &TensorFact| OperandType {
            dtype: fact.dtype,
            rank: fact.dims.as_ref().map(|dims| dims.len()),
        };
        OperandTypes {
            inputs: self.request.inputs.iter().map(|given| given.as_ref().map(of_given)).collect(),
            outputs: self.facts.iter().flatten().map(|fact| Some(of_fact(fact))).collect(),
        }
    }

    /// Why an entry does not accept the call; `None` if it does.
    fn find_mismatch(
        &self,
        entry: &KernelEntry,
        wanted: &KernelQuery<'_>,
    ) -> Result<ResolveOutcome<Option<KernelMismatch>>> {
        if let Err(error) = self.request.runtime.registry().check_entry(entry) {
            let text = format!("it is never used: {error}");
            return Ok(ResolveOutcome::Done(Some(KernelMismatch::Refused(text))));
        }
        if let Err(mismatch) = match_kernel(entry.info(), wanted) {
            return Ok(ResolveOutcome::Done(Some(mismatch)));
        }
        match self.missing_values(entry.kernel_handle()) {
            0 => Ok(ResolveOutcome::Done(self.query_support(entry.kernel_handle()).err())),
            more => Ok(ResolveOutcome::NeedsValues(more)),
        }
    }

    /// A bit for each input that a kernel reads on the host and whose values are not known yet.
    fn missing_values(&self, kernel: &KernelHandle) -> u64 {
        let info = kernel.info();
        let is_wanted = |index: usize| {
            let operand_spec = info.inputs.get(index).or(info.inputs.last());
            operand_spec.is_some_and(|operand_spec| operand_spec.place == abi::MemoryKind::HOST.0)
                && self.request.inputs[index].is_some()
                && self.request.values.get(index).is_none_or(Option::is_none)
        };
        (0..self.request.inputs.len().min(64))
            .filter(|index| is_wanted(*index))
            .fold(0, |bits, index| bits | 1 << index)
    }

    /// Asks a kernel whether it accepts this particular call.
    fn query_support(&self, kernel: &KernelHandle) -> std::result::Result<(), KernelMismatch> {
        let refused = |error: Error| KernelMismatch::Refused(error.to_string());
        let (inputs, outputs) =
            (self.resolve_inputs(kernel).map_err(refused)?, self.resolve_outputs().map_err(refused)?);
        let answer = self.with_abi_call(&inputs, &outputs, |call| {
            // SAFETY: everything that the call points to lives until this returns.
            unsafe { kernel.supports(call) }
        });
        answer.map_err(|failure| {
            KernelMismatch::Refused(format!("it refuses: {}", oarlock_host::sanitize_text(&failure.message)))
        })
    }

    /// Prepares the kernel of an entry and stores everything that later calls need.
    /// Of the inputs in `on_demand`, the kernel gets the bytes when it asks for them.
    pub(crate) fn prepare_kernel(
        self,
        entry: &KernelEntry,
        on_demand: &[Option<Constant>],
    ) -> Result<ResolvedKernel> {
        let ResolveRequest { definition, device, inputs: given, .. } = self.request;
        let kernel = entry.kernel_handle();
        let inputs = self.resolve_inputs(kernel)?;
        let outputs = if self.facts.is_some() {
            self.resolve_outputs()?
        } else {
            self.infer_kernel_outputs(kernel, &inputs)?
        };
        let failed = |failure| Error::from(failure).with_op(definition.name).with_device(device);
        let services = PrepareServices { on_demand, answers: Mutex::default() };
        let host_call = HostCall::new(&services);
        let (workspace, prepared) = self.with_abi_call(&inputs, &outputs, |call| -> Result<_> {
            let call = &abi::Call { host_call: host_call.as_ptr(), ..*call };
            // SAFETY: everything that the call points to lives until this returns; operands that are marked constant
            // are values that the resolved kernel keeps as long as the prepared one, or that the kernel asks for.
            unsafe {
                Ok((kernel.workspace_size(call).map_err(failed)?, kernel.prepare(call).map_err(failed)?))
            }
        })?;
        let PrepareAnswers { description, read } =
            services.answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let has_texts = given.iter().flatten().any(|given| given.layout.dtype == Dtype::String);
        Ok(ResolvedKernel {
            op: definition.name,
            device: device.clone(),
            kernel: prepared,
            description,
            workspace,
            allocates: kernel.info().allocates_outputs,
            draws: self.count_draws(&outputs),
            has_texts,
            may_call_ops: definition.schema.is_none() && device.shares_host_memory(),
            operand_descriptors: inputs
                .iter()
                .map(|input| input.descriptor)
                .chain(outputs.iter().map(|output| output.descriptor))
                .collect(),
            copies: inputs.iter().any(|input| input.binding == InputBinding::Contiguous),
            inputs,
            outputs,
            _constants: Vec::new(),
            _on_demand: on_demand.iter().flatten().cloned().collect(),
            _kept_bytes: read.into_iter().filter_map(|(bytes, keep)| keep.then_some(bytes)).collect(),
            attributes: self.attributes,
        })
    }

    fn count_draws(&self, outputs: &[ResolvedOutput]) -> u64 {
        let OpDefinition { schema, name, .. } = self.request.definition;
        if schema.is_some() && !has_fact(name, OpFact::Random) {
            return 0;
        }
        let known = |output: &ResolvedOutput| {
            output
                .layout
                .as_ref()
                .and_then(|layout| crate::shape::element_count(&layout.dims).ok())
                .unwrap_or(0)
        };
        let given = self.request.inputs.iter().flatten();
        let given = given.map(|given| crate::shape::element_count(&given.layout.dims).unwrap_or(0));
        let elements: u64 = outputs.iter().map(known).chain(given).max().unwrap_or(0);
        elements.max(1).saturating_mul(DRAWS_PER_ELEMENT)
    }

    /// Describes the inputs in the form that a kernel receives.
    fn resolve_inputs(&self, kernel: &KernelHandle) -> Result<Vec<ResolvedInput>> {
        let operand_specs = &kernel.info().inputs;
        let describe = |(index, input): (usize, &Option<InputDescriptor<'_>>)| {
            let operand_spec = operand_specs.get(index).or(operand_specs.last());
            let Some(given) = input else {
                return Ok(ResolvedInput {
                    descriptor: descriptors::absent_operand(),
                    binding: InputBinding::Absent,
                    _layout: None,
                    _value: None,
                });
            };
            let own = given.layout;
            let wants_value =
                operand_spec.is_some_and(|operand_spec| operand_spec.place == abi::MemoryKind::HOST.0);
            if let Some(Some(value)) = self.request.values.get(index).filter(|_| wants_value) {
                let layout = TensorLayout::contiguous(&own.device, value.dtype(), value.dims())?;
                let value = value.to_held()?;
                let descriptor = descriptors::describe_value(&value, &layout);
                let (binding, _layout, _value) = (InputBinding::Value, Some(layout), Some(value));
                return Ok(ResolvedInput { descriptor, binding, _layout, _value });
            }
            let takes_strides = operand_spec.is_some_and(|operand_spec| operand_spec.strided);
            let (binding, layout) = if own.strides.is_none() || takes_strides {
                (InputBinding::Direct, own.clone())
            } else {
                (InputBinding::Contiguous, TensorLayout::contiguous(&own.device, own.dtype, &own.dims)?)
            };
            let mut descriptor = descriptors::describe_layout(&layout);
            (descriptor.block, descriptor.offset) = given.place;
            if given.is_constant {
                descriptor.bits = descriptor.bits | abi::TensorFlags::CONSTANT;
            }
            Ok(ResolvedInput { descriptor, binding, _layout: Some(layout), _value: None })
        };
        self.request.inputs.iter().enumerate().map(describe).collect()
    }

    /// Describes the outputs as far as inference knows them.
    fn resolve_outputs(&self) -> Result<Vec<ResolvedOutput>> {
        let facts = self.facts.iter().flatten();
        facts
            .map(|fact| match fact.known_dims() {
                Some(dims) => known_output(self.request.device, fact.dtype, &dims),
                None => Ok(unknown_output(Some(fact.dtype))),
            })
            .collect()
    }

    /// Asks a kernel to infer the outputs of an op that has no schema.
    fn infer_kernel_outputs(
        &self,
        kernel: &KernelHandle,
        inputs: &[ResolvedInput],
    ) -> Result<Vec<ResolvedOutput>> {
        let ResolveRequest { definition, device, stream, outputs: count, .. } = self.request;
        if !kernel.infers_shapes() {
            return Ok((0..count).map(|_| unknown_output(None)).collect());
        }
        let operand_descriptors = (0..count).map(|_| abi::Tensor::EMPTY);
        let tensors = (0..count).map(|_| None).collect();
        let outputs = AllocatingOutputs::new(device, stream, definition.name, operand_descriptors, tensors);
        let host_call = HostCall::new(&outputs);
        let given: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const input.descriptor).collect();
        let wanted = outputs.descriptor_pointers();
        let mut call = self.abi_call(&given, &wanted);
        call.host_call = host_call.as_ptr();
        // SAFETY: everything that the call points to lives until this returns.
        let inferred = unsafe { kernel.infer_shapes(&call) };
        let (tensors, error) = outputs.into_tensors();
        if let Some(error) = error {
            return Err(error);
        }
        inferred?;
        tensors
            .iter()
            .map(|tensor| {
                tensor.as_ref().map_or(Ok(unknown_output(None)), |tensor| {
                    known_output(device, tensor.dtype(), tensor.dims())
                })
            })
            .collect()
    }

    fn with_abi_call<R>(
        &self,
        inputs: &[ResolvedInput],
        outputs: &[ResolvedOutput],
        ask: impl FnOnce(&abi::Call) -> R,
    ) -> R {
        let given: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const input.descriptor).collect();
        let wanted: Vec<*const abi::Tensor> =
            outputs.iter().map(|output| &raw const output.descriptor).collect();
        ask(&self.abi_call(&given, &wanted))
    }

    fn abi_call(&self, inputs: &[*const abi::Tensor], outputs: &[*const abi::Tensor]) -> abi::Call {
        let attributes = self.attributes.attribute_pointers();
        abi::Call {
            device: self.request.device.id(),
            queue: self.request.stream.handle(),
            inputs: inputs.as_ptr(),
            inputs_count: inputs.len() as u64,
            outputs: outputs.as_ptr(),
            outputs_count: outputs.len() as u64,
            attributes: attributes.as_ptr(),
            attributes_count: attributes.len() as u64,
            ..abi::Call::EMPTY
        }
    }
}

fn known_output(device: &Device, dtype: Dtype, dims: &[i64]) -> Result<ResolvedOutput> {
    let layout = TensorLayout::contiguous(device, dtype, dims)?;
    Ok(ResolvedOutput { descriptor: descriptors::describe_layout(&layout), layout: Some(layout) })
}

fn unknown_output(dtype: Option<Dtype>) -> ResolvedOutput {
    let dtype = dtype.map_or(abi::Tensor::EMPTY.dtype, Dtype::to_abi);
    ResolvedOutput { descriptor: abi::Tensor { dtype, ..abi::Tensor::EMPTY }, layout: None }
}

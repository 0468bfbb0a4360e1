//! Ops, as programs call them.

#![expect(
    unsafe_code,
    reason = "a list of inputs becomes one in which inputs may be left out, without a copy"
)]

mod nested_op;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

pub use self::nested_op::with_nested_ops;
use super::fallback::CpuFallback;
use super::op_definition::OpDefinition;
use super::op_invocation::{OpInvocation, OpOutputs};
use super::resolve::{CallResolver, InputDescriptor, ResolveOutcome, ResolveRequest};
use super::resolved_call::{CallTarget, ResolvedCall};
use super::reusable_call::ReusableCall;
use super::signature::{InputValues, is_bit_set};
use crate::registry::DispatchExplanation;
use crate::runtime::Runtime;
use crate::schema::{self, normalize_domain};
use crate::stream::{InternedLabel, Stream};
use crate::{Attributes, Constant, Device, Error, Result, Tensor, infer};

/// Borrowed by calls of ops that need no input values, which are the majority.
const NO_VALUES: &InputValues = &InputValues::new();
/// The number of signatures that a call finds without taking a lock.
const LOCK_FREE_CALLS: usize = 8;
/// The number of signatures behind the lock, for use when the lock-free slots are full; the oldest is evicted.
const LOCKED_CALLS: usize = 56;

/// A call site of an op, with its attributes.
///
/// It caches resolved calls by signature, so a program should keep one `Op` for each place that calls often.
pub struct Op {
    pub(crate) definition: OpDefinition,
    /// A bit for each input whose values dispatch reads on the host. Bits are only ever added.
    value_input_bits: AtomicU64,
    lock_free_calls: [OnceLock<Arc<ResolvedCall>>; LOCK_FREE_CALLS],
    locked_calls: Mutex<Vec<Arc<ResolvedCall>>>,
}

impl Op {
    /// Creates an op as a given opset of its domain defines it.
    pub fn new(
        runtime: &Runtime,
        domain: &str,
        name: &str,
        opset: u32,
        attributes: Attributes,
    ) -> Result<Self> {
        let domain = normalize_domain(domain);
        let (schema, name, version) = match schema::find_schema(domain, name, opset) {
            Ok(schema) => (Some(schema), schema.name, schema.since_version),
            // An op of a plugin's own domain, whose kernels infer the shapes.
            Err(error) => match runtime.registry().entries_for_op(domain, name).next() {
                Some(_) if schema::latest_opset(domain).is_err() => {
                    (None, InternedLabel::intern_label(name).as_str(), opset)
                }
                _ => {
                    let registry = runtime.registry();
                    let is_known = schema::latest_schema(domain, name).is_ok();
                    return Err(match registry.other_domain_of_op(domain, name) {
                        Some(other) if !is_known => error.with_advice(format!(
                            "`{}` is an op of the domain `{other}`: name that domain with it",
                            oarlock_host::sanitize_text(name)
                        )),
                        _ => error,
                    });
                }
            },
        };
        let rule = schema.and_then(|_| infer::find_rule(domain, name, version));
        let known = rule.map_or(&[][..], |rule| rule.values);
        let value_input_bits =
            known.iter().filter(|index| **index < 64).fold(0, |bits, index| bits | 1 << index);
        Ok(Self {
            definition: OpDefinition {
                domain: domain.to_owned(),
                name,
                version,
                schema,
                attributes,
                rule,
                complete_attributes: OnceLock::new(),
                cpu_fallback: None,
            },
            value_input_bits: AtomicU64::new(value_input_bits),
            lock_free_calls: [const { OnceLock::new() }; LOCK_FREE_CALLS],
            locked_calls: Mutex::default(),
        })
    }

    /// Creates an op of ONNX in its newest version, without attributes.
    pub fn latest(runtime: &Runtime, name: &str) -> Result<Self> {
        Self::new(runtime, "", name, schema::latest_opset("")?, Attributes::new())
    }

    /// Sets what to do with calls that no kernel of their device accepts, overriding the flag `kernel_fallback`.
    #[must_use]
    pub fn with_fallback(mut self, fallback: CpuFallback) -> Self {
        self.definition.cpu_fallback = Some(fallback);
        self
    }

    /// The domain as it was given; empty for ONNX's own.
    pub fn domain(&self) -> &str {
        &self.definition.domain
    }

    /// The attributes as they were given, without defaults.
    pub fn attributes(&self) -> &Attributes {
        &self.definition.attributes
    }

    /// The name, such as `Conv`.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// The since-version of the op.
    pub fn version(&self) -> u32 {
        self.definition.version
    }

    /// Calls the op with all its inputs and returns its first output.
    #[inline]
    pub fn run(&self, runtime: &Runtime, inputs: &[&Tensor]) -> Result<Tensor> {
        // SAFETY: an `Option<&T>` has the layout of a `&T`, with the null pointer as `None`. So a list of references
        // is also a list of such options, for as long as it is borrowed here.
        let inputs =
            unsafe { std::slice::from_raw_parts(inputs.as_ptr().cast::<Option<&Tensor>>(), inputs.len()) };
        let mut outputs = OpOutputs::new();
        let call = OpInvocation { inputs, outputs: 1, device: None, stream: None };
        self.dispatch_call(runtime, &call, 0, &mut outputs)?;
        let missing = || Error::fatal("expected an output, found none").with_op(self.definition.name);
        outputs.pop().flatten().ok_or_else(missing)
    }

    /// Calls the op and returns all requested outputs.
    pub fn invoke(&self, runtime: &Runtime, call: &OpInvocation<'_>) -> Result<OpOutputs> {
        self.invoke_with_constants(runtime, call, 0)
    }

    /// Like [`Op::invoke`]. The bits of `constant_inputs` mark inputs that nobody writes any more, so that kernels may keep
    /// what they compute from them, such as packed weights.
    pub fn invoke_with_constants(
        &self,
        runtime: &Runtime,
        call: &OpInvocation<'_>,
        constant_inputs: u64,
    ) -> Result<OpOutputs> {
        let mut outputs = OpOutputs::new();
        self.dispatch_call(runtime, call, constant_inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Calls the op and pushes its outputs to an empty list.
    #[inline]
    fn dispatch_call(
        &self,
        runtime: &Runtime,
        call: &OpInvocation<'_>,
        constant_inputs: u64,
        outputs: &mut OpOutputs,
    ) -> Result<()> {
        let bits = self.value_input_bits.load(Ordering::Relaxed);
        let read;
        let values = match bits {
            0 => NO_VALUES,
            bits => {
                read = self.read_input_values(call, bits)?;
                &read
            }
        };
        // A cached signature includes the device of its inputs. So if the first input determines the device, a match
        // implies the right device, and the hot path need not look it up.
        let is_decided = matches!(call.inputs.first(), Some(Some(_))) && bits & 1 == 0;
        let device = if is_decided { call.device } else { Some(self.call_device(runtime, call)?) };
        let later;
        let resolved = match self.find_cached(device, call, values, constant_inputs) {
            Some(resolved) => resolved,
            None => {
                later = self.find_or_resolve(runtime, call, values, constant_inputs)?;
                &later
            }
        };
        let device = &resolved.signature.device;
        let stream = self.call_stream(device, call)?;
        match &resolved.target {
            CallTarget::Kernel(kernel) if kernel.may_call_ops => {
                with_nested_ops(runtime, || kernel.run_call(runtime, stream, call.inputs, outputs))
            }
            CallTarget::Kernel(kernel) => kernel.run_call(runtime, stream, call.inputs, outputs),
            CallTarget::Fallback => self.run_on_cpu(runtime, device, call, outputs),
        }
    }

    /// Runs a call on the CPU: copies the inputs there and the outputs back.
    #[cold]
    fn run_on_cpu(
        &self,
        runtime: &Runtime,
        device: &Device,
        call: &OpInvocation<'_>,
        outputs: &mut OpOutputs,
    ) -> Result<()> {
        let cpu = runtime.device("cpu")?;
        let inputs: Result<Vec<Option<Tensor>>> =
            call.inputs.iter().map(|input| input.map(|tensor| tensor.to_device(&cpu)).transpose()).collect();
        let inputs = inputs?;
        let given: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let result = self.invoke(
            runtime,
            &OpInvocation { inputs: &given, outputs: call.outputs, device: Some(&cpu), stream: None },
        )?;
        let bytes: u64 = inputs.iter().chain(&result).flatten().map(Tensor::extent).sum();
        for output in &result {
            outputs.push(output.as_ref().map(|tensor| tensor.to_device(device)).transpose()?);
        }
        let name = self.definition.name;
        let is_first = runtime.fallback_counters().count_fallback(name, device, bytes);
        if is_first && self.definition.cpu_fallback(runtime) != CpuFallback::Silent {
            runtime.log_warning(&format!(
                "`{name}` has no kernel on `{device}` for this call, so `{cpu}` runs it, with copies"
            ));
        }
        Ok(())
    }

    /// Explains which kernel would run a call, and why the others would not.
    pub fn explain_call(&self, runtime: &Runtime, call: &OpInvocation<'_>) -> Result<DispatchExplanation> {
        let device = self.call_device(runtime, call)?;
        let stream = device.default_stream()?;
        let mut values = self.value_input_bits.load(Ordering::Relaxed);
        loop {
            let read = self.read_input_values(call, values)?;
            let inputs = input_descriptors(call, 0);
            let request = self.resolve_request(runtime, device, stream, &inputs, call.outputs, &read);
            match CallResolver::new(request)?.explain_candidates()? {
                ResolveOutcome::Done(explanation) => return Ok(explanation),
                ResolveOutcome::NeedsValues(more) => values |= more,
            }
        }
    }

    /// Binds a call to its inputs so that it can run many times with the least possible overhead.
    pub fn create_reusable_call(&self, runtime: &Runtime, call: &OpInvocation<'_>) -> Result<ReusableCall> {
        let device = self.call_device(runtime, call)?;
        let stream = self.call_stream(device, call)?;
        let values = self.read_input_values(call, self.value_input_bits.load(Ordering::Relaxed))?;
        let resolved = match self.find_cached(Some(device), call, &values, 0) {
            Some(resolved) => resolved.clone(),
            None => self.find_or_resolve(runtime, call, &values, 0)?,
        };
        ReusableCall::new(&resolved, runtime, stream, call.inputs)
    }

    /// Looks a call up in the lock-free slots.
    #[inline]
    fn find_cached(
        &self,
        device: Option<&Device>,
        call: &OpInvocation<'_>,
        values: &InputValues,
        constant_inputs: u64,
    ) -> Option<&Arc<ResolvedCall>> {
        let known = self.lock_free_calls.iter().map_while(OnceLock::get);
        known.into_iter().find(|resolved| {
            resolved.signature.matches_call(device, call.inputs, values, call.outputs, constant_inputs)
        })
    }

    /// Looks a call up behind the lock, and resolves it if it is not there either.
    #[cold]
    fn find_or_resolve(
        &self,
        runtime: &Runtime,
        call: &OpInvocation<'_>,
        values: &InputValues,
        constant_inputs: u64,
    ) -> Result<Arc<ResolvedCall>> {
        let device = self.call_device(runtime, call)?;
        let more = self.locked_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = |resolved: &&Arc<ResolvedCall>| {
            resolved.signature.matches_call(Some(device), call.inputs, values, call.outputs, constant_inputs)
        };
        if let Some(resolved) = more.iter().find(matches) {
            return Ok(resolved.clone());
        }
        drop(more);
        let stream = self.call_stream(device, call)?;
        self.resolve_call(runtime, device, stream, call, (values.clone(), constant_inputs))
    }

    #[cold]
    fn resolve_call(
        &self,
        runtime: &Runtime,
        device: &Device,
        stream: &Stream,
        call: &OpInvocation<'_>,
        (mut values, constant_inputs): (InputValues, u64),
    ) -> Result<Arc<ResolvedCall>> {
        let resolved = loop {
            let inputs = input_descriptors(call, constant_inputs);
            let request = self.resolve_request(runtime, device, stream, &inputs, call.outputs, &values);
            let outcome = super::resolve::resolve_call(request, call, constant_inputs);
            match outcome.map_err(|error| error.with_op(self.definition.name).with_device(device))? {
                ResolveOutcome::Done(resolved) => break Arc::new(resolved),
                ResolveOutcome::NeedsValues(more) => {
                    let bits = self.value_input_bits.fetch_or(more, Ordering::Relaxed) | more;
                    values = self.read_input_values(call, bits)?;
                }
            }
        };
        if let Some(free) = self.lock_free_calls.iter().find(|resolved| resolved.get().is_none()) {
            // If another thread was faster, its entry stays, and this entry is used only for this call.
            _ = free.set(resolved.clone());
        } else {
            let mut more = self.locked_calls.lock().unwrap_or_else(PoisonError::into_inner);
            if more.len() == LOCKED_CALLS {
                more.remove(0);
            }
            more.push(resolved.clone());
        }
        Ok(resolved)
    }

    pub(crate) fn resolve_request<'a>(
        &'a self,
        runtime: &'a Runtime,
        device: &'a Device,
        stream: &'a Stream,
        inputs: &'a [Option<InputDescriptor<'a>>],
        outputs: usize,
        values: &'a InputValues,
    ) -> ResolveRequest<'a> {
        ResolveRequest { definition: &self.definition, runtime, device, stream, inputs, outputs, values }
    }

    /// The stream of a call: the one that it names, or the device's default stream. A stream is only valid on its own
    /// device, so a stream of another device must not reach a kernel.
    #[inline]
    fn call_stream<'a>(&self, device: &'a Device, call: &OpInvocation<'a>) -> Result<&'a Stream> {
        match call.stream {
            None => device.default_stream(),
            Some(stream) if device.memory_pool()?.streams().contains_stream(stream) => Ok(stream),
            Some(stream) => Err(self.wrong_stream_error(device, stream)),
        }
    }

    #[cold]
    fn wrong_stream_error(&self, device: &Device, stream: &Stream) -> Error {
        let found = stream.device();
        Error::invalid_argument(format!("expected a stream of `{device}`, found one of `{found}`"))
            .with_op(self.definition.name)
            .with_device(device)
            .with_advice("make one with `Device::create_stream` of the device that the inputs are on")
    }

    /// The device of a call: the one that it names, the device of its inputs, or the default device.
    #[inline]
    fn call_device<'a>(&self, runtime: &'a Runtime, call: &OpInvocation<'a>) -> Result<&'a Device> {
        let values = self.value_input_bits.load(Ordering::Relaxed);
        let mut device = call.device;
        for (index, input) in call.inputs.iter().enumerate() {
            let Some(input) = input.filter(|_| index >= 64 || values >> index & 1 == 0) else { continue };
            match device {
                None => device = Some(input.device()),
                Some(device) if device.is_same_device(input.device()) => {}
                Some(device) => return Err(self.wrong_device_error(index, device, input)),
            }
        }
        match device {
            Some(device) => Ok(device),
            None => match call.inputs.iter().flatten().next() {
                Some(input) => Ok(input.device()),
                None => runtime.default_device(),
            },
        }
    }

    #[cold]
    fn wrong_device_error(&self, index: usize, device: &Device, input: &Tensor) -> Error {
        Error::invalid_argument(format!("expected a tensor on `{device}`, found one on `{}`", input.device()))
            .with_operand(self.definition.input_name(index))
            .with_op(self.definition.name)
            .with_device(device)
            .with_advice("copy it there with `Tensor::to_device`")
    }

    /// Reads the inputs marked in `bits` to the host.
    #[inline]
    fn read_input_values(&self, call: &OpInvocation<'_>, bits: u64) -> Result<InputValues> {
        if bits == 0 {
            return Ok(InputValues::new());
        }
        let read = |(index, input): (usize, &Option<&Tensor>)| match input {
            Some(tensor) if is_bit_set(bits, index) => {
                let value = tensor.to_constant();
                let name = || self.definition.input_name(index);
                value.map(Some).map_err(|error: Error| {
                    error.with_operand(name()).with_op(self.definition.name).with_device(tensor.device())
                })
            }
            _ => Ok(None),
        };
        call.inputs.iter().enumerate().map(read).collect()
    }
}

fn input_descriptors<'a>(
    call: &OpInvocation<'a>,
    constant_inputs: u64,
) -> SmallVec<[Option<InputDescriptor<'a>>; 4]> {
    let describe = |(index, input): (usize, &Option<&'a Tensor>)| {
        let is_constant = is_bit_set(constant_inputs, index);
        input.map(|tensor| InputDescriptor { is_constant, ..InputDescriptor::from(tensor) })
    };
    call.inputs.iter().enumerate().map(describe).collect()
}

impl Tensor {
    /// Copies the elements to the host.
    pub fn to_constant(&self) -> Result<Constant> {
        Constant::new(self.dtype(), self.dims(), self.to_bytes()?)
    }
}

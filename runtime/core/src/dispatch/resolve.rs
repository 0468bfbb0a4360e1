//! The first call with a new signature: what its outputs will be, and which kernel makes them.

#![expect(unsafe_code, reason = "kernels are asked about a call, which is a struct of pointers")]

use oarlock_abi as abi;
use oarlock_host::{HostCall, KernelHandle};

use super::op::{Invocation, Node};
use super::outputs::Allocating;
use super::raw::{self, RawAttributes};
use super::signature::{Signature, Values};
use super::site::{Input, InputWay, KernelSite, Output, Site, Way};
use crate::flags::Fallback;
use crate::infer::{self, Fact, Inference};
use crate::registry::fit::{Misfit, Operand, Wanted, fit};
use crate::registry::{Considered, Explanation, Row};
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::tensor::Form;
use crate::{Attributes, Device, Dtype, Error, Result, Tensor};

/// Ops that draw numbers from the random generator.
const RANDOM: [&str; 7] = [
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];
/// How many outputs an op may have that says no number.
const MOST_OUTPUTS: usize = 1 << 16;
/// How many counter values a kernel may use for each element it makes.
const DRAWS_PER_ELEMENT: u64 = 4;

/// What became of an attempt.
pub(crate) enum Resolution<T> {
    Done(T),
    /// The kernel that was chosen wants the values of these inputs, as bits.
    NeedsValues(u64),
}

/// A call on its way to a kernel.
struct Attempt<'a> {
    node: &'a Node,
    runtime: &'a Runtime,
    device: &'a Device,
    stream: &'a Stream,
    call: &'a Invocation<'a>,
    values: &'a Values,
    attributes: RawAttributes,
    /// What is known of the outputs; empty where only a kernel can say it.
    facts: Option<Vec<Fact>>,
}

/// How calls like this one are run.
pub(crate) fn site(
    node: &Node,
    runtime: &Runtime,
    device: &Device,
    stream: &Stream,
    call: &Invocation<'_>,
    values: &Values,
) -> Result<Resolution<Site>> {
    let attempt = Attempt::new(node, runtime, device, stream, call, values)?;
    let explanation = match attempt.consider()? {
        Resolution::Done(explanation) => explanation,
        Resolution::NeedsValues(more) => return Ok(Resolution::NeedsValues(more)),
    };
    let way = match explanation.chosen() {
        Some(row) => {
            let row = row.clone();
            Way::Kernel(Box::new(attempt.ready(&row)?))
        }
        None if runtime.flags().kernel_fallback() == Fallback::Cpu && device.device_type() != "cpu" => {
            Way::Fallback
        }
        None => return Err(explanation.error()),
    };
    Ok(Resolution::Done(Site { signature: Signature::new(device, call.inputs, values, call.outputs), way }))
}

/// What is considered for a call like this one.
pub(crate) fn explain(
    node: &Node,
    runtime: &Runtime,
    device: &Device,
    stream: &Stream,
    call: &Invocation<'_>,
    values: &Values,
) -> Result<Resolution<Explanation>> {
    Attempt::new(node, runtime, device, stream, call, values)?.consider()
}

impl<'a> Attempt<'a> {
    fn new(
        node: &'a Node,
        runtime: &'a Runtime,
        device: &'a Device,
        stream: &'a Stream,
        call: &'a Invocation<'a>,
        values: &'a Values,
    ) -> Result<Self> {
        let (attributes, facts) = match node.schema {
            None if call.outputs > MOST_OUTPUTS => return Err(too_many_outputs(call.outputs, MOST_OUTPUTS)),
            None => (node.attributes.clone(), None),
            Some(schema) => {
                let dtypes: Vec<Option<Dtype>> =
                    call.inputs.iter().map(|input| input.map(Tensor::dtype)).collect();
                let most = schema.max_outputs().unwrap_or(MOST_OUTPUTS);
                if call.outputs > most {
                    return Err(too_many_outputs(call.outputs, most));
                }
                let bound = schema.bind(&node.attributes, &dtypes)?;
                let facts = inferred(node, call, values, &bound.attributes, bound.outputs)?;
                (bound.attributes, facts)
            }
        };
        Ok(Self {
            node,
            runtime,
            device,
            stream,
            call,
            values,
            attributes: RawAttributes::new(attributes),
            facts,
        })
    }

    /// Looks at every row of the op.
    fn consider(&self) -> Result<Resolution<Explanation>> {
        let registry = self.runtime.registry();
        let inputs: Vec<Option<Operand>> = self
            .call
            .inputs
            .iter()
            .map(|input| {
                input.map(|tensor| Operand { dtype: tensor.dtype(), rank: Some(tensor.dims().len()) })
            })
            .collect();
        let of_fact =
            |fact: &Fact| Operand { dtype: fact.dtype, rank: fact.dims.as_ref().map(|dims| dims.len()) };
        let outputs: Vec<Option<Operand>> =
            self.facts.iter().flatten().map(|fact| Some(of_fact(fact))).collect();
        let wanted = Wanted {
            version: self.node.version,
            device_type: self.device.device_type(),
            inputs: &inputs,
            outputs: &outputs,
            knows_outputs: self.facts.is_some(),
            must_be_deterministic: self.runtime.flags().deterministic(),
        };
        let mut rows: Vec<&Row> = registry.rows_of(&self.node.domain, self.node.name).collect();
        let has_strides: Vec<bool> = self
            .call
            .inputs
            .iter()
            .map(|input| input.is_some_and(|tensor| !tensor.is_contiguous()))
            .collect();
        registry.rank(&mut rows, &has_strides);
        let mut considered = Vec::new();
        for row in rows {
            let senseless = registry.check(row).err();
            let senseless = senseless.map(|error| Misfit::Refused(format!("it is never used: {error}")));
            let mut misfit = senseless.or_else(|| fit(row.info(), &wanted).err());
            if misfit.is_none() {
                let more = self.values_wanted(row.handle());
                if more != 0 {
                    return Ok(Resolution::NeedsValues(more));
                }
                misfit = self.asked(row.handle()).err();
            }
            considered.push(Considered { row: row.clone(), misfit });
        }
        Ok(Resolution::Done(Explanation {
            op: self.node.name.to_owned(),
            version: self.node.version,
            device: self.device.name().to_owned(),
            considered,
        }))
    }

    /// The inputs that a kernel wants on the host and whose values are not known yet, as bits.
    fn values_wanted(&self, kernel: &KernelHandle) -> u64 {
        let info = kernel.info();
        let is_wanted = |index: usize| {
            let demand = info.inputs.get(index).or(info.inputs.last());
            demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0)
                && self.call.inputs[index].is_some()
                && self.values.get(index).is_none_or(Option::is_none)
        };
        (0..self.call.inputs.len().min(64))
            .filter(|index| is_wanted(*index))
            .fold(0, |bits, index| bits | 1 << index)
    }

    /// Asks a kernel whether it takes this very call.
    fn asked(&self, kernel: &KernelHandle) -> std::result::Result<(), Misfit> {
        let refused = |error: Error| Misfit::Refused(error.to_string());
        let (inputs, outputs) = (self.inputs(kernel).map_err(refused)?, self.outputs().map_err(refused)?);
        let answer = self.with_call(&inputs, &outputs, |call| {
            // SAFETY: everything that the call points to lives until this returns.
            unsafe { kernel.supports(call) }
        });
        answer.map_err(|failure| {
            Misfit::Refused(format!("it refuses: {}", oarlock_host::clean_text(&failure.message)))
        })
    }

    /// Readies a kernel.
    fn ready(self, row: &Row) -> Result<KernelSite> {
        let kernel = row.handle();
        let inputs = self.inputs(kernel)?;
        let outputs =
            if self.facts.is_some() { self.outputs()? } else { self.outputs_of_kernel(kernel, &inputs)? };
        let failed = |failure| Error::from(failure).of_op(self.node.name).on_device(self.device);
        let (workspace, prepared) = self.with_call(&inputs, &outputs, |call| -> Result<_> {
            // SAFETY: everything that the call points to lives until this returns; operands that are marked constant are
            // values that the site keeps as long as the kernel.
            unsafe { Ok((kernel.workspace(call).map_err(failed)?, kernel.prepare(call).map_err(failed)?)) }
        })?;
        let has_texts = self.call.inputs.iter().flatten().any(|tensor| tensor.dtype() == Dtype::String);
        Ok(KernelSite {
            op: self.node.name,
            device: self.device.clone(),
            kernel: prepared,
            workspace,
            allocates: kernel.info().allocates_outputs,
            draws: self.draws(&outputs),
            has_texts,
            descriptions: inputs
                .iter()
                .map(|input| input.raw)
                .chain(outputs.iter().map(|output| output.raw))
                .collect(),
            copies: inputs.iter().any(|input| input.way == InputWay::Contiguous),
            inputs,
            outputs,
            _values: self.values.clone(),
            attributes: self.attributes,
        })
    }

    fn draws(&self, outputs: &[Output]) -> u64 {
        if self.node.schema.is_some() && !RANDOM.contains(&self.node.name) {
            return 0;
        }
        let known = |output: &Output| {
            output.form.as_ref().and_then(|form| crate::shape::element_count(&form.dims).ok()).unwrap_or(0)
        };
        let given = self.call.inputs.iter().flatten().map(|tensor| tensor.element_count());
        let elements: u64 = outputs.iter().map(known).chain(given).max().unwrap_or(0);
        elements.max(1).saturating_mul(DRAWS_PER_ELEMENT)
    }

    /// The inputs as a kernel gets them.
    fn inputs(&self, kernel: &KernelHandle) -> Result<Vec<Input>> {
        let demands = &kernel.info().inputs;
        let describe = |(index, input): (usize, &Option<&Tensor>)| {
            let demand = demands.get(index).or(demands.last());
            let Some(tensor) = input else {
                return Ok(Input { raw: raw::absent(), way: InputWay::Absent, _form: None });
            };
            let wants_value = demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0);
            if let Some(Some(value)) = self.values.get(index).filter(|_| wants_value) {
                let form = Form::contiguous(tensor.device(), value.dtype(), value.dims())?;
                let raw = raw::value(value, &form);
                return Ok(Input { raw, way: InputWay::Value, _form: Some(form) });
            }
            let takes_strides = demand.is_some_and(|demand| demand.strided);
            let (way, form) = if tensor.is_contiguous() || takes_strides {
                (InputWay::Direct, tensor.form().clone())
            } else {
                (InputWay::Contiguous, Form::contiguous(tensor.device(), tensor.dtype(), tensor.dims())?)
            };
            let mut raw = raw::describe(&form);
            raw::place(&mut raw, tensor);
            Ok(Input { raw, way, _form: Some(form) })
        };
        self.call.inputs.iter().enumerate().map(describe).collect()
    }

    /// The outputs as far as they are known.
    fn outputs(&self) -> Result<Vec<Output>> {
        let facts = self.facts.iter().flatten();
        facts
            .map(|fact| match fact.known_dims() {
                Some(dims) => known(self.device, fact.dtype, &dims),
                None => Ok(asked(Some(fact.dtype))),
            })
            .collect()
    }

    /// The outputs as a kernel says them, for an op that has no schema.
    fn outputs_of_kernel(&self, kernel: &KernelHandle, inputs: &[Input]) -> Result<Vec<Output>> {
        if !kernel.infers() {
            return Ok((0..self.call.outputs).map(|_| asked(None)).collect());
        }
        let descriptions = (0..self.call.outputs).map(|_| abi::Tensor::EMPTY);
        let tensors = (0..self.call.outputs).map(|_| None).collect();
        let outputs = Allocating::new(self.device, self.stream, self.node.name, descriptions, tensors);
        let host_call = HostCall::new(&outputs);
        let given: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const input.raw).collect();
        let wanted = outputs.pointers();
        let mut call = self.raw_call(&given, &wanted);
        call.host_call = host_call.address();
        // SAFETY: everything that the call points to lives until this returns.
        let inferred = unsafe { kernel.infer(&call) };
        let (tensors, error) = outputs.finish();
        if let Some(error) = error {
            return Err(error);
        }
        inferred?;
        tensors
            .iter()
            .map(|tensor| {
                tensor
                    .as_ref()
                    .map_or(Ok(asked(None)), |tensor| known(self.device, tensor.dtype(), tensor.dims()))
            })
            .collect()
    }

    fn with_call<R>(&self, inputs: &[Input], outputs: &[Output], ask: impl FnOnce(&abi::Call) -> R) -> R {
        let given: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const input.raw).collect();
        let wanted: Vec<*const abi::Tensor> = outputs.iter().map(|output| &raw const output.raw).collect();
        ask(&self.raw_call(&given, &wanted))
    }

    fn raw_call(&self, inputs: &[*const abi::Tensor], outputs: &[*const abi::Tensor]) -> abi::Call {
        let attributes = self.attributes.pointers();
        abi::Call {
            device: self.device.id(),
            queue: self.stream.handle(),
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

/// What the outputs will be; nothing for an op whose shapes only kernels know.
fn inferred(
    node: &Node,
    call: &Invocation<'_>,
    values: &Values,
    attributes: &Attributes,
    dtypes: Vec<Option<Dtype>>,
) -> Result<Option<Vec<Fact>>> {
    let fact = |(index, input): (usize, &Option<&Tensor>)| {
        let tensor = (*input)?;
        Some(match values.get(index) {
            Some(Some(value)) => Fact::of_value(value.clone()),
            _ => Fact::of_shape(tensor.dtype(), tensor.dims()),
        })
    };
    let inputs: Vec<Option<Fact>> = call.inputs.iter().enumerate().map(fact).collect();
    // A variadic output stands for all that are wanted.
    let last = dtypes.last().copied().flatten();
    let outputs: Vec<Option<Dtype>> =
        (0..call.outputs).map(|index| dtypes.get(index).copied().unwrap_or(last)).collect();
    if !infer::is_known(&node.domain, node.name) {
        return Ok(None);
    }
    infer::infer(&Inference {
        domain: &node.domain,
        op: node.name,
        version: node.version,
        attributes,
        inputs: &inputs,
        outputs: &outputs,
    })
    .map(Some)
}

#[cold]
fn too_many_outputs(found: usize, most: usize) -> Error {
    Error::invalid_argument(format!("expected at most {most} outputs, found {found}"))
}

fn known(device: &Device, dtype: Dtype, dims: &[i64]) -> Result<Output> {
    let form = Form::contiguous(device, dtype, dims)?;
    Ok(Output { raw: raw::describe(&form), form: Some(form) })
}

fn asked(dtype: Option<Dtype>) -> Output {
    let dtype = dtype.map_or(abi::Tensor::EMPTY.dtype, Dtype::to_contract);
    Output { raw: abi::Tensor { dtype, ..abi::Tensor::EMPTY }, form: None }
}

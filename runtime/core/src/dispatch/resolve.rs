//! The first call with a new signature: what its outputs will be, and which kernel makes them.

#![expect(unsafe_code, reason = "kernels are asked about a call, which is a struct of pointers")]

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_abi as abi;
use oarlock_host::{CallServices, HostCall, KernelHandle};
use smallvec::SmallVec;

use super::fallback::CpuFallback;
use super::op::{Invocation, Node};
use super::outputs::Allocating;
use super::raw::{self, RawAttributes};
use super::signature::{Signature, Values};
use super::site::{Input, InputWay, KernelSite, Output, Site, Way};
use crate::flags::Fallback;
use crate::infer::{self, Fact, Inference};
use crate::registry::fit::{Misfit, Operand, Wanted, fit};
use crate::registry::{Considered, Explanation, Registry, Row};
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::tensor::Form;
use crate::{Device, Dtype, Error, Result, Tensor};

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

/// One input of a call, as far as a kernel is readied with it.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) form: &'a Arc<Form>,
    /// Where it lies: the block and the bytes from its start. Nothing that is asked of a kernel reads it, unless it is constant.
    pub(crate) place: (abi::Memory, u64),
    /// Whether it stays what and where it is as long as the kernel is ready.
    pub(crate) is_constant: bool,
}

impl<'a> From<&'a Tensor> for Given<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self { form: tensor.form(), place: tensor.place(), is_constant: false }
    }
}

/// What is asked for: an op on a device.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) node: &'a Node,
    pub(crate) runtime: &'a Runtime,
    pub(crate) device: &'a Device,
    pub(crate) stream: &'a Stream,
    /// The inputs; one that is left out is `None`.
    pub(crate) inputs: &'a [Option<Given<'a>>],
    /// How many outputs are wanted.
    pub(crate) outputs: usize,
    /// The values of inputs, where they are known.
    pub(crate) values: &'a Values,
}

/// A call on its way to a kernel.
pub(crate) struct Attempt<'a> {
    request: Request<'a>,
    attributes: Arc<RawAttributes>,
    /// What is known of the outputs; empty where only a kernel can say it.
    facts: Option<Vec<Fact>>,
}

/// What a kernel says of itself while it is readied.
#[derive(Default)]
struct Heard(Mutex<String>);

impl CallServices for Heard {
    fn describe(&self, way: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = way;
    }
}

/// What is known of the operands of a call, as rows are compared with it.
struct Operands {
    inputs: SmallVec<[Option<Operand>; 8]>,
    outputs: SmallVec<[Option<Operand>; 4]>,
}

impl Operands {
    fn wanted<'a>(&'a self, attempt: &'a Attempt<'_>, is_explained: bool) -> Wanted<'a> {
        let Request { node, runtime, device, .. } = attempt.request;
        Wanted {
            version: node.version,
            device_type: device.device_type(),
            inputs: &self.inputs,
            outputs: &self.outputs,
            knows_outputs: attempt.facts.is_some(),
            must_be_deterministic: runtime.flags().deterministic(),
            is_explained,
        }
    }
}

/// How calls like this one are run.
pub(crate) fn site(request: Request<'_>, call: &Invocation<'_>) -> Result<Resolution<Site>> {
    let Request { node, runtime, device, values, .. } = request;
    let attempt = Attempt::new(request)?;
    let chosen = match attempt.choose()? {
        Resolution::Done(chosen) => chosen,
        Resolution::NeedsValues(more) => return Ok(Resolution::NeedsValues(more)),
    };
    let way = match chosen {
        Some(row) => Way::Kernel(Arc::new(attempt.ready(&row)?)),
        None if node.cpu_fallback(runtime) != CpuFallback::Never && device.device_type() != "cpu" => {
            Way::Fallback
        }
        None => match attempt.consider()? {
            Resolution::Done(explanation) => return Err(explanation.error()),
            Resolution::NeedsValues(more) => return Ok(Resolution::NeedsValues(more)),
        },
    };
    Ok(Resolution::Done(Site { signature: Signature::new(device, call.inputs, values, call.outputs), way }))
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(request: Request<'a>) -> Result<Self> {
        let Request { node, outputs, .. } = request;
        let facts = match node.schema {
            None if outputs > MOST_OUTPUTS => return Err(too_many_outputs(outputs, MOST_OUTPUTS)),
            None => None,
            Some(_) => {
                let fact = |(index, input): (usize, &Option<Given<'_>>)| {
                    let form = input.as_ref()?.form;
                    Some(match request.values.get(index) {
                        Some(Some(value)) => Fact::of_value(value.clone()),
                        _ => Fact::of_shape(form.dtype, &form.dims),
                    })
                };
                let inputs: Vec<Option<Fact>> = request.inputs.iter().enumerate().map(fact).collect();
                node.infer(&inputs, outputs)?
            }
        };
        Ok(Self { request, attributes: node.bound()?, facts })
    }

    /// The same call with inputs of the same forms.
    pub(crate) fn with<'b>(self, inputs: &'b [Option<Given<'b>>]) -> Attempt<'b>
    where
        'a: 'b,
    {
        Attempt { request: Request { inputs, ..self.request }, ..self }
    }

    /// The row that runs the call, which is the first that takes it; nothing where none does.
    pub(crate) fn choose(&self) -> Result<Resolution<Option<Row>>> {
        let (operands, registry) = (self.operands(), self.request.runtime.registry());
        for row in self.rows(&registry) {
            match self.misfit(row, &operands.wanted(self, false))? {
                Resolution::Done(None) => return Ok(Resolution::Done(Some(row.clone()))),
                Resolution::Done(Some(_)) => {}
                Resolution::NeedsValues(more) => return Ok(Resolution::NeedsValues(more)),
            }
        }
        Ok(Resolution::Done(None))
    }

    /// Looks at every row of the op, and says what is wrong with those that do not take the call.
    pub(crate) fn consider(&self) -> Result<Resolution<Explanation>> {
        let Request { node, device, .. } = self.request;
        let (operands, registry) = (self.operands(), self.request.runtime.registry());
        let mut considered: Vec<Considered> = Vec::new();
        for row in self.rows(&registry) {
            match self.misfit(row, &operands.wanted(self, true))? {
                Resolution::Done(misfit) => considered.push(Considered { row: row.clone(), misfit }),
                // Whatever a row would want to know, it is behind one that takes the call.
                Resolution::NeedsValues(_) if considered.iter().any(|before| before.misfit.is_none()) => {
                    considered.push(Considered { row: row.clone(), misfit: None });
                }
                Resolution::NeedsValues(more) => return Ok(Resolution::NeedsValues(more)),
            }
        }
        Ok(Resolution::Done(Explanation {
            op: node.name.to_owned(),
            version: node.version,
            device: device.name().to_owned(),
            considered,
        }))
    }

    /// The rows of the op, the preferred ones first.
    fn rows<'r>(&self, registry: &'r Registry) -> SmallVec<[&'r Row; 8]> {
        let Request { node, inputs, .. } = self.request;
        let has_strides: SmallVec<[bool; 8]> =
            inputs.iter().map(|given| given.is_some_and(|given| given.form.strides.is_some())).collect();
        let mut rows: SmallVec<[&Row; 8]> = registry.rows_of(&node.domain, node.name).collect();
        registry.rank(&mut rows, &has_strides);
        rows
    }

    fn operands(&self) -> Operands {
        let of_given =
            |given: &Given<'_>| Operand { dtype: given.form.dtype, rank: Some(given.form.dims.len()) };
        let of_fact =
            |fact: &Fact| Operand { dtype: fact.dtype, rank: fact.dims.as_ref().map(|dims| dims.len()) };
        Operands {
            inputs: self.request.inputs.iter().map(|given| given.as_ref().map(of_given)).collect(),
            outputs: self.facts.iter().flatten().map(|fact| Some(of_fact(fact))).collect(),
        }
    }

    /// Why a row does not take the call, if it does not.
    fn misfit(&self, row: &Row, wanted: &Wanted<'_>) -> Result<Resolution<Option<Misfit>>> {
        if let Err(error) = self.request.runtime.registry().check(row) {
            let text = format!("it is never used: {error}");
            return Ok(Resolution::Done(Some(Misfit::Refused(text))));
        }
        if let Err(misfit) = fit(row.info(), wanted) {
            return Ok(Resolution::Done(Some(misfit)));
        }
        match self.values_wanted(row.handle()) {
            0 => Ok(Resolution::Done(self.asked(row.handle()).err())),
            more => Ok(Resolution::NeedsValues(more)),
        }
    }

    /// The inputs that a kernel wants on the host and whose values are not known yet, as bits.
    fn values_wanted(&self, kernel: &KernelHandle) -> u64 {
        let info = kernel.info();
        let is_wanted = |index: usize| {
            let demand = info.inputs.get(index).or(info.inputs.last());
            demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0)
                && self.request.inputs[index].is_some()
                && self.request.values.get(index).is_none_or(Option::is_none)
        };
        (0..self.request.inputs.len().min(64))
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
    pub(crate) fn ready(self, row: &Row) -> Result<KernelSite> {
        let Request { node, device, inputs: given, values, .. } = self.request;
        let kernel = row.handle();
        let inputs = self.inputs(kernel)?;
        let outputs =
            if self.facts.is_some() { self.outputs()? } else { self.outputs_of_kernel(kernel, &inputs)? };
        let failed = |failure| Error::from(failure).of_op(node.name).on_device(device);
        let heard = Heard::default();
        let host_call = HostCall::new(&heard);
        let (workspace, prepared) = self.with_call(&inputs, &outputs, |call| -> Result<_> {
            let call = &abi::Call { host_call: host_call.address(), ..*call };
            // SAFETY: everything that the call points to lives until this returns; operands that are marked constant are
            // values that the site keeps as long as the kernel.
            unsafe { Ok((kernel.workspace(call).map_err(failed)?, kernel.prepare(call).map_err(failed)?)) }
        })?;
        let has_texts = given.iter().flatten().any(|given| given.form.dtype == Dtype::String);
        Ok(KernelSite {
            op: node.name,
            device: device.clone(),
            kernel: prepared,
            description: heard.0.into_inner().unwrap_or_else(PoisonError::into_inner),
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
            _values: values.clone(),
            _constants: Vec::new(),
            attributes: self.attributes,
        })
    }

    fn draws(&self, outputs: &[Output]) -> u64 {
        let Node { schema, name, .. } = self.request.node;
        if schema.is_some() && !RANDOM.contains(name) {
            return 0;
        }
        let known = |output: &Output| {
            output.form.as_ref().and_then(|form| crate::shape::element_count(&form.dims).ok()).unwrap_or(0)
        };
        let given = self.request.inputs.iter().flatten();
        let given = given.map(|given| crate::shape::element_count(&given.form.dims).unwrap_or(0));
        let elements: u64 = outputs.iter().map(known).chain(given).max().unwrap_or(0);
        elements.max(1).saturating_mul(DRAWS_PER_ELEMENT)
    }

    /// The inputs as a kernel gets them.
    fn inputs(&self, kernel: &KernelHandle) -> Result<Vec<Input>> {
        let demands = &kernel.info().inputs;
        let describe = |(index, input): (usize, &Option<Given<'_>>)| {
            let demand = demands.get(index).or(demands.last());
            let Some(given) = input else {
                return Ok(Input { raw: raw::absent(), way: InputWay::Absent, _form: None });
            };
            let own = given.form;
            let wants_value = demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0);
            if let Some(Some(value)) = self.request.values.get(index).filter(|_| wants_value) {
                let form = Form::contiguous(&own.device, value.dtype(), value.dims())?;
                let raw = raw::value(value, &form);
                return Ok(Input { raw, way: InputWay::Value, _form: Some(form) });
            }
            let takes_strides = demand.is_some_and(|demand| demand.strided);
            let (way, form) = if own.strides.is_none() || takes_strides {
                (InputWay::Direct, own.clone())
            } else {
                (InputWay::Contiguous, Form::contiguous(&own.device, own.dtype, &own.dims)?)
            };
            let mut raw = raw::describe(&form);
            (raw.block, raw.offset) = given.place;
            if given.is_constant {
                raw.bits = raw.bits | abi::TensorFlags::CONSTANT;
            }
            Ok(Input { raw, way, _form: Some(form) })
        };
        self.request.inputs.iter().enumerate().map(describe).collect()
    }

    /// The outputs as far as they are known.
    fn outputs(&self) -> Result<Vec<Output>> {
        let facts = self.facts.iter().flatten();
        facts
            .map(|fact| match fact.known_dims() {
                Some(dims) => known(self.request.device, fact.dtype, &dims),
                None => Ok(asked(Some(fact.dtype))),
            })
            .collect()
    }

    /// The outputs as a kernel says them, for an op that has no schema.
    fn outputs_of_kernel(&self, kernel: &KernelHandle, inputs: &[Input]) -> Result<Vec<Output>> {
        let Request { node, device, stream, outputs: count, .. } = self.request;
        if !kernel.infers() {
            return Ok((0..count).map(|_| asked(None)).collect());
        }
        let descriptions = (0..count).map(|_| abi::Tensor::EMPTY);
        let tensors = (0..count).map(|_| None).collect();
        let outputs = Allocating::new(device, stream, node.name, descriptions, tensors);
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
                tensor.as_ref().map_or(Ok(asked(None)), |tensor| known(device, tensor.dtype(), tensor.dims()))
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

impl Node {
    /// Whether the CPU makes a call that no kernel of its device takes.
    pub(crate) fn cpu_fallback(&self, runtime: &Runtime) -> CpuFallback {
        let by_flag = || match runtime.flags().kernel_fallback() {
            Fallback::Cpu => CpuFallback::Told,
            Fallback::Error | Fallback::Models => CpuFallback::Never,
        };
        self.cpu_fallback.unwrap_or_else(by_flag)
    }

    /// What the outputs of a call will be; nothing for an op whose shapes only kernels know.
    pub(crate) fn infer(&self, inputs: &[Option<Fact>], outputs: usize) -> Result<Option<Vec<Fact>>> {
        let Some(schema) = self.schema else { return Ok(None) };
        let most = schema.max_outputs().unwrap_or(MOST_OUTPUTS);
        if outputs > most {
            return Err(too_many_outputs(outputs, most));
        }
        let dtypes: SmallVec<[Option<Dtype>; 8]> =
            inputs.iter().map(|input| input.as_ref().map(|fact| fact.dtype)).collect();
        let dtypes = schema.bind_operands(&dtypes).map_err(|error| error.of_op(self.name))?;
        let bound = self.bound()?;
        // A variadic output stands for all that are wanted.
        let last = dtypes.last().copied().flatten();
        let outputs: SmallVec<[Option<Dtype>; 4]> =
            (0..outputs).map(|index| dtypes.get(index).copied().unwrap_or(last)).collect();
        let inference = Inference {
            domain: &self.domain,
            op: self.name,
            version: self.version,
            attributes: bound.attributes(),
            inputs,
            outputs: &outputs,
        };
        match self.rule {
            Some(rule) => infer::infer_by(rule, &inference).map(Some).map_err(|error| error.of_op(self.name)),
            // There are rules for other versions, which is an error.
            None if infer::is_known(&self.domain, self.name) => infer::infer(&inference).map(Some),
            None => Ok(None),
        }
    }

    /// The attributes as they hold, with defaults where the schema has some.
    pub(crate) fn bound(&self) -> Result<Arc<RawAttributes>> {
        let bind = || {
            let attributes = match self.schema {
                Some(schema) => schema.bind_attributes(&self.attributes),
                None => Ok(self.attributes.clone()),
            };
            let bound = attributes.map_err(|error| error.of_op(self.name))?;
            Ok(Arc::new(RawAttributes::new(bound)))
        };
        self.bound.get_or_init(bind).clone()
    }
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

//! An op as a program calls it.

#![expect(
    unsafe_code,
    reason = "a list of inputs becomes one in which inputs may be left out, without a copy"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use super::fallback::{self, CpuFallback};
use super::launch::Launch;
use super::raw::RawAttributes;
use super::resolve::{Attempt, Given, Request, Resolution};
use super::signature::Values;
use super::site::{Site, Way};
use crate::registry::{Explanation, domain_name};
use crate::runtime::Runtime;
use crate::schema::{self, Schema};
use crate::stream::{Label, Stream};
use crate::{Attributes, Constant, Device, Error, Result, Tensor, infer};

/// What is read where no input's values are wanted.
const NO_VALUES: &Values = &Values::new();
/// How many signatures are found without a lock.
const SITES: usize = 8;
/// How many further ones are kept.
const MORE_SITES: usize = 56;

/// The outputs of a call; one that was not asked for is `None`.
pub type Outputs = SmallVec<[Option<Tensor>; 1]>;

/// A place from which an operator is called, with its attributes.
///
/// It remembers how it was called before, so a program keeps one for each place that calls often.
pub struct Op {
    pub(crate) node: Node,
    /// The inputs whose values must be known on the host, as bits.
    values: AtomicU64,
    sites: [OnceLock<Arc<Site>>; SITES],
    more: Mutex<Vec<Arc<Site>>>,
}

/// What an op is.
pub(crate) struct Node {
    pub(crate) domain: String,
    pub(crate) name: &'static str,
    /// The version, as its since-version; the opset itself for an op without a schema.
    pub(crate) version: u32,
    /// None for ops that only a plugin knows.
    pub(crate) schema: Option<&'static Schema>,
    pub(crate) attributes: Attributes,
    /// How its outputs are inferred, where there is a rule for this version.
    pub(crate) rule: Option<&'static infer::Rule>,
    /// The attributes as they hold, once they were asked for.
    pub(crate) bound: OnceLock<Result<Arc<RawAttributes>>>,
    /// Whether the CPU makes calls that no kernel of their device takes; without it the flag `kernel_fallback` says so.
    pub(crate) cpu_fallback: Option<CpuFallback>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The inputs; one that is left out is `None`.
    pub inputs: &'a [Option<&'a Tensor>],
    /// How many outputs are wanted.
    pub outputs: usize,
    /// The device to run on; without it that of the inputs, or the default.
    pub device: Option<&'a Device>,
    /// The stream to run in; without it the device's own.
    pub stream: Option<&'a Stream>,
}

impl Op {
    /// An op as it is in a version of its domain's operators (an opset).
    pub fn new(
        runtime: &Runtime,
        domain: &str,
        name: &str,
        opset: u32,
        attributes: Attributes,
    ) -> Result<Self> {
        let domain = domain_name(domain);
        let (schema, name, version) = match schema::find(domain, name, opset) {
            Ok(schema) => (Some(schema), schema.name, schema.since_version),
            // An op of a plugin's own, which says its shapes itself.
            Err(error) => match runtime.registry().rows_of(domain, name).next() {
                Some(_) if schema::newest_opset(domain).is_err() => (None, Label::named(name).text(), opset),
                _ => return Err(error),
            },
        };
        let rule = schema.and_then(|_| infer::rule(domain, name, version));
        let known = rule.map_or(&[][..], |rule| rule.values);
        let values = known.iter().filter(|index| **index < 64).fold(0, |bits, index| bits | 1 << index);
        Ok(Self {
            node: Node {
                domain: domain.to_owned(),
                name,
                version,
                schema,
                attributes,
                rule,
                bound: OnceLock::new(),
                cpu_fallback: None,
            },
            values: AtomicU64::new(values),
            sites: [const { OnceLock::new() }; SITES],
            more: Mutex::default(),
        })
    }

    /// An op of ONNX in its newest version, without attributes.
    pub fn latest(runtime: &Runtime, name: &str) -> Result<Self> {
        Self::new(runtime, "", name, schema::newest_opset("")?, Attributes::new())
    }

    /// The op with a say of its own in whether the CPU makes calls that no kernel of their device takes, whatever the flag
    /// `kernel_fallback` is.
    #[must_use]
    pub fn with_fallback(mut self, fallback: CpuFallback) -> Self {
        self.node.cpu_fallback = Some(fallback);
        self
    }

    /// The domain that it is of.
    pub fn domain(&self) -> &str {
        &self.node.domain
    }

    /// The attributes that it was given.
    pub fn attributes(&self) -> &Attributes {
        &self.node.attributes
    }

    /// The name of the op.
    pub fn name(&self) -> &'static str {
        self.node.name
    }

    /// The version of the op, as its since-version.
    pub fn version(&self) -> u32 {
        self.node.version
    }

    /// Calls the op with all its inputs, for its first output.
    #[inline]
    pub fn run(&self, runtime: &Runtime, inputs: &[&Tensor]) -> Result<Tensor> {
        // SAFETY: an `Option<&T>` is laid out as a `&T`, and a null pointer is its `None`; so a list of references is a list
        // of such options, for as long as it is borrowed here.
        let inputs =
            unsafe { std::slice::from_raw_parts(inputs.as_ptr().cast::<Option<&Tensor>>(), inputs.len()) };
        let mut outputs = Outputs::new();
        self.call(runtime, &Invocation { inputs, outputs: 1, device: None, stream: None }, &mut outputs)?;
        let missing = || Error::fatal("expected an output, found none").of_op(self.node.name);
        outputs.pop().flatten().ok_or_else(missing)
    }

    /// Calls the op.
    pub fn invoke(&self, runtime: &Runtime, call: &Invocation<'_>) -> Result<Outputs> {
        let mut outputs = Outputs::new();
        self.call(runtime, call, &mut outputs)?;
        Ok(outputs)
    }

    /// Calls the op, and puts its outputs into an empty list.
    #[inline]
    fn call(&self, runtime: &Runtime, call: &Invocation<'_>, outputs: &mut Outputs) -> Result<()> {
        let bits = self.values.load(Ordering::Relaxed);
        let read;
        let values = match bits {
            0 => NO_VALUES,
            bits => {
                read = self.read_values(call, bits)?;
                &read
            }
        };
        // Where the first input decides the device, whatever matches a site lies on its device, which need not be asked for.
        let is_decided = matches!(call.inputs.first(), Some(Some(_))) && bits & 1 == 0;
        let device = if is_decided { call.device } else { Some(self.device(runtime, call)?) };
        let later;
        let site = match self.first(device, call, values) {
            Some(site) => site,
            None => {
                later = self.find(runtime, call, values)?;
                &later
            }
        };
        let device = &site.signature.device;
        let stream = self.stream(device, call)?;
        match &site.way {
            Way::Kernel(kernel) => kernel.run(runtime, stream, call.inputs, outputs),
            Way::Fallback => fallback::run(self, runtime, device, call, outputs),
        }
    }

    /// Says which kernel runs a call, and why others do not.
    pub fn explain(&self, runtime: &Runtime, call: &Invocation<'_>) -> Result<Explanation> {
        let device = self.device(runtime, call)?;
        let stream = device.stream()?;
        let mut values = self.values.load(Ordering::Relaxed);
        loop {
            let read = self.read_values(call, values)?;
            let inputs = given(call);
            let request = self.request(runtime, device, stream, &inputs, call.outputs, &read);
            match Attempt::new(request)?.consider()? {
                Resolution::Done(explanation) => return Ok(explanation),
                Resolution::NeedsValues(more) => values |= more,
            }
        }
    }

    /// Packs a call for running it again and again on the same inputs, which is as fast as a call can be.
    pub fn pack(&self, runtime: &Runtime, call: &Invocation<'_>) -> Result<Launch> {
        let device = self.device(runtime, call)?;
        let stream = self.stream(device, call)?;
        let values = self.read_values(call, self.values.load(Ordering::Relaxed))?;
        let site = match self.first(Some(device), call, &values) {
            Some(site) => site.clone(),
            None => self.find(runtime, call, &values)?,
        };
        Launch::new(&site, runtime, stream, call.inputs)
    }

    /// The site of a call, if it is one of the first.
    #[inline]
    fn first(&self, device: Option<&Device>, call: &Invocation<'_>, values: &Values) -> Option<&Arc<Site>> {
        let known = self.sites.iter().map_while(OnceLock::get);
        known.into_iter().find(|site| site.signature.matches(device, call.inputs, values, call.outputs))
    }

    /// The site of a call that is not one of the first: one of the later ones, or a new one.
    #[cold]
    fn find(&self, runtime: &Runtime, call: &Invocation<'_>, values: &Values) -> Result<Arc<Site>> {
        let device = self.device(runtime, call)?;
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        let matches =
            |site: &&Arc<Site>| site.signature.matches(Some(device), call.inputs, values, call.outputs);
        if let Some(site) = more.iter().find(matches) {
            return Ok(site.clone());
        }
        drop(more);
        let stream = self.stream(device, call)?;
        self.resolve(runtime, device, stream, call, values.clone())
    }

    #[cold]
    fn resolve(
        &self,
        runtime: &Runtime,
        device: &Device,
        stream: &Stream,
        call: &Invocation<'_>,
        mut values: Values,
    ) -> Result<Arc<Site>> {
        let site = loop {
            let inputs = given(call);
            let request = self.request(runtime, device, stream, &inputs, call.outputs, &values);
            let resolved = super::resolve::site(request, call);
            match resolved.map_err(|error| error.of_op(self.node.name).on_device(device))? {
                Resolution::Done(site) => break Arc::new(site),
                Resolution::NeedsValues(more) => {
                    let bits = self.values.fetch_or(more, Ordering::Relaxed) | more;
                    values = self.read_values(call, bits)?;
                }
            }
        };
        if let Some(free) = self.sites.iter().find(|site| site.get().is_none()) {
            // When another thread was faster its site stays, and this one serves this call alone.
            _ = free.set(site.clone());
        } else {
            let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
            if more.len() == MORE_SITES {
                more.remove(0);
            }
            more.push(site.clone());
        }
        Ok(site)
    }

    /// What is asked for in a call.
    pub(crate) fn request<'a>(
        &'a self,
        runtime: &'a Runtime,
        device: &'a Device,
        stream: &'a Stream,
        inputs: &'a [Option<Given<'a>>],
        outputs: usize,
        values: &'a Values,
    ) -> Request<'a> {
        Request { node: &self.node, runtime, device, stream, inputs, outputs, values }
    }

    /// The stream of a call: the one it names, or the device's own. A stream means something to its own device alone, so one
    /// of another must not get to the kernel.
    #[inline]
    fn stream<'a>(&self, device: &'a Device, call: &Invocation<'a>) -> Result<&'a Stream> {
        match call.stream {
            None => device.stream(),
            Some(stream) if device.pool()?.streams().has(stream) => Ok(stream),
            Some(stream) => Err(self.wrong_stream(device, stream)),
        }
    }

    #[cold]
    fn wrong_stream(&self, device: &Device, stream: &Stream) -> Error {
        let found = stream.device();
        Error::invalid_argument(format!("expected a stream of `{device}`, found one of `{found}`"))
            .of_op(self.node.name)
            .on_device(device)
            .hint("make one with `Device::create_stream` of the device that the inputs are on")
    }

    /// The device of a call: the one it names, that of its inputs, or the default.
    #[inline]
    fn device<'a>(&self, runtime: &'a Runtime, call: &Invocation<'a>) -> Result<&'a Device> {
        let values = self.values.load(Ordering::Relaxed);
        let mut device = call.device;
        for (index, input) in call.inputs.iter().enumerate() {
            let Some(input) = input.filter(|_| index >= 64 || values >> index & 1 == 0) else { continue };
            match device {
                None => device = Some(input.device()),
                Some(device) if device.is(input.device()) => {}
                Some(device) => return Err(self.wrong_device(index, device, input)),
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
    fn wrong_device(&self, index: usize, device: &Device, input: &Tensor) -> Error {
        Error::invalid_argument(format!("expected a tensor on `{device}`, found one on `{}`", input.device()))
            .of_operand(self.node.input_name(index))
            .of_op(self.node.name)
            .on_device(device)
            .hint("copy it there with `Tensor::to`")
    }

    /// Reads the inputs whose values must be known.
    #[inline]
    fn read_values(&self, call: &Invocation<'_>, bits: u64) -> Result<Values> {
        if bits == 0 {
            return Ok(Values::new());
        }
        let read = |(index, input): (usize, &Option<&Tensor>)| match input {
            Some(tensor) if index < 64 && bits >> index & 1 == 1 => {
                let value = tensor.to_constant();
                let name = || self.node.input_name(index);
                value.map(Some).map_err(|error: Error| {
                    error.of_operand(name()).of_op(self.node.name).on_device(tensor.device())
                })
            }
            _ => Ok(None),
        };
        call.inputs.iter().enumerate().map(read).collect()
    }
}

fn given<'a>(call: &Invocation<'a>) -> SmallVec<[Option<Given<'a>>; 4]> {
    call.inputs.iter().map(|input| input.map(Given::from)).collect()
}

impl Tensor {
    /// Its elements, on the host.
    pub fn to_constant(&self) -> Result<Constant> {
        Constant::new(self.dtype(), self.dims(), self.to_bytes()?)
    }
}

impl Node {
    /// What messages call an input.
    pub(crate) fn input_name(&self, index: usize) -> String {
        match self.schema {
            Some(schema) => schema.operand_name(index),
            None => format!("input {index}"),
        }
    }
}

//! Calls that are readied before their operands exist: what the engine plans with.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
use smallvec::SmallVec;

use super::op::{Op, Outputs};
use super::resolve::{Attempt, Given, Resolution};
use super::signature::Values;
use super::site::{InputWay, KernelSite};
use crate::infer::Fact;
use crate::registry::{Explanation, Row};
use crate::runtime::{Random, Runtime};
use crate::stream::Stream;
use crate::tensor::Form;
use crate::{Constant, Device, Dtype, Error, Result, Tensor};

/// An input of a call that is yet to come.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The type of its elements.
    pub dtype: Dtype,
    /// The sizes of its dimensions. It will be contiguous.
    pub dims: &'a [i64],
    /// Whether it will be the same in every call, so that kernels may ready themselves for it.
    pub is_constant: bool,
    /// Its elements, where they are known: those of shapes and axes must be.
    pub value: Option<&'a Constant>,
}

/// What became of readying a call.
#[derive(Debug)]
pub enum Readied {
    /// A kernel is ready.
    Kernel(Ready),
    /// The kernel wants to know values that are not known before the call.
    NeedsValues,
    /// No kernel of the device takes the call.
    Nothing(Explanation),
}

/// A kernel that is ready for calls with operands of known shapes, wherever they will be. Clones are the same kernel.
#[derive(Clone)]
pub struct Ready {
    pub(super) site: Arc<KernelSite>,
    row: Row,
}

impl Op {
    /// What the outputs of a call will be, as far as it follows from what is known of the inputs; nothing for an op whose
    /// shapes only kernels know.
    pub fn infer(&self, inputs: &[Option<Fact>], outputs: usize) -> Result<Option<Vec<Fact>>> {
        self.node.infer(inputs, outputs).map_err(|error| error.of_op(self.node.name))
    }

    /// Readies a kernel of a device for calls in one of its streams. `constant` gives the tensor that an input will always
    /// be, on the device; it is told the place of the input, and whether its elements may lie at any address.
    pub fn ready(
        &self,
        runtime: &Runtime,
        device: &Device,
        stream: &Stream,
        inputs: &[Option<Expected<'_>>],
        outputs: usize,
        constant: impl Fn(usize, bool) -> Result<Tensor>,
    ) -> Result<Readied> {
        let of_op = |error: Error| error.of_op(self.node.name).on_device(device);
        let (values, forms) = (values_of(inputs), forms_of(device, inputs).map_err(of_op)?);
        let expected = expected(&forms, inputs);
        let request = self.request(runtime, device, stream, &expected, outputs, &values);
        let attempt = Attempt::new(request).map_err(of_op)?;
        let row = match attempt.choose().map_err(of_op)? {
            Resolution::NeedsValues(_) => return Ok(Readied::NeedsValues),
            Resolution::Done(Some(row)) => row,
            Resolution::Done(None) => {
                return Ok(match attempt.consider().map_err(of_op)? {
                    Resolution::Done(explanation) => Readied::Nothing(explanation),
                    Resolution::NeedsValues(_) => Readied::NeedsValues,
                });
            }
        };
        let demands = &row.info().inputs;
        let tensor = |(index, input): (usize, &Option<Expected<'_>>)| {
            let demand = demands.get(index).or(demands.last());
            let takes_value = demand.is_some_and(|demand| demand.place == abi::MemoryKind::HOST.0);
            let is_wanted = input.as_ref().is_some_and(|input| input.is_constant) && !takes_value;
            let takes_any = demand.is_some_and(|demand| demand.unaligned);
            is_wanted.then(|| constant(index, takes_any)).transpose()
        };
        let constants: Vec<Option<Tensor>> = inputs.iter().enumerate().map(tensor).collect::<Result<_>>()?;
        let given: SmallVec<[Option<Given<'_>>; 8]> = forms
            .iter()
            .zip(&constants)
            .map(|(form, constant)| match constant {
                Some(tensor) => Some(Given { is_constant: true, ..Given::from(tensor) }),
                None => Some(later(form.as_ref()?, false)),
            })
            .collect();
        let mut site = attempt.with(&given).ready(&row).map_err(of_op)?;
        drop(given);
        site._constants = constants.into_iter().flatten().collect();
        Ok(Readied::Kernel(Ready { site: Arc::new(site), row }))
    }

    /// Which kernels of a device would take such calls, and why others would not; nothing where kernels want to know more
    /// of the inputs. Nothing is readied, so constants need not be there.
    pub fn consider(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<Expected<'_>>],
        outputs: usize,
    ) -> Result<Option<Explanation>> {
        self.attempt(runtime, device, inputs, outputs, |attempt| attempt.consider())
    }

    /// The row of a device that would run such calls: nothing where none takes them, or where it has to know more of the
    /// inputs to be chosen. Nothing is readied, so constants need not be there.
    pub fn choose(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<Expected<'_>>],
        outputs: usize,
    ) -> Result<Option<Option<Row>>> {
        self.attempt(runtime, device, inputs, outputs, |attempt| attempt.choose())
    }

    /// Asks something about a call whose operands are nowhere yet; nothing where kernels want to know more of the inputs.
    fn attempt<T>(
        &self,
        runtime: &Runtime,
        device: &Device,
        inputs: &[Option<Expected<'_>>],
        outputs: usize,
        ask: impl FnOnce(&Attempt<'_>) -> Result<Resolution<T>>,
    ) -> Result<Option<T>> {
        let values = values_of(inputs);
        let stream = device.stream()?;
        let asked = || {
            let forms = forms_of(device, inputs)?;
            let given = expected(&forms, inputs);
            let attempt = Attempt::new(self.request(runtime, device, stream, &given, outputs, &values))?;
            match ask(&attempt)? {
                Resolution::Done(answer) => Ok(Some(answer)),
                Resolution::NeedsValues(_) => Ok(None),
            }
        };
        asked().map_err(|error: Error| error.of_op(self.node.name).on_device(device))
    }
}

fn values_of(inputs: &[Option<Expected<'_>>]) -> Values {
    inputs.iter().map(|input| input.as_ref().and_then(|input| input.value.cloned())).collect()
}

fn forms_of(device: &Device, inputs: &[Option<Expected<'_>>]) -> Result<Vec<Option<Arc<Form>>>> {
    let form = |Expected { dtype, dims, .. }: &Expected<'_>| Form::contiguous(device, *dtype, dims);
    inputs.iter().map(|input| input.as_ref().map(form).transpose()).collect()
}

/// Inputs that are nowhere yet.
fn expected<'a>(
    forms: &'a [Option<Arc<Form>>],
    inputs: &[Option<Expected<'_>>],
) -> SmallVec<[Option<Given<'a>>; 8]> {
    let given = |(form, input): (&'a Option<Arc<Form>>, &Option<Expected<'_>>)| {
        Some(later(form.as_ref()?, input.as_ref()?.is_constant))
    };
    forms.iter().zip(inputs).map(given).collect()
}

/// An input that is nowhere yet.
fn later(form: &Arc<Form>, is_constant: bool) -> Given<'_> {
    Given { form, place: (abi::Memory(0), 0), is_constant }
}

impl Ready {
    /// The row of the registry that was chosen.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// How the kernel does such calls, in its own words; empty where it says nothing.
    pub fn description(&self) -> &str {
        &self.site.description
    }

    /// The outputs that calls will have; `None` where the kernel says it while it runs.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = Option<(Dtype, &[i64])>> {
        self.site.outputs.iter().map(|output| output.form.as_ref().map(|form| (form.dtype, &*form.dims)))
    }

    /// How many bytes of scratch memory a call needs.
    pub fn workspace(&self) -> u64 {
        self.site.workspace
    }

    /// Whether the kernel says the shape of some output while it runs, or has texts among its operands, so that calls go
    /// by way of [`Op::invoke`].
    pub fn takes_tensors_only(&self) -> bool {
        self.site.allocates
            || self.site.has_texts
            || self.site.outputs.iter().any(|output| output.form.is_none())
    }

    /// Whether an output may lie where an input does.
    pub fn is_in_place(&self, output: usize, input: usize) -> bool {
        let pairs = &self.row.info().in_place;
        pairs.iter().any(|pair| (pair.0 as usize, pair.1 as usize) == (output, input))
    }

    /// Makes the tensor that is an output of a call in a stream, for the kernel to fill.
    #[inline]
    pub fn take_output(&self, index: usize, stream: &Stream) -> Result<Tensor> {
        let output = self.site.outputs.get(index).map(|output| output.take(stream, self.site.op));
        let missing = || Error::fatal("expected an output of a known shape, found none").of_op(self.site.op);
        output.transpose()?.flatten().ok_or_else(missing)
    }

    /// Does what is to be done behind every kernel when the user asks for it, such as looking for NaN.
    pub fn look_at(&self, runtime: &Runtime, stream: &Stream, outputs: &Outputs) -> Result<()> {
        runtime.watch().after(self.site.op, stream, outputs)
    }

    /// Makes a call of it, whose operands have no places yet.
    pub fn pack(&self, runtime: &Runtime, stream: &Stream) -> Packed {
        Packed::new(self.site.clone(), runtime, stream)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready({} by {})", self.site.op, self.row)
    }
}

/// Where an operand lies: a block of a device and the bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) memory: abi::Memory,
    pub(super) offset: u64,
}

impl Place {
    /// The place of a tensor's first element.
    #[inline]
    pub fn of(tensor: &Tensor) -> Self {
        let (memory, offset) = tensor.place();
        Self { memory, offset }
    }

    /// A place within memory that was allocated.
    pub fn within(allocation: &crate::memory::Allocation, offset: u64) -> Self {
        Self { memory: allocation.memory(), offset: allocation.offset() + offset }
    }
}

/// A call with descriptions of its operands, into which their places are put: running it is one call of the kernel.
pub struct Packed {
    call: abi::Call,
    site: Arc<KernelSite>,
    stream: Stream,
    is_immediate: bool,
    /// Where a call that draws numbers draws them from.
    random: Option<Arc<Random>>,
    descriptions: Box<[abi::Tensor]>,
    _pointers: Box<[*const abi::Tensor]>,
}

// SAFETY: the call points to descriptions, attributes and values that it owns together with its site, wherever it is.
unsafe impl Send for Packed {}

impl Packed {
    pub(super) fn new(site: Arc<KernelSite>, runtime: &Runtime, stream: &Stream) -> Self {
        let descriptions = site.descriptions.clone();
        let pointers: Box<[*const abi::Tensor]> = descriptions.iter().map(std::ptr::from_ref).collect();
        let (given, wanted) = pointers.split_at(site.inputs.len());
        let mut call = site.call(stream, given, wanted);
        call.workspace_size = site.workspace;
        Self {
            call,
            random: (site.draws > 0).then(|| runtime.random().clone()),
            is_immediate: stream.is_immediate(),
            stream: stream.clone(),
            descriptions,
            _pointers: pointers,
            site,
        }
    }

    pub(super) fn site(&self) -> &KernelSite {
        &self.site
    }

    /// The stream it runs in.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Says where an input lies. One that the kernel got as a value or a constant stays as it is.
    #[inline]
    pub fn place_input(&mut self, index: usize, place: Place) {
        let Some(input) = self.site.inputs.get(index) else { return };
        if input.way == InputWay::Direct && !input.raw.bits.contains(abi::TensorFlags::CONSTANT) {
            let raw = &mut self.descriptions[index];
            (raw.block, raw.offset) = (place.memory, place.offset);
        }
    }

    /// Says where an output lies.
    #[inline]
    pub fn place_output(&mut self, index: usize, place: Place) {
        let first = self.site.inputs.len();
        if let Some(raw) = self.descriptions.get_mut(first + index) {
            (raw.block, raw.offset) = (place.memory, place.offset);
        }
    }

    /// Says where the scratch memory lies.
    pub fn place_workspace(&mut self, place: Place) {
        (self.call.workspace, self.call.workspace_offset) = (place.memory, place.offset);
    }

    /// Has the call wait for a tensor that another stream wrote.
    #[inline]
    pub fn wait_for(&self, tensor: &Tensor) -> Result<()> {
        self.site.order(&self.stream, tensor)
    }

    /// Makes the call. It returns when the kernel does, which may be before its work in the stream is done.
    ///
    /// # Safety
    ///
    /// Every operand and the scratch memory have places with room for them in memory of the device; that memory is there,
    /// and nobody else writes it, nor reads what the call writes, until the stream is past the call.
    #[inline]
    pub unsafe fn run(&mut self) -> Result<()> {
        let site = &*self.site;
        if let Some(random) = &self.random {
            (self.call.random_seed, self.call.random_offset) = random.draw(site.draws);
        }
        // SAFETY: the operands are those the kernel was readied with, and the caller vouches for their memory.
        let run = || unsafe { site.kernel.run(&self.call) };
        if self.is_immediate {
            return run().map_err(|failure| site.failed(failure));
        }
        self.stream.launch(site.op, run).map_err(|error: Error| error.of_op(site.op).on_device(&site.device))
    }
}

//! Sessions: models that are ready to run.

use std::fmt;
use std::sync::Arc;

use oarlock_core::flags::Fallback;
use oarlock_core::infer::Dim;
use oarlock_core::{Device, Dtype, Error, Result, Runtime};

use crate::datum::Datum;
use crate::defaults::Defaults;
use crate::environment::Environment;
use crate::export;
use crate::fallback::{FallbackListener, FallbackSummary};
use crate::graph::{self, Dimension, Graph, Value, ValueId, ValueType};
use crate::import::Model;
use crate::passes::{Effect, fact_of};
use crate::plan::Plan;
use crate::precision::Precision;
use crate::program::Program;
use crate::progress::Progress;
use crate::run::Timings;

/// How a session runs its model.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Where nodes run, each on the first of these that has a kernel for it; without any the runtime's default. What none has a
    /// kernel for the CPU runs, where it may.
    pub devices: Vec<Device>,
    /// Whether passes that only make things faster are left out, to find out what they do, or which of them is to blame.
    pub is_plain: bool,
    /// How precise products have to be.
    pub precision: Precision,
    /// What the CPU may do for devices that have no kernel; without it the flag `kernel_fallback` says so.
    pub fallback: Option<Fallback>,
    /// Who is told of what the CPU runs for other devices.
    pub on_fallback: FallbackListener,
    /// Who is told how far the session is where that takes long.
    pub progress: Progress,
}

/// A model that is ready to run, from as many threads at once as one likes.
pub struct Session {
    environment: Environment,
    program: Program,
    inputs: Vec<Slot>,
    /// What a run may be given beside.
    optional_inputs: Vec<Slot>,
    defaults: Option<Defaults>,
    outputs: Vec<Slot>,
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its name.
    pub name: Arc<str>,
    /// What the model says about it.
    pub declared: ValueType,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.declared)
    }
}

impl Session {
    /// Readies a model: checks it, and does whatever can be done before the shapes of inputs are known.
    pub fn new(runtime: Arc<Runtime>, model: &Model, options: &SessionOptions) -> Result<Self> {
        graph::check(&model.graph)?;
        let devices = match options.devices.as_slice() {
            [] => vec![runtime.default_device()?.clone()],
            devices => devices.to_vec(),
        };
        let mut environment = Environment::new(runtime, devices)?;
        environment.progress = options.progress.clone();
        environment.is_plain = options.is_plain;
        environment.precision = options.precision;
        environment.fallback = environment.fallback.with(options.fallback, options.on_fallback.clone());
        let of = &model.graph;
        let [inputs, optional_inputs] = [&of.inputs, &of.defaults].map(|ids| slots(of, ids));
        let defaults = Defaults::of(of);
        let program = Program::new(model.graph.clone(), &environment)?;
        environment.keep(program.graph());
        let outputs = outputs(of, program.graph())?;
        Ok(Self { environment, program, inputs, optional_inputs, defaults, outputs })
    }

    /// What a run is to be given.
    pub fn inputs(&self) -> &[Slot] {
        &self.inputs
    }

    /// What a run may be given besides. The model has a value for each, which is taken where a run is given none.
    pub fn optional_inputs(&self) -> &[Slot] {
        &self.optional_inputs
    }

    /// What a run gives.
    pub fn outputs(&self) -> &[Slot] {
        &self.outputs
    }

    /// The devices that nodes run on, the first one first.
    pub fn devices(&self) -> &[Device] {
        &self.environment.devices
    }

    /// The model as passes left it that know nothing of the shapes of a run, as an ONNX file. Constants that a run may be
    /// given others for are constants there; those that are much larger than what they were made of are made when it is read.
    pub fn to_onnx(&self, about: &export::onnx::About<'_>) -> Result<export::onnx::Files> {
        let program = &self.program;
        export::onnx::write(program.graph(), program.folded(), &self.inputs, &self.outputs, about)
    }

    /// What passes did before shapes are known.
    pub fn effects(&self) -> &[Effect] {
        self.program.effects()
    }

    /// Runs the model on its inputs, in their order. The optional ones may follow, all of them, with [`Datum::Nothing`] where
    /// the model's own value is to be taken. The first run with another value readies the model a second time.
    #[inline]
    pub fn run(&self, inputs: &[Datum]) -> Result<Vec<Datum>> {
        if inputs.len() == self.inputs.len() {
            return self.program.run(&self.environment, self.checked(inputs)?);
        }
        self.with_others(inputs, |program, environment, inputs| program.run(environment, inputs))
    }

    /// Runs the model, and asks now and then, between steps, whether it is to go on: an error stops the run.
    pub fn run_watched(&self, inputs: &[Datum], ask: &dyn Fn() -> Result<()>) -> Result<Vec<Datum>> {
        self.with_others(inputs, |program, environment, inputs| program.run_watched(environment, inputs, ask))
    }

    /// Runs the model, waits for each step, and says when it ran. Those of branches and bodies are told too.
    pub fn run_timed(&self, inputs: &[Datum]) -> Result<(Vec<Datum>, Timings)> {
        self.with_others(inputs, |program, environment, inputs| program.run_timed(environment, inputs))
    }

    /// Runs the model on inputs by name.
    pub fn run_named(&self, feeds: &[(&str, Datum)]) -> Result<Vec<Datum>> {
        self.run(&self.in_order(feeds)?)
    }

    /// The input of this name, which may be an optional one.
    pub fn input(&self, name: &str) -> Result<&Slot> {
        let all = || self.inputs.iter().chain(&self.optional_inputs);
        all().find(|slot| &*slot.name == name).ok_or_else(|| {
            let nearest = oarlock_host::did_you_mean(name, all().map(|slot| &*slot.name));
            Error::not_found(format!("expected one of the inputs {}, found `{name}`{nearest}", self.names()))
        })
    }

    /// Puts inputs that have names into their order, as [`Session::run`] takes them.
    pub fn in_order(&self, feeds: &[(&str, Datum)]) -> Result<Vec<Datum>> {
        for (name, _) in feeds {
            self.input(name)?;
        }
        let fed =
            |slot: &Slot| feeds.iter().find(|(name, _)| *name == &*slot.name).map(|(_, datum)| datum.clone());
        let find = |slot: &Slot| {
            fed(slot).ok_or_else(|| {
                Error::invalid_argument(format!("expected the input `{slot}`, found no value for it"))
            })
        };
        let mut inputs = self.inputs.iter().map(find).collect::<Result<Vec<Datum>>>()?;
        if feeds.iter().any(|(name, _)| self.optional_inputs.iter().any(|slot| *name == &*slot.name)) {
            inputs.extend(self.optional_inputs.iter().map(|slot| fed(slot).unwrap_or(Datum::Nothing)));
        }
        Ok(inputs)
    }

    /// The plan for inputs of these shapes.
    pub fn plan(&self, inputs: &[Datum]) -> Result<Arc<Plan>> {
        self.with_others(inputs, |program, environment, inputs| program.plan(environment, inputs))
    }

    /// Which device runs how many nodes for inputs of these shapes, and what the CPU runs because the others cannot. Nodes of
    /// branches and bodies count as they ran first, as far as they did.
    pub fn fallback(&self, inputs: &[Datum]) -> Result<FallbackSummary> {
        self.with_others(inputs, |program, environment, inputs| {
            let plan = program.plan(environment, inputs)?;
            Ok(FallbackSummary::of_run(&plan, environment))
        })
    }

    /// Does something with the program that takes what is given: that of the session, or one in which constants that others
    /// are given for are inputs.
    fn with_others<T>(
        &self,
        inputs: &[Datum],
        run: impl FnOnce(&Program, &Environment, &[Datum]) -> Result<T>,
    ) -> Result<T> {
        let (Some((always, given)), Some(defaults)) =
            (inputs.split_at_checked(self.inputs.len()), &self.defaults)
        else {
            return run(&self.program, &self.environment, self.checked(inputs)?);
        };
        let is_given = |(place, datum): (usize, &Datum)| (!matches!(datum, Datum::Nothing)).then_some(place);
        let places: Vec<usize> = given.iter().enumerate().filter_map(is_given).collect();
        if places.is_empty() && (given.is_empty() || given.len() == self.optional_inputs.len()) {
            return run(&self.program, &self.environment, self.checked(always)?);
        }
        self.checked(inputs)?;
        let opened = defaults.opened(&places, || self.like_environment())?;
        run(&opened.program, &opened.environment, &opened.inputs(always, given))
    }

    /// What a second program is readied with: the same as the first.
    fn like_environment(&self) -> Result<Environment> {
        let own = &self.environment;
        let mut environment = Environment::new(own.runtime.clone(), own.devices.clone())?;
        environment.progress = own.progress.clone();
        environment.is_plain = own.is_plain;
        environment.precision = own.precision;
        environment.fallback = own.fallback.clone();
        Ok(environment)
    }

    fn names(&self) -> String {
        self.inputs.iter().map(|slot| format!("`{}`", slot.name)).collect::<Vec<_>>().join(", ")
    }

    /// Checks that inputs are what the model says it takes.
    fn checked<'a>(&self, inputs: &'a [Datum]) -> Result<&'a [Datum]> {
        let (expected, found) = (self.inputs.len(), inputs.len());
        if found != expected && found != expected + self.optional_inputs.len() {
            return Err(Error::invalid_argument(format!(
                "expected {expected} inputs ({}), found {found}",
                self.names()
            )));
        }
        for (slot, input) in self.inputs.iter().zip(inputs) {
            check(slot, input)?;
        }
        for (slot, input) in self.optional_inputs.iter().zip(&inputs[expected..]) {
            if !matches!(input, Datum::Nothing) {
                check(slot, input)?;
            }
        }
        self.check_symbols(inputs)?;
        Ok(inputs)
    }

    /// Checks that dimensions of one name have one size.
    fn check_symbols(&self, inputs: &[Datum]) -> Result<()> {
        let mut known: Vec<(&str, i64, &str)> = Vec::new();
        for (slot, input) in self.inputs.iter().chain(&self.optional_inputs).zip(inputs) {
            let (ValueType::Tensor { dims: Some(dims), .. }, Datum::Tensor(tensor)) = (&slot.declared, input)
            else {
                continue;
            };
            for (dim, size) in dims.iter().zip(tensor.dims()) {
                let Dimension::Symbol(symbol) = dim else { continue };
                match known.iter().find(|(name, ..)| *name == &**symbol) {
                    Some((_, other, first)) if other != size => {
                        return Err(Error::invalid_argument(format!(
                            "expected `{symbol}` to be {other} as in `{first}`, found {size}"
                        ))
                        .of_operand(format!("input `{slot}`")));
                    }
                    Some(_) => {}
                    None => known.push((symbol, *size, &slot.name)),
                }
            }
        }
        Ok(())
    }
}

/// What a graph says of some of its values.
fn slots(graph: &Graph, ids: &[ValueId]) -> Vec<Slot> {
    let slot = |value: &Value| Slot { name: value.name.clone(), declared: value.declared.clone() };
    ids.iter().map(|id| slot(graph.value(*id))).collect()
}

/// The outputs of a model as its graph says, with what follows for them where that does not say their dtypes or is wrong
/// about their shapes; `graph` is the same after passes.
///
/// # Errors
///
/// When it is wrong about their dtypes.
pub fn outputs(model: &Graph, graph: &Graph) -> Result<Vec<Slot>> {
    let mut outputs = slots(model, &model.outputs);
    for (slot, id) in outputs.iter_mut().zip(&graph.outputs) {
        let (Some(fact), ValueType::Tensor { dtype, dims }) = (fact_of(graph.value(*id)), &mut slot.declared)
        else {
            continue;
        };
        if let Some(declared) = dtype.filter(|declared| *declared != fact.dtype) {
            let message =
                format!("expected {declared}, as the model says, found that its nodes make {}", fact.dtype);
            return Err(Error::invalid_argument(message).of_operand(format!("output `{}`", slot.name)));
        }
        *dtype = Some(fact.dtype);
        let Some(known) = fact.dims else { continue };
        let is_right = |(declared, known): (&Dimension, &Dim)| match (declared, known) {
            (Dimension::Known(declared), Dim::Known(known)) => declared == known,
            _ => true,
        };
        let fits =
            |dims: &Vec<Dimension>| dims.len() == known.len() && dims.iter().zip(known.iter()).all(is_right);
        if !dims.as_ref().is_none_or(fits) {
            let truth = known.iter().map(|dim| dim.known().map_or(Dimension::Unknown, Dimension::Known));
            *dims = Some(truth.collect());
        }
    }
    Ok(outputs)
}

impl Slot {
    /// Checks that a tensor of this dtype and shape is what the model says about it. Of what is no tensor, or of which
    /// the model says nothing, nothing is known here.
    pub fn check(&self, dtype: Dtype, dims: &[i64]) -> Result<()> {
        if self.takes(dtype, dims) { Ok(()) } else { Err(misfit(self, describe(dtype, dims), Some(dtype))) }
    }

    #[inline]
    fn takes(&self, found: Dtype, sizes: &[i64]) -> bool {
        let ValueType::Tensor { dtype, dims } = &self.declared else { return true };
        dtype.is_none_or(|dtype| dtype == found) && dims.as_ref().is_none_or(|dims| fits(dims, sizes))
    }
}

/// Checks that an input is what the model says it takes.
#[inline]
fn check(slot: &Slot, input: &Datum) -> Result<()> {
    let is_right = match (&slot.declared, input) {
        (ValueType::Unknown | ValueType::Optional(_), _) | (ValueType::Sequence(_), Datum::Sequence(_)) => {
            true
        }
        (ValueType::Tensor { .. }, Datum::Tensor(tensor)) => slot.takes(tensor.dtype(), tensor.dims()),
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    Err(match input {
        Datum::Tensor(tensor) => misfit(slot, describe(tensor.dtype(), tensor.dims()), Some(tensor.dtype())),
        other => misfit(slot, other.kind().to_owned(), None),
    })
}

fn fits(dims: &[Dimension], sizes: &[i64]) -> bool {
    let fits = |(dim, size): (&Dimension, &i64)| {
        if let Dimension::Known(known) = dim { known == size } else { true }
    };
    dims.len() == sizes.len() && dims.iter().zip(sizes).all(fits)
}

#[cold]
fn misfit(slot: &Slot, found: String, found_dtype: Option<Dtype>) -> Error {
    let error = Error::invalid_argument(format!("expected {}, found {found}", slot.declared))
        .of_operand(format!("input `{}`", slot.name));
    match (&slot.declared, found_dtype) {
        (ValueType::Tensor { dtype: Some(dtype), .. }, Some(found)) if *dtype != found => {
            error.hint(format!("convert it to {dtype} first"))
        }
        _ => error,
    }
}

fn describe(dtype: Dtype, dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("{dtype}[{}]", dims.join(", "))
}

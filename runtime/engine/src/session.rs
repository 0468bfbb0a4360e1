//! Sessions: models that are ready to run.

use std::fmt;
use std::sync::Arc;

use oarlock_core::flags::FallbackScope;
use oarlock_core::infer::PartialDim;
use oarlock_core::{Device, Dtype, Error, Result, Runtime};

use crate::environment::SessionEnvironment;
use crate::export;
use crate::fallback::{FallbackListener, FallbackSummary};
use crate::graph::{self, DeclaredDimension, Graph, GraphValue, ValueId, ValueType};
use crate::import::Model;
use crate::overridable_initializers::OverridableInitializers;
use crate::passes::{PassEffect, value_fact};
use crate::plan::ExecutionPlan;
use crate::planned_graph::PlannedGraph;
use crate::precision::PrecisionMode;
use crate::progress::PrepareProgressListener;
use crate::run::RunTimings;
use crate::runtime_value::RuntimeValue;

/// How a session runs its model.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Where nodes run, each on the first of these that has a kernel for it; without any the runtime's default. What none has a
    /// kernel for the CPU runs, where it may.
    pub devices: Vec<Device>,
    /// Whether passes that only make things faster are left out, to find out what they do, or which of them is to blame.
    pub is_plain: bool,
    /// How precise products have to be.
    pub precision: PrecisionMode,
    /// What the CPU may do for devices that have no kernel; without it the flag `kernel_fallback` says so.
    pub fallback: Option<FallbackScope>,
    /// Who is told of what the CPU runs for other devices.
    pub on_fallback: FallbackListener,
    /// Who is told how far the session is where that takes long.
    pub progress: PrepareProgressListener,
}

/// A model that is ready to run, from as many threads at once as one likes.
pub struct Session {
    environment: SessionEnvironment,
    program: PlannedGraph,
    inputs: Vec<ModelOperand>,
    /// What a run may be given beside.
    optional_inputs: Vec<ModelOperand>,
    defaults: Option<OverridableInitializers>,
    outputs: Vec<ModelOperand>,
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct ModelOperand {
    /// Its name.
    pub name: Arc<str>,
    /// What the model says about it.
    pub declared: ValueType,
}

impl fmt::Display for ModelOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.declared)
    }
}

impl Session {
    /// Readies a model: checks it, and does whatever can be done before the shapes of inputs are known.
    pub fn new(runtime: Arc<Runtime>, model: &Model, options: &SessionOptions) -> Result<Self> {
        graph::check_graph(&model.graph)?;
        let devices = match options.devices.as_slice() {
            [] => vec![runtime.default_device()?.clone()],
            devices => devices.to_vec(),
        };
        let mut environment = SessionEnvironment::new(runtime, devices)?;
        environment.progress = options.progress.clone();
        environment.is_plain = options.is_plain;
        environment.precision = options.precision;
        environment.fallback =
            environment.fallback.with_overrides(options.fallback, options.on_fallback.clone());
        let of = &model.graph;
        let [inputs, optional_inputs] = [&of.inputs, &of.defaults].map(|ids| model_operands(of, ids));
        let defaults = OverridableInitializers::from_graph(of);
        let program = PlannedGraph::new(model.graph.clone(), &environment)?;
        environment.keep_constants(program.graph());
        let outputs = model_outputs(of, program.graph())?;
        Ok(Self { environment, program, inputs, optional_inputs, defaults, outputs })
    }

    /// What a run is to be given.
    pub fn inputs(&self) -> &[ModelOperand] {
        &self.inputs
    }

    /// What a run may be given besides. The model has a value for each, which is taken where a run is given none.
    pub fn optional_inputs(&self) -> &[ModelOperand] {
        &self.optional_inputs
    }

    /// What a run gives.
    pub fn outputs(&self) -> &[ModelOperand] {
        &self.outputs
    }

    /// The devices that nodes run on, the first one first.
    pub fn devices(&self) -> &[Device] {
        &self.environment.devices
    }

    /// The model as passes left it that know nothing of the shapes of a run, as an ONNX file. Constants that a run may be
    /// given others for are constants there; those that are much larger than what they were made of are made when it is read.
    pub fn to_onnx(
        &self,
        about: &export::onnx::OnnxExportOptions<'_>,
    ) -> Result<export::onnx::OnnxModelFiles> {
        let program = &self.program;
        export::onnx::export_onnx(program.graph(), program.folded_nodes(), &self.inputs, &self.outputs, about)
    }

    /// What passes did before shapes are known.
    pub fn effects(&self) -> &[PassEffect] {
        self.program.effects()
    }

    /// Runs the model on its inputs, in their order. The optional ones may follow, all of them, with [`RuntimeValue::Nothing`] where
    /// the model's own value is to be taken. The first run with another value readies the model a second time.
    #[inline]
    pub fn run(&self, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>> {
        if inputs.len() == self.inputs.len() {
            return self.program.run(&self.environment, self.check_inputs(inputs)?);
        }
        self.with_overrides(inputs, |program, environment, inputs| program.run(environment, inputs))
    }

    /// Runs the model, and asks now and then, between steps, whether it is to go on: an error stops the run.
    pub fn run_watched(
        &self,
        inputs: &[RuntimeValue],
        ask: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<RuntimeValue>> {
        self.with_overrides(inputs, |program, environment, inputs| {
            program.run_watched(environment, inputs, ask)
        })
    }

    /// Runs the model, waits for each step, and says when it ran. Those of branches and bodies are told too.
    pub fn run_timed(&self, inputs: &[RuntimeValue]) -> Result<(Vec<RuntimeValue>, RunTimings)> {
        self.with_overrides(inputs, |program, environment, inputs| program.run_timed(environment, inputs))
    }

    /// Runs the model on inputs by name.
    pub fn run_named(&self, feeds: &[(&str, RuntimeValue)]) -> Result<Vec<RuntimeValue>> {
        self.run(&self.order_inputs(feeds)?)
    }

    /// The input of this name, which may be an optional one.
    pub fn input(&self, name: &str) -> Result<&ModelOperand> {
        let all = || self.inputs.iter().chain(&self.optional_inputs);
        all().find(|slot| &*slot.name == name).ok_or_else(|| {
            let nearest = oarlock_host::did_you_mean(name, all().map(|slot| &*slot.name));
            Error::not_found(format!(
                "expected one of the inputs {}, found `{name}`{nearest}",
                self.input_names()
            ))
        })
    }

    /// Puts inputs that have names into their order, as [`Session::run`] takes them.
    pub fn order_inputs(&self, feeds: &[(&str, RuntimeValue)]) -> Result<Vec<RuntimeValue>> {
        for (name, _) in feeds {
            self.input(name)?;
        }
        let fed = |slot: &ModelOperand| {
            feeds.iter().find(|(name, _)| *name == &*slot.name).map(|(_, datum)| datum.clone())
        };
        let find = |slot: &ModelOperand| {
            fed(slot).ok_or_else(|| {
                Error::invalid_argument(format!("expected the input `{slot}`, found no value for it"))
            })
        };
        let mut inputs = self.inputs.iter().map(find).collect::<Result<Vec<RuntimeValue>>>()?;
        if feeds.iter().any(|(name, _)| self.optional_inputs.iter().any(|slot| *name == &*slot.name)) {
            inputs.extend(self.optional_inputs.iter().map(|slot| fed(slot).unwrap_or(RuntimeValue::Nothing)));
        }
        Ok(inputs)
    }

    /// The plan for inputs of these shapes.
    pub fn plan(&self, inputs: &[RuntimeValue]) -> Result<Arc<ExecutionPlan>> {
        self.with_overrides(inputs, |program, environment, inputs| program.plan_for(environment, inputs))
    }

    /// Which device runs how many nodes for inputs of these shapes, and what the CPU runs because the others cannot. Nodes of
    /// branches and bodies count as they ran first, as far as they did.
    pub fn fallback_summary(&self, inputs: &[RuntimeValue]) -> Result<FallbackSummary> {
        self.with_overrides(inputs, |program, environment, inputs| {
            let plan = program.plan_for(environment, inputs)?;
            Ok(FallbackSummary::from_run(&plan, environment))
        })
    }

    /// Does something with the program that takes what is given: that of the session, or one in which constants that others
    /// are given for are inputs.
    fn with_overrides<T>(
        &self,
        inputs: &[RuntimeValue],
        run: impl FnOnce(&PlannedGraph, &SessionEnvironment, &[RuntimeValue]) -> Result<T>,
    ) -> Result<T> {
        let (Some((always, given)), Some(defaults)) =
            (inputs.split_at_checked(self.inputs.len()), &self.defaults)
        else {
            return run(&self.program, &self.environment, self.check_inputs(inputs)?);
        };
        let is_given = |(place, datum): (usize, &RuntimeValue)| {
            (!matches!(datum, RuntimeValue::Nothing)).then_some(place)
        };
        let places: Vec<usize> = given.iter().enumerate().filter_map(is_given).collect();
        if places.is_empty() && (given.is_empty() || given.len() == self.optional_inputs.len()) {
            return run(&self.program, &self.environment, self.check_inputs(always)?);
        }
        self.check_inputs(inputs)?;
        let opened = defaults.override_at(&places, || self.clone_environment())?;
        run(&opened.program, &opened.environment, &opened.merge_inputs(always, given))
    }

    /// What a second program is readied with: the same as the first.
    fn clone_environment(&self) -> Result<SessionEnvironment> {
        let own = &self.environment;
        let mut environment = SessionEnvironment::new(own.runtime.clone(), own.devices.clone())?;
        environment.progress = own.progress.clone();
        environment.is_plain = own.is_plain;
        environment.precision = own.precision;
        environment.fallback = own.fallback.clone();
        Ok(environment)
    }

    fn input_names(&self) -> String {
        self.inputs.iter().map(|slot| format!("`{}`", slot.name)).collect::<Vec<_>>().join(", ")
    }

    /// Checks that inputs are what the model says it takes.
    fn check_inputs<'a>(&self, inputs: &'a [RuntimeValue]) -> Result<&'a [RuntimeValue]> {
        let (expected, found) = (self.inputs.len(), inputs.len());
        if found != expected && found != expected + self.optional_inputs.len() {
            return Err(Error::invalid_argument(format!(
                "expected {expected} inputs ({}), found {found}",
                self.input_names()
            )));
        }
        for (slot, input) in self.inputs.iter().zip(inputs) {
            check_input(slot, input)?;
        }
        for (slot, input) in self.optional_inputs.iter().zip(&inputs[expected..]) {
            if !matches!(input, RuntimeValue::Nothing) {
                check_input(slot, input)?;
            }
        }
        self.check_symbols(inputs)?;
        Ok(inputs)
    }

    /// Checks that dimensions of one name have one size.
    fn check_symbols(&self, inputs: &[RuntimeValue]) -> Result<()> {
        let mut known: Vec<(&str, i64, &str)> = Vec::new();
        for (slot, input) in self.inputs.iter().chain(&self.optional_inputs).zip(inputs) {
            let (ValueType::Tensor { dims: Some(dims), .. }, RuntimeValue::Tensor(tensor)) =
                (&slot.declared, input)
            else {
                continue;
            };
            for (dim, size) in dims.iter().zip(tensor.dims()) {
                let DeclaredDimension::Symbol(symbol) = dim else { continue };
                match known.iter().find(|(name, ..)| *name == &**symbol) {
                    Some((_, other, first)) if other != size => {
                        return Err(Error::invalid_argument(format!(
                            "expected `{symbol}` to be {other} as in `{first}`, found {size}"
                        ))
                        .with_operand(format!("input `{slot}`")));
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
fn model_operands(graph: &Graph, ids: &[ValueId]) -> Vec<ModelOperand> {
    let slot =
        |value: &GraphValue| ModelOperand { name: value.name.clone(), declared: value.declared.clone() };
    ids.iter().map(|id| slot(graph.value(*id))).collect()
}

/// The outputs of a model as its graph says, with what follows for them where that does not say their dtypes or is wrong
/// about their shapes; `graph` is the same after passes.
///
/// # Errors
///
/// When it is wrong about their dtypes.
pub fn model_outputs(model: &Graph, graph: &Graph) -> Result<Vec<ModelOperand>> {
    let mut outputs = model_operands(model, &model.outputs);
    for (slot, id) in outputs.iter_mut().zip(&graph.outputs) {
        let (Some(fact), ValueType::Tensor { dtype, dims }) =
            (value_fact(graph.value(*id)), &mut slot.declared)
        else {
            continue;
        };
        if let Some(declared) = dtype.filter(|declared| *declared != fact.dtype) {
            let message =
                format!("expected {declared}, as the model says, found that its nodes make {}", fact.dtype);
            return Err(Error::invalid_argument(message).with_operand(format!("output `{}`", slot.name)));
        }
        *dtype = Some(fact.dtype);
        let Some(known) = fact.dims else { continue };
        let is_right = |(declared, known): (&DeclaredDimension, &PartialDim)| match (declared, known) {
            (DeclaredDimension::Known(declared), PartialDim::Known(known)) => declared == known,
            _ => true,
        };
        let fits = |dims: &Vec<DeclaredDimension>| {
            dims.len() == known.len() && dims.iter().zip(known.iter()).all(is_right)
        };
        if !dims.as_ref().is_none_or(fits) {
            let truth = known
                .iter()
                .map(|dim| dim.known_size().map_or(DeclaredDimension::Unknown, DeclaredDimension::Known));
            *dims = Some(truth.collect());
        }
    }
    Ok(outputs)
}

impl ModelOperand {
    /// Checks that a tensor of this dtype and shape is what the model says about it. Of what is no tensor, or of which
    /// the model says nothing, nothing is known here.
    pub fn check_tensor(&self, dtype: Dtype, dims: &[i64]) -> Result<()> {
        if self.accepts(dtype, dims) {
            Ok(())
        } else {
            Err(mismatched_input(self, describe_tensor(dtype, dims), Some(dtype)))
        }
    }

    #[inline]
    fn accepts(&self, found: Dtype, sizes: &[i64]) -> bool {
        let ValueType::Tensor { dtype, dims } = &self.declared else { return true };
        dtype.is_none_or(|dtype| dtype == found) && dims.as_ref().is_none_or(|dims| matches_dims(dims, sizes))
    }
}

/// Checks that an input is what the model says it takes.
#[inline]
fn check_input(slot: &ModelOperand, input: &RuntimeValue) -> Result<()> {
    let is_right = match (&slot.declared, input) {
        (ValueType::Unknown | ValueType::Optional(_), _)
        | (ValueType::Sequence(_), RuntimeValue::Sequence(_)) => true,
        (ValueType::Tensor { .. }, RuntimeValue::Tensor(tensor)) => {
            slot.accepts(tensor.dtype(), tensor.dims())
        }
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    Err(match input {
        RuntimeValue::Tensor(tensor) => {
            mismatched_input(slot, describe_tensor(tensor.dtype(), tensor.dims()), Some(tensor.dtype()))
        }
        other => mismatched_input(slot, other.kind_name().to_owned(), None),
    })
}

fn matches_dims(dims: &[DeclaredDimension], sizes: &[i64]) -> bool {
    let fits = |(dim, size): (&DeclaredDimension, &i64)| {
        if let DeclaredDimension::Known(known) = dim { known == size } else { true }
    };
    dims.len() == sizes.len() && dims.iter().zip(sizes).all(fits)
}

#[cold]
fn mismatched_input(slot: &ModelOperand, found: String, found_dtype: Option<Dtype>) -> Error {
    let error = Error::invalid_argument(format!("expected {}, found {found}", slot.declared))
        .with_operand(format!("input `{}`", slot.name));
    match (&slot.declared, found_dtype) {
        (ValueType::Tensor { dtype: Some(dtype), .. }, Some(found)) if *dtype != found => {
            error.with_advice(format!("convert it to {dtype} first"))
        }
        _ => error,
    }
}

fn describe_tensor(dtype: Dtype, dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("{dtype}[{}]", dims.join(", "))
}

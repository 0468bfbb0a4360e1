//! Sessions: models that are ready to run.

use std::sync::Arc;

use oarlock_core::flags::FallbackScope;
use oarlock_core::{Device, Error, ErrorKind, Result, Runtime};

use crate::export;
use crate::fallback_policy::FallbackListener;
use crate::fallback_summary::FallbackSummary;
use crate::graph::{self, DeclaredDimension, ValueType};
use crate::import::Model;
use crate::model_operand::{ModelOperand, check_input, model_operands, model_outputs};
use crate::node_listener::NodeListener;
use crate::overridable_initializers::OverridableInitializers;
use crate::passes::PassEffect;
use crate::plan::ExecutionPlan;
use crate::precision::PrecisionMode;
use crate::progress::PrepareProgressListener;
use crate::run::PlannedGraph;
use crate::run::RunTimings;
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

/// Settings of a session; the default runs on the runtime's default device with all optimizations.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Each node runs on the first of these with a kernel for it; if empty, the runtime's default device is used. Nodes that no
    /// device has a kernel for run on the CPU if `fallback` permits it.
    pub devices: Vec<Device>,
    /// Skips passes that only improve speed, to measure what they gain or to find the one that is to blame.
    pub is_plain: bool,
    /// The rounding that products may use.
    pub precision: PrecisionMode,
    /// Limits what the CPU may run for devices without a kernel; if `None`, the flag `kernel_fallback` decides.
    pub fallback: Option<FallbackScope>,
    /// Called when the CPU runs nodes for another device.
    pub on_fallback: FallbackListener,
    /// Called while kernels are prepared, which can take long.
    pub progress: PrepareProgressListener,
    /// Called before each node is readied or run.
    pub on_node: NodeListener,
}

/// A model that is ready to run. Any number of threads may run it at once.
pub struct Session {
    environment: SessionEnvironment,
    planned_graph: PlannedGraph,
    inputs: Vec<ModelOperand>,
    /// Overridable initializers.
    optional_inputs: Vec<ModelOperand>,
    overridable_initializers: Option<OverridableInitializers>,
    outputs: Vec<ModelOperand>,
}

impl Session {
    /// Checks a model and does everything that needs no input shapes: passes, folding and constants.
    pub fn new(runtime: Arc<Runtime>, model: &Model, options: &SessionOptions) -> Result<Self> {
        graph::check_graph(&model.graph)?;
        let devices = match options.devices.as_slice() {
            [] => vec![runtime.default_device()?.clone()],
            devices => devices.to_vec(),
        };
        let mut environment = SessionEnvironment::new(runtime, devices)?;
        environment.progress = options.progress.clone();
        environment.on_node = options.on_node.clone();
        environment.is_plain = options.is_plain;
        environment.precision = options.precision;
        environment.fallback =
            environment.fallback.with_overrides(options.fallback, options.on_fallback.clone());
        let graph = &model.graph;
        let [inputs, optional_inputs] =
            [&graph.inputs, &graph.overridable_initializers].map(|ids| model_operands(graph, ids));
        let overridable_initializers = OverridableInitializers::from_graph(graph);
        let planned_graph = PlannedGraph::new(model.graph.clone(), &environment)?;
        environment.keep_constants(planned_graph.graph());
        let outputs = model_outputs(graph, planned_graph.graph())?;
        Ok(Self { environment, planned_graph, inputs, optional_inputs, overridable_initializers, outputs })
    }

    /// Required inputs, in the order in which a run takes them.
    pub fn inputs(&self) -> &[ModelOperand] {
        &self.inputs
    }

    /// Optional inputs: initializers of the model that a run may override.
    pub fn optional_inputs(&self) -> &[ModelOperand] {
        &self.optional_inputs
    }

    /// Outputs, in the order in which a run returns them.
    pub fn outputs(&self) -> &[ModelOperand] {
        &self.outputs
    }

    /// The devices that nodes run on, in order of preference.
    pub fn devices(&self) -> &[Device] {
        &self.environment.devices
    }

    /// Exports the model after the shape-independent passes as ONNX. Overridable initializers are written as constants. A
    /// folded constant that is much larger than its inputs is written as the nodes that compute it.
    pub fn to_onnx(
        &self,
        about: &export::onnx::OnnxExportOptions<'_>,
    ) -> Result<export::onnx::OnnxModelFiles> {
        let planned_graph = &self.planned_graph;
        export::onnx::export_onnx(
            planned_graph.graph(),
            planned_graph.folded_nodes(),
            &self.inputs,
            &self.outputs,
            about,
        )
    }

    /// Effects of the shape-independent passes, in order.
    pub fn effects(&self) -> &[PassEffect] {
        self.planned_graph.effects()
    }

    /// Runs the model on its inputs, in order. The optional inputs may follow, either all or none, with
    /// [`RuntimeValue::Nothing`] for those that keep the model's value. The first run that overrides one prepares the model a
    /// second time.
    #[inline]
    pub fn run(&self, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>> {
        if inputs.len() == self.inputs.len() {
            let result = self.planned_graph.run(&self.environment, self.check_inputs(inputs)?);
            return result.map_err(|error| self.explain_failure(inputs, error));
        }
        self.with_overrides(inputs, |planned_graph, environment, inputs| {
            planned_graph.run(environment, inputs)
        })
    }

    /// Like [`Session::run`], but calls `ask` now and then, between steps and within long ones; an error from it stops the run.
    pub fn run_interruptible(
        &self,
        inputs: &[RuntimeValue],
        ask: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<RuntimeValue>> {
        self.with_overrides(inputs, |planned_graph, environment, inputs| {
            planned_graph.run_interruptible(environment, inputs, ask)
        })
    }

    /// Runs the model with a wait after every step, and returns when each step ran, those of subgraphs included.
    pub fn run_timed(&self, inputs: &[RuntimeValue]) -> Result<(Vec<RuntimeValue>, RunTimings)> {
        self.with_overrides(inputs, |planned_graph, environment, inputs| {
            planned_graph.run_timed(environment, inputs)
        })
    }

    /// Runs the model on inputs by name, in any order.
    pub fn run_named(&self, feeds: &[(&str, RuntimeValue)]) -> Result<Vec<RuntimeValue>> {
        self.run(&self.order_inputs(feeds)?)
    }

    /// Looks up an input by name, required or optional; the error suggests the nearest name.
    pub fn input(&self, name: &str) -> Result<&ModelOperand> {
        let all = || self.inputs.iter().chain(&self.optional_inputs);
        all().find(|operand| &*operand.name == name).ok_or_else(|| {
            let nearest = oarlock_host::did_you_mean(name, all().map(|operand| &*operand.name));
            Error::not_found(format!(
                "expected one of the inputs {}, found `{name}`{nearest}",
                self.input_names()
            ))
        })
    }

    /// Sorts named inputs into the order that [`Session::run`] takes.
    pub fn order_inputs(&self, feeds: &[(&str, RuntimeValue)]) -> Result<Vec<RuntimeValue>> {
        for (name, _) in feeds {
            self.input(name)?;
        }
        let value_for = |operand: &ModelOperand| {
            feeds.iter().find(|(name, _)| *name == &*operand.name).map(|(_, value)| value.clone())
        };
        let find = |operand: &ModelOperand| {
            value_for(operand).ok_or_else(|| {
                Error::invalid_argument(format!("expected the input `{operand}`, found no value for it"))
            })
        };
        let mut inputs = self.inputs.iter().map(find).collect::<Result<Vec<RuntimeValue>>>()?;
        if feeds.iter().any(|(name, _)| self.optional_inputs.iter().any(|operand| *name == &*operand.name)) {
            inputs.extend(
                self.optional_inputs
                    .iter()
                    .map(|operand| value_for(operand).unwrap_or(RuntimeValue::Nothing)),
            );
        }
        Ok(inputs)
    }

    /// The plan for inputs of these shapes, built if there is none yet. Nothing runs.
    pub fn plan(&self, inputs: &[RuntimeValue]) -> Result<Arc<ExecutionPlan>> {
        self.with_overrides(inputs, |planned_graph, environment, inputs| {
            Ok(planned_graph.plan_for(environment, inputs)?.plan.clone())
        })
    }

    /// Node counts for each device for inputs of these shapes, and the ops that the CPU runs because no other device can.
    /// Nodes of subgraphs count only if the subgraph has run.
    pub fn fallback_summary(&self, inputs: &[RuntimeValue]) -> Result<FallbackSummary> {
        self.with_overrides(inputs, |planned_graph, environment, inputs| {
            Ok(planned_graph.plan_for(environment, inputs)?.summarize_fallbacks(environment))
        })
    }

    /// Calls `run` with the planned graph that fits the given inputs: the session's own, or one in which the overridden
    /// initializers are inputs.
    fn with_overrides<T>(
        &self,
        inputs: &[RuntimeValue],
        run: impl FnOnce(&PlannedGraph, &SessionEnvironment, &[RuntimeValue]) -> Result<T>,
    ) -> Result<T> {
        self.run_with_overrides(inputs, run).map_err(|error| self.explain_failure(inputs, error))
    }

    fn run_with_overrides<T>(
        &self,
        inputs: &[RuntimeValue],
        run: impl FnOnce(&PlannedGraph, &SessionEnvironment, &[RuntimeValue]) -> Result<T>,
    ) -> Result<T> {
        let (Some((required, given)), Some(initializers)) =
            (inputs.split_at_checked(self.inputs.len()), &self.overridable_initializers)
        else {
            return run(&self.planned_graph, &self.environment, self.check_inputs(inputs)?);
        };
        let is_given = |(index, value): (usize, &RuntimeValue)| {
            (!matches!(value, RuntimeValue::Nothing)).then_some(index)
        };
        let overridden_indices: Vec<usize> = given.iter().enumerate().filter_map(is_given).collect();
        if overridden_indices.is_empty() && (given.is_empty() || given.len() == self.optional_inputs.len()) {
            return run(&self.planned_graph, &self.environment, self.check_inputs(required)?);
        }
        self.check_inputs(inputs)?;
        let overridden_graph = initializers
            .graph_with_overrides(&overridden_indices, || self.environment.with_own_constants())?;
        run(
            &overridden_graph.planned_graph,
            &overridden_graph.environment,
            &overridden_graph.merge_inputs(required, given),
        )
    }

    fn input_names(&self) -> String {
        self.inputs.iter().map(|operand| format!("`{}`", operand.name)).collect::<Vec<_>>().join(", ")
    }

    /// Checks the number of inputs and each input's type against the model.
    fn check_inputs<'a>(&self, inputs: &'a [RuntimeValue]) -> Result<&'a [RuntimeValue]> {
        let (expected, found) = (self.inputs.len(), inputs.len());
        if found != expected && found != expected + self.optional_inputs.len() {
            return Err(Error::invalid_argument(format!(
                "expected {expected} inputs ({}), found {found}",
                self.input_names()
            )));
        }
        for (operand, input) in self.inputs.iter().zip(inputs) {
            check_input(operand, input)?;
        }
        for (operand, input) in self.optional_inputs.iter().zip(&inputs[expected..]) {
            if !matches!(input, RuntimeValue::Nothing) {
                check_input(operand, input)?;
            }
        }
        Ok(inputs)
    }

    /// The better reason for a failed run: a name that stands for two sizes. Models are published in which names mean nothing, and other
    /// runtimes run them, so this alone is no error.
    fn explain_failure(&self, inputs: &[RuntimeValue], error: Error) -> Error {
        if error.kind() != ErrorKind::InvalidArgument {
            return error;
        }
        self.symbol_mismatch(inputs).unwrap_or(error)
    }

    fn symbol_mismatch(&self, inputs: &[RuntimeValue]) -> Option<Error> {
        let mut known: Vec<(&str, i64, &str)> = Vec::new();
        for (operand, input) in self.inputs.iter().chain(&self.optional_inputs).zip(inputs) {
            let (ValueType::Tensor { dims: Some(dims), .. }, RuntimeValue::Tensor(tensor)) =
                (&operand.declared, input)
            else {
                continue;
            };
            for (dim, size) in dims.iter().zip(tensor.dims()) {
                let DeclaredDimension::Symbol(symbol) = dim else { continue };
                match known.iter().find(|(name, ..)| *name == &**symbol) {
                    Some((_, other, first)) if other != size => {
                        let message =
                            format!("expected `{symbol}` to be {other} as in `{first}`, found {size}");
                        return Some(
                            Error::invalid_argument(message).with_operand(format!("input `{operand}`")),
                        );
                    }
                    Some(_) => {}
                    None => known.push((symbol, *size, &operand.name)),
                }
            }
        }
        None
    }
}

//! `oarlock check`: tells whether a file is a valid model, and what each device can run of it.
//!
//! Only constant folding runs, and no kernel is prepared: each device is only asked.

use std::collections::BTreeMap;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Device, Op, Runtime};
use oarlock_engine::graph::{self, Graph, Node};
use oarlock_engine::passes::{self, PassContext, PassRecording};
use oarlock_engine::{Model, PrecisionMode, device_support, model_outputs};
use serde::Serialize;

use super::implied_shapes::ShapeQuestion;
use super::model_inputs::infer_input_facts;
use super::{model_source, resolve_devices, start_core};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, ModelArguments};
use crate::output::{self, BAD_STYLE, CommandOutput, GOOD_STYLE, NAME_STYLE};
use crate::problem::CommandError;
use crate::render::print_sentence;
use crate::watched_child;
use oarlock_report::graph_text::qualified_op_name;
use oarlock_report::text::{format_bytes, format_count};

#[derive(Serialize)]
struct ModelCheckReport {
    model: String,
    valid: bool,
    /// Why the model is invalid.
    problem: Option<String>,
    /// The same as structured data.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommandError>,
    format: Option<String>,
    nodes: usize,
    weights_bytes: u64,
    /// One sentence for each assumption.
    notes: Vec<String>,
    devices: Vec<DeviceCheckReport>,
    /// True if the model has no outputs, so that running it is pointless.
    gives_nothing: bool,
    /// True if some device can run it, with CPU fallback if permitted.
    runnable: bool,
}

#[derive(Serialize)]
struct DeviceCheckReport {
    device: String,
    /// Nodes that it would run after its passes, including those of branches and loops.
    nodes: usize,
    runs: usize,
    /// True if the CPU can run all others.
    runnable: bool,
    /// The nodes that it cannot run.
    refused: Vec<UnsupportedNodes>,
}

/// Nodes of one op that a device cannot run for the same reason.
#[derive(Serialize)]
struct UnsupportedNodes {
    op: String,
    reason: String,
    nodes: Vec<String>,
    /// True if the CPU can run all of them.
    cpu: bool,
}

pub(crate) fn check_model(
    global: &GlobalOptions,
    choice: &ModelArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let (core, is_complete) = start_core(global, choice)?;
    let runtime = &core.runtime;
    let devices = match resolve_devices(runtime, choice)? {
        none if none.is_empty() => runtime.devices().to_vec(),
        devices => devices,
    };
    let mut report = match ModelCheckReport::for_model(choice, runtime, &devices) {
        Ok(report) => report,
        // A mistake in the arguments says nothing about the model.
        Err(CheckFailure::Arguments(problem)) => return Err(problem),
        Err(CheckFailure::Model(problem)) if global.json => {
            ModelCheckReport::for_invalid_model(choice, problem)
        }
        Err(CheckFailure::Model(problem)) => return Err(problem),
    };
    let is_cpu_named =
        devices.iter().any(|device| device.device_type() == "cpu") && !choice.devices.is_empty();
    if !is_cpu_named && !runtime.flags().kernel_fallback().covers_models() && report.refuse_fallback() {
        let note = "a device that lacks kernels cannot run the model, as the flag `kernel_fallback` is `error`, unless the CPU is \
                    named too";
        output::print_message(global.color, "note", note, None);
    }
    super::report_result(global, output, &report, |output| report.print_report(output))?;
    Ok(is_complete && report.valid && report.runnable)
}

/// Why there is no report.
enum CheckFailure {
    Arguments(CommandError),
    Model(CommandError),
}

impl CheckFailure {
    /// An assumed size may be invalid for the model, which does not make the model invalid either.
    fn with_assumptions(self, notes: &[String], suggest: impl FnOnce() -> Option<String>) -> Self {
        let Self::Model(problem) = self else { return self };
        if let Some(fitting) = suggest() {
            let hint =
                format!("sizes that the model leaves open are taken as 1; those that fit it are {fitting}");
            return Self::Arguments(problem.with_hint(hint));
        }
        match Self::Model(problem) {
            Self::Model(problem) if !notes.is_empty() => {
                let hint = format!("{}; the model may need more than that", notes.join("; "));
                Self::Arguments(problem.with_hint(hint))
            }
            other => other,
        }
    }
}

impl From<oarlock_core::Error> for CheckFailure {
    fn from(error: oarlock_core::Error) -> Self {
        Self::Model(error.into())
    }
}

impl ModelCheckReport {
    fn for_model(
        choice: &ModelArguments,
        runtime: &Runtime,
        devices: &[Device],
    ) -> Result<Self, CheckFailure> {
        let model = model_source::load_model(&choice.file).map_err(CheckFailure::Model)?;
        graph::check_graph(&model.graph)?;
        let (facts, notes) = infer_input_facts(&model, &choice.shapes).map_err(CheckFailure::Arguments)?;
        let cpu = runtime.device("cpu")?;
        let mut reports = Vec::new();
        for device in devices {
            watched_child::send_status(&format!("`{device}` was asked about the nodes of the model"));
            let report = DeviceCheckReport::for_device(&model, &facts, runtime, (device, &cpu), choice.plain);
            let suggest = || {
                let question = ShapeQuestion { model: &model, shapes: &choice.shapes, runtime, device };
                question.suggest_arguments()
            };
            reports.push(report.map_err(|failure| failure.with_assumptions(&notes, suggest))?);
        }
        Ok(Self {
            model: choice.file.display().to_string(),
            valid: true,
            problem: None,
            error: None,
            nodes: model.graph.nodes.len(),
            weights_bytes: model.graph.weight_bytes(),
            notes,
            gives_nothing: model.graph.outputs.is_empty(),
            runnable: !model.graph.outputs.is_empty() && reports.iter().any(|report| report.runnable),
            devices: reports,
            format: Some(model.format),
        })
    }

    /// The report of a file that is no model.
    fn for_invalid_model(choice: &ModelArguments, problem: CommandError) -> Self {
        Self {
            model: choice.file.display().to_string(),
            valid: false,
            problem: Some(problem.message.clone()),
            error: Some(problem),
            format: None,
            nodes: 0,
            weights_bytes: 0,
            notes: Vec::new(),
            devices: Vec::new(),
            gives_nothing: false,
            runnable: false,
        }
    }

    /// Counts fallback as failure. Returns true if a device would have needed it.
    fn refuse_fallback(&mut self) -> bool {
        let mut was_needed = false;
        for device in self.devices.iter_mut().filter(|device| device.needs_fallback()) {
            device.runnable = false;
            was_needed = true;
        }
        self.runnable &= self.devices.iter().any(|device| device.runnable);
        was_needed
    }

    fn print_report(&self, output: &mut CommandOutput) {
        let format = self.format.as_deref().unwrap_or("no model");
        let (nodes, weights) = (format_count(self.nodes, "node", "nodes"), format_bytes(self.weights_bytes));
        print_sentence(
            output,
            0,
            &format!("`{}` is valid: {format}, {nodes}, {weights} of weights", self.model),
        );
        self.notes.iter().for_each(|note| print_sentence(output, 0, note));
        for device in &self.devices {
            device.print_device(output);
        }
        output.write_line("");
        let (style, verdict) = match self.devices.iter().find(|device| device.runnable) {
            _ if self.gives_nothing => {
                (BAD_STYLE, "It has no outputs, so it gives nothing and cannot be run".to_owned())
            }
            Some(DeviceCheckReport { device, nodes, runs, .. }) => {
                let help = match nodes - runs {
                    0 => String::new(),
                    helped => format!("; the CPU runs {helped} of {}", format_count(*nodes, "node", "nodes")),
                };
                (GOOD_STYLE, format!("It can be run, as with `-d {device}`{help}"))
            }
            None if self.devices.iter().any(DeviceCheckReport::needs_fallback) => {
                (BAD_STYLE, "No device here can run all of it, and the CPU may not help".to_owned())
            }
            None => (BAD_STYLE, "No device here can run it, not with the help of the CPU either".to_owned()),
        };
        let verdict = output.paint_text(style, &verdict);
        output.write_line(&verdict);
    }
}

/// What none of the devices can run, in sentences; `None` if that cannot be determined.
pub(super) fn describe_obstacles(
    model: &Model,
    runtime: &Runtime,
    devices: &[Device],
    is_plain: bool,
) -> Vec<String> {
    let (Ok(cpu), Ok((facts, _))) = (runtime.device("cpu"), infer_input_facts(model, &[])) else {
        return Vec::new();
    };
    let refused = |device| {
        let report = DeviceCheckReport::for_device(model, &facts, runtime, (device, &cpu), is_plain);
        report.ok().map(|report| report.refused)
    };
    let refused: Option<Vec<Vec<UnsupportedNodes>>> = devices.iter().map(refused).collect();
    let Some((first, others)) = refused.as_deref().and_then(<[_]>::split_first) else { return Vec::new() };
    let is_refused = |op: &str| others.iter().all(|other| other.iter().any(|refused| refused.op == op));
    let sentence =
        |refused: &UnsupportedNodes| format!("no device here can run `{}`: {}", refused.op, refused.reason);
    first.iter().filter(|refused| is_refused(&refused.op)).map(sentence).collect()
}

impl DeviceCheckReport {
    /// True if the device needs the CPU's help to run the model.
    fn needs_fallback(&self) -> bool {
        !self.refused.is_empty() && self.refused.iter().all(|refused| refused.cpu)
    }

    fn for_device(
        model: &Model,
        facts: &[Option<TensorFact>],
        runtime: &Runtime,
        (device, cpu): (&Device, &Device),
        is_plain: bool,
    ) -> Result<Self, CheckFailure> {
        let recording = PassRecording::default();
        let scene =
            PassContext { runtime, host: cpu, device, is_plain, precision: PrecisionMode::F32, recording };
        let mut graph = graph_with_facts(model, facts);
        if let Err(error) = passes::run_passes(&mut graph, &scene) {
            if !has_unknown_op(&model.graph, runtime) {
                return Err(error.into());
            }
            // Unknown shapes keep passes from running; the other nodes are checked as far as shapes are known.
            graph = graph_with_facts(model, facts);
            _ = passes::infer_graph(&mut graph, &scene);
        }
        model_outputs(&model.graph, &graph)?;
        let mut refused: BTreeMap<(String, String), UnsupportedNodes> = BTreeMap::new();
        let (mut nodes, mut runs) = (0, 0);
        visit_nodes(&graph, &mut |graph, node| {
            nodes += 1;
            let Some(reason) = device_support(graph, node, runtime, device).refusal() else {
                runs += 1;
                return;
            };
            let op = qualified_op_name(&node.domain, &node.op);
            let entry = refused.entry((op.clone(), reason.clone()));
            let entry =
                entry.or_insert_with(|| UnsupportedNodes { op, reason, nodes: Vec::new(), cpu: true });
            entry.cpu &= device_support(graph, node, runtime, cpu).is_supported();
            entry.nodes.push(node.name.to_string());
        });
        let refused: Vec<UnsupportedNodes> = refused.into_values().collect();
        let runnable = refused.iter().all(|refused| refused.cpu);
        Ok(Self { device: device.name().to_owned(), nodes, runs, runnable, refused })
    }

    fn print_device(&self, output: &mut CommandOutput) {
        let Self { device, nodes, runs, refused, .. } = self;
        output.write_line("");
        let device = output.paint_text(NAME_STYLE, device);
        let all = format_count(*nodes, "node", "nodes");
        output.write_line(&if runs == nodes {
            format!("{device} runs all of it, {all}")
        } else {
            format!("{device} runs {runs} of {all}, and not")
        });
        for UnsupportedNodes { op, reason, nodes, cpu } in refused {
            let first = nodes.iter().find(|name| !name.is_empty());
            let named = first.map_or_else(String::new, |name| format!(", such as `{name}`"));
            let help = if *cpu { "; the CPU can" } else { "" };
            print_sentence(
                output,
                2,
                &format!("`{op}` ({}{named}): {reason}{help}", format_count(nodes.len(), "node", "nodes")),
            );
        }
    }
}

/// A copy of the model's graph with known facts about its inputs.
fn graph_with_facts(model: &Model, facts: &[Option<TensorFact>]) -> Graph {
    let mut graph = model.graph.clone();
    for (input, fact) in model.graph.inputs.iter().zip(facts) {
        graph.value_mut(*input).fact.clone_from(fact);
    }
    graph
}

/// True if some node's op has neither a schema nor a kernel.
fn has_unknown_op(graph: &Graph, runtime: &Runtime) -> bool {
    let is_unknown = |node: &Node| {
        let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone());
        node.subgraphs.is_empty() && op.is_err()
    };
    graph.nodes.iter().any(is_unknown)
}

/// Visits every node, including those of branches and loops.
fn visit_nodes(graph: &Graph, call: &mut impl FnMut(&Graph, &Node)) {
    for node in &graph.nodes {
        call(graph, node);
        node.subgraphs.iter().for_each(|subgraph| visit_nodes(&subgraph.graph, call));
    }
}

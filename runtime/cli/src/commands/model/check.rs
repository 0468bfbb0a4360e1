//! `oarlock check`: whether a model is one, and what each device can run of it.
//!
//! Nothing runs but what passes compute from constants, and no kernel is readied: each device is only asked.

use std::collections::BTreeMap;

use oarlock_core::infer::Fact;
use oarlock_core::{Device, Op, Runtime};
use oarlock_engine::graph::{self, Graph, Node};
use oarlock_engine::passes::{self, Notes, Scene};
use oarlock_engine::{Model, Precision, ability, outputs};
use serde::Serialize;

use super::feeds::facts;
use super::{devices, op_of, source, start};
use crate::Verdict;
use crate::arguments::{Global, ModelChoice};
use crate::output::{self, BAD, GOOD, NAME, Output};
use crate::problem::Problem;
use crate::render::{bytes, count, sentence};
use crate::watched;

/// What was found.
#[derive(Serialize)]
struct Report {
    model: String,
    valid: bool,
    /// Why it is none.
    problem: Option<String>,
    /// The same with all that is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
    format: Option<String>,
    nodes: usize,
    weights_bytes: u64,
    /// What was assumed, in sentences.
    notes: Vec<String>,
    devices: Vec<DeviceReport>,
    /// Whether it has no outputs, so that there is nothing to run it for.
    gives_nothing: bool,
    /// Whether some device can run it, with the help of the CPU where need be.
    runnable: bool,
}

/// What a device can do.
#[derive(Serialize)]
struct DeviceReport {
    device: String,
    /// How many nodes it would run, in branches and loops too, after passes for the device.
    nodes: usize,
    runs: usize,
    /// Whether the CPU can run all others.
    runnable: bool,
    /// What it cannot run.
    refused: Vec<Refused>,
}

/// Nodes of one op that a device cannot run, for one reason.
#[derive(Serialize)]
struct Refused {
    op: String,
    reason: String,
    nodes: Vec<String>,
    /// Whether the CPU can run all of them.
    cpu: bool,
}

pub(crate) fn run(global: &Global, choice: &ModelChoice, output: &mut Output) -> Verdict {
    let (core, is_complete) = start(global, choice)?;
    let runtime = &core.runtime;
    let devices = match devices(runtime, choice)? {
        none if none.is_empty() => runtime.devices().to_vec(),
        devices => devices,
    };
    let mut report = match Report::of(choice, runtime, &devices) {
        Ok(report) => report,
        // A slip in the arguments says nothing about the model.
        Err(Failure::Arguments(problem)) => return Err(problem),
        Err(Failure::Model(problem)) if global.json => Report::wrong(choice, problem),
        Err(Failure::Model(problem)) => return Err(problem),
    };
    let is_cpu_named =
        devices.iter().any(|device| device.device_type() == "cpu") && !choice.devices.is_empty();
    if !is_cpu_named && !runtime.flags().kernel_fallback().covers_models() && report.refuse_help() {
        let note = "a device that lacks kernels cannot run the model, as the flag `kernel_fallback` is `error`, unless the CPU is \
                    named too";
        output::say(global.color, "note", note, None);
    }
    super::tell(global, output, &report, |output| report.print(output))?;
    Ok(is_complete && report.valid && report.runnable)
}

/// Why there is nothing to report.
enum Failure {
    Arguments(Problem),
    Model(Problem),
}

impl Failure {
    /// A size that was made up may be one that the model cannot have, which says nothing about it either.
    fn with_assumptions(self, notes: &[String]) -> Self {
        match self {
            Self::Model(problem) if !notes.is_empty() => {
                let hint = format!("{}; the model may need more than that", notes.join("; "));
                Self::Arguments(problem.hint(hint))
            }
            other => other,
        }
    }
}

impl From<oarlock_core::Error> for Failure {
    fn from(error: oarlock_core::Error) -> Self {
        Self::Model(error.into())
    }
}

impl Report {
    fn of(choice: &ModelChoice, runtime: &Runtime, devices: &[Device]) -> Result<Self, Failure> {
        let model = source::load(&choice.file).map_err(Failure::Model)?;
        graph::check(&model.graph)?;
        let (facts, notes) = facts(&model, &choice.shapes).map_err(Failure::Arguments)?;
        let cpu = runtime.device("cpu")?;
        let mut reports = Vec::new();
        for device in devices {
            watched::tell(&format!("`{device}` was asked about the nodes of the model"));
            let report = DeviceReport::of(&model, &facts, runtime, (device, &cpu), choice.plain);
            reports.push(report.map_err(|failure| failure.with_assumptions(&notes))?);
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

    /// Of a file that is no model.
    fn wrong(choice: &ModelChoice, problem: Problem) -> Self {
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

    /// Takes it that the CPU helps nobody. Gives back whether a device would have needed it.
    fn refuse_help(&mut self) -> bool {
        let mut was_needed = false;
        for device in self.devices.iter_mut().filter(|device| device.needs_help()) {
            device.runnable = false;
            was_needed = true;
        }
        self.runnable &= self.devices.iter().any(|device| device.runnable);
        was_needed
    }

    fn print(&self, output: &mut Output) {
        let format = self.format.as_deref().unwrap_or("no model");
        let (nodes, weights) = (count(self.nodes, "node", "nodes"), bytes(self.weights_bytes));
        sentence(output, 0, &format!("`{}` is valid: {format}, {nodes}, {weights} of weights", self.model));
        self.notes.iter().for_each(|note| sentence(output, 0, note));
        for device in &self.devices {
            device.print(output);
        }
        output.line("");
        let (style, verdict) = match self.devices.iter().find(|device| device.runnable) {
            _ if self.gives_nothing => {
                (BAD, "It has no outputs, so it gives nothing and cannot be run".to_owned())
            }
            Some(DeviceReport { device, nodes, runs, .. }) => {
                let help = match nodes - runs {
                    0 => String::new(),
                    helped => format!("; the CPU runs {helped} of {}", count(*nodes, "node", "nodes")),
                };
                (GOOD, format!("It can be run, as with `-d {device}`{help}"))
            }
            None if self.devices.iter().any(DeviceReport::needs_help) => {
                (BAD, "No device here can run all of it, and the CPU may not help".to_owned())
            }
            None => (BAD, "No device here can run it, not with the help of the CPU either".to_owned()),
        };
        let verdict = output.paint(style, &verdict);
        output.line(&verdict);
    }
}

/// What none of these devices can run of a model, in sentences; nothing where that cannot be said.
pub(super) fn obstacles(model: &Model, runtime: &Runtime, devices: &[Device], is_plain: bool) -> Vec<String> {
    let (Ok(cpu), Ok((facts, _))) = (runtime.device("cpu"), facts(model, &[])) else { return Vec::new() };
    let refused = |device| {
        let report = DeviceReport::of(model, &facts, runtime, (device, &cpu), is_plain);
        report.ok().map(|report| report.refused)
    };
    let refused: Option<Vec<Vec<Refused>>> = devices.iter().map(refused).collect();
    let Some((first, others)) = refused.as_deref().and_then(<[_]>::split_first) else { return Vec::new() };
    let is_refused = |op: &str| others.iter().all(|other| other.iter().any(|refused| refused.op == op));
    let sentence = |refused: &Refused| format!("no device here can run `{}`: {}", refused.op, refused.reason);
    first.iter().filter(|refused| is_refused(&refused.op)).map(sentence).collect()
}

impl DeviceReport {
    /// Whether the device could run the model if the CPU helped, and cannot alone.
    fn needs_help(&self) -> bool {
        !self.refused.is_empty() && self.refused.iter().all(|refused| refused.cpu)
    }

    fn of(
        model: &Model,
        facts: &[Option<Fact>],
        runtime: &Runtime,
        (device, cpu): (&Device, &Device),
        is_plain: bool,
    ) -> Result<Self, Failure> {
        let notes = Notes::default();
        let scene = Scene { runtime, host: cpu, device, is_plain, precision: Precision::F32, notes };
        let mut graph = with_facts(model, facts);
        if let Err(error) = passes::run(&mut graph, &scene) {
            if !has_unknown_op(&model.graph, runtime) {
                return Err(error.into());
            }
            // What nobody knows keeps passes from running; all other nodes are asked about as far as shapes are known.
            graph = with_facts(model, facts);
            _ = passes::infer(&mut graph, &scene);
        }
        outputs(&model.graph, &graph)?;
        let mut refused: BTreeMap<(String, String), Refused> = BTreeMap::new();
        let (mut nodes, mut runs) = (0, 0);
        each_node(&graph, &mut |graph, node| {
            nodes += 1;
            let Some(reason) = ability(graph, node, runtime, device).refusal() else {
                runs += 1;
                return;
            };
            let op = op_of(&node.domain, &node.op);
            let entry = refused.entry((op.clone(), reason.clone()));
            let entry = entry.or_insert_with(|| Refused { op, reason, nodes: Vec::new(), cpu: true });
            entry.cpu &= ability(graph, node, runtime, cpu).is_there();
            entry.nodes.push(node.name.to_string());
        });
        let refused: Vec<Refused> = refused.into_values().collect();
        let runnable = refused.iter().all(|refused| refused.cpu);
        Ok(Self { device: device.name().to_owned(), nodes, runs, runnable, refused })
    }

    fn print(&self, output: &mut Output) {
        let Self { device, nodes, runs, refused, .. } = self;
        output.line("");
        let device = output.paint(NAME, device);
        let all = count(*nodes, "node", "nodes");
        output.line(&if runs == nodes {
            format!("{device} runs all of it, {all}")
        } else {
            format!("{device} runs {runs} of {all}, and not")
        });
        for Refused { op, reason, nodes, cpu } in refused {
            let first = nodes.iter().find(|name| !name.is_empty());
            let named = first.map_or_else(String::new, |name| format!(", such as `{name}`"));
            let help = if *cpu { "; the CPU can" } else { "" };
            sentence(
                output,
                2,
                &format!("`{op}` ({}{named}): {reason}{help}", count(nodes.len(), "node", "nodes")),
            );
        }
    }
}

/// A model's graph, with what is known of its inputs.
fn with_facts(model: &Model, facts: &[Option<Fact>]) -> Graph {
    let mut graph = model.graph.clone();
    for (input, fact) in model.graph.inputs.iter().zip(facts) {
        graph.value_mut(*input).fact.clone_from(fact);
    }
    graph
}

/// Whether some node is of an op of which there is neither a schema nor a kernel.
fn has_unknown_op(graph: &Graph, runtime: &Runtime) -> bool {
    let is_unknown = |node: &Node| {
        let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone());
        node.subgraphs.is_empty() && op.is_err()
    };
    graph.nodes.iter().any(is_unknown)
}

/// Calls something for every node, in branches and loops too.
fn each_node(graph: &Graph, call: &mut impl FnMut(&Graph, &Node)) {
    for node in &graph.nodes {
        call(graph, node);
        node.subgraphs.iter().for_each(|subgraph| each_node(&subgraph.graph, call));
    }
}

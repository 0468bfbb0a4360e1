//! What runs each node, and why.

use oarlock_core::{Device, Runtime};
use oarlock_engine::graph::{Node, Subgraph, ValueId};
use oarlock_engine::{Ability, Plan, StepInfo, ability};
use serde::Serialize;

use crate::commands::model::{kind_of, op_of};

/// What there is to say about a node.
#[derive(Serialize)]
pub(super) struct NodeReport {
    pub(super) node: String,
    pub(super) op: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) device: String,
    /// What runs it.
    pub(super) kernel: String,
    /// How the kernel does it and whose it is, where it says so.
    pub(super) how: Option<String>,
    pub(super) why: String,
    /// The kernels that were looked at, the preferred ones first, on one device after the other.
    pub(super) considered: Vec<Considered>,
    pub(super) flops: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// The nodes of its branches or its body, as far as something is known of them before they run.
    pub(super) inner: Vec<NodeReport>,
}

/// A kernel that was looked at.
#[derive(Serialize)]
pub(super) struct Considered {
    device: String,
    plugin: String,
    score: i32,
    chosen: bool,
    refusal: Option<String>,
}

impl NodeReport {
    /// The cells of its line, and of those of the nodes in it.
    pub(super) fn rows(&self, depth: usize) -> Vec<[String; 6]> {
        let output = self.outputs.first().cloned().unwrap_or_default();
        let op = format!("{}{}", "  ".repeat(depth), self.op);
        let kernel = self.how.as_ref().unwrap_or(&self.kernel).clone();
        let own = [op, self.node.clone(), output, self.device.clone(), kernel, self.why.clone()];
        let inner = self.inner.iter().flat_map(|node| node.rows(depth + 1));
        std::iter::once(own).chain(inner).collect()
    }
}

/// Every node of a plan's graph, in the order in which they run.
pub(super) fn reports(plan: &Plan, devices: &[Device], runtime: &Runtime) -> Vec<NodeReport> {
    let graph = plan.graph();
    let mut steps = vec![None; graph.nodes.len()];
    for step in plan.steps().filter(|step| !step.is_copy()) {
        steps[step.node_index()] = Some(step);
    }
    let report = |(node, step): (&Node, Option<StepInfo<'_>>)| {
        let abilities: Vec<(&Device, Ability)> = devices
            .iter()
            .take_while({
                let mut is_over = false;
                move |device| {
                    let before = is_over;
                    is_over |= step.is_some_and(|step| step.device().is(device));
                    !before
                }
            })
            .map(|device| (device, ability(graph, node, runtime, device)))
            .collect();
        let first = devices.first().map(|device| device.name().to_owned()).unwrap_or_default();
        let cost = oarlock_engine::cost(graph, node);
        let kinds = |ids: &[Option<ValueId>]| -> Vec<String> {
            ids.iter().map(|id| id.map_or_else(|| "-".to_owned(), |id| kind_of(graph, id))).collect()
        };
        NodeReport {
            node: node.name.to_string(),
            op: op_of(&node.domain, &node.op),
            inputs: kinds(&node.inputs),
            outputs: kinds(&node.outputs),
            device: step.map_or(first, |step| step.device().name().to_owned()),
            kernel: step.map_or_else(|| "none".to_owned(), |step| step.runner()),
            how: step.and_then(how),
            why: why(&abilities, step),
            considered: abilities.iter().flat_map(considered).collect(),
            flops: cost.flops,
            bytes: cost.bytes,
            inner: inner(node, devices, runtime),
        }
    };
    graph.nodes.iter().zip(steps).map(report).collect()
}

/// The nodes of branches and bodies. They are planned when they run for the first time, with the shapes they have then.
fn inner(node: &Node, devices: &[Device], runtime: &Runtime) -> Vec<NodeReport> {
    let each = |subgraph: &Subgraph| -> Vec<NodeReport> {
        let graph = &subgraph.graph;
        let report = |node: &Node| {
            let able = devices.iter().find(|device| ability(graph, node, runtime, device).is_there());
            let device = able.or(devices.last()).map(|device| device.name().to_owned());
            let name = |id: &Option<ValueId>| {
                id.map_or_else(|| "-".to_owned(), |id| graph.value(id).name.to_string())
            };
            NodeReport {
                node: node.name.to_string(),
                op: op_of(&node.domain, &node.op),
                inputs: node.inputs.iter().map(name).collect(),
                outputs: node.outputs.iter().map(name).collect(),
                device: device.unwrap_or_default(),
                kernel: "found in the run".to_owned(),
                how: None,
                why: match able {
                    Some(_) => format!("in `{}`, which is planned when it runs", subgraph.attribute),
                    None => format!("in `{}`; no device has a kernel for it", subgraph.attribute),
                },
                considered: Vec::new(),
                flops: None,
                bytes: None,
                inner: inner(node, devices, runtime),
            }
        };
        graph.nodes.iter().map(report).collect()
    };
    node.subgraphs.iter().flat_map(each).collect()
}

fn considered((device, ability): &(&Device, Ability)) -> Vec<Considered> {
    let Ability::Kernels(explanation) = ability else { return Vec::new() };
    let chosen = explanation.chosen();
    let one = |considered: &oarlock_core::registry::Considered| Considered {
        device: device.name().to_owned(),
        plugin: considered.row.plugin().to_owned(),
        score: considered.row.info().score,
        chosen: chosen.is_some_and(|chosen| std::ptr::eq(chosen, &considered.row)),
        refusal: considered.refusal().map(str::to_owned),
    };
    explanation.considered.iter().map(one).collect()
}

/// How a kernel does a step, in its own words, and whose kernel it is.
fn how(step: StepInfo<'_>) -> Option<String> {
    let (row, way) = (step.row()?, step.description());
    (!way.is_empty()).then(|| format!("{way} by `{}`", row.plugin()))
}

/// Why a node runs where and how it does, from what each device up to its own can do.
fn why(abilities: &[(&Device, Ability)], step: Option<StepInfo<'_>>) -> String {
    let Some(step) = step else { return "its output lies where its input does".to_owned() };
    let Some(((_, own), before)) = abilities.split_last() else { return String::new() };
    let mut reasons = vec![match own {
        Ability::Kernels(explanation) => {
            let fitting = explanation.considered.iter().filter(|row| row.refusal().is_none()).count();
            match (fitting, explanation.considered.len()) {
                (0, _) => explanation.error().message().to_owned(),
                (1, 1) => "the only kernel".to_owned(),
                (1, all) => format!("the only one of {all} kernels that takes it"),
                (fitting, _) => format!("the first of {fitting} kernels that take it"),
            }
        }
        Ability::InTheRun(rows) => format!(
            "shapes or values are known in the run only; {} then",
            crate::render::count(*rows, "kernel is asked", "kernels are asked")
        ),
        Ability::Engine => "needs no kernel".to_owned(),
        Ability::Wrong(error) => error.message().to_owned(),
    }];
    for (device, ability) in before {
        let refusal = ability.refusal().or_else(|| step.stays());
        let refusal = refusal.unwrap_or_else(|| "it comes first, and was passed over".to_owned());
        reasons.push(format!("not `{device}`: {refusal}"));
    }
    reasons.join("; ")
}

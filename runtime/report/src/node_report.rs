//! Reports which kernel runs each node, and why.

use oarlock_core::{Device, Runtime};
use oarlock_engine::graph::{Node, Subgraph, ValueId};
use oarlock_engine::{DeviceSupport, ExecutionPlan, StepView, device_support};
use serde::Serialize;

use crate::graph_text::{describe_value, qualified_op_name};

/// What runs a node, and why.
#[derive(Serialize)]
pub struct NodeReport {
    /// Its name in the model.
    pub node: String,
    /// Its op, with its domain unless it is that of ONNX.
    pub op: String,
    /// Its inputs with their types.
    pub inputs: Vec<String>,
    /// Its outputs with their types.
    pub outputs: Vec<String>,
    /// The device that runs it.
    pub device: String,
    /// The registry entry of the kernel, or why there is none.
    pub kernel: String,
    /// The kernel's own description of its method and the plugin it comes from, if it gives one.
    pub how: Option<String>,
    /// Why it runs there and not elsewhere.
    pub why: String,
    /// Candidate kernels, the preferred ones first, device by device.
    pub considered: Vec<NodeCandidate>,
    /// Multiplications and additions, if they can be counted.
    pub flops: Option<u64>,
    /// Bytes of all operands.
    pub bytes: Option<u64>,
    /// Nodes of branches or a loop body, as far as they are known before the run.
    pub inner: Vec<NodeReport>,
}

/// A kernel that was considered for a node.
#[derive(Serialize)]
pub struct NodeCandidate {
    device: String,
    plugin: String,
    score: i32,
    chosen: bool,
    refusal: Option<String>,
}

impl NodeReport {
    /// The row of this node, followed by those of the nodes inside it.
    pub fn table_rows(&self, depth: usize) -> Vec<[String; 6]> {
        let output = self.outputs.first().cloned().unwrap_or_default();
        let op = format!("{}{}", "  ".repeat(depth), self.op);
        let kernel = self.how.as_ref().unwrap_or(&self.kernel).clone();
        let own = [op, self.node.clone(), output, self.device.clone(), kernel, self.why.clone()];
        let inner = self.inner.iter().flat_map(|node| node.table_rows(depth + 1));
        std::iter::once(own).chain(inner).collect()
    }
}

/// All nodes of a plan's graph, in the order of execution.
pub fn report_nodes(plan: &ExecutionPlan, devices: &[Device], runtime: &Runtime) -> Vec<NodeReport> {
    let graph = plan.graph();
    let mut steps = vec![None; graph.nodes.len()];
    for step in plan.steps().filter(|step| !step.is_copy()) {
        steps[step.node_index()] = Some(step);
    }
    let report = |(node, step): (&Node, Option<StepView<'_>>)| {
        let abilities: Vec<(&Device, DeviceSupport)> = devices
            .iter()
            .take_while({
                let mut is_over = false;
                move |device| {
                    let before = is_over;
                    is_over |= step.is_some_and(|step| step.device().is_same_device(device));
                    !before
                }
            })
            .map(|device| (device, device_support(graph, node, runtime, device)))
            .collect();
        let first = devices.first().map(|device| device.name().to_owned()).unwrap_or_default();
        let cost = oarlock_engine::node_cost(graph, node);
        let kinds = |ids: &[Option<ValueId>]| -> Vec<String> {
            ids.iter().map(|id| id.map_or_else(|| "-".to_owned(), |id| describe_value(graph, id))).collect()
        };
        NodeReport {
            node: node.name.to_string(),
            op: qualified_op_name(&node.domain, &node.op),
            inputs: kinds(&node.inputs),
            outputs: kinds(&node.outputs),
            device: step.map_or(first, |step| step.device().name().to_owned()),
            kernel: step.map_or_else(|| "none".to_owned(), |step| step.runner()),
            how: step.and_then(describe_kernel),
            why: explain_placement(&abilities, step),
            considered: abilities.iter().flat_map(list_candidates).collect(),
            flops: cost.flops,
            bytes: cost.bytes,
            inner: report_inner_nodes(node, devices, runtime),
        }
    };
    graph.nodes.iter().zip(steps).map(report).collect()
}

/// Nodes of branches and bodies. They are planned at their first run, with the shapes they have then.
fn report_inner_nodes(node: &Node, devices: &[Device], runtime: &Runtime) -> Vec<NodeReport> {
    let each = |subgraph: &Subgraph| -> Vec<NodeReport> {
        let graph = &subgraph.graph;
        let report = |node: &Node| {
            let able =
                devices.iter().find(|device| device_support(graph, node, runtime, device).is_supported());
            let device = able.or(devices.last()).map(|device| device.name().to_owned());
            let name = |id: &Option<ValueId>| {
                id.map_or_else(|| "-".to_owned(), |id| graph.value(id).name.to_string())
            };
            NodeReport {
                node: node.name.to_string(),
                op: qualified_op_name(&node.domain, &node.op),
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
                inner: report_inner_nodes(node, devices, runtime),
            }
        };
        graph.nodes.iter().map(report).collect()
    };
    node.subgraphs.iter().flat_map(each).collect()
}

fn list_candidates((device, ability): &(&Device, DeviceSupport)) -> Vec<NodeCandidate> {
    let DeviceSupport::Kernels(explanation) = ability else { return Vec::new() };
    let chosen = explanation.chosen_entry();
    let one = |considered: &oarlock_core::registry::ConsideredKernel| NodeCandidate {
        device: device.name().to_owned(),
        plugin: considered.entry.plugin_name().to_owned(),
        score: considered.entry.info().score,
        chosen: chosen.is_some_and(|chosen| std::ptr::eq(chosen, &considered.entry)),
        refusal: considered.refusal().map(str::to_owned),
    };
    explanation.considered.iter().map(one).collect()
}

/// The kernel's description of its method, and its plugin.
fn describe_kernel(step: StepView<'_>) -> Option<String> {
    let (row, description) = (step.registry_row()?, step.description());
    (!description.is_empty()).then(|| format!("{description} by `{}`", row.plugin_name()))
}

/// Explains the placement of a node by what each device before its own lacks.
fn explain_placement(abilities: &[(&Device, DeviceSupport)], step: Option<StepView<'_>>) -> String {
    let Some(step) = step else { return "reuses the memory of its input".to_owned() };
    let Some(((_, own), before)) = abilities.split_last() else { return String::new() };
    let mut reasons = vec![match own {
        DeviceSupport::Kernels(explanation) => {
            let fitting = explanation.considered.iter().filter(|row| row.refusal().is_none()).count();
            match (fitting, explanation.considered.len()) {
                (0, _) => explanation.to_error().message().to_owned(),
                (1, 1) => "the only kernel".to_owned(),
                (1, all) => format!("the only one of {all} kernels that accepts it"),
                (fitting, _) => format!("the first of {fitting} kernels that accept it"),
            }
        }
        DeviceSupport::DecidedAtRun(rows) => format!(
            "shapes or values are known only during the run; {} then",
            crate::text::format_count(*rows, "kernel is asked", "kernels are asked")
        ),
        DeviceSupport::Engine => "needs no kernel".to_owned(),
        DeviceSupport::InvalidNode(error) => error.message().to_owned(),
    }];
    for (device, ability) in before {
        let refusal = ability.refusal().or_else(|| step.host_affinity());
        let refusal = refusal.unwrap_or_else(|| "it comes first, and was passed over".to_owned());
        reasons.push(format!("not `{device}`: {refusal}"));
    }
    reasons.join("; ")
}

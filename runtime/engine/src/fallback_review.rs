//! Reports nodes that the CPU runs because no requested device has a kernel for them.
//!
//! A user who names a device expects the model to run there. A CPU fallback is therefore reported once for each op, or is an
//! error, as the flag `kernel_fallback` says. If the user named the CPU too, the fallback is what they asked for. Work that the
//! host does on purpose, such as computing shapes, is not a fallback.

use std::collections::BTreeSet;

use oarlock_core::registry::MissingKernel;
use oarlock_core::{Device, Result, Runtime};

use crate::fallback_summary::{FallbackOp, FallbackSummary};
use crate::graph::Node;
use crate::plan::{DeviceSupport, ExecutionPlan, HostNodes, HostReason, StepAction, device_support};
use crate::session_environment::SessionEnvironment;

/// Checks a new plan: reports its fallbacks, or returns an error if they are not allowed.
pub(crate) fn review_fallbacks(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Result<()> {
    let policy = &environment.fallback;
    if policy.is_cpu_named {
        return Ok(());
    }
    let host_nodes = HostNodes::from_plan(plan);
    let fallen: BTreeSet<String> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.action, StepAction::Call(_) | StepAction::Dispatched(_)))
        .filter(|step| {
            step.device.is_same_device(&environment.host) && host_nodes.host_reason(step.node).is_none()
        })
        .map(|step| qualified_op(&plan.graph.nodes[step.node]))
        .collect();
    if fallen.is_empty() {
        return Ok(());
    }
    if !policy.allows_cpu() {
        return Err(FallbackSummary::from_plan(plan, environment).to_error());
    }
    if policy.mark_reported(fallen) {
        policy.notify_listener(&FallbackSummary::from_plan(plan, environment), &environment.runtime);
    }
    Ok(())
}

impl FallbackSummary {
    /// Counts the nodes of the plan alone, without its subgraphs.
    fn from_plan(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Self {
        let mut summary = Self::new(environment);
        summary.add_plan(plan, environment);
        summary.sorted()
    }

    /// Nothing is counted yet.
    pub(crate) fn new(environment: &SessionEnvironment) -> Self {
        let SessionEnvironment { devices, host, fallback, .. } = environment;
        let before = devices.iter().take_while(|device| !device.is_same_device(host));
        Self {
            devices: before.map(|device| device.name().to_owned()).collect(),
            cpu: host.name().to_owned(),
            is_cpu_named: fallback.is_cpu_named,
            nodes_by_device: devices.iter().map(|device| (device.name().to_owned(), 0)).collect(),
            ..Self::default()
        }
    }

    /// Adds the nodes of a plan, without its subgraphs.
    pub(crate) fn add_plan(&mut self, plan: &ExecutionPlan, environment: &SessionEnvironment) {
        let SessionEnvironment { runtime, devices, host, .. } = environment;
        let first = devices.first().filter(|device| !device.is_same_device(host));
        let host_nodes = HostNodes::from_plan(plan);
        for step in plan
            .steps
            .iter()
            .filter(|step| matches!(step.action, StepAction::Call(_) | StepAction::Dispatched(_)))
        {
            self.nodes += 1;
            *self.nodes_by_device.entry(step.device.name().to_owned()).or_default() += 1;
            let Some(first) = first.filter(|_| step.device.is_same_device(host)) else { continue };
            match host_nodes.host_reason(step.node) {
                Some(HostReason::Shapes) => self.shape_nodes += 1,
                Some(HostReason::Text) => self.text_nodes += 1,
                Some(HostReason::TooSmall) => self.small_nodes += 1,
                None => self.count_node(plan, &plan.graph.nodes[step.node], runtime, first),
            }
        }
    }

    fn count_node(&mut self, plan: &ExecutionPlan, node: &Node, runtime: &Runtime, device: &Device) {
        let (missing, reason) = match device_support(&plan.graph, node, runtime, device) {
            DeviceSupport::Kernels(explanation) => {
                (explanation.missing_kernel(), explanation.to_error().message().to_owned())
            }
            other => (MissingKernel::Op, other.refusal().unwrap_or_default()),
        };
        let op = qualified_op(node);
        match self.ops.iter_mut().find(|known| known.op == op && known.missing == missing) {
            Some(known) => known.count += 1,
            None => {
                let first_node = node.name.to_string();
                self.ops.push(FallbackOp { op, missing, reason, count: 1, first_node });
            }
        }
    }
}

/// The op's name, with its domain unless that is ONNX's own.
fn qualified_op(node: &Node) -> String {
    if node.domain.is_empty() { node.op.to_string() } else { format!("{}.{}", node.domain, node.op) }
}

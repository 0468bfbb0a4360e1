//! The products that a plan rounds to bf16, for reports.

use oarlock_core::{Device, Runtime};

use super::{ExecutionPlan, device_support};
use crate::graph::{Graph, Node};
use crate::passes;

/// The products that a plan rounds, out of all that it could.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundingReport {
    /// Convolutions and products that round their factors.
    pub rounded: usize,
    /// For each of the others, the reason it does not.
    pub whole: Vec<String>,
}

impl RoundingReport {
    /// Reports on a plan whose nodes were meant for `device`.
    pub fn from_plan(plan: &ExecutionPlan, runtime: &Runtime, device: &Device) -> Self {
        let graph = plan.graph();
        let mut rounding = Self::default();
        for node in graph.nodes.iter().filter(|node| passes::can_round(graph, node)) {
            if passes::is_rounded(node) {
                rounding.rounded += 1;
            } else {
                rounding.whole.push(refusal_reason(graph, node, runtime, device));
            }
        }
        rounding
    }
}

fn refusal_reason(graph: &Graph, node: &Node, runtime: &Runtime, device: &Device) -> String {
    let asked = device_support(graph, &passes::with_rounding(node), runtime, device);
    asked.refusal().unwrap_or_else(|| "nobody asked for it".to_owned())
}

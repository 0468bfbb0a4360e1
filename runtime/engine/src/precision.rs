//! How precise products have to be.

use std::fmt;

use oarlock_core::{Device, Runtime};

use crate::graph::{Graph, Node};
use crate::passes;
use crate::plan::{ExecutionPlan, device_support};

/// What a session may do to numbers to be faster. It is a permission, not a duty: what is as fast without, and what a device
/// has no kernel for, is computed as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrecisionMode {
    /// Nothing: numbers of f32 are multiplied as such.
    #[default]
    F32,
    /// Numbers of f32 may be rounded to bf16, which keeps two to three of their digits, before they are multiplied, and in
    /// images that only convolutions read. Sums are numbers of f32, and so are all other values between ops.
    Bf16,
}

impl PrecisionMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for PrecisionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a plan rounds, of what it might.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundingReport {
    /// How many convolutions and products round their factors.
    pub rounded: usize,
    /// Why each of the others does not.
    pub whole: Vec<String>,
}

impl RoundingReport {
    /// That of a plan, whose nodes were to run on a device.
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

/// Why a node does not round its factors.
fn refusal_reason(graph: &Graph, node: &Node, runtime: &Runtime, device: &Device) -> String {
    let asked = device_support(graph, &passes::with_rounding(node), runtime, device);
    asked.refusal().unwrap_or_else(|| "nobody asked for it".to_owned())
}

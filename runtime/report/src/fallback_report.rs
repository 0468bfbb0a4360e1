//! Counts the nodes of a model on each device, and what the CPU runs for other devices.

use std::collections::BTreeMap;

use oarlock_core::Runtime;
use oarlock_engine::{FallbackOp, FallbackSummary};
use serde::Serialize;

/// Where nodes run, and which ones fell back to the CPU.
#[derive(Serialize)]
pub struct FallbackReport {
    /// Nodes that the CPU runs because the devices before it have no kernel for them,
    pub nodes: usize,
    /// out of all nodes that need a kernel.
    pub of: usize,
    /// True if the user named the CPU, so that the fallback was asked for.
    pub cpu_named: bool,
    /// Number of nodes on each device.
    pub devices: BTreeMap<String, usize>,
    /// The ops for which the devices before the CPU have no kernel.
    pub ops: Vec<MissingOp>,
    /// Nodes on the CPU that do not count as fallback.
    pub on_purpose: IntendedCpuNodes,
    /// Fallback calls whose shapes became known only during the run.
    pub in_the_run: Vec<FallbackCalls>,
}

/// An op that the CPU runs for other devices.
#[derive(Serialize)]
pub struct MissingOp {
    /// The op, with its domain unless it is that of ONNX.
    pub op: String,
    /// The number of its nodes.
    pub count: usize,
    /// What the first device lacks: any kernel for the `op`, one for the `dtype`, or one for the `operands`.
    pub missing: &'static str,
    /// What the first device says about the call.
    pub reason: String,
    /// The name of the first such node.
    pub first_node: String,
}

/// Nodes placed on the CPU on purpose, by reason.
#[derive(Serialize)]
pub struct IntendedCpuNodes {
    /// They compute shapes or other values that the host reads before it calls a kernel.
    pub shapes: usize,
    /// They process text, which only the host holds.
    pub text: usize,
    /// The copies would take longer than the device saves.
    pub too_small: usize,
}

/// Calls of one op that fell back during the run.
#[derive(Serialize)]
pub struct FallbackCalls {
    /// The op.
    pub op: String,
    /// The device that has no kernel for the calls.
    pub device: String,
    /// The number of calls.
    pub calls: u64,
    /// Bytes copied for them.
    pub bytes: u64,
}

impl FallbackReport {
    /// Adds to a summary of the plan the calls that fell back during runs so far.
    pub fn from_summary(summary: FallbackSummary, runtime: &Runtime) -> Self {
        let calls = runtime.fallback_counts().into_iter().map(|(op, device, count)| FallbackCalls {
            op,
            device,
            calls: count.calls,
            bytes: count.bytes,
        });
        let missing = |op: FallbackOp| {
            let FallbackOp { op, missing, reason, count, first_node } = op;
            MissingOp { op, count, missing: missing.name(), reason, first_node }
        };
        Self {
            nodes: summary.fallback_nodes(),
            of: summary.nodes,
            cpu_named: summary.is_cpu_named,
            on_purpose: IntendedCpuNodes {
                shapes: summary.shape_nodes,
                text: summary.text_nodes,
                too_small: summary.small_nodes,
            },
            devices: summary.nodes_by_device,
            ops: summary.ops.into_iter().map(missing).collect(),
            in_the_run: calls.collect(),
        }
    }
}

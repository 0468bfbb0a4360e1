//! Counts the nodes of a model on each device: a field of reports, and one line if the CPU runs what was meant for another
//! device.

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_core::Runtime;
use oarlock_core::flags::FallbackScope;
use oarlock_engine::{FallbackOp, FallbackSummary, RuntimeValue};
use serde::Serialize;

use super::PreparedModel;
use crate::arguments::{GlobalOptions, ModelArguments};
use crate::output;
use crate::problem::CommandError;

#[derive(Serialize)]
pub(super) struct FallbackReport {
    /// Nodes that the CPU runs because the devices before it have no kernel for them,
    nodes: usize,
    /// out of all nodes that need a kernel.
    of: usize,
    /// True if the user named the CPU, so that the fallback was asked for.
    cpu_named: bool,
    /// Number of nodes on each device.
    devices: BTreeMap<String, usize>,
    /// The ops for which the devices before the CPU have no kernel.
    ops: Vec<MissingOp>,
    /// Nodes on the CPU that do not count as fallback.
    on_purpose: IntendedCpuNodes,
    /// Fallback calls whose shapes became known only during the run.
    in_the_run: Vec<FallbackCalls>,
}

/// An op that the CPU runs for other devices.
#[derive(Serialize)]
struct MissingOp {
    op: String,
    count: usize,
    /// What the first device lacks: any kernel for the `op`, one for the `dtype`, or one for the `operands`.
    missing: &'static str,
    reason: String,
    first_node: String,
}

/// Nodes placed on the CPU on purpose, by reason.
#[derive(Serialize)]
struct IntendedCpuNodes {
    /// They compute shapes or other values that the host reads before it calls a kernel.
    shapes: usize,
    /// They process text, which only the host holds.
    text: usize,
    /// The copies would take longer than the device saves.
    too_small: usize,
}

/// Calls of one op that fell back during the run.
#[derive(Serialize)]
struct FallbackCalls {
    op: String,
    device: String,
    calls: u64,
    /// Bytes copied for them.
    bytes: u64,
}

impl FallbackReport {
    fn from_summary(summary: FallbackSummary, runtime: &Runtime) -> Self {
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

impl PreparedModel {
    /// Counts the nodes on each device, for inputs that the model ran on. Prints a note if the CPU runs nodes for other
    /// devices without being named.
    pub(super) fn report_fallback(
        &self,
        global: &GlobalOptions,
        choice: &ModelArguments,
        inputs: &[RuntimeValue],
    ) -> Result<FallbackReport, CommandError> {
        let summary = self.session.fallback_summary(inputs)?;
        if summary.fallback_nodes() > 0 && !summary.is_cpu_named {
            let explain = format_command("explain", choice);
            output::print_message(
                global.color,
                "note",
                &format!("{summary}; `{explain}` says why for each node"),
                None,
            );
        }
        Ok(FallbackReport::from_summary(summary, &self.core.runtime))
    }

    /// Warns that a run would fail because the flag `kernel_fallback` forbids the CPU to help.
    pub(super) fn warn_about_failing_run(
        &self,
        global: &GlobalOptions,
        inputs: &[RuntimeValue],
    ) -> Result<(), CommandError> {
        let summary = self.session.fallback_summary(inputs)?;
        let is_allowed = summary.is_cpu_named || self.fallback_flag().covers_models();
        if summary.fallback_nodes() > 0 && !is_allowed {
            let note = format!(
                "a run fails, as the flag `kernel_fallback` is `error`: {}",
                summary.to_error().message()
            );
            output::print_message(global.color, "note", &note, None);
        }
        Ok(())
    }

    fn fallback_flag(&self) -> FallbackScope {
        self.core.runtime.flags().kernel_fallback()
    }
}

/// The command line that does `name` with the same model and devices.
fn format_command(name: &str, choice: &ModelArguments) -> String {
    let devices = choice.devices.iter().map(|device| format!(" -d {device}"));
    format!("oarlock {name} {}{}", quote_for_shell(&choice.file), devices.collect::<String>())
}

fn quote_for_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,=@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_read_something_else() {
        let shown = ["a/b-1.onnx", "my model.onnx", "it's"].map(|path| quote_for_shell(Path::new(path)));
        assert_eq!(shown, ["a/b-1.onnx", "'my model.onnx'", r"'it'\''s'"]);
    }
}

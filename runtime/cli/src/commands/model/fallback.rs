//! Notes that the CPU runs nodes that were meant for another device.

use std::path::Path;

use oarlock_core::flags::FallbackScope;
use oarlock_engine::RuntimeValue;
use oarlock_report::fallback_report::FallbackReport;

use super::PreparedModel;
use crate::arguments::{GlobalOptions, ModelArguments};
use crate::output;
use crate::problem::CommandError;

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

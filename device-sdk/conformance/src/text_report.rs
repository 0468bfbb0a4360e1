//! The report for a terminal.

use crate::findings::{NumbersOutcome, SpeedMeasurement};
use crate::report::ConformanceReport;

impl ConformanceReport {
    /// Renders the report as plain text.
    pub fn render_text(&self) -> String {
        let Self { suite, contract, plugin, plugin_version, .. } = self;
        let mut lines =
            vec![format!("conformance suite {suite} on `{plugin}` {plugin_version}, contract {contract}")];
        for profile in &self.profiles {
            let verdict = if profile.passed { "passed" } else { "failed" };
            lines.push(String::new());
            lines.push(format!("{}: {verdict} ({})", profile.name, self.outcome_counts(&profile.name)));
            for result in self.results_for_profile(&profile.name) {
                lines.push(format!("  {:<11}  {}  [{}]", result.outcome.name(), result.name, result.rule));
                lines.extend(result.outcome.message().map(|message| format!("               {message}")));
            }
        }
        if !self.numbers.is_empty() {
            lines.push(String::new());
            lines.push(format!("numbers: {}", self.numbers_summary()));
            let failed = self.numbers.iter().filter(|row| row.outcome == NumbersOutcome::Failed);
            lines.extend(failed.filter_map(|row| Some(format!("  {}", row.message.as_ref()?))));
        }
        if !self.measurements.is_empty() {
            lines.push(String::new());
            let figure = |figure: &SpeedMeasurement| format!("{}: {}", figure.name, figure.text());
            lines.extend(self.measurements.iter().map(figure));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

//! The report of the conformance suite on the terminal, in files and in the manifest.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use oarlock_conformance::{CheckOutcome, CheckResult, ConformanceReport, NumbersOutcome};
use oarlock_host::{ConformanceRecord, Digest, PluginManifest};

use super::plugin_manifest::write_manifest;
use crate::output::CommandOutput;
use crate::output_file;
use crate::problem::CommandError;
use crate::render::print_labeled;

/// The number of wrong kernels that the terminal shows; files have all.
const MAX_SHOWN_KERNELS: usize = 20;

/// The files that a report is written to.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReportFiles<'a> {
    pub(crate) html: Option<&'a Path>,
    pub(crate) junit: Option<&'a Path>,
    pub(crate) json: Option<&'a Path>,
}

impl<'a> ReportFiles<'a> {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'a Path> {
        [self.html, self.junit, self.json].into_iter().flatten()
    }

    pub(crate) fn write_report(&self, report: &ConformanceReport) -> Result<(), CommandError> {
        if let Some(page) = self.html {
            output_file::write_text_file(page, &report.render_html())?;
        }
        if let Some(file) = self.junit {
            output_file::write_text_file(file, &report.render_junit())?;
        }
        if let Some(file) = self.json {
            output_file::write_text_file(file, &json_text(report)?)?;
        }
        Ok(())
    }
}

/// The report as the file of `--report` has it, whose hash a manifest quotes.
fn json_text(report: &ConformanceReport) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(report).map_err(CommandError::new)?;
    Ok(text + "\n")
}

/// Checks that failed or could not run, and kernels that computed something wrong, with their messages.
pub(crate) fn print_failures(report: &ConformanceReport, output: &mut CommandOutput) {
    for (check, message) in report.results.iter().filter_map(failure_message) {
        print_labeled(
            output,
            &format!("      {:<21}", check.rule),
            27,
            &format!("{}: {message}", check.name),
        );
    }
    if !report.numbers.is_empty() {
        print_labeled(output, "      numbers              ", 27, &report.numbers_summary());
    }
    let failed: Vec<_> = report.numbers.iter().filter(|row| row.outcome == NumbersOutcome::Failed).collect();
    for row in failed.iter().take(MAX_SHOWN_KERNELS) {
        let message = row.message.as_deref().unwrap_or_default();
        print_labeled(output, "                           ", 27, message);
    }
    if failed.len() > MAX_SHOWN_KERNELS {
        let text = format!("and {} more; `--html FILE` shows all", failed.len() - MAX_SHOWN_KERNELS);
        print_labeled(output, "                           ", 27, &text);
    }
}

fn failure_message(result: &CheckResult) -> Option<(&CheckResult, &str)> {
    match &result.outcome {
        CheckOutcome::Failed(message) | CheckOutcome::NotRun(message) => Some((result, message.as_str())),
        CheckOutcome::Passed | CheckOutcome::Unsupported(_) | CheckOutcome::ExpectedFailure(_) => None,
    }
}

/// Writes the run into the manifest beside the plugin; returns the record.
pub(crate) fn record_run(file: &Path, report: &ConformanceReport) -> Result<ConformanceRecord, CommandError> {
    let path = PluginManifest::path_beside(file);
    let manifest = PluginManifest::read_manifest(&path)?;
    let mut manifest = manifest.ok_or_else(|| {
        CommandError::new(format!(
            "`{}`: expected a manifest to record the run in, found none",
            path.display()
        ))
        .with_hint("write one with `oarlock plugin manifest FILE --write`")
    })?;
    let record = ConformanceRecord {
        suite: report.suite.clone(),
        passed: report.passed_profiles().into_iter().map(str::to_owned).collect(),
        date: today(),
        report_sha256: Digest::hash_bytes(json_text(report)?.as_bytes()),
    };
    manifest.conformance = Some(record.clone());
    write_manifest(&path, &manifest)?;
    Ok(record)
}

/// The day in UTC, such as `2026-01-31`.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    date_of_day(seconds / 86_400)
}

/// The date of a day since 1970, in the Gregorian calendar. Years are counted from March, so that leap days come last.
fn date_of_day(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_the_dates_of_the_calendar() {
        for (day, date) in [
            (0, "1970-01-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_787, "2026-11-30"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_of_day(day), date);
        }
    }
}

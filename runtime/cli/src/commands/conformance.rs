//! Runs the conformance suite in a child process, so that a plugin that crashes or prints does no harm.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use oarlock_conformance::{ConformanceReport, DEFAULT_TIMEOUT};
use oarlock_host::Host;
use serde::{Deserialize, Serialize};

use crate::arguments::GlobalOptions;
use crate::messages::PluginMessages;
use crate::output::take_standard_output;
use crate::problem::CommandError;
use crate::progress::ProgressLine;
use crate::session::{ChildTask, THIS_PROGRAM, host_options};

/// Bytes kept of what a plugin prints.
const MAX_CAPTURED_BYTES: u64 = 4096;

/// One line of the child's report, as JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SuiteEvent {
    Begins(String),
    Ends(Box<ConformanceReport>),
    /// The suite could not run.
    Fails(String),
}

pub(crate) enum SuiteOutcome {
    Report(Box<ConformanceReport>),
    /// The plugin implements nothing that the suite checks.
    NothingToCheck,
    /// The reason why there is no report.
    Broken(String),
}

/// Starts the child and follows its report.
pub(crate) fn run_suite(
    file: &Path,
    global: &GlobalOptions,
    notes: &mut Vec<String>,
) -> Result<SuiteOutcome, CommandError> {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(ChildTask::Conform.task_argument()).arg(file).stdin(Stdio::null());
    if let Some(config) = &global.config {
        command.env("OARLOCK_CONFIG", std::path::absolute(config).map_err(CommandError::new)?);
    }
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        started.map_err(|error| CommandError::new(format!("the suite could not be started: {error}")))?;
    let printed = child.stderr.take().map(|stream| thread::spawn(move || read_beginning(stream)));
    let events = child.stdout.take().map(BufReader::new);
    let (mut last, mut finding) = (String::new(), None);
    let mut progress = ProgressLine::default();
    for line in events.into_iter().flat_map(BufReader::lines).map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(SuiteEvent::Begins(check)) => {
                progress.show_text(&format!("conformance: {check} …"));
                last = check;
            }
            Ok(SuiteEvent::Ends(report)) => finding = Some(SuiteOutcome::Report(report)),
            Ok(SuiteEvent::Fails(reason)) => finding = Some(SuiteOutcome::Broken(reason)),
            Err(_) => {}
        }
    }
    progress.clear_line();
    let status = child.wait().map_err(CommandError::new)?;
    let printed = printed.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if !printed.is_empty() {
        notes.push(format!(
            "it prints while the suite runs, which a plugin does not (rule R-4): `{}`",
            printed.trim()
        ));
    }
    Ok(match finding {
        Some(finding) => finding,
        None if status.success() => SuiteOutcome::NothingToCheck,
        None => SuiteOutcome::Broken(format!(
            "the plugin ended the process during \"{last}\": {status} (rule R-3)"
        )),
    })
}

/// Keeps the beginning and drains the rest, so that the writer never blocks.
fn read_beginning(mut stream: impl Read) -> String {
    let mut beginning = Vec::new();
    // Ignore read errors: what cannot be read counts as not printed.
    _ = stream.by_ref().take(MAX_CAPTURED_BYTES).read_to_end(&mut beginning);
    _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&beginning).into_owned()
}

/// In the child: loads the one plugin, runs the suite and reports on standard output.
pub(crate) fn run_child(file: &Path) -> ExitCode {
    let outcome = take_standard_output().and_then(|mut answers| {
        let mut tell = |event: &SuiteEvent| {
            let line = serde_json::to_string(event).map_err(io::Error::other)?;
            writeln!(answers, "{line}")
        };
        match collect_report(file, &mut tell) {
            Ok(Some(report)) => tell(&SuiteEvent::Ends(Box::new(report))),
            Ok(None) => Ok(()),
            Err(problem) => tell(&SuiteEvent::Fails(problem.message)),
        }
    });
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect_report(
    file: &Path,
    tell: &mut dyn FnMut(&SuiteEvent) -> io::Result<()>,
) -> Result<Option<ConformanceReport>, CommandError> {
    let global = GlobalOptions::default();
    let mut options = host_options(&global, &PluginMessages::new_silent())?;
    options.paths = vec![file.to_path_buf()];
    let host = Host::start(&options)?;
    let plugin = host.plugins().iter().find(|plugin| plugin.file() == file);
    let plugin =
        plugin.ok_or_else(|| CommandError::new("the host does not load it in a process of its own"))?;
    // If nobody reads the progress, the suite still goes on to its report.
    Ok(plugin
        .check_conformance(DEFAULT_TIMEOUT, &mut |check| _ = tell(&SuiteEvent::Begins(check.to_owned()))))
}

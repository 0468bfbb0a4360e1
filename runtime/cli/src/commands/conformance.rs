//! Runs the conformance suite in a child process, so that a plugin that crashes or prints does no harm.
//!
//! The child is started before this process loads the plugin: a plugin that spoils its process, for instance by a limit on open
//! files, does not keep the suite from starting. The child counts for nothing until it has said how it ended, since a plugin may
//! end the process with any exit code, 0 included.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use oarlock_conformance::{ConformanceReport, ProcessState, SuiteSettings};
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
/// The time that the child may take to end after its report: destructors of a plugin may hang.
const END_PATIENCE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What the child is to do, as JSON on its standard input. Without one, it ends.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct SuiteRequest {
    /// Plugins to load besides the one under test, such as the device that its kernels run on.
    pub(crate) plugins: Vec<PathBuf>,
    /// The plugin's name if it is a layer, which then wraps the others.
    pub(crate) layer: Option<String>,
    pub(crate) settings: SuiteSettings,
}

/// One line of the child's report, as JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SuiteEvent {
    Begins(String),
    Ends(Box<ConformanceReport>),
    /// The plugin brings nothing that can be checked here, for this reason.
    NothingToCheck(String),
    /// The suite could not run.
    Fails(String),
}

pub(crate) enum SuiteOutcome {
    Report(Box<ConformanceReport>),
    /// The plugin brings nothing that can be checked here, for this reason.
    NothingToCheck(String),
    /// The reason why there is no report.
    Broken(String),
}

/// A child process that waits for a request.
pub(crate) struct SuiteChild {
    child: Child,
    requests: Option<ChildStdin>,
    printed: Option<JoinHandle<String>>,
}

impl SuiteChild {
    pub(crate) fn start_child(file: &Path, global: &GlobalOptions) -> Result<Self, CommandError> {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg(ChildTask::Conform.task_argument()).arg(file);
        if let Some(config) = &global.config {
            command.env("OARLOCK_CONFIG", std::path::absolute(config).map_err(CommandError::new)?);
        }
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child =
            started.map_err(|error| CommandError::new(format!("the suite could not be started: {error}")))?;
        let printed = child.stderr.take().map(|stream| thread::spawn(move || read_beginning(stream)));
        Ok(Self { requests: child.stdin.take(), child, printed })
    }

    /// Sends the request and follows the report.
    pub(crate) fn run_suite(
        mut self,
        request: &SuiteRequest,
        notes: &mut Vec<String>,
    ) -> Result<SuiteOutcome, CommandError> {
        let request = serde_json::to_string(request).map_err(CommandError::new)?;
        // A child that has ended already is reported below.
        _ = self.requests.take().map(|mut requests| writeln!(requests, "{request}"));
        let events = self.child.stdout.take().map(BufReader::new);
        let (mut last, mut finding) = ("the start of the suite".to_owned(), None);
        let mut progress = ProgressLine::default();
        for line in events.into_iter().flat_map(BufReader::lines).map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(SuiteEvent::Begins(check)) => {
                    progress.show_text(&format!("conformance: {check} …"));
                    last = check;
                }
                Ok(SuiteEvent::Ends(report)) => finding = Some(SuiteOutcome::Report(report)),
                Ok(SuiteEvent::NothingToCheck(reason)) => {
                    finding = Some(SuiteOutcome::NothingToCheck(reason));
                }
                Ok(SuiteEvent::Fails(reason)) => finding = Some(SuiteOutcome::Broken(reason)),
                Err(_) => {}
            }
        }
        progress.clear_line();
        let status = self.wait_for_end().map_err(CommandError::new)?;
        let printed = self.printed.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if !printed.is_empty() {
            notes.push(format!(
                "it prints while the suite runs, which a plugin does not (rule R-4): `{}`",
                printed.trim()
            ));
        }
        Ok(match (finding, status) {
            (Some(finding), Some(status)) if status.success() => finding,
            (Some(SuiteOutcome::Broken(reason)), _) => SuiteOutcome::Broken(reason),
            (Some(_), Some(status)) => SuiteOutcome::Broken(format!(
                "expected the process to end well after the suite, found {status}: look at destructors and `atexit` (rule R-3)"
            )),
            (Some(_), None) => SuiteOutcome::Broken(format!(
                "expected the process to end within {} s after the suite, found it running: look at destructors, `atexit` and \
                 threads (rule R-3)",
                END_PATIENCE.as_secs()
            )),
            (None, status) => SuiteOutcome::Broken(format!(
                "the plugin ended the process during \"{last}\": {} (rule R-3)",
                status.map_or_else(|| "it closed the report".to_owned(), |status| status.to_string())
            )),
        })
    }

    /// Waits for the child, which has nothing more to say; `None` if it had to be killed.
    fn wait_for_end(&mut self) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        while start.elapsed() < END_PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }
}

impl Drop for SuiteChild {
    fn drop(&mut self) {
        // Both fail if the child has ended, as it should have.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Keeps the beginning and drains the rest, so that the writer never blocks.
fn read_beginning(mut stream: impl Read) -> String {
    let mut beginning = Vec::new();
    // Ignore read errors: what cannot be read counts as not printed.
    _ = stream.by_ref().take(MAX_CAPTURED_BYTES).read_to_end(&mut beginning);
    _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&beginning).into_owned()
}

/// In the child: waits for the request, loads the one plugin, runs the suite and reports on standard output.
pub(crate) fn run_child(file: &Path) -> ExitCode {
    let mut request = String::new();
    if io::stdin().read_line(&mut request).is_err() || request.is_empty() {
        // The plugin was refused before the suite.
        return ExitCode::SUCCESS;
    }
    let outcome = take_standard_output().and_then(|mut answers| {
        let mut tell = |event: &SuiteEvent| {
            let line = serde_json::to_string(event).map_err(io::Error::other)?;
            writeln!(answers, "{line}")
        };
        let request = serde_json::from_str(&request)?;
        let event = run_requested(file, request, &mut tell)
            .unwrap_or_else(|problem| SuiteEvent::Fails(problem.message));
        tell(&event)
    });
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_requested(
    file: &Path,
    mut request: SuiteRequest,
    tell: &mut dyn FnMut(&SuiteEvent) -> io::Result<()>,
) -> Result<SuiteEvent, CommandError> {
    let global = GlobalOptions::default();
    let mut options = host_options(&global, &PluginMessages::new_silent())?;
    options.paths = [file.to_path_buf()].into_iter().chain(request.plugins).collect();
    options.layers = request.layer.into_iter().collect();
    request.settings.process_before = Some(ProcessState::capture());
    let host = Host::start(&options)?;
    let plugin = host.plugins().iter().find(|plugin| plugin.file() == file);
    let plugin =
        plugin.ok_or_else(|| CommandError::new("the host does not load it in a process of its own"))?;
    // If nobody reads the progress, the suite still goes on to its report.
    let mut progress = |check: &str| _ = tell(&SuiteEvent::Begins(check.to_owned()));
    Ok(match plugin.check_conformance(host.plugins(), &request.settings, &mut progress) {
        Ok(report) => SuiteEvent::Ends(Box::new(report)),
        Err(reason) => SuiteEvent::NothingToCheck(reason),
    })
}

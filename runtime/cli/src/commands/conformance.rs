//! Runs the conformance suite on a plugin in a process of its own, so that a plugin that crashes or prints harms nobody.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use oarlock_conformance::{PATIENCE, Report};
use oarlock_host::Host;
use serde::{Deserialize, Serialize};

use crate::arguments::Global;
use crate::messages::Messages;
use crate::output::take_standard_output;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::session::{THIS_PROGRAM, Task, options};

/// The most that is kept of what a plugin prints.
const LONGEST_PRINT: u64 = 4096;

/// A line that the child writes.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum News {
    /// A check begins.
    Begins(String),
    /// The suite is done.
    Ends(Box<Report>),
    /// The suite could not be run.
    Fails(String),
}

/// What became of the suite.
pub(crate) enum Finding {
    Report(Box<Report>),
    /// The plugin brings nothing that the suite has checks for.
    NothingToCheck,
    /// There is no report, for this reason.
    Broken(String),
}

/// Has a child run the suite.
pub(crate) fn run(file: &Path, global: &Global, notes: &mut Vec<String>) -> Result<Finding, Problem> {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(Task::Conform.argument()).arg(file).stdin(Stdio::null());
    if let Some(config) = &global.config {
        command.env("OARLOCK_CONFIG", std::path::absolute(config).map_err(Problem::new)?);
    }
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        started.map_err(|error| Problem::new(format!("the suite could not be started: {error}")))?;
    let printed = child.stderr.take().map(|stream| thread::spawn(move || beginning_of(stream)));
    let news = child.stdout.take().map(BufReader::new);
    let (mut last, mut finding) = (String::new(), None);
    let mut progress = Progress::default();
    for line in news.into_iter().flat_map(BufReader::lines).map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(News::Begins(check)) => {
                progress.show(&format!("conformance: {check} …"));
                last = check;
            }
            Ok(News::Ends(report)) => finding = Some(Finding::Report(report)),
            Ok(News::Fails(reason)) => finding = Some(Finding::Broken(reason)),
            Err(_) => {}
        }
    }
    progress.clear();
    let status = child.wait().map_err(Problem::new)?;
    let printed = printed.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if !printed.is_empty() {
        notes.push(format!(
            "it prints while the suite runs, which a plugin does not (rule R-4): `{}`",
            printed.trim()
        ));
    }
    Ok(match finding {
        Some(finding) => finding,
        None if status.success() => Finding::NothingToCheck,
        None => {
            Finding::Broken(format!("the plugin ended the process during \"{last}\": {status} (rule R-3)"))
        }
    })
}

/// The first of what a stream brings; the rest is read, so that nobody waits, and dropped.
fn beginning_of(mut stream: impl Read) -> String {
    let mut beginning = Vec::new();
    // What cannot be read was not printed.
    _ = stream.by_ref().take(LONGEST_PRINT).read_to_end(&mut beginning);
    _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&beginning).into_owned()
}

/// The child: loads the plugin alone, runs the suite, and tells what it finds.
pub(crate) fn child_main(file: &Path) -> ExitCode {
    let told = take_standard_output().and_then(|mut answers| {
        let mut tell = |news: &News| {
            let line = serde_json::to_string(news).map_err(io::Error::other)?;
            writeln!(answers, "{line}")
        };
        match report(file, &mut tell) {
            Ok(Some(report)) => tell(&News::Ends(Box::new(report))),
            Ok(None) => Ok(()),
            Err(problem) => tell(&News::Fails(problem.message)),
        }
    });
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(file: &Path, tell: &mut dyn FnMut(&News) -> io::Result<()>) -> Result<Option<Report>, Problem> {
    let global = Global::default();
    let mut options = options(&global, &Messages::silent())?;
    options.paths = vec![file.to_path_buf()];
    let host = Host::start(&options)?;
    let plugin = host.plugins().iter().find(|plugin| plugin.file() == file);
    let plugin = plugin.ok_or_else(|| Problem::new("the host does not load it in a process of its own"))?;
    // Somebody who does not listen to progress still gets the report.
    Ok(plugin.check_conformance(PATIENCE, &mut |check| _ = tell(&News::Begins(check.to_owned()))))
}

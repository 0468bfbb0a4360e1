//! The child's side of a probe: loads one plugin, queries it, initializes its devices and shuts it down as a host does. It
//! answers with one line after each of the two steps.
//!
//! The plugin cannot harm the program that requested the probe. The child writes no core dump, its memory, open files and CPU
//! time are limited, it inherits none of the program's open files, and it dies with its parent. Its output goes to standard
//! error; the answers go through a copy of standard output that the plugin does not know.

#![expect(
    unsafe_code,
    reason = "signal handlers are reset by a call of the C library, and inherited files are closed"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use oarlock_conformance::ProcessState;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::foreign_struct::RuleBreach;
use crate::load::{breach_refusal, open_plugin};
use crate::probe::dependencies::libraries_in_process;
use crate::probe::{ProbeRequest, name_by_file};
use crate::services::{PluginServices, SharedServices, SilentLogSink};
use crate::{HostEnvironment, LoadedPlugin, PluginAdapter, PluginInfo, Refusal};

/// The memory that a plugin gets even on a small machine.
const MIN_MEMORY: u64 = 1 << 30;
/// Limit on CPU time in seconds, in case the parent is not there to stop the child.
const MAX_CPU_SECONDS: u64 = 60;
/// Limit on open files.
const MAX_OPEN_FILES: u64 = 256;

/// The progress of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProbeStep {
    /// The plugin answered the query.
    Asked,
    /// Its devices were initialized, as far as possible, and it was shut down.
    Readied,
}

/// A message from the child to its parent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeAnswer {
    /// The token of the request.
    pub(crate) token: String,
    /// The process that answers: if the plugin forks, the forked process may answer too.
    pub(crate) pid: u32,
    pub(crate) step: ProbeStep,
    pub(crate) verdict: Result<PluginInfo, Refusal>,
    /// The files whose code the plugin brought into the process.
    pub(crate) libraries: Vec<String>,
    /// What the plugin changed in the process, each as a sentence.
    #[serde(default)]
    pub(crate) changes: Vec<String>,
}

/// Probes the plugin at `path`, answers on standard output, and ends.
pub(crate) fn probe_plugin_file(path: &Path, adapters: &[PluginAdapter]) -> ExitCode {
    match enter_sandbox().and_then(|(request, answers)| probe_plugin(path, adapters, request, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("`{}`: expected to probe it, found: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Confines the child; returns the request and the file for the answers.
fn enter_sandbox() -> io::Result<(ProbeRequest, File)> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Orphaned descendants of the plugin are reparented to this process, so none escapes, not even after a double fork.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    close_inherited()?;
    let request = serde_json::from_reader(io::stdin().lock())?;
    // Standard input contained the token.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let mut limits = vec![
        (Resource::Core, 0),
        (Resource::Cpu, MAX_CPU_SECONDS),
        // File sizes are not limited: drivers keep device memory in anonymous files.
        (Resource::Nofile, MAX_OPEN_FILES),
    ];
    // Sanitizers map far more memory than they use.
    if oarlock_abi::SANITIZER == oarlock_abi::Sanitizer::NONE {
        limits.push((Resource::Data, memory_limit()));
        limit_address_space(Some(memory_limit()))?;
    }
    for (resource, most) in limits {
        let present = rustix::process::getrlimit(resource);
        let most = present.maximum.map_or(most, |maximum| most.min(maximum));
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // Rust's runtime handles these signals, so a plugin that raises one itself would survive.
        // SAFETY: the process has one thread, and the default action is the one it would have without the runtime.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let answers: OwnedFd = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((request, answers.into()))
}

/// Closes the files that the parent left open besides the standard streams.
fn close_inherited() -> io::Result<()> {
    let listed = std::fs::read_dir("/proc/self/fd")?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let inherited: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // SAFETY: the process has just started and opened nothing yet, so nothing in it owns the file. The listing's own
        // descriptor is among the numbers and already closed; closing it again fails without consequence.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Half of the machine's memory, but at least [`MIN_MEMORY`].
fn memory_limit() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    (bytes / 2).max(MIN_MEMORY)
}

/// Sets the soft limit of the address space, which can be raised again; `None` restores the maximum.
fn limit_address_space(most: Option<u64>) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(Resource::As).maximum;
    let current = match (most, maximum) {
        (Some(most), Some(maximum)) => Some(most.min(maximum)),
        (most, maximum) => most.or(maximum),
    };
    Ok(rustix::process::setrlimit(Resource::As, Rlimit { current, maximum })?)
}

fn probe_plugin(
    path: &Path,
    adapters: &[PluginAdapter],
    request: ProbeRequest,
    answers: File,
) -> io::Result<()> {
    let mut channel = ParentChannel {
        answers,
        token: request.token,
        asked_by: std::process::id(),
        libraries: BTreeSet::new(),
        changes: Vec::new(),
    };
    let before = ProcessState::capture();
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name_by_file(path, &request.options).unwrap_or(&file_name).to_owned();
    let log = Arc::new(SilentLogSink);
    let shared = Arc::new(SharedServices::new("oarlock probe".to_owned(), log, request.options, None));
    let services = PluginServices::new(&shared, &name);
    let opened = open_plugin(path, services.clone(), adapters);
    services.leak_services();
    channel.changes = before.changes(&ProcessState::capture());
    let answer = opened.as_ref().map(|loaded| loaded.checked.info.clone()).map_err(Clone::clone);
    channel.note_libraries(path);
    let answer = channel.send_answer(path, ProbeStep::Asked, answer)?;
    match (opened, answer) {
        (Ok(loaded), Ok(info)) => {
            // Drivers reserve far more address space than they use; the memory limit (`RLIMIT_DATA`) stays in force.
            limit_address_space(None)?;
            let before = ProcessState::capture();
            // Ignore a failure to start: the host starts the plugin again, and reports it.
            let started = LoadedPlugin::start_plugin(path, loaded, &[], &HostEnvironment::from_process());
            channel.note_libraries(path);
            drop(started);
            channel.changes.extend(before.changes(&ProcessState::capture()));
            channel.send_answer(path, ProbeStep::Readied, Ok(info)).map(drop)
        }
        (opened, _) => {
            // The plugin's code, and the data that it refers to, must stay until the process exits.
            std::mem::forget(opened);
            Ok(())
        }
    }
}

/// The channel to the parent.
struct ParentChannel {
    answers: File,
    token: String,
    asked_by: u32,
    libraries: BTreeSet<String>,
    /// What the plugin changed in the process so far.
    changes: Vec<String>,
}

impl ParentChannel {
    /// Notes the libraries that are in the process now; a later answer names them even if the plugin has closed them.
    fn note_libraries(&mut self, plugin: &Path) {
        let files = libraries_in_process(plugin);
        self.libraries.extend(files.into_iter().filter_map(|file| file.into_os_string().into_string().ok()));
    }

    /// Sends the plugin's answer, or a violation of rule R-3 if the plugin forked; returns the answer that was sent.
    fn send_answer(
        &mut self,
        path: &Path,
        step: ProbeStep,
        answer: Result<PluginInfo, Refusal>,
    ) -> io::Result<Result<PluginInfo, Refusal>> {
        let pid = std::process::id();
        let verdict = if pid != self.asked_by || has_children() {
            Err(breach_refusal(
                path,
                &RuleBreach::new("R-3", "a plugin that does not fork", "one that does while it is probed"),
            ))
        } else {
            answer
        };
        let libraries = self.libraries.iter().cloned().collect();
        let changes = self.changes.clone();
        let answer = ProbeAnswer { token: self.token.clone(), pid, step, verdict, libraries, changes };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        self.answers.write_all(&line)?;
        Ok(answer.verdict)
    }
}

/// True if the process has a child, running or not.
fn has_children() -> bool {
    !matches!(rustix::process::wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}

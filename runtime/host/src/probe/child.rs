//! The child's side of probing: loads one plugin, asks it who it is, readies its devices and ends it as a host does, and
//! answers in a line after each of the two steps.
//!
//! Nothing the plugin does here can reach the program that asked. It gets no core dump, limited memory, files and
//! processor time, nothing that the program had open, and dies with its parent. What it prints goes to standard error;
//! the answers go out through a copy of standard output that the plugin does not know.

#![expect(
    unsafe_code,
    reason = "signal handlers are reset by a call of the C library, and inherited files are closed"
)]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::load::foreign_struct::RuleBreach;
use crate::load::{breach_refusal, open_plugin};
use crate::probe::{ProbeRequest, name_by_file};
use crate::services::{PluginServices, SharedServices, SilentLogSink};
use crate::{HostEnvironment, LoadedPlugin, PluginInfo, Refusal};

/// The memory a plugin gets on a machine that has little.
const MIN_MEMORY: u64 = 1 << 30;
/// The most seconds of processor time, should the parent not be there to stop it.
const MAX_CPU_SECONDS: u64 = 60;
/// The most files that are open at once.
const MAX_OPEN_FILES: u64 = 256;

/// How far a probe has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProbeStep {
    /// The plugin was asked who it is.
    Asked,
    /// Its devices were readied, as far as they could be, and it was ended.
    Readied,
}

/// What the child tells its parent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeAnswer {
    /// The one of the request.
    pub(crate) token: String,
    /// Who answers: a plugin that forks would have it said twice.
    pub(crate) pid: u32,
    pub(crate) step: ProbeStep,
    pub(crate) verdict: Result<PluginInfo, Refusal>,
}

/// Runs the hidden command that a program offers for its [`ProbeCommand`](crate::ProbeCommand): probes the plugin at
/// `path`, answers on standard output, and ends.
pub fn probe_child_main(path: &Path) -> ExitCode {
    match enter_sandbox().and_then(|(request, answers)| probe_plugin(path, request, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("`{}`: expected to probe it, found: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Shuts the child in; gives what it is asked and the file to answer to.
fn enter_sandbox() -> io::Result<(ProbeRequest, File)> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Whatever the plugin forks off becomes a child of this process, even if it forks twice, so that it is found.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    close_inherited()?;
    let request = serde_json::from_reader(io::stdin().lock())?;
    // The token is in there.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let mut limits = vec![
        (Resource::Core, 0),
        (Resource::Cpu, MAX_CPU_SECONDS),
        // The size of files is not limited: drivers keep device memory in anonymous ones.
        (Resource::Nofile, MAX_OPEN_FILES),
    ];
    // Sanitizers map far more than they use.
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
        // The run-time library of Rust handles these, and so lets a plugin that raises one itself go on.
        // SAFETY: the process has one thread, and the default action is what it would have without the library.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let answers: OwnedFd = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((request, answers.into()))
}

/// Closes what the parent left open beside the standard streams.
fn close_inherited() -> io::Result<()> {
    let listed = std::fs::read_dir("/proc/self/fd")?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let inherited: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // SAFETY: the process has just started and opened nothing yet, so that nothing in it owns the file. The listing
        // itself is among the numbers and closed already, which makes this an error without consequence.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Half of the machine's memory.
fn memory_limit() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    (bytes / 2).max(MIN_MEMORY)
}

/// Limits the addresses the process may map, in a way that can be taken back; as many as it ever may for `None`.
fn limit_address_space(most: Option<u64>) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(Resource::As).maximum;
    let current = match (most, maximum) {
        (Some(most), Some(maximum)) => Some(most.min(maximum)),
        (most, maximum) => most.or(maximum),
    };
    Ok(rustix::process::setrlimit(Resource::As, Rlimit { current, maximum })?)
}

fn probe_plugin(path: &Path, request: ProbeRequest, answers: File) -> io::Result<()> {
    let mut channel = ParentChannel { answers, token: request.token, asked_by: std::process::id() };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name_by_file(path, &request.options).unwrap_or(&file_name).to_owned();
    let shared =
        SharedServices::new("oarlock probe".to_owned(), Arc::new(SilentLogSink), request.options, None);
    let services = PluginServices::new(&shared, &name);
    let opened = open_plugin(path, services.clone());
    services.leak_services();
    let said = opened.as_ref().map(|loaded| loaded.checked.info.clone()).map_err(Clone::clone);
    let said = channel.send_answer(path, ProbeStep::Asked, said)?;
    match (opened, said) {
        (Ok(loaded), Ok(info)) => {
            // Drivers reserve far more addresses than they use; memory itself stays limited.
            limit_address_space(None)?;
            // What a plugin says that cannot start is for the host to report, which starts it for real.
            _ = LoadedPlugin::start_plugin(path, loaded, &[], &HostEnvironment::from_process());
            channel.send_answer(path, ProbeStep::Readied, Ok(info)).map(drop)
        }
        (opened, _) => {
            // Neither its code nor what it refers to may go before the process does.
            std::mem::forget(opened);
            Ok(())
        }
    }
}

/// The way to the parent.
struct ParentChannel {
    answers: File,
    token: String,
    asked_by: u32,
}

impl ParentChannel {
    /// Answers with what the plugin said, unless it forked; gives what was answered.
    fn send_answer(
        &mut self,
        path: &Path,
        step: ProbeStep,
        said: Result<PluginInfo, Refusal>,
    ) -> io::Result<Result<PluginInfo, Refusal>> {
        let pid = std::process::id();
        let verdict = if pid != self.asked_by || has_children() {
            Err(breach_refusal(
                path,
                &RuleBreach::new("R-3", "a plugin that does not fork", "one that does while it is probed"),
            ))
        } else {
            said
        };
        let answer = ProbeAnswer { token: self.token.clone(), pid, step, verdict };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        self.answers.write_all(&line)?;
        Ok(answer.verdict)
    }
}

/// Whether the process has a child, running or not.
fn has_children() -> bool {
    !matches!(rustix::process::wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}

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

use crate::load::foreign::Breach;
use crate::load::{broken, open};
use crate::probe::{Request, name_by_file};
use crate::services::{Services, Shared, Silent};
use crate::{Environment, Plugin, PluginInfo, Refusal};

/// The memory a plugin gets on a machine that has little.
const LEAST_MEMORY: u64 = 1 << 30;
/// The most seconds of processor time, should the parent not be there to stop it.
const MOST_SECONDS: u64 = 60;
/// The most files that are open at once.
const MOST_FILES: u64 = 256;

/// How far a probe has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// The plugin was asked who it is.
    Asked,
    /// Its devices were readied, as far as they could be, and it was ended.
    Readied,
}

/// What the child tells its parent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The one of the request.
    pub(crate) token: String,
    /// Who answers: a plugin that forks would have it said twice.
    pub(crate) pid: u32,
    pub(crate) step: Step,
    pub(crate) verdict: Result<PluginInfo, Refusal>,
}

/// Runs the hidden command that a program offers for its [`ProbeCommand`](crate::ProbeCommand): probes the plugin at
/// `path`, answers on standard output, and ends.
pub fn probe_child_main(path: &Path) -> ExitCode {
    match prepare().and_then(|(request, answers)| examine(path, request, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("`{}`: expected to probe it, found: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Shuts the child in; gives what it is asked and the file to answer to.
fn prepare() -> io::Result<(Request, File)> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Whatever the plugin forks off becomes a child of this process, even if it forks twice, so that it is found.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    close_inherited()?;
    let request = serde_json::from_reader(io::stdin().lock())?;
    // The token is in there.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let mut limits = vec![
        (Resource::Core, 0),
        (Resource::Cpu, MOST_SECONDS),
        // The size of files is not limited: drivers keep device memory in anonymous ones.
        (Resource::Nofile, MOST_FILES),
    ];
    // Sanitizers map far more than they use.
    if oarlock_abi::SANITIZER == oarlock_abi::Sanitizer::NONE {
        limits.push((Resource::Data, most_memory()));
        limit_addresses(Some(most_memory()))?;
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
fn most_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    (bytes / 2).max(LEAST_MEMORY)
}

/// Limits the addresses the process may map, in a way that can be taken back; as many as it ever may for `None`.
fn limit_addresses(most: Option<u64>) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(Resource::As).maximum;
    let current = match (most, maximum) {
        (Some(most), Some(maximum)) => Some(most.min(maximum)),
        (most, maximum) => most.or(maximum),
    };
    Ok(rustix::process::setrlimit(Resource::As, Rlimit { current, maximum })?)
}

fn examine(path: &Path, request: Request, answers: File) -> io::Result<()> {
    let mut channel = Channel { answers, token: request.token, asked_by: std::process::id() };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name_by_file(path, &request.options).unwrap_or(&file_name).to_owned();
    let shared = Shared::new("oarlock probe".to_owned(), Arc::new(Silent), request.options, None);
    let services = Services::new(&shared, &name);
    let opened = open(path, services.clone());
    services.keep_for_ever();
    let said = opened.as_ref().map(|loaded| loaded.checked.info.clone()).map_err(Clone::clone);
    let said = channel.tell(path, Step::Asked, said)?;
    match (opened, said) {
        (Ok(loaded), Ok(info)) => {
            // Drivers reserve far more addresses than they use; memory itself stays limited.
            limit_addresses(None)?;
            // What a plugin says that cannot start is for the host to report, which starts it for real.
            _ = Plugin::start(path, loaded, &[], &Environment::from_process());
            channel.tell(path, Step::Readied, Ok(info)).map(drop)
        }
        (opened, _) => {
            // Neither its code nor what it refers to may go before the process does.
            std::mem::forget(opened);
            Ok(())
        }
    }
}

/// The way to the parent.
struct Channel {
    answers: File,
    token: String,
    asked_by: u32,
}

impl Channel {
    /// Answers with what the plugin said, unless it forked; gives what was answered.
    fn tell(
        &mut self,
        path: &Path,
        step: Step,
        said: Result<PluginInfo, Refusal>,
    ) -> io::Result<Result<PluginInfo, Refusal>> {
        let pid = std::process::id();
        let verdict = if pid != self.asked_by || has_children() {
            Err(broken(
                path,
                &Breach::new("R-3", "a plugin that does not fork", "one that does while it is probed"),
            ))
        } else {
            said
        };
        let answer = Answer { token: self.token.clone(), pid, step, verdict };
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

//! The child's side of probing: loads one plugin, asks it who it is, and answers in one line.
//!
//! Nothing the plugin does here can reach the program that asked. It gets no core dump, limited memory and processor
//! time, and dies with its parent. What it prints goes to standard error; the answer goes out through a copy of
//! standard output that the plugin does not know.

#![expect(unsafe_code, reason = "signal handlers are reset by a call of the C library")]

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
use crate::services::{Services, Shared, Silent};
use crate::{PluginInfo, Refusal};

/// The most memory a plugin may map before its devices are touched. Sanitizers map far more than they use.
const MOST_MEMORY: u64 = 64 << 30;
/// The most seconds of processor time, should the parent not be there to stop it.
const MOST_SECONDS: u64 = 60;

/// What the child tells its parent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Who answers: a plugin that forks would have it said twice.
    pub(crate) pid: u32,
    pub(crate) verdict: Result<PluginInfo, Refusal>,
}

/// Runs the hidden command that a program offers for its [`ProbeCommand`](crate::ProbeCommand): probes the plugin at
/// `path`, answers on standard output, and ends.
pub fn probe_child_main(path: &Path) -> ExitCode {
    match prepare().and_then(|answers| answer(path, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("`{}`: expected to probe it, found: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Shuts the child in; gives the file to answer to.
fn prepare() -> io::Result<File> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Whatever the plugin forks off becomes a child of this process, even if it forks twice, so that it is found.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut limits = vec![(Resource::Core, 0), (Resource::Cpu, MOST_SECONDS)];
    if oarlock_abi::SANITIZER == oarlock_abi::Sanitizer::NONE {
        limits.push((Resource::As, MOST_MEMORY));
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
    Ok(answers.into())
}

fn answer(path: &Path, mut answers: File) -> io::Result<()> {
    let asked_by = std::process::id();
    let shared = Shared::new("oarlock probe".to_owned(), Arc::new(Silent), Default::default(), None);
    let services = Services::new(&shared, &path.file_name().unwrap_or_default().to_string_lossy());
    let opened = open(path, services.clone());
    let pid = std::process::id();
    let verdict = match opened {
        _ if pid != asked_by || has_children() => Err(broken(
            path,
            &Breach::new("R-3", "a plugin that does not fork", "one that does when it is asked its name"),
        )),
        Ok(loaded) => {
            let info = loaded.checked.info.clone();
            // Neither its code nor what it refers to may go before the process does.
            std::mem::forget(loaded);
            Ok(info)
        }
        Err(refusal) => Err(refusal),
    };
    services.keep_for_ever();
    let mut line = serde_json::to_vec(&Answer { pid, verdict })?;
    line.push(b'\n');
    answers.write_all(&line)
}

/// Whether the process has a child, running or not.
fn has_children() -> bool {
    !matches!(rustix::process::wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}

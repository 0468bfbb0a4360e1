//! Asks a plugin without a manifest who it is, in a child process: a plugin that crashes, hangs or ends the process there
//! is refused here.
//!
//! The child runs in a process group of its own, and is killed, with everything it may have started, as soon as it has
//! answered or its time is up. What it answers is not trusted beyond deciding whether to load the plugin: everything is
//! checked again in this process.

pub(crate) mod cache;
pub(crate) mod child;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use crate::probe::child::Answer;
use crate::{PluginInfo, Reason, Refusal};

/// How long a plugin may take to answer, if the configuration does not say.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The most that is kept of what a child says.
const MOST_OUTPUT: usize = 1 << 20;
/// How long to wait between two looks at whether the child has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// How the program starts itself to probe a plugin: the path is added as the last argument, and the started program
/// calls [`probe_child_main`](crate::probe_child_main) with it.
#[derive(Clone, Debug)]
pub struct ProbeCommand {
    /// The file to run.
    pub program: PathBuf,
    /// What comes before the path.
    pub arguments: Vec<OsString>,
}

/// What a probe found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Who the plugin says it is, or why it is not used.
    pub verdict: Result<PluginInfo, Refusal>,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

impl Probed {
    fn refused(refusal: Refusal) -> Self {
        Self { verdict: Err(refusal), notes: Vec::new() }
    }
}

/// Probes several plugins, as many at once as there are processors.
pub(crate) fn probe_all<T: Sync>(items: &[T], probe: impl Fn(&T) -> Probed + Sync) -> Vec<Probed> {
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(items.len());
    if workers <= 1 {
        return items.iter().map(probe).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, item)) = take(items, &next) {
                    let probed = probe(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, probed));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, probed)| probed).collect()
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, items.get(index)?))
}

/// Probes the plugin at `path`.
pub fn probe(command: &ProbeCommand, path: &Path, timeout: Duration) -> Probed {
    let started = Command::new(&command.program)
        .args(&command.arguments)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    match started.and_then(|child| watch(child, timeout)) {
        Ok(seen) => seen.judge(path, timeout),
        Err(error) => Probed::refused(Refusal::new(
            Reason::ProbeFailed,
            path,
            format!("to start `{}` as the child process that probes plugins", command.program.display()),
            error.to_string(),
            "give the plugin a manifest, or correct what keeps the program from starting itself",
        )),
    }
}

/// What became of a child.
struct Seen {
    pid: u32,
    answers: Vec<u8>,
    printed: Vec<u8>,
    /// How it ended of itself; `None` when it was ended, for its time was up or it had answered.
    ended: Option<Ended>,
}

/// How a child ended of itself.
#[derive(Clone, Copy)]
enum Ended {
    Signal(i32),
    Status(i32),
}

/// Reads what the child says until it has answered, has ended or its time is up; then ends it and all it started.
fn watch(mut child: Child, timeout: Duration) -> io::Result<Seen> {
    let mut seen = Seen { pid: child.id(), answers: Vec::new(), printed: Vec::new(), ended: None };
    let watched = listen(&mut child, &mut seen, Instant::now() + timeout);
    end(&mut child);
    watched.map(|()| seen)
}

fn listen(child: &mut Child, seen: &mut Seen, deadline: Instant) -> io::Result<()> {
    let (Some(answers), Some(printed)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("a child without its pipes"));
    };
    let mut answers = Pipe::new(answers.into())?;
    let mut printed = Pipe::new(printed.into())?;
    loop {
        // The child is looked at before the pipes: what it said before it ended is then in them.
        let ended = ended(child)?;
        printed.drain(&mut seen.printed)?;
        answers.drain(&mut seen.answers)?;
        if seen.answers.contains(&b'\n') {
            // What it printed before it answered was in the pipe before the answer was.
            return printed.drain(&mut seen.printed);
        }
        if ended.is_some() {
            seen.ended = ended;
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let mut open: Vec<PollFd<'_>> = [&answers, &printed].into_iter().filter_map(Pipe::poll).collect();
        let pause = Timespec::try_from(left.min(PAUSE)).map_err(|_| io::Error::other("no such time"))?;
        if open.is_empty() {
            std::thread::sleep(left.min(PAUSE));
        } else {
            poll(&mut open, Some(&pause))?;
        }
    }
}

/// Whether and how the child has ended. It is not waited for yet, so that its number stays its own.
fn ended(child: &Child) -> io::Result<Option<Ended>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), options)?;
    Ok(status.map(|status| match status.terminating_signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Status(status.exit_status().unwrap_or_default()),
    }))
}

/// Ends the child and everything it started, then waits for it. That something is gone already is no failure.
fn end(child: &mut Child) {
    let pid = Pid::from_child(child);
    let mut started = Vec::new();
    descendants(pid.as_raw_pid(), &mut started);
    _ = rustix::process::kill_process_group(pid, Signal::KILL);
    for pid in started.into_iter().filter_map(Pid::from_raw) {
        _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    _ = child.wait();
}

/// Lists the children of a process, and theirs: one that left the process group is found here.
fn descendants(pid: i32, found: &mut Vec<i32>) {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            if !found.contains(&child) {
                found.push(child);
                descendants(child, found);
            }
        }
    }
}

/// A pipe from the child that is read without waiting.
struct Pipe {
    file: File,
    is_open: bool,
}

impl Pipe {
    fn new(file: OwnedFd) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&file, OFlags::NONBLOCK)?;
        Ok(Self { file: file.into(), is_open: true })
    }

    fn poll(&self) -> Option<PollFd<'_>> {
        self.is_open.then(|| PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN))
    }

    /// Reads what is there. What is more than is kept is read and dropped, so that the child does not wait for ever.
    fn drain(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = [0; 8192];
        // A child that never stops printing must not keep the host here.
        for _ in 0..64 {
            match self.file.read(&mut buffer) {
                Ok(0) => {
                    self.is_open = false;
                    return Ok(());
                }
                Ok(count) => {
                    let room = MOST_OUTPUT - into.len().min(MOST_OUTPUT);
                    into.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Seen {
    fn judge(self, path: &Path, timeout: Duration) -> Probed {
        let mut notes = Vec::new();
        if let Some(excerpt) = self.excerpt() {
            notes.push(format!(
                "it printed `{excerpt}` while it was probed, although plugins have a log (rule R-4)"
            ));
        }
        let line =
            self.answers.split_inclusive(|byte| *byte == b'\n').next().filter(|line| line.ends_with(b"\n"));
        let verdict = match line.map(serde_json::from_slice::<Answer>) {
            Some(Ok(answer)) if answer.pid == self.pid => answer.verdict,
            Some(Ok(_)) => Err(Refusal::new(
                Reason::ContractBroken,
                path,
                "a plugin that does not fork (rule R-3)",
                "an answer from a process it started",
                "update the plugin, or tell its vendor",
            )),
            Some(Err(_)) => Err(Refusal::new(
                Reason::ProbeFailed,
                path,
                "an answer from the child process that probes plugins",
                "something else",
                "give the plugin a manifest",
            )),
            None => Err(self.without_an_answer(path, timeout)),
        };
        Probed { verdict, notes }
    }

    fn without_an_answer(&self, path: &Path, timeout: Duration) -> Refusal {
        let expected = "a plugin that says who it is";
        let remedy = "update the plugin, or tell its vendor";
        let last_words =
            self.excerpt().map_or(String::new(), |excerpt| format!(", after printing `{excerpt}`"));
        match self.ended {
            Some(Ended::Signal(signal)) => {
                let found = format!("a crash with {}{last_words}", signal_name(signal));
                Refusal::new(Reason::ProbeCrashed, path, expected, found, remedy)
            }
            Some(Ended::Status(status)) => {
                let found = format!("that it ended the process with status {status} (rule R-3){last_words}");
                Refusal::new(Reason::ProbeCrashed, path, expected, found, remedy)
            }
            None => {
                let found = format!("no answer within {} ms", timeout.as_millis());
                let remedy =
                    "update the plugin, or allow it more time with `probe_timeout_ms` under `[plugins]`";
                Refusal::new(Reason::ProbeTimedOut, path, expected, found, remedy)
            }
        }
    }

    /// The beginning of what the plugin printed.
    fn excerpt(&self) -> Option<String> {
        const LONGEST: usize = 80;
        let text = String::from_utf8_lossy(&self.printed);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let plain: String =
            line.chars().take(LONGEST).map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect();
        Some(plain)
    }
}

fn signal_name(number: i32) -> String {
    const NAMES: [(i32, &str); 9] = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (24, "SIGXCPU"),
        (31, "SIGSYS"),
    ];
    let name = NAMES.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

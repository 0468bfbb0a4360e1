//! The parent's side of a probe: reads from the child until it has answered, exited or timed out, then kills it and all
//! of its descendants.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::probe::child::ProbeAnswer;

/// Limit on the output of a child that is kept.
const MAX_OUTPUT: usize = 1 << 20;
/// The interval between two checks for the exit of the child.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The observed behavior of a child.
pub(crate) struct ChildObservation {
    pub(crate) pid: u32,
    /// The answers with the right token, in order.
    pub(crate) answers: Vec<ProbeAnswer>,
    pub(crate) printed: Vec<u8>,
    /// The exit of the child; `None` if it was killed because it had timed out or was refused.
    pub(crate) ended: Option<ChildExit>,
    /// True if it got its time a second time, because the first was not enough.
    pub(crate) is_slow: bool,
}

/// The exit of a child that was not killed.
#[derive(Clone, Copy)]
pub(crate) enum ChildExit {
    Signal(i32),
    Status(i32),
}

impl ChildObservation {
    /// True if the plugin is refused whatever the child does next.
    fn is_refused(&self) -> bool {
        self.answers.iter().any(|answer| answer.pid != self.pid || answer.verdict.is_err())
    }

    /// Moves complete lines out of `heard`. Lines that are not answers are output of the plugin and are dropped.
    fn take_answers(&mut self, heard: &mut Vec<u8>, token: &str) {
        let Some(end) = heard.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = heard.drain(..=end).collect();
        let answers = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        self.answers.extend(answers.filter(|answer: &ProbeAnswer| answer.token == token));
    }
}

/// Reads the child's output until it was refused, has exited or timed out; then kills it and all of its descendants. Each step may
/// take `timeout`, and one of them once more.
pub(crate) fn watch_child(
    mut child: Child,
    token: String,
    timeout: Duration,
) -> io::Result<ChildObservation> {
    let mut seen = ChildObservation {
        pid: child.id(),
        answers: Vec::new(),
        printed: Vec::new(),
        ended: None,
        is_slow: false,
    };
    let watched = listen_to_child(&mut child, &mut seen, &token, timeout);
    kill_child(&mut child);
    watched.map(|()| seen)
}

fn listen_to_child(
    child: &mut Child,
    seen: &mut ChildObservation,
    token: &str,
    timeout: Duration,
) -> io::Result<()> {
    let (Some(answers), Some(printed)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("a child without its pipes"));
    };
    let mut answers = ChildPipe::new(answers.into())?;
    let mut printed = ChildPipe::new(printed.into())?;
    let mut heard = Vec::new();
    let mut deadline = Instant::now() + timeout;
    loop {
        // Check the exit before the pipes: after it, everything that the child wrote is in the pipes.
        let ended = child_exit(child)?;
        printed.drain_into(&mut seen.printed)?;
        answers.drain_into(&mut heard)?;
        let answered = seen.answers.len();
        seen.take_answers(&mut heard, token);
        if seen.is_refused() {
            // The output that the child printed before its answer is already in the pipe.
            return printed.drain_into(&mut seen.printed);
        }
        if ended.is_some() {
            seen.ended = ended;
            return Ok(());
        }
        // Each step has the same time, and so has the end of the process after the last one.
        if seen.answers.len() > answered {
            deadline = Instant::now() + timeout;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if seen.is_slow {
                return Ok(());
            }
            // The first start of a driver may take long. A plugin that hangs costs its time once more, and is then cached.
            seen.is_slow = true;
            deadline += timeout;
            continue;
        }
        let mut open: Vec<PollFd<'_>> =
            [&answers, &printed].into_iter().filter_map(ChildPipe::poll_descriptor).collect();
        let pause =
            Timespec::try_from(left.min(POLL_INTERVAL)).map_err(|_| io::Error::other("no such time"))?;
        if open.is_empty() {
            std::thread::sleep(left.min(POLL_INTERVAL));
        } else {
            poll(&mut open, Some(&pause))?;
        }
    }
}

/// The exit of the child, if it has ended. It is not reaped yet, so its pid cannot be reused.
fn child_exit(child: &Child) -> io::Result<Option<ChildExit>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), options)?;
    Ok(status.map(|status| match status.terminating_signal() {
        Some(signal) => ChildExit::Signal(signal),
        None => ChildExit::Status(status.exit_status().unwrap_or_default()),
    }))
}

/// Kills the child and all of its descendants, then reaps it. Processes that have already exited are ignored.
fn kill_child(child: &mut Child) {
    let pid = Pid::from_child(child);
    let mut started = Vec::new();
    collect_descendants(pid.as_raw_pid(), &mut started);
    _ = rustix::process::kill_process_group(pid, Signal::KILL);
    for pid in started.into_iter().filter_map(Pid::from_raw) {
        _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    _ = child.wait();
}

/// Collects all descendants of a process, including those that left the process group.
fn collect_descendants(pid: i32, found: &mut Vec<i32>) {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            if !found.contains(&child) {
                found.push(child);
                collect_descendants(child, found);
            }
        }
    }
}

/// A pipe from the child with non-blocking reads.
struct ChildPipe {
    file: File,
    is_open: bool,
}

impl ChildPipe {
    fn new(file: OwnedFd) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&file, OFlags::NONBLOCK)?;
        Ok(Self { file: file.into(), is_open: true })
    }

    fn poll_descriptor(&self) -> Option<PollFd<'_>> {
        self.is_open.then(|| PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN))
    }

    /// Reads what is available. Excess output is read and dropped, so that the child does not block.
    fn drain_into(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = [0; 8192];
        // A child that never stops printing must not block the host here.
        for _ in 0..64 {
            match self.file.read(&mut buffer) {
                Ok(0) => {
                    self.is_open = false;
                    return Ok(());
                }
                Ok(count) => {
                    let room = MAX_OUTPUT - into.len().min(MAX_OUTPUT);
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

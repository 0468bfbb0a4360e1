//! Whether the child is alive, and why not.

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use oarlock_abi as abi;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::wire::failure::WireFailure;
use crate::wire::generated::slot_name;

/// The process of one isolated plugin.
#[derive(Debug)]
pub(crate) struct ChildLife {
    /// The name of the plugin, for messages.
    plugin: String,
    pid: u32,
    /// Unlike its number, the descriptor never means another process.
    process: OwnedFd,
    is_lost: AtomicBool,
    /// Why the host ended the process.
    verdict: OnceLock<String>,
    /// How the process ended.
    end: OnceLock<String>,
    /// The slot that was called last, on any thread.
    last_slot: AtomicU32,
}

impl ChildLife {
    pub(crate) fn new(plugin: String, pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number
            .ok_or_else(|| io::Error::other(format!("expected the number of a process, found {pid}")))?;
        Ok(Self {
            plugin,
            pid,
            process: rustix::process::pidfd_open(number, PidfdFlags::empty())?,
            is_lost: AtomicBool::new(false),
            verdict: OnceLock::new(),
            end: OnceLock::new(),
            last_slot: AtomicU32::new(0),
        })
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.pid
    }

    pub(crate) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(crate) fn note_slot(&self, slot: u32) {
        self.last_slot.store(slot, Ordering::Relaxed);
    }

    /// Ends the process for a reason; the first reason counts.
    pub(crate) fn condemn(&self, reason: impl FnOnce() -> String) {
        self.verdict.get_or_init(reason);
        self.kill();
    }

    /// Ends the process. Once it has ended already, this does nothing.
    pub(crate) fn kill(&self) {
        _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
    }

    /// Records the end of the process, after it has ended.
    pub(crate) fn note_end(&self, status: io::Result<ExitStatus>) {
        self.end.get_or_init(|| describe_end(status));
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// How the process ended, in words that follow "found".
    pub(crate) fn describe_loss(&self) -> String {
        let mut text = format!(
            "process {}, which {}",
            self.pid,
            self.end.get().map_or("does not answer", String::as_str)
        );
        if let Some(verdict) = self.verdict.get() {
            _ = write!(text, " by this program, because {verdict}");
        }
        text
    }

    /// The failure of a call that the lost process cannot answer.
    pub(crate) fn lost_failure(&self, slot: u32) -> WireFailure {
        let (called, last) = (slot_name(slot), slot_name(self.last_slot.load(Ordering::Relaxed)));
        let mut message = format!(
            "expected the isolated plugin `{}` to answer `{called}`, found {}",
            self.plugin,
            self.describe_loss()
        );
        if last != called {
            _ = write!(message, "; the last call before was `{last}`");
        }
        message.push_str("; start the plugin again to use its devices");
        WireFailure {
            bits: abi::ErrorFlags::DEVICE_LOST,
            ..WireFailure::new(abi::Code::UNAVAILABLE, message)
        }
    }
}

fn describe_end(status: io::Result<ExitStatus>) -> String {
    match status.map(|status| (status.signal(), status.code())) {
        Ok((Some(signal), _)) => match signal_name(signal) {
            Some(name) => format!("was ended with signal {signal} ({name})"),
            None => format!("was ended with signal {signal}"),
        },
        Ok((None, Some(code))) => format!("ended itself with exit code {code}"),
        Ok((None, None)) => "ended".to_owned(),
        Err(error) => format!("ended in a way that cannot be told: {error}"),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGXCPU => "SIGXCPU",
        _ => return None,
    })
}

//! Runs the command in a child process and watches it, so that a plugin that kills the command is still named.
//!
//! A signal handler in the command itself would see only crashes, and only on threads that have stack left. From outside
//! every end is visible, including `exit`; the exit code stays one that the help explains, and no unsafe code is needed. The
//! price is starting a process that loads nothing, so only commands that run code of external plugins pay it.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::OnceLock;

use oarlock_host::sanitize_text;
use rustix::io::FdFlags;
use rustix::process::Signal;

use crate::CommandVerdict;
use crate::problem::CommandError;
use crate::session::{ChildTask, THIS_PROGRAM};

/// The first status that the command sends.
const LOADING_STATUS: &str = "the plugins were loaded";
/// Sent when the work is done. An end without it is a crash, whatever the exit code.
const DONE_STATUS: &str = "the program ended";

/// The exit code of a child whose program could not be started, as in shells. The command itself never exits with it.
const FAILED_START_CODE: i32 = 127;

/// The write end of the pipe to the parent; empty in an unwatched command.
static STATUS_PIPE: OnceLock<File> = OnceLock::new();

/// Runs the command in a child that writes the output. The parent takes over its exit code and reports what a killed child no
/// longer can.
pub(crate) fn watch_command(arguments: impl Iterator<Item = OsString>) -> CommandVerdict {
    let failed = |error: io::Error| {
        CommandError::new(format!("the process of the command could not be started: {error}"))
    };
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .and_then(|(reader, writer)| {
            rustix::io::ioctl_fionbio(&reader, true)?;
            // The child needs all three standard streams for the user, so it inherits the pipe as a fourth descriptor.
            rustix::io::fcntl_setfd(&writer, FdFlags::empty())?;
            Ok((reader, writer))
        })
        .map_err(|error| failed(error.into()))?;
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(ChildTask::Watched.task_argument()).arg(writer.as_raw_fd().to_string()).args(arguments);
    let mut child = command.spawn().map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    let mut lines = Vec::new();
    // The child has ended, so all its messages are in the pipe. Read errors are ignored: a process that a plugin left behind
    // may still hold the write end.
    _ = File::from(reader).read_to_end(&mut lines);
    let lines = String::from_utf8_lossy(&lines);
    let doing = lines.lines().last();
    match (status.code(), doing) {
        // In an emulator, a failed start may look like a program that ended at once.
        (Some(FAILED_START_CODE), None) => {
            let problem = CommandError::new(
                "the process of the command could not be started: this program could not run itself",
            );
            Err(problem.with_hint(
                "an emulator such as qemu-user starts further processes only if the kernel knows the architecture \
                 (`binfmt_misc`)",
            ))
        }
        (Some(_), Some(DONE_STATUS) | None) => Ok(status.success()),
        (_, doing) => {
            let doing = doing.unwrap_or(LOADING_STATUS);
            let problem = CommandError::new(format!("the process was ended while {doing}: {status}"));
            Err(problem.with_hint("try that plugin in a process of its own with `oarlock plugin check FILE`"))
        }
    }
}

/// In the child: opens the inherited descriptor whose number is `way`.
pub(crate) fn open_status_pipe(writer: &OsStr) {
    let number = writer.to_str().and_then(|writer| writer.parse::<u32>().ok());
    let file = number.map(|number| format!("/proc/self/fd/{number}"));
    if let Some(Ok(file)) = file.map(|file| OpenOptions::new().write(true).open(file)) {
        _ = STATUS_PIPE.set(file);
    }
    // Killing the parent must stop the child too.
    _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    send_status(LOADING_STATUS);
}

pub(crate) fn is_watched() -> bool {
    STATUS_PIPE.get().is_some()
}

/// Tells the watching parent what is about to happen.
pub(crate) fn send_status(doing: &str) {
    if let Some(mut writer) = STATUS_PIPE.get() {
        // A parent that is gone must not stop the work.
        _ = writer.write_all(format!("{}\n", sanitize_text(doing)).as_bytes());
    }
}

pub(crate) fn send_done() {
    send_status(DONE_STATUS);
}

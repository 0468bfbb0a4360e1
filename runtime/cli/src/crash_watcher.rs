//! Keeps an eye on a command from another process: a plugin that takes the command down is named all the same.
//!
//! A handler of signals in the command itself would see crashes only, on threads that have a stack left. From outside
//! every end is seen, that by `exit` too, the exit code stays one that the help explains, and none of it is unsafe. It costs the
//! start of a process that loads nothing, so it is done for commands that run the code of plugins which are not part of
//! this program.

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

/// What the command tells first.
const LOADING_STATUS: &str = "the plugins were loaded";
/// What it tells when its work is done, so that an end before that is told apart whatever the exit code.
const DONE_STATUS: &str = "the program ended";

/// The way on which the command tells what it does; none where nobody watches.
static STATUS_PIPE: OnceLock<File> = OnceLock::new();

/// Runs the command in a child, which writes the output and ends as this process then does. This one only adds what a
/// child that was taken down cannot say any more.
pub(crate) fn watch_command(arguments: impl Iterator<Item = OsString>) -> CommandVerdict {
    let failed = |error: io::Error| {
        CommandError::new(format!("the process of the command could not be started: {error}"))
    };
    let (news, way) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .and_then(|(news, way)| {
            rustix::io::ioctl_fionbio(&news, true)?;
            // All three standard streams are the user's, so the child inherits this one beside them.
            rustix::io::fcntl_setfd(&way, FdFlags::empty())?;
            Ok((news, way))
        })
        .map_err(|error| failed(error.into()))?;
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(ChildTask::Watched.task_argument()).arg(way.as_raw_fd().to_string()).args(arguments);
    let mut child = command.spawn().map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    let mut told = Vec::new();
    // What was told is in the pipe, and whatever there is counts; a process that a plugin left behind may hold the other end.
    _ = File::from(news).read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told);
    let doing = told.lines().last();
    match (status.code(), doing) {
        (Some(_), Some(DONE_STATUS) | None) => Ok(status.success()),
        (_, doing) => {
            let doing = doing.unwrap_or(LOADING_STATUS);
            let problem = CommandError::new(format!("the process was ended while {doing}: {status}"));
            Err(problem.with_hint("try that plugin in a process of its own with `oarlock plugin check FILE`"))
        }
    }
}

/// In the child: takes the way that the parent opened, of which this is the number.
pub(crate) fn open_status_pipe(way: &OsStr) {
    let number = way.to_str().and_then(|way| way.parse::<u32>().ok());
    let file = number.map(|number| format!("/proc/self/fd/{number}"));
    if let Some(Ok(file)) = file.map(|file| OpenOptions::new().write(true).open(file)) {
        _ = STATUS_PIPE.set(file);
    }
    // Whoever ends the process that watches means this one.
    _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    send_status(LOADING_STATUS);
}

/// Whether somebody watches.
pub(crate) fn is_watched() -> bool {
    STATUS_PIPE.get().is_some()
}

/// Tells whoever watches what is about to be done.
pub(crate) fn send_status(doing: &str) {
    if let Some(mut way) = STATUS_PIPE.get() {
        // Nobody listening is no reason to stop.
        _ = way.write_all(format!("{}\n", sanitize_text(doing)).as_bytes());
    }
}

/// Tells whoever watches that everything is done.
pub(crate) fn send_done() {
    send_status(DONE_STATUS);
}

//! Keeps an eye on the doctor from another process: a plugin that takes the doctor down is named all the same.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};

use crate::Verdict;
use crate::problem::Problem;
use crate::session::{THIS_PROGRAM, Task};

/// Runs the doctor in a child, which writes the output and ends as this process then does. This one only adds what a child
/// that was taken down cannot say any more.
pub(crate) fn watch(arguments: impl Iterator<Item = OsString>) -> Verdict {
    let failed = |error: io::Error| Problem::new(format!("the doctor could not be started: {error}"));
    let (news, way_to_tell) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut command = Command::new(THIS_PROGRAM);
    // The doctor reads nothing, so its standard input is free to be the way on which it tells what it does.
    command.arg(Task::Watched.argument()).args(arguments).stdin(Stdio::from(way_to_tell));
    let mut child = command.spawn().map_err(failed)?;
    // The command still holds an end of the pipe.
    drop(command);
    let mut told = String::new();
    // Whatever was told counts, even if the rest cannot be read.
    _ = File::from(news).read_to_string(&mut told);
    let status = child.wait().map_err(failed)?;
    if status.code().is_some() {
        return Ok(status.success());
    }
    let doing = told.lines().last().unwrap_or("the plugins were loaded");
    let problem = Problem::new(format!("the process was ended by a plugin while {doing}: {status}"));
    Err(problem.hint("try that plugin in a process of its own with `oarlock plugin check FILE`"))
}

/// Tells whoever watches what is about to be done.
pub(crate) fn tell(doing: &str) {
    // Nobody watching is no reason to stop.
    _ = rustix::io::write(io::stdin(), format!("{doing}\n").as_bytes());
}

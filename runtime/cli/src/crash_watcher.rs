//! Runs the command in a child process and watches it, so that a plugin that ends the command or makes it hang is named.
//!
//! A signal handler in the command itself would see only crashes, and only on threads that have stack left. From outside
//! every end is visible, including `exit`; the exit code stays one that the help explains, and no unsafe code is needed. The
//! price is starting a process that loads nothing, so only commands that run code of external plugins pay it.
//!
//! A plugin that fails before the command has written anything is left out of a second start, as if it had been refused. One that
//! fails when all is said only gets a warning.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use oarlock_host::{FailedStart, PluginPhase, START_TIMEOUT, StartFault, sanitize_text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::arguments::GlobalOptions;
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::session::{ChildTask, THIS_PROGRAM};
use crate::watched_child::{ChildMessage, PhaseRecord, WatchOrder};
use crate::{CommandVerdict, commands};

/// The exit code of a child whose program could not be started, as in shells. The command itself never exits with it.
const FAILED_START_CODE: i32 = 127;
/// The longest wait without a look at the child. If the whole process group was stopped meanwhile, this is what counts.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// The same where the kernel cannot report the end of a child as an event.
const WAIT_WITHOUT_EVENT: Duration = Duration::from_millis(20);

/// Runs the command in a child that writes the output. The parent takes over its exit code and reports what a child that is gone
/// no longer can.
pub(crate) fn watch_command(arguments: &[OsString], global: &GlobalOptions) -> CommandVerdict {
    let color = global.color;
    let mut blamed = BlamedPlugins::default();
    loop {
        let watched =
            WatchedChild::start_child(arguments, &blamed.failed).and_then(WatchedChild::watch_child);
        let watched = watched.map_err(|error| {
            CommandError::new(format!("the process of the command could not be started: {error}"))
        })?;
        match watched.into_ending() {
            ChildEnding::Verdict(is_success) => return Ok(is_success),
            ChildEnding::LateFault { is_success, message } => {
                output::print_message(color, "warning", &message, None);
                return Ok(is_success);
            }
            ChildEnding::FailedStart { plugin, layers } => match blamed.blame_plugin(&plugin, layers) {
                Some(message) => output::print_message(color, "warning", &message, None),
                // A plugin that was left out fails all the same: it is part of the program.
                None => {
                    let problem = broken_phase(&plugin.file.to_string_lossy(), plugin.phase, plugin.fault);
                    return Err(answer_problem(problem, global));
                }
            },
            ChildEnding::Broken { problem, has_written: false } => {
                return Err(answer_problem(problem, global));
            }
            ChildEnding::Broken { problem, has_written: true } => return Err(problem),
        }
    }
}

/// The plugins that later starts of the command leave out.
#[derive(Default)]
struct BlamedPlugins {
    failed: Vec<FailedStart>,
    /// Pairs of a plugin and a layer through which it was called when it failed.
    suspects: Vec<(PathBuf, PathBuf)>,
}

impl BlamedPlugins {
    /// Leaves a plugin out of the next start, and says so. If it was called through layers, they are left out first: only a plugin
    /// that fails without them is to blame itself. `None` if nothing is left to leave out.
    fn blame_plugin(&mut self, plugin: &FailedStart, layers: Vec<PathBuf>) -> Option<String> {
        let FailedStart { file, phase, fault } = plugin;
        if !layers.is_empty() {
            let names: Vec<String> = layers.iter().map(|layer| format!("`{}`", layer.display())).collect();
            let verb = if names.len() == 1 { "is" } else { "are" };
            for layer in layers {
                self.suspects.push((file.clone(), layer.clone()));
                self.failed.push(FailedStart { file: layer, phase: PluginPhase::Wrap, fault: *fault });
            }
            return Some(format!(
                "{} {verb} left out: expected a layer that passes calls on, found {fault} in a call of `{}` through it",
                names.join(", "),
                file.display()
            ));
        }
        if self.failed.iter().any(|known| known.file == *file) {
            return None;
        }
        let is_cleared =
            |known: &FailedStart| self.suspects.iter().any(|(of, layer)| of == file && *layer == known.file);
        let had = self.failed.len();
        self.failed.retain(|known| !is_cleared(known));
        let again = if self.failed.len() < had { "; the layers around it are used again" } else { "" };
        self.failed.push(plugin.clone());
        Some(format!(
            "`{}` is left out: expected a plugin that starts, found {fault} while {phase}{again}",
            file.display()
        ))
    }
}

/// Answers a program that asked for JSON as the command itself does when it fails.
fn answer_problem(problem: CommandError, global: &GlobalOptions) -> CommandError {
    if global.json
        && let Ok(mut output) = CommandOutput::capture_stdout(global.color)
    {
        // If the JSON cannot be written, the original error is still the one to report.
        _ = commands::print_json(&mut output, &serde_json::json!({ "error": problem }));
        _ = output.finish();
    }
    problem
}

fn broken_phase(file: &str, phase: PluginPhase, fault: StartFault) -> CommandError {
    let message = format!("the process was ended by `{file}`: {fault} while {phase}");
    CommandError::new(message).with_hint(format!(
        "try it in a process of its own with `oarlock plugin check {file}`, or leave it out with `--without {file}`"
    ))
}

fn broken_command(doing: &str, how: &str) -> CommandError {
    CommandError::new(format!("the process was ended while {doing}: {how}"))
        .with_hint("try that plugin in a process of its own with `oarlock plugin check FILE`")
}

/// How a child ended.
enum ChildEnding {
    /// It said so itself.
    Verdict(bool),
    /// A plugin took it along after it had said all.
    LateFault { is_success: bool, message: String },
    /// A plugin took it along before it wrote anything, perhaps in a layer around it.
    FailedStart { plugin: FailedStart, layers: Vec<PathBuf> },
    /// It ended otherwise.
    Broken { problem: CommandError, has_written: bool },
}

struct WatchedChild {
    child: Child,
    pipe: OwnedFd,
    /// The beginning of a message whose end is not there yet.
    heard: Vec<u8>,
    /// What the child is doing, if it said so.
    doing: Option<String>,
    /// The phases that have begun and not ended, the innermost last.
    phases: Vec<PhaseRecord>,
    has_written: bool,
    verdict: Option<bool>,
    is_done: bool,
    /// The time since the last message, as far as it counts.
    waited: Duration,
    status: Option<ExitStatus>,
    /// The limit in milliseconds that the child exceeded.
    exceeded: Option<u64>,
}

impl WatchedChild {
    fn start_child(arguments: &[OsString], failed: &[FailedStart]) -> io::Result<Self> {
        let (pipe, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        // The child needs all three standard streams for the user, so it inherits the pipe as a fourth descriptor.
        rustix::io::fcntl_setfd(&writer, FdFlags::empty())?;
        let order = serde_json::to_string(&WatchOrder::new(writer.as_raw_fd(), failed))?;
        let mut command = Command::new(THIS_PROGRAM);
        command.arg(ChildTask::Watched.task_argument()).arg(order).args(arguments);
        Ok(Self {
            child: command.spawn()?,
            pipe,
            heard: Vec::new(),
            doing: None,
            phases: Vec::new(),
            has_written: false,
            verdict: None,
            is_done: false,
            waited: Duration::ZERO,
            status: None,
            exceeded: None,
        })
    }

    /// Follows the child until it is done, gone, or has exceeded a limit; then it is gone in any case.
    fn watch_child(mut self) -> io::Result<Self> {
        let end = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).ok();
        loop {
            // Look for the end first: after it, all messages of the child are in the pipe.
            self.status = self.child.try_wait()?;
            self.read_messages();
            if self.status.is_some() {
                return Ok(self);
            }
            if self.limit().is_some_and(|limit| self.waited >= limit) {
                self.exceeded = self.limit().and_then(|limit| u64::try_from(limit.as_millis()).ok());
                self.child.kill()?;
                self.status = Some(self.child.wait()?);
                return Ok(self);
            }
            self.wait_for_event(end.as_ref())?;
        }
    }

    /// The longest time until the next message; `None` if the child may take as long as it wants.
    fn limit(&self) -> Option<Duration> {
        let phase = self.phases.last().map(|phase| Duration::from_millis(phase.limit_ms));
        phase.or(self.verdict.map(|_| START_TIMEOUT))
    }

    fn wait_for_event(&mut self, end: Option<&OwnedFd>) -> io::Result<()> {
        let longest = if end.is_some() { LONGEST_WAIT } else { WAIT_WITHOUT_EVENT };
        let left = self.limit().map(|limit| limit.saturating_sub(self.waited).min(longest));
        let wait = if end.is_some() { left } else { left.or(Some(longest)) };
        let wait = wait.map(|wait| Timespec::try_from(wait.max(Duration::from_millis(1))));
        let wait = wait.transpose().map_err(io::Error::other)?;
        let mut events = vec![PollFd::new(&self.pipe, PollFlags::IN)];
        events.extend(end.map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)));
        let began = Instant::now();
        match poll(&mut events, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if events[0].revents().contains(PollFlags::HUP) && !events[0].revents().contains(PollFlags::IN) {
            // The child has closed the pipe, and its end is imminent; without this, `poll` would return at once for ever.
            std::thread::sleep(Duration::from_millis(1));
        }
        self.waited += began.elapsed().min(longest);
        Ok(())
    }

    fn read_messages(&mut self) {
        let mut buffer = [0; 4096];
        // An error means that nothing is there: the pipe does not block.
        while let Ok(count) = rustix::io::read(&self.pipe, &mut buffer) {
            if count == 0 {
                break;
            }
            self.heard.extend_from_slice(&buffer[..count]);
        }
        let Some(end) = self.heard.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = self.heard.drain(..=end).collect();
        for message in lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
        {
            self.waited = Duration::ZERO;
            match message {
                ChildMessage::Doing(doing) => self.doing = Some(doing),
                ChildMessage::PhaseBegins(phase) => self.phases.push(phase),
                ChildMessage::PhaseEnds => drop(self.phases.pop()),
                ChildMessage::Writes => self.has_written = true,
                ChildMessage::Answers { is_success } => self.verdict = Some(is_success),
                ChildMessage::Done => self.is_done = true,
            }
        }
    }

    fn into_ending(mut self) -> ChildEnding {
        let status = self.status.unwrap_or_default();
        let fault = match (self.exceeded, status.signal()) {
            (Some(limit), _) => StartFault::Hang(limit),
            (None, Some(signal)) => StartFault::Signal(signal),
            (None, None) => StartFault::Exit(status.code().unwrap_or_default()),
        };
        match (self.verdict, self.phases.pop()) {
            (Some(is_success), _) if self.is_done => ChildEnding::Verdict(is_success),
            (Some(is_success), phase) => {
                let message = match phase {
                    Some(PhaseRecord { file, phase, .. }) => format!(
                        "`{}`: expected a plugin that shuts down, found {fault} while {phase}; the command had done its work",
                        sanitize_text(&file.to_string_lossy())
                    ),
                    None => format!("the process ended after the command had done its work: {fault}"),
                };
                ChildEnding::LateFault { is_success, message }
            }
            (None, Some(PhaseRecord { file, phase, layers, .. })) if !self.has_written => {
                let layers = layers.into_iter().map(PathBuf::from).collect();
                ChildEnding::FailedStart { plugin: FailedStart { file: file.into(), phase, fault }, layers }
            }
            (None, phase) => {
                let problem = match (self.doing, phase) {
                    // In an emulator, a failed start may look like a program that ended at once.
                    (None, _) if status.code() == Some(FAILED_START_CODE) => {
                        let problem = CommandError::new(
                            "the process of the command could not be started: this program could not run itself",
                        );
                        problem.with_hint(
                        "an emulator such as qemu-user starts further processes only if the kernel knows the architecture \
                         (`binfmt_misc`)",
                    )
                    }
                    (_, Some(PhaseRecord { file, phase, .. })) => {
                        broken_phase(&file.to_string_lossy(), phase, fault)
                    }
                    (doing, None) => broken_command(
                        doing.as_deref().unwrap_or("it was started"),
                        &self.exceeded.map_or_else(|| status.to_string(), |_| fault.to_string()),
                    ),
                };
                ChildEnding::Broken { problem, has_written: self.has_written }
            }
        }
    }
}

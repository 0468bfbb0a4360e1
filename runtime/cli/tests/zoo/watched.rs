//! Runs the command `oarlock` in an environment of its own, and ends it if it does not end.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// More than the suite allows one check.
const PATIENCE: Duration = Duration::from_secs(150);

/// How a command ended.
pub(crate) struct CommandEnd {
    /// The exit status; none if a signal ended it, or nobody else but this program did.
    pub(crate) status: Option<i32>,
    pub(crate) printed: String,
    pub(crate) complained: String,
}

/// Runs `oarlock` with the cache and the configuration of a directory.
pub(crate) fn run_watched(place: &Path, arguments: &[&str]) -> io::Result<CommandEnd> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .args(arguments)
        .current_dir(place)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place)
        .env("OARLOCK_CONFIG", place.join("config.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let printed = child.stdout.take().map(|stream| std::thread::spawn(move || read_all(stream)));
    let complained = child.stderr.take().map(|stream| std::thread::spawn(move || read_all(stream)));
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if Instant::now() > deadline {
            let group = rustix::process::Pid::from_child(&child);
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    Ok(CommandEnd { status, printed: text(printed), complained: text(complained) })
}

fn read_all(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    // What cannot be read counts as not printed.
    _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

//! The command while it serves a directory.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running `oarlock-pack serve`, which is killed on drop.
pub(crate) struct PackServer {
    process: Child,
    log: PathBuf,
    /// The address that it prints.
    pub(crate) address: String,
}

impl PackServer {
    /// Serves the subdirectory `served` of a directory, where it also writes a file `log`.
    pub(crate) fn start_serving(directory: &Path, served: &str) -> Self {
        let log = directory.join("log");
        let mut process = pack_command(directory)
            .args(["--json", "serve", served, "--port", "0", "--log"])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("the command");
        let mut line = String::new();
        let output = process.stdout.take().expect("what it prints");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let message: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address = message["address"].as_str().expect("an address").to_owned();
        Self { process, log, address }
    }

    /// The requests so far, with the status of each response.
    pub(crate) fn request_log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }
}

impl Drop for PackServer {
    fn drop(&mut self) {
        // It may have exited on its own.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The command, run in a directory.
pub(crate) fn pack_command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.current_dir(directory);
    command
}

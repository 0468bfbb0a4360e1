//! The command while it serves a directory.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `oarlock-pack serve` until this goes away.
pub(crate) struct PackServer {
    process: Child,
    log: PathBuf,
    /// Where it says that it is.
    pub(crate) address: String,
}

impl PackServer {
    /// Serves a directory within another, where also a file `log` lies.
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
        let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address = said["address"].as_str().expect("an address").to_owned();
        Self { process, log, address }
    }

    /// What was asked for so far, with the status of each answer.
    pub(crate) fn request_log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }
}

impl Drop for PackServer {
    fn drop(&mut self) {
        // What ended by itself needs no end.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The command in a directory.
pub(crate) fn pack_command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.current_dir(directory);
    command
}

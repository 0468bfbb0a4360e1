//! Starts programs of an image.

use std::path::Path;
use std::process::Command;

/// The command that runs a program of an image, with no variables of this process but the `PATH`. `runner` runs programs for another
/// architecture than this machine's.
pub(super) fn image_program(program: &Path, runner: Option<&Path>) -> Command {
    let mut command = Command::new(runner.unwrap_or(program));
    if runner.is_some() {
        command.arg(program);
    }
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

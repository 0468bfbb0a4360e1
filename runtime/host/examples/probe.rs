//! A minimal program that probes plugins: a host starts `probe PATH` as its child process.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(path) => oarlock_host::probe_child_main(Path::new(&path), &[]),
        None => {
            eprintln!("expected the path of a plugin, found no argument");
            ExitCode::FAILURE
        }
    }
}

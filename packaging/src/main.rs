//! The command `oarlock-pack`, a thin wrapper around the library.

mod commands;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments = commands::PackArguments::parse();
    match commands::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            commands::print_error(&*error, arguments.json);
            ExitCode::FAILURE
        }
    }
}

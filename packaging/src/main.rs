//! The command `oarlock-pack`. It has no logic of its own: it asks the library and shows the answer.

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

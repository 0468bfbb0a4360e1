//! `oarlock-pack completions`.

use std::error::Error;

use super::PackArguments;
use super::say::print;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(call: &CompletionsArguments) -> Result<(), Box<dyn Error>> {
    let mut script = Vec::new();
    clap_complete::generate(call.shell, &mut PackArguments::command(), "oarlock-pack", &mut script);
    print(format_args!("{}", String::from_utf8(script)?));
    Ok(())
}

//! `oarlock completions` and `oarlock man`: shell completions and manual pages.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::CommandVerdict;
use crate::arguments::CommandLine;
use crate::output::CommandOutput;
use crate::problem::CommandError;

pub(crate) fn print_completions(shell: Shell, output: &mut CommandOutput) -> CommandVerdict {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "oarlock", &mut script);
    output.write_text(&String::from_utf8_lossy(&script));
    Ok(true)
}

pub(crate) fn write_manual(directory: Option<&Path>, output: &mut CommandOutput) -> CommandVerdict {
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = directory else {
        let mut text = Vec::new();
        manual_page(command).render(&mut text).map_err(CommandError::new)?;
        output.write_text(&String::from_utf8_lossy(&text));
        return Ok(true);
    };
    std::fs::create_dir_all(directory).and_then(|()| write_manual_pages(&command, directory)).map_err(
        |error| {
            let message =
                format!("expected to write manual pages to `{}`, found: {error}", directory.display());
            CommandError::new(message).with_hint("name a directory you can write to")
        },
    )?;
    Ok(true)
}

/// Writes the page of a command, then those of its subcommands.
fn write_manual_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_manual_pages(below, directory)?;
    }
    manual_page(command.clone()).generate_to(directory).map(drop)
}

/// A page with the version of Oarlock. It has no date, so that the same sources make the same page.
fn manual_page(command: Command) -> Man {
    Man::new(command).source(concat!("Oarlock ", env!("CARGO_PKG_VERSION"))).manual("Commands of Oarlock")
}

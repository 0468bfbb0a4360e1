//! `oarlock completions` and `oarlock man`: what a shell and `man` want to know of this command.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::Verdict;
use crate::arguments::Arguments;
use crate::output::Output;
use crate::problem::Problem;

pub(crate) fn completions(shell: Shell, output: &mut Output) -> Verdict {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "oarlock", &mut script);
    output.write(&String::from_utf8_lossy(&script));
    Ok(true)
}

pub(crate) fn man(directory: Option<&Path>, output: &mut Output) -> Verdict {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = directory else {
        let mut text = Vec::new();
        page(command).render(&mut text).map_err(Problem::new)?;
        output.write(&String::from_utf8_lossy(&text));
        return Ok(true);
    };
    std::fs::create_dir_all(directory).and_then(|()| pages(&command, directory)).map_err(|error| {
        let message = format!("expected to write manual pages to `{}`, found: {error}", directory.display());
        Problem::new(message).hint("name a directory you can write to")
    })?;
    Ok(true)
}

/// Writes the page of a command, and those of the commands below it.
fn pages(command: &Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        pages(below, directory)?;
    }
    page(command.clone()).generate_to(directory).map(drop)
}

/// The page of a command, which says of what version of Oarlock it is. It has no date: the same sources make the same page.
fn page(command: Command) -> Man {
    Man::new(command).source(concat!("Oarlock ", env!("CARGO_PKG_VERSION"))).manual("Commands of Oarlock")
}

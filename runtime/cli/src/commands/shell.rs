//! `oarlock completions` and `oarlock man`: what a shell and `man` want to know of this command.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

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
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(Problem::new)?;
        output.write(&String::from_utf8_lossy(&page));
        return Ok(true);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory))
        .map_err(|error| {
            let message =
                format!("expected to write manual pages to `{}`, found: {error}", directory.display());
            Problem::new(message).hint("name a directory you can write to")
        })?;
    Ok(true)
}

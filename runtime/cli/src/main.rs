//! The command `oarlock`: says what devices and plugins there are and whether they work.
//!
//! It has no logic of its own: [`arguments`] says what can be asked, each module of [`commands`] asks the host and shows
//! the answer. Data goes to the standard output, everything else to the standard error.

mod arguments;
mod array;
mod closed;
mod commands;
mod help;
mod literal;
mod messages;
mod npy;
mod npz;
mod output;
mod problem;
mod progress;
mod render;
mod scalar;
mod session;
mod target;
mod usage;
mod variables;
mod watched;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::arguments::{Arguments, Command, PluginCommand};
use crate::output::{ColorChoice, Output};
use crate::problem::Problem;
use crate::session::Task;

/// What a command that did its work has to say: whether all is well.
type Verdict = Result<bool, Problem>;

fn main() -> ExitCode {
    // The program starts itself again to try a plugin. No user types that, so help and completions know nothing of it.
    let task = session::task_of_child(std::env::args_os());
    let file = || PathBuf::from(std::env::args_os().nth(2).unwrap_or_default());
    match task {
        Some(Task::Probe) => return oarlock_host::probe_child_main(&file()),
        Some(Task::Conform) => return commands::conformance::child_main(&file()),
        Some(Task::Watched) | None => {}
    }
    let is_watched = task == Some(Task::Watched);
    if is_watched {
        watched::begin(&std::env::args_os().nth(2).unwrap_or_default());
    }
    // The first of these stands for the program's name, which nobody reads.
    let given = std::env::args_os().skip(if is_watched { 2 } else { 0 });
    let command = Arguments::command().color(color_of_help());
    let parsed =
        command.try_get_matches_from(given).and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return usage::tell(&error, std::env::args_os()),
    };
    let color = arguments.global.color;
    // The output is then that of the child, which takes the standard output in its turn.
    let verdict = if closed::is_output_closed() {
        Err(unwritable(std::io::Error::other("it is closed")))
    } else if !is_watched && wants_watching(&arguments) {
        watched::watch(std::env::args_os().skip(1))
    } else {
        written(arguments)
    };
    watched::tell_done();
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            output::say_problem(color, &problem);
            ExitCode::FAILURE
        }
    }
}

/// Whether the command is to be watched from another process, so that a plugin that ends it is named.
fn wants_watching(arguments: &Arguments) -> bool {
    match &arguments.command {
        Command::Doctor => true,
        // Where no plugins lie, only what is part of this program runs, and should start at once.
        command if is_about_models(command) || matches!(command, Command::Op(_)) => {
            session::has_plugins(&arguments.global)
        }
        _ => false,
    }
}

fn unwritable(error: std::io::Error) -> Problem {
    Problem::new(format!("expected to write to the standard output, found: {error}"))
        .hint("free some space, or write somewhere else")
}

/// Whether a command is about a model, so that programs are told why it failed where they look for its answer.
fn is_about_models(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Bench(_)
            | Command::Explain(_)
            | Command::Trace(_)
            | Command::Check(_)
            | Command::Optimise(_)
    )
}

/// Does what was asked for, and sees to it that all of the output is written.
fn written(arguments: Arguments) -> Verdict {
    let mut output = Output::take(arguments.global.color).map_err(unwritable)?;
    let has_object = arguments.global.json;
    let verdict = run(arguments, &mut output);
    if let (true, Err(problem)) = (has_object, &verdict) {
        // That it cannot be made JSON is no reason to say something else than what went wrong.
        _ = commands::print_json(&mut output, &serde_json::json!({ "error": problem }));
    }
    let written = output.finish().map_err(unwritable);
    verdict.and_then(|is_well| written.map(|()| is_well))
}

fn run(arguments: Arguments, output: &mut Output) -> Verdict {
    let Arguments { global, command } = arguments;
    match command {
        Command::Devices => commands::devices::run(&global, output),
        Command::Plugins => commands::plugins::run(&global, output),
        Command::Kernels(filter) => commands::kernels::run(&global, &filter, output),
        Command::Flags { name, paddle } => commands::flags::run(&global, name.as_deref(), paddle, output),
        Command::Run(call) => commands::model::run::run(&global, &call, output),
        Command::Bench(call) => commands::model::bench::run(&global, &call, output),
        Command::Explain(call) => commands::model::explain::run(&global, &call, output),
        Command::Trace(call) => commands::model::trace::run(&global, &call, output),
        Command::Check(choice) => commands::model::check::run(&global, &choice, output),
        Command::Optimise(call) => commands::model::optimise::run(&global, &call, output),
        Command::Op(call) => commands::op::run(&global, &call, output),
        Command::Doctor => commands::doctor::run(&global, output),
        Command::Plugin(PluginCommand::Check { file, quick, html }) => {
            let html = html.as_deref();
            commands::plugin_check::run(
                &global,
                &commands::plugin_check::Wish { file: &file, quick, html },
                output,
            )
        }
        Command::Plugin(PluginCommand::Manifest { file, write }) => {
            commands::plugin_manifest::run(&global, &file, write, output)
        }
        Command::Completions { shell } => commands::shell::completions(shell, output),
        Command::Man { directory } => commands::shell::man(directory.as_deref(), output),
    }
}

/// What `--color` says, looked up before anything is parsed: help and errors of parsing follow it too.
fn color_of_help() -> clap::ColorChoice {
    let arguments: Vec<_> = std::env::args_os().collect();
    let says = |choice: &str| {
        arguments.iter().any(|argument| *argument == *format!("--color={choice}"))
            || arguments.windows(2).any(|pair| pair[0] == "--color" && pair[1] == *choice)
    };
    if says("always") {
        clap::ColorChoice::Always
    } else if says("never") || !ColorChoice::Auto.applies_to(&std::io::stdout()) {
        clap::ColorChoice::Never
    } else {
        clap::ColorChoice::Auto
    }
}

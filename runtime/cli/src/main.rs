//! The command `oarlock`: reports which devices and plugins there are and whether they work.
//!
//! It holds no logic of its own: [`arguments`] defines the questions, and each module of [`commands`] asks the host and shows
//! the answer. Data goes to standard output, everything else to standard error.

mod arguments;
mod closed_stdout;
mod commands;
mod crash_watcher;
mod environment_flags;
mod help;
mod literal;
mod messages;
mod output;
mod output_file;
mod problem;
mod process_end;
mod progress;
mod render;
mod session;
mod usage_error;
mod watched_child;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::arguments::{CommandLine, DoctorArguments, OarlockCommand, PluginCommand};
use crate::output::{ColorChoice, CommandOutput};
use crate::problem::CommandError;
use crate::session::ChildTask;
use crate::watched_child::ChildMessage;

/// `Ok(false)` if the command did its work but found a problem.
type CommandVerdict = Result<bool, CommandError>;

fn main() -> ExitCode {
    // The program starts itself again to try a plugin. Users never type that, so help and completions do not list it.
    let task = session::parse_child_task(std::env::args_os());
    let file = || PathBuf::from(std::env::args_os().nth(2).unwrap_or_default());
    match task {
        Some(ChildTask::Probe) => return oarlock_host::probe_child_main(&file(), session::ADAPTERS),
        Some(ChildTask::Conform) => return commands::conformance::run_child(&file()),
        Some(ChildTask::Watched) | None => {}
    }
    let is_watched = task == Some(ChildTask::Watched);
    if is_watched {
        watched_child::accept_order(&std::env::args_os().nth(2).unwrap_or_default());
    }
    // The first argument stands for the program's name, which nobody reads.
    let given = std::env::args_os().skip(if is_watched { 2 } else { 0 });
    let command = CommandLine::command().color(help_color());
    let parsed =
        command.try_get_matches_from(given).and_then(|matches| CommandLine::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return usage_error::report_usage_error(&error, std::env::args_os()),
    };
    let color = arguments.global.color;
    // A watched command leaves standard output to its child.
    let verdict = if closed_stdout::is_output_closed() {
        Err(output_error(std::io::Error::other("it is closed")))
    } else if !is_watched && needs_watching(&arguments) {
        let given: Vec<OsString> = std::env::args_os().skip(1).collect();
        crash_watcher::watch_command(&given, &arguments.global)
    } else {
        run_and_flush(arguments)
    };
    let is_success = verdict.unwrap_or_else(|problem| {
        output::print_error(color, &problem);
        false
    });
    watched_child::send_message(&ChildMessage::Answers { is_success });
    session::end_plugins();
    if is_watched {
        process_end::end_without_handlers(is_success);
    }
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// True if another process should watch the command, to name a plugin that kills it.
fn needs_watching(arguments: &CommandLine) -> bool {
    match &arguments.command {
        // It loads no plugin itself.
        OarlockCommand::Doctor(DoctorArguments { bisect: true }) => false,
        OarlockCommand::Doctor(_) | OarlockCommand::Plugin(_) => true,
        // Without external plugins only built-in code runs, and that should start at once.
        OarlockCommand::Devices
        | OarlockCommand::Plugins
        | OarlockCommand::Kernels(_)
        | OarlockCommand::Op(_)
        | OarlockCommand::Replay(_) => session::has_plugins(&arguments.global),
        command if is_model_command(command) => session::has_plugins(&arguments.global),
        _ => false,
    }
}

fn output_error(error: std::io::Error) -> CommandError {
    CommandError::new(format!("expected to write to the standard output, found: {error}"))
        .with_hint("free some space, or write somewhere else")
}

/// JSON output of model commands reports errors on standard output too, where programs look for the answer.
fn is_model_command(command: &OarlockCommand) -> bool {
    matches!(
        command,
        OarlockCommand::Run(_)
            | OarlockCommand::Bench(_)
            | OarlockCommand::Explain(_)
            | OarlockCommand::Trace(_)
            | OarlockCommand::Check(_)
            | OarlockCommand::Optimize(_)
    )
}

/// Runs the command and flushes its output.
fn run_and_flush(arguments: CommandLine) -> CommandVerdict {
    let mut output = CommandOutput::capture_stdout(arguments.global.color).map_err(output_error)?;
    let has_object = arguments.global.json;
    let verdict = run_command(arguments, &mut output);
    if let (true, Err(problem)) = (has_object, &verdict) {
        // If the JSON cannot be written, the original error is still the one to report.
        _ = commands::print_json(&mut output, &serde_json::json!({ "error": problem }));
    }
    let written = output.finish().map_err(output_error);
    verdict.and_then(|is_well| written.map(|()| is_well))
}

fn run_command(arguments: CommandLine, output: &mut CommandOutput) -> CommandVerdict {
    let CommandLine { global, command } = arguments;
    match command {
        OarlockCommand::Devices => commands::devices::list_devices(&global, output),
        OarlockCommand::Replay(arguments) => commands::replay::replay_recording(&global, &arguments, output),
        OarlockCommand::Plugins => commands::plugins::list_plugins(&global, output),
        OarlockCommand::Kernels(filter) => commands::kernels::list_kernels(&global, &filter, output),
        OarlockCommand::Flags { name, paddle } => {
            commands::flags::list_flags(&global, name.as_deref(), paddle, output)
        }
        OarlockCommand::Run(call) => commands::model::run::run_model(&global, &call, output),
        OarlockCommand::Bench(call) => commands::model::bench::run_benchmark(&global, &call, output),
        OarlockCommand::Explain(call) => commands::model::explain::explain_model(&global, &call, output),
        OarlockCommand::Trace(call) => commands::model::trace::trace_model(&global, &call, output),
        OarlockCommand::Check(choice) => commands::model::check::check_model(&global, &choice, output),
        OarlockCommand::Optimize(call) => commands::model::optimize::optimize_model(&global, &call, output),
        OarlockCommand::Op(call) => commands::op::run_op(&global, &call, output),
        OarlockCommand::Doctor(call) => commands::doctor::run_doctor(&global, &call, output),
        OarlockCommand::Plugin(PluginCommand::New(wish)) => {
            commands::plugin_new::create_plugin(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Pack(wish)) => {
            commands::plugin_pack::pack_plugin(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Index(wish)) => {
            commands::plugin_index::index_plugins(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Check(choice)) => {
            commands::plugin_check::check_plugin(&global, &choice, output)
        }
        OarlockCommand::Plugin(PluginCommand::Manifest { file, write }) => {
            commands::plugin_manifest::generate_manifest(&global, &file, write, output)
        }
        OarlockCommand::Plugin(PluginCommand::Sign(wish)) => {
            commands::trust::sign::run_sign(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Verify(wish)) => {
            commands::trust::verify::run_verify(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Trust(wish)) => {
            commands::trust::trust_keys::run_trust(&global, &wish, output)
        }
        OarlockCommand::Plugin(PluginCommand::Key(command)) => {
            commands::trust::keys::run_key_command(&global, &command, output)
        }
        OarlockCommand::Completions { shell } => commands::shell::print_completions(shell, output),
        OarlockCommand::Man { directory } => commands::shell::write_manual(directory.as_deref(), output),
    }
}

/// The value of `--color`, found before parsing, because help and usage errors obey it too.
fn help_color() -> clap::ColorChoice {
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

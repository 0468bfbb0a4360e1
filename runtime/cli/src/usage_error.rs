//! Reports command lines that do not parse.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{Error, ErrorKind};

use crate::commands;
use crate::output::{ColorChoice, CommandOutput};
use crate::problem::CommandError;

const USAGE_EXIT_CODE: u8 = 2;

/// Prints help if that was requested, otherwise the usage error; as JSON if the arguments ask for it.
pub(crate) fn report_usage_error(error: &Error, given: impl Iterator<Item = OsString>) -> ExitCode {
    // There is nowhere to report that printing failed.
    _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // Parsing failed, so search the raw arguments for `--json`; after `--` there are no options.
    if given.take_while(|argument| argument != "--").any(|argument| argument == "--json")
        && let Ok(mut output) = CommandOutput::capture_stdout(ColorChoice::Never)
    {
        _ = commands::print_json(&mut output, &serde_json::json!({ "error": to_command_error(error) }));
        _ = output.finish();
    }
    ExitCode::from(USAGE_EXIT_CODE)
}

/// Splits clap's message into the problem and, after a blank line, the advice.
fn to_command_error(error: &Error) -> CommandError {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return CommandError::from_usage("expected a command, found none")
            .with_hint("`oarlock --help` lists them");
    }
    let text = error.render().to_string();
    let mut parts = text.split("\n\n").map(str::trim);
    let first = parts.next().unwrap_or_default();
    let problem = CommandError::from_usage(first.strip_prefix("error: ").unwrap_or(first));
    // Several hints are on separate lines.
    let lines = parts.flat_map(str::lines).map(str::trim);
    let hints: Vec<&str> = lines.filter_map(|line| line.strip_prefix("tip: ")).collect();
    if hints.is_empty() { problem } else { problem.with_hint(hints.join("; ")) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::error::{ContextKind, ContextValue};

    use super::*;
    use crate::arguments::CommandLine;

    #[test]
    fn what_the_parser_says_is_taken_apart() {
        let message = |arguments: &[&str]| {
            let error = CommandLine::command().try_get_matches_from(arguments).unwrap_err();
            let problem = to_command_error(&error);
            (problem.message, problem.hint)
        };
        let hint = |text: &str| Some(text.to_owned());
        assert_eq!(
            message(&["oarlock", "doctr"]),
            ("unrecognized subcommand 'doctr'".to_owned(), hint("a similar subcommand exists: 'doctor'"))
        );
        assert_eq!(
            message(&["oarlock", "run"]),
            ("the following required arguments were not provided:\n  <MODEL>".to_owned(), None)
        );
        assert_eq!(message(&["oarlock"]).0, "expected a command, found none");
    }

    #[test]
    fn several_hints_are_told_apart() {
        let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(&CommandLine::command());
        let of = |text: &str| ContextValue::String(text.to_owned());
        error.insert(ContextKind::InvalidArg, of("--far"));
        error.insert(ContextKind::SuggestedArg, of("--for"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec!["one".into(), "another".into()]));
        let hint = to_command_error(&error).hint.unwrap();
        assert_eq!(hint, "a similar argument exists: '--for'; one; another");
    }
}

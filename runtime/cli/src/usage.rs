//! What is told of a command that was called in a way it does not understand.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{Error, ErrorKind};

use crate::commands;
use crate::output::{ColorChoice, Output};
use crate::problem::Problem;

/// The exit code of a command that was not understood.
const NOT_UNDERSTOOD: u8 = 2;

/// Shows help where that was asked for, and otherwise says what is wrong: to people, and to programs if they ask.
pub(crate) fn tell(error: &Error, given: impl Iterator<Item = OsString>) -> ExitCode {
    // There is nowhere to say that this failed.
    _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // Nothing was parsed, so what was asked for is looked up; behind `--` there are no options.
    if given.take_while(|argument| argument != "--").any(|argument| argument == "--json")
        && let Ok(mut output) = Output::take(ColorChoice::Never)
    {
        _ = commands::print_json(&mut output, &serde_json::json!({ "error": problem(error) }));
        _ = output.finish();
    }
    ExitCode::from(NOT_UNDERSTOOD)
}

/// The problem that the parser has with the arguments: it says what is wrong first, and then, apart from that, what to do.
fn problem(error: &Error) -> Problem {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Problem::of_usage("expected a command, found none").hint("`oarlock --help` lists them");
    }
    let text = error.render().to_string();
    let mut parts = text.split("\n\n").map(str::trim);
    let first = parts.next().unwrap_or_default();
    let problem = Problem::of_usage(first.strip_prefix("error: ").unwrap_or(first));
    // Several of them stand below each other.
    let lines = parts.flat_map(str::lines).map(str::trim);
    let hints: Vec<&str> = lines.filter_map(|line| line.strip_prefix("tip: ")).collect();
    if hints.is_empty() { problem } else { problem.hint(hints.join("; ")) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::error::{ContextKind, ContextValue};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn what_the_parser_says_is_taken_apart() {
        let said = |arguments: &[&str]| {
            let error = Arguments::command().try_get_matches_from(arguments).unwrap_err();
            let problem = problem(&error);
            (problem.message, problem.hint)
        };
        let hint = |text: &str| Some(text.to_owned());
        assert_eq!(
            said(&["oarlock", "doctr"]),
            ("unrecognized subcommand 'doctr'".to_owned(), hint("a similar subcommand exists: 'doctor'"))
        );
        assert_eq!(
            said(&["oarlock", "run"]),
            ("the following required arguments were not provided:\n  <MODEL>".to_owned(), None)
        );
        assert_eq!(said(&["oarlock"]).0, "expected a command, found none");
    }

    #[test]
    fn several_hints_are_told_apart() {
        let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(&Arguments::command());
        let of = |text: &str| ContextValue::String(text.to_owned());
        error.insert(ContextKind::InvalidArg, of("--far"));
        error.insert(ContextKind::SuggestedArg, of("--for"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec!["one".into(), "another".into()]));
        let hint = problem(&error).hint.unwrap();
        assert_eq!(hint, "a similar argument exists: '--for'; one; another");
    }
}

//! The output of an engine, and the errors derived from it.

use std::error::Error as _;

use oarlock_formats::error::Error;

use super::steps::DockerfileStep;
use super::{ProgressEvent, ProgressSink};
use anstream::adapter::strip_str;
use bollard::errors::Error as DockerError;
use bollard::models::BuildInfo;

/// Advice for an engine without disk space.
pub(super) const NO_SPACE_ADVICE: &str =
    "`docker system df` shows what uses it, and `docker system prune` frees unused space";

/// The number of output lines to keep of a step, for errors.
const MAX_STEP_LINES: usize = 12;

/// The number of characters to show of a line or message.
const MAX_SHOWN_LETTERS: usize = 2000;

/// The output so far.
#[derive(Default)]
pub(super) struct EngineLog {
    /// The step that runs.
    step: usize,
    /// Its last output lines.
    lines: Vec<String>,
    /// A line whose end has not arrived yet.
    open: String,
    is_finished: bool,
    loaded: Option<String>,
}

impl EngineLog {
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    pub(super) fn last_line(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }

    /// Handles a message and forwards its lines.
    pub(super) fn handle_message(&mut self, message: BuildInfo, tell: ProgressSink<'_>) -> Result<(), Error> {
        if let Some(detail) = message.error_detail {
            return Err(error_from_text(detail.message.as_deref().unwrap_or("an error without a word")));
        }
        self.is_finished |= message.aux.is_some();
        self.open.push_str(message.stream.as_deref().unwrap_or_default());
        if let Some(status) = message.status {
            self.handle_line(status.trim_end(), tell);
        }
        while let Some((line, rest)) = self.open.split_once('\n') {
            let (line, rest) = (line.trim_end().to_owned(), rest.to_owned());
            self.open = rest;
            self.handle_line(&line, tell);
        }
        Ok(())
    }

    /// Handles the end of the output.
    pub(super) fn flush_open_line(&mut self, tell: ProgressSink<'_>) {
        let last = std::mem::take(&mut self.open);
        self.handle_line(last.trim_end(), tell);
    }

    /// The engine's name for the image that it loaded.
    pub(super) fn loaded_image(&self) -> Option<&str> {
        self.loaded.as_deref()
    }

    fn handle_line(&mut self, line: &str, tell: ProgressSink<'_>) {
        let line = &sanitize_text(line);
        if line.is_empty() {
            return;
        }
        if let Some((number, count, text)) = parse_step_line(line) {
            self.step = number;
            self.lines.clear();
            tell(ProgressEvent::Step(number, count, text));
            return;
        }
        self.is_finished |= line.starts_with("Successfully built ");
        if let Some(name) = line.strip_prefix("Loaded image: ") {
            (self.is_finished, self.loaded) = (true, Some(name.to_owned()));
        }
        // Progress of the engine itself, not output of the build.
        if line.starts_with(" ---> ") || line.starts_with("Removing intermediate container ") {
            return;
        }
        tell(ProgressEvent::Line(line));
        if self.lines.len() == MAX_STEP_LINES {
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// An error in the current step, with the line of the step and its last output.
    pub(super) fn error_in_step(&self, steps: &[DockerfileStep], error: Error) -> Error {
        let Some(DockerfileStep { line, word, rest }) =
            self.step.checked_sub(1).and_then(|index| steps.get(index))
        else {
            return error_before_steps(steps, error);
        };
        let mut text = format!("line {line}: expected `{word} {rest}` to succeed, found: {error}");
        if word == "FROM" {
            text += "; the image that it begins with has to be on this engine, as `docker images` shows them, or in a registry \
                     that it reaches: `oarlock-pack image --engine` builds those of Oarlock";
        }
        if !self.lines.is_empty() {
            text += "; it wrote last:";
            self.lines.iter().for_each(|line| text += &format!("\n    {line}"));
        }
        Error::new(text)
    }
}

/// An error before the first step, attributed to the line of the instruction that it names if there is only one.
fn error_before_steps(steps: &[DockerfileStep], error: Error) -> Error {
    let message = error.to_string();
    let is_named = |step: &&DockerfileStep| {
        message.split(|letter: char| !letter.is_ascii_alphabetic()).any(|it| it == step.word)
    };
    let mut named = steps.iter().filter(is_named);
    match (named.next(), named.next()) {
        (Some(step), None) => Error::new(format!("line {}: {message}", step.line)),
        _ => error,
    }
}

/// Parses a step line, such as `Step 1/5 : FROM base` or podman's `STEP 1/5: FROM base`, into its number, the total and the
/// instruction.
fn parse_step_line(line: &str) -> Option<(usize, usize, &str)> {
    let rest = line.strip_prefix("Step ").or_else(|| line.strip_prefix("STEP "))?;
    let (numbers, text) = rest.split_once(':')?;
    let (number, count) = numbers.trim().split_once('/')?;
    Some((number.parse().ok()?, count.parse().ok()?, text.trim()))
}

/// The error for a failed request or a failure that the engine reported.
pub(super) fn engine_error(failure: &DockerError) -> Error {
    match failure {
        DockerError::DockerResponseServerError { message, .. } if !message.trim().is_empty() => {
            error_from_text(message)
        }
        DockerError::DockerResponseServerError { status_code, .. } => {
            Error::new(format!("expected an answer, found the status {status_code} without a word"))
        }
        DockerError::DockerStreamError { error } => error_from_text(error),
        DockerError::RequestTimeoutError => Error::new("expected an answer, found none for half an hour"),
        DockerError::JsonDataError { message, .. } => not_an_engine(message),
        DockerError::JsonSerdeError { err } => not_an_engine(&err.to_string()),
        other => {
            let mut text = other.to_string();
            let mut cause = other.source();
            while let Some(error) = cause {
                let more = error.to_string();
                if !text.contains(&more) {
                    text += &format!(": {more}");
                }
                cause = error.source();
            }
            Error::new(format!("expected an engine to answer, found: {}", text.escape_debug()))
        }
    }
}

/// The error for a response that does not come from an engine.
fn not_an_engine(why: &str) -> Error {
    Error::new(format!("expected an answer as engines give it, found another: {}", why.escape_debug()))
}

/// An error message of the engine, with advice if the cause is known.
fn error_from_text(text: &str) -> Error {
    let mut message = sanitize_text(text.trim());
    if message.contains("no space left on device") {
        message += &format!("; {NO_SPACE_ADVICE}");
    }
    Error::new(message)
}

/// Makes text safe for a terminal: output of programs can contain anything and have any length.
fn sanitize_text(text: &str) -> String {
    let text = strip_str(text).to_string();
    let letters = text.chars().take(MAX_SHOWN_LETTERS);
    letters.map(|letter| if letter == '\n' || !letter.is_control() { letter } else { ' ' }).collect()
}

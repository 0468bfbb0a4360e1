//! What an engine says while it works, and what is said of it where it fails.

use std::error::Error as _;

use anstream::adapter::strip_str;
use bollard::errors::Error as Failure;
use bollard::models::BuildInfo;

use super::steps::DockerfileStep;
use super::{ProgressEvent, ProgressSink};
use crate::error::Error;

/// What there is to do where an engine has no room.
pub(super) const NO_SPACE_ADVICE: &str =
    "`docker system df` says what takes it, and `docker system prune` frees what nothing uses";

/// How many of the last lines of a step are kept for who asks why it failed.
const MAX_STEP_LINES: usize = 12;

/// How many letters of a line or message are shown.
const MAX_SHOWN_LETTERS: usize = 2000;

/// What was heard so far.
#[derive(Default)]
pub(super) struct EngineLog {
    /// The number of the step that runs.
    step: usize,
    /// The last lines that it wrote.
    lines: Vec<String>,
    /// What is said of a line that is not over.
    open: String,
    is_finished: bool,
    /// What it calls the image that it loaded.
    loaded: Option<String>,
}

impl EngineLog {
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// What was said last.
    pub(super) fn last_line(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }

    /// Hears a message, and passes on what it says.
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

    /// Hears that there is no more to come.
    pub(super) fn flush_open_line(&mut self, tell: ProgressSink<'_>) {
        let last = std::mem::take(&mut self.open);
        self.handle_line(last.trim_end(), tell);
    }

    /// What it calls the image that it loaded.
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
        // What the engine does for itself, of which nobody asked.
        if line.starts_with(" ---> ") || line.starts_with("Removing intermediate container ") {
            return;
        }
        tell(ProgressEvent::Line(line));
        if self.lines.len() == MAX_STEP_LINES {
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// A failure, said of the step that ran and with what that wrote last.
    pub(super) fn error_in_step(&self, steps: &[DockerfileStep], error: Error) -> Error {
        let Some(DockerfileStep { line, word, rest }) =
            self.step.checked_sub(1).and_then(|index| steps.get(index))
        else {
            return error_before_steps(steps, error);
        };
        let mut text = format!("line {line}: expected `{word} {rest}` to succeed, found: {error}");
        if word == "FROM" {
            text += "; the image that it begins with has to be on this engine, as `docker images` shows them, or in a registry \
                     that it reaches: `oarlock-pack image --engine` brings those of Oarlock";
        }
        if !self.lines.is_empty() {
            text += "; it wrote last:";
            self.lines.iter().for_each(|line| text += &format!("\n    {line}"));
        }
        Error::new(text)
    }
}

/// A failure before the first step ran: of the line with the instruction that it names, where there is just one of them.
fn error_before_steps(steps: &[DockerfileStep], error: Error) -> Error {
    let said = error.to_string();
    let is_named = |step: &&DockerfileStep| {
        said.split(|letter: char| !letter.is_ascii_alphabetic()).any(|it| it == step.word)
    };
    let mut named = steps.iter().filter(is_named);
    match (named.next(), named.next()) {
        (Some(step), None) => Error::new(format!("line {}: {said}", step.line)),
        _ => error,
    }
}

/// The number of a step, of how many, and what it does, where a line says that: `Step 1/5 : FROM base`, which podman writes
/// as `STEP 1/5: FROM base`.
fn parse_step_line(line: &str) -> Option<(usize, usize, &str)> {
    let rest = line.strip_prefix("Step ").or_else(|| line.strip_prefix("STEP "))?;
    let (numbers, text) = rest.split_once(':')?;
    let (number, count) = numbers.trim().split_once('/')?;
    Some((number.parse().ok()?, count.parse().ok()?, text.trim()))
}

/// What is said where an engine cannot be talked to, or says that something failed.
pub(super) fn engine_error(failure: &Failure) -> Error {
    match failure {
        Failure::DockerResponseServerError { message, .. } if !message.trim().is_empty() => {
            error_from_text(message)
        }
        Failure::DockerResponseServerError { status_code, .. } => {
            Error::new(format!("expected an answer, found the status {status_code} without a word"))
        }
        Failure::DockerStreamError { error } => error_from_text(error),
        Failure::RequestTimeoutError => Error::new("expected an answer, found none for half an hour"),
        Failure::JsonDataError { message, .. } => not_an_engine(message),
        Failure::JsonSerdeError { err } => not_an_engine(&err.to_string()),
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

/// What is said of an answer that no engine gives.
fn not_an_engine(why: &str) -> Error {
    Error::new(format!("expected an answer as engines give it, found another: {}", why.escape_debug()))
}

/// What an engine says, with what to do where that is known.
fn error_from_text(text: &str) -> Error {
    let mut said = sanitize_text(text.trim());
    if said.contains("no space left on device") {
        said += &format!("; {NO_SPACE_ADVICE}");
    }
    Error::new(said)
}

/// A text as it may be shown on a terminal: what programs write comes from anywhere, and is as long as they like.
fn sanitize_text(text: &str) -> String {
    let text = strip_str(text).to_string();
    let letters = text.chars().take(MAX_SHOWN_LETTERS);
    letters.map(|letter| if letter == '\n' || !letter.is_control() { letter } else { ' ' }).collect()
}

//! Where the command writes: data to the standard output, everything else to the standard error.
//!
//! A reader that stops reading, as `head` does, is no error. The command then goes on in silence, so that plugins end the
//! way they should. What plugins print does not get in between: the command keeps the standard output to itself.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use oarlock_host::sanitize_text;

use crate::problem::CommandError;

/// What is good.
pub(crate) const GOOD_STYLE: Style = AnsiColor::Green.on_default();
/// What is wrong.
pub(crate) const BAD_STYLE: Style = AnsiColor::Red.on_default().bold();
/// What deserves a look.
pub(crate) const NOTABLE_STYLE: Style = AnsiColor::Yellow.on_default();
/// A name or a heading.
pub(crate) const NAME_STYLE: Style = Style::new().bold();
/// What matters less.
pub(crate) const QUIET_STYLE: Style = Style::new().dimmed();
/// Everything else.
pub(crate) const PLAIN_STYLE: Style = Style::new();

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the user asks for none.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    /// Whether to colour what goes to a stream.
    pub(crate) fn applies_to(self, stream: &impl IsTerminal) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
                stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
            }
        }
    }
}

/// What was the standard output, for this program alone. What plugins print there goes where errors go from now on.
pub(crate) fn take_standard_output() -> io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(output))
}

/// The standard output.
pub(crate) struct CommandOutput {
    stream: BufWriter<File>,
    has_color: bool,
    /// How many characters a line of the terminal has; `None` when it is not a terminal.
    width: Option<usize>,
    failure: Option<io::Error>,
}

impl CommandOutput {
    /// Takes the standard output, to be done before any plugin is loaded.
    pub(crate) fn capture_stdout(color: ColorChoice) -> io::Result<Self> {
        let stream = take_standard_output()?;
        let width = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(&stream).ok()).flatten();
        Ok(Self {
            has_color: color.applies_to(&stream),
            width: width.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0),
            stream: BufWriter::new(stream),
            failure: None,
        })
    }

    /// How many characters a line of the terminal has.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// A text in a style, where colours are used.
    pub(crate) fn paint_text(&self, style: Style, text: &str) -> String {
        apply_style(self.has_color, style, text)
    }

    /// Writes a line.
    pub(crate) fn write_line(&mut self, text: &str) {
        self.write_text(text);
        self.write_text("\n");
    }

    /// Writes text as it is.
    pub(crate) fn write_text(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.stream.write_all(text.as_bytes()).err();
        }
    }

    /// Shows what was written so far, before something that may take long or never return.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.stream.flush().err();
        }
    }

    /// Ends the output; an error unless all of it was written or nobody wanted the rest.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        // What is left in the buffer of a stream that failed is not tried again.
        let (_, _) = self.stream.into_parts();
        match self.failure {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

/// Says something beside the output: `error: …`, `warning: …`, `note: …`, each with a hint below if there is one.
pub(crate) fn print_message(color: ColorChoice, what: &str, message: &str, hint: Option<&str>) {
    print_message_lines(color, what, &[message], hint);
}

/// Says why a command could not do its work.
pub(crate) fn print_error(color: ColorChoice, problem: &CommandError) {
    let message = std::iter::once(&problem.message).chain(&problem.details);
    let lines: Vec<&str> = message.map(String::as_str).collect();
    print_message_lines(color, "error", &lines, problem.hint.as_deref());
}

fn print_message_lines(color: ColorChoice, what: &str, lines: &[&str], hint: Option<&str>) {
    let mut stream = io::stderr().lock();
    let has_color = color.applies_to(&stream);
    let style = if what == "error" { BAD_STYLE } else { NOTABLE_STYLE };
    // Whatever came from elsewhere cannot begin a line of its own.
    let lines: Vec<String> = lines.iter().map(|line| sanitize_text(line)).collect();
    let mut text = format!("{}: {}\n", apply_style(has_color, style, what), lines.join("\n"));
    if let Some(hint) = hint {
        text += &format!(
            "\n{}: {}\n",
            apply_style(has_color, AnsiColor::Cyan.on_default(), "hint"),
            sanitize_text(hint)
        );
    }
    // There is nowhere left to say that this failed.
    _ = stream.write_all(text.as_bytes());
}

fn apply_style(has_color: bool, style: Style, text: &str) -> String {
    if has_color && style != PLAIN_STYLE { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_where_colours_are_used() {
        assert_eq!(apply_style(false, BAD_STYLE, "x"), "x");
        assert_eq!(apply_style(true, PLAIN_STYLE, "x"), "x");
        assert_ne!(apply_style(true, BAD_STYLE, "x"), "x");
    }
}

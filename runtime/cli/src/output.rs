//! The command's output: data goes to standard output, everything else to standard error.
//!
//! A reader that stops early, such as `head`, is no error: the command goes on silently, so that plugins still shut down in
//! order. Plugins cannot write into the data, because the command keeps standard output to itself.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use oarlock_host::sanitize_text;

use crate::problem::CommandError;
use crate::watched_child::{self, ChildMessage};

pub(crate) const GOOD_STYLE: Style = AnsiColor::Green.on_default();
pub(crate) const BAD_STYLE: Style = AnsiColor::Red.on_default().bold();
/// Needs the user's attention, but is no failure.
pub(crate) const NOTABLE_STYLE: Style = AnsiColor::Yellow.on_default();
/// Also for headings.
pub(crate) const NAME_STYLE: Style = Style::new().bold();
pub(crate) const QUIET_STYLE: Style = Style::new().dimmed();
pub(crate) const PLAIN_STYLE: Style = Style::new();

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    /// Colors on a terminal, unless the environment forbids them.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
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

/// Duplicates standard output for this program alone and points descriptor 1 at standard error, so that prints of plugins
/// never mix with data.
pub(crate) fn take_standard_output() -> io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(output))
}

/// Standard output, whose first use is announced: what is written once cannot be taken back.
struct AnnouncedOutput {
    file: File,
    is_announced: bool,
}

impl Write for AnnouncedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_announced, true) {
            watched_child::send_message(&ChildMessage::Writes);
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Buffered standard output of the command.
pub(crate) struct CommandOutput {
    stream: BufWriter<AnnouncedOutput>,
    has_color: bool,
    /// Columns of the terminal; `None` if the output is no terminal.
    width: Option<usize>,
    failure: Option<io::Error>,
}

impl CommandOutput {
    /// Must run before any plugin is loaded.
    pub(crate) fn capture_stdout(color: ColorChoice) -> io::Result<Self> {
        let stream = take_standard_output()?;
        let width = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(&stream).ok()).flatten();
        Ok(Self {
            has_color: color.applies_to(&stream),
            width: width.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0),
            stream: BufWriter::new(AnnouncedOutput { file: stream, is_announced: false }),
            failure: None,
        })
    }

    /// Columns of the terminal; `None` if the output is no terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Adds the style's escape codes if colors are on.
    pub(crate) fn paint_text(&self, style: Style, text: &str) -> String {
        apply_style(self.has_color, style, text)
    }

    pub(crate) fn write_line(&mut self, text: &str) {
        self.write_text(text);
        self.write_text("\n");
    }

    /// Does not append a newline.
    pub(crate) fn write_text(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.stream.write_all(text.as_bytes()).err();
        }
    }

    /// Makes everything written so far visible, before a call that may be slow or never return.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.stream.flush().err();
        }
    }

    /// Flushes the rest. Fails unless all of it was written or the reader closed the pipe.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        // After a write error, do not retry what is left in the buffer.
        let (_, _) = self.stream.into_parts();
        match self.failure {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

/// Prints `error: …`, `warning: …` or `note: …` to standard error, with the hint on a line below.
pub(crate) fn print_message(color: ColorChoice, what: &str, message: &str, hint: Option<&str>) {
    print_message_lines(color, what, &[message], hint);
}

pub(crate) fn print_error(color: ColorChoice, problem: &CommandError) {
    let message = std::iter::once(&problem.message).chain(&problem.details);
    let lines: Vec<&str> = message.map(String::as_str).collect();
    print_message_lines(color, "error", &lines, problem.hint.as_deref());
}

fn print_message_lines(color: ColorChoice, what: &str, lines: &[&str], hint: Option<&str>) {
    let mut stream = io::stderr().lock();
    let has_color = color.applies_to(&stream);
    let style = if what == "error" { BAD_STYLE } else { NOTABLE_STYLE };
    // Sanitized, so that text from elsewhere cannot start a line of its own.
    let lines: Vec<String> = lines.iter().map(|line| sanitize_text(line)).collect();
    let mut text = format!("{}: {}\n", apply_style(has_color, style, what), lines.join("\n"));
    if let Some(hint) = hint {
        text += &format!(
            "\n{}: {}\n",
            apply_style(has_color, AnsiColor::Cyan.on_default(), "hint"),
            sanitize_text(hint)
        );
    }
    // If standard error fails, there is nowhere left to report it.
    _ = stream.write_all(text.as_bytes());
}

fn apply_style(has_color: bool, style: Style, text: &str) -> String {
    if has_color && style != PLAIN_STYLE { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_where_colors_are_used() {
        assert_eq!(apply_style(false, BAD_STYLE, "x"), "x");
        assert_eq!(apply_style(true, PLAIN_STYLE, "x"), "x");
        assert_ne!(apply_style(true, BAD_STYLE, "x"), "x");
    }
}

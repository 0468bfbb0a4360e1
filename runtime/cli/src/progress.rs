//! Progress of what takes long, on a terminal and beside the output.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// A line on the terminal that goes away again.
#[derive(Default)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    /// When a bar was drawn last.
    drawn: Option<Instant>,
}

/// Bars are drawn no more often: drawing would take longer than what is done.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);
/// How many characters a full bar has.
const BAR_WIDTH: usize = 30;

impl ProgressLine {
    /// Shows a text in place of the last one; nothing where nobody watches.
    pub(crate) fn show_text(&mut self, text: &str) {
        let mut stream = std::io::stderr();
        if stream.is_terminal() {
            self.is_shown = write!(stream, "\r\u{1b}[K{text}").and_then(|()| stream.flush()).is_ok();
        }
    }

    /// Shows how much of something is done, in place of the last text.
    pub(crate) fn show_bar(&mut self, doing: &str, done: usize, all: usize) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
            self.drawn = Some(Instant::now());
            self.show_text(&format!("{doing} {} {done} of {all}", render_bar(done, all)));
        }
    }

    /// Takes the line away.
    pub(crate) fn clear_line(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            // The sequence clears the line; a terminal that is gone needs none.
            _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear_line();
    }
}

fn render_bar(done: usize, all: usize) -> String {
    let full = (done * BAR_WIDTH).checked_div(all).unwrap_or(0).min(BAR_WIDTH);
    format!("[{}{}]", "#".repeat(full), " ".repeat(BAR_WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        assert_eq!(render_bar(0, 4), format!("[{}]", " ".repeat(30)));
        assert_eq!(render_bar(1, 2), format!("[{}{}]", "#".repeat(15), " ".repeat(15)));
        assert_eq!(render_bar(4, 4), format!("[{}]", "#".repeat(30)));
        assert_eq!(render_bar(0, 0), render_bar(0, 1));
    }
}

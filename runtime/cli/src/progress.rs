//! Progress of slow operations, shown on standard error if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// A line on the terminal that is erased before other output.
#[derive(Default)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    drawn: Option<Instant>,
}

/// Minimum time between redraws; otherwise drawing would cost more than the work.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);
const BAR_WIDTH: usize = 30;

impl ProgressLine {
    /// Replaces the line. Does nothing if standard error is no terminal.
    pub(crate) fn show_text(&mut self, text: &str) {
        let mut stream = std::io::stderr();
        if stream.is_terminal() {
            self.is_shown = write!(stream, "\r\u{1b}[K{text}").and_then(|()| stream.flush()).is_ok();
        }
    }

    /// Replaces the line with a progress bar.
    pub(crate) fn show_bar(&mut self, doing: &str, done: usize, all: usize) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
            self.drawn = Some(Instant::now());
            self.show_text(&format!("{doing} {} {done} of {all}", render_bar(done, all)));
        }
    }

    pub(crate) fn clear_line(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            // The escape sequence erases the line. If the terminal is gone, there is nothing to erase.
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

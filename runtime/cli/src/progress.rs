//! Progress of what takes long, on a terminal and beside the output.

use std::io::{IsTerminal as _, Write as _};

/// A line on the terminal that goes away again.
#[derive(Default)]
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Shows a text in place of the last one; nothing where nobody watches.
    pub(crate) fn show(&mut self, text: &str) {
        let mut stream = std::io::stderr();
        if stream.is_terminal() {
            self.is_shown = write!(stream, "\r\u{1b}[K{text}").and_then(|()| stream.flush()).is_ok();
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            // The sequence clears the line; a terminal that is gone needs none.
            _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

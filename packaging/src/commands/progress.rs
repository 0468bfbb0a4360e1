//! What happens, for who watches.

use std::io::{self, IsTerminal as _, Write as _};

/// A line on the terminal that goes away again.
#[derive(Default)]
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Shows a text in place of the last one; nothing where nobody watches.
    pub(crate) fn show(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            self.is_shown = true;
            self.put(text);
        }
    }

    fn put(&self, text: &str) {
        // A terminal that is gone shows nothing.
        _ = write!(io::stderr(), "\r\u{1b}[K{text}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            self.put("");
        }
    }
}

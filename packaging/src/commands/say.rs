//! What the command prints.

use std::fmt;
use std::io::{self, Write as _};
use std::process;

/// Prints a line.
macro_rules! say {
    ($($words:tt)*) => { $crate::commands::say::print(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use say;

/// Prints a text. A reader that stops reading, as `head` does, is no error, and what is done goes on; where it cannot be written
/// for another reason, such as a full disk, whoever reads it would take a part for the whole.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: what was found cannot be printed: {error}");
            process::exit(1);
        }
        _ => {}
    }
}

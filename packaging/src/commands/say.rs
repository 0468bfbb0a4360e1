//! Output to stdout.

use std::fmt;
use std::io::{self, Write as _};
use std::process;

/// Prints a line to stdout, as [`print`] does.
macro_rules! say {
    ($($words:tt)*) => { $crate::commands::say::print(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use say;

/// Prints to stdout. A closed pipe, as `head` leaves, is not an error, and the work goes on. Any other failure, such as a full
/// disk, ends the process: a reader would take partial output for the whole.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: what was found cannot be printed: {error}");
            process::exit(1);
        }
        _ => {}
    }
}

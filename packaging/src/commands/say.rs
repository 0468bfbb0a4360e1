//! Output to stdout.

use std::fmt;
use std::io::{self, Write as _};
use std::process;

/// Prints a line to stdout, like [`print`].
macro_rules! say {
    ($($words:tt)*) => { $crate::commands::say::print(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use say;

/// Prints to stdout. A closed pipe, such as that of `head`, is not an error, and the work continues. Any other failure, such as
/// a full disk, ends the process: a reader would mistake partial output for the whole.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: the result cannot be printed: {error}");
            process::exit(1);
        }
        _ => {}
    }
}

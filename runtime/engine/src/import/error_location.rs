//! Where in a model an error is.

use oarlock_core::{Error, Result};

/// The most characters of a name that a message repeats.
const MOST_QUOTED_CHARACTERS: usize = 120;

/// Adds the place to what went wrong.
pub(super) trait ErrorLocation {
    /// The same, with the error of a place.
    fn with_location(self, place: impl FnOnce() -> String) -> Self;
}

impl<T> ErrorLocation for Result<T> {
    fn with_location(self, place: impl FnOnce() -> String) -> Self {
        self.map_err(|error| {
            let placed = Error::new(error.kind(), format!("{}: {error}", place()));
            match error.advice() {
                Some(advice) => placed.with_advice(advice),
                None => placed,
            }
        })
    }
}

/// A name of a model for a message: safe to print, and not too long.
pub(super) fn quote_name(name: &str) -> String {
    match name.char_indices().nth(MOST_QUOTED_CHARACTERS) {
        Some((end, _)) => format!("`{}…`", oarlock_host::sanitize_text(&name[..end])),
        None => format!("`{}`", oarlock_host::sanitize_text(name)),
    }
}

/// An error of a model that says what the rules want and what it has.
#[cold]
pub(super) fn invalid_model(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("expected {expected}, found {found}"))
}

//! Adds the location within a model to errors.

use oarlock_core::{Error, Result};

/// Longer names are truncated in messages.
const MAX_QUOTED_CHARACTERS: usize = 120;

pub(super) trait ErrorLocation {
    /// Prefixes an error with a location; `place` is only called on failure.
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

/// Quotes a name from a model for a message: sanitized, and truncated if it is long.
pub(super) fn quote_name(name: &str) -> String {
    match name.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((end, _)) => format!("`{}…`", oarlock_host::sanitize_text(&name[..end])),
        None => format!("`{}`", oarlock_host::sanitize_text(name)),
    }
}

/// An error about an invalid model.
#[cold]
pub(super) fn invalid_model(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("expected {expected}, found {found}"))
}

//! Why a command could not do its work, and what the user can do.

use std::fmt;

/// An error of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

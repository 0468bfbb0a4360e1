//! Why a command could not do its work, and what the user can do.

use std::fmt;

/// An error of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    /// Further lines that stand below the message, such as those of a table.
    pub(crate) details: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), details: Vec::new(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<oarlock_core::Error> for Problem {
    fn from(error: oarlock_core::Error) -> Self {
        let text = error.to_string();
        let mut lines = text.lines().map(str::to_owned);
        Self {
            message: lines.next().unwrap_or_default(),
            details: lines.collect(),
            hint: error.advice().map(str::to_owned),
        }
    }
}

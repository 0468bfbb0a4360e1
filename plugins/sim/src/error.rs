//! Errors of a simulated device.

use std::fmt;

use oarlock_fault_script::{FaultKind, ScriptedFault};

/// A failed call: its kind and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError {
    /// The kind, for programs.
    pub kind: FaultKind,
    /// The message, for people.
    pub message: String,
}

impl SimError {
    /// Creates an error.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidArgument, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(FaultKind::NotFound, message)
    }
}

impl From<ScriptedFault> for SimError {
    fn from(fault: ScriptedFault) -> Self {
        Self::new(fault.kind, fault.message)
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for SimError {}

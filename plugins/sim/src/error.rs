//! Errors of a simulated device.

use std::fmt;

/// The kind of a failure: what a program can act on without reading the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimErrorKind {
    /// The quota or the address range of the device is used up.
    OutOfMemory,
    /// The caller asked for something that is never valid, such as an access past an allocation.
    InvalidArgument,
    /// The caller named memory that it had already freed.
    UseAfterFree,
    /// The device is lost: no later call on it succeeds.
    DeviceLost,
    /// The device, stream or event does not exist.
    NotFound,
    /// The simulated device failed: a scripted failure, or a kernel or callback that panicked.
    Internal,
    /// The call cannot be served now, for example after the engine was shut down.
    Unavailable,
    /// The call took too long.
    TimedOut,
    /// A kernel was given an index out of range.
    OutOfRange,
    /// A kernel does not support the request.
    Unimplemented,
}

impl SimErrorKind {
    /// Every kind with its word in scripts.
    pub const SCRIPT_WORDS: [(&'static str, SimErrorKind); 10] = [
        ("out-of-memory", SimErrorKind::OutOfMemory),
        ("invalid-argument", SimErrorKind::InvalidArgument),
        ("use-after-free", SimErrorKind::UseAfterFree),
        ("device-lost", SimErrorKind::DeviceLost),
        ("not-found", SimErrorKind::NotFound),
        ("internal", SimErrorKind::Internal),
        ("unavailable", SimErrorKind::Unavailable),
        ("timed-out", SimErrorKind::TimedOut),
        ("out-of-range", SimErrorKind::OutOfRange),
        ("unimplemented", SimErrorKind::Unimplemented),
    ];
}

/// A failed call: its kind and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError {
    /// The kind, for programs.
    pub kind: SimErrorKind,
    /// The message, for people.
    pub message: String,
}

impl SimError {
    /// Creates an error.
    pub fn new(kind: SimErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(SimErrorKind::InvalidArgument, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(SimErrorKind::NotFound, message)
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for SimError {}

//! What a simulated device says when a call cannot be done.

use std::fmt;

/// The sort of a failure: what a program can decide on without reading the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimErrorKind {
    /// The quota or the address range of the device is used up.
    OutOfMemory,
    /// The caller asked for something that is never right, such as an access past an allocation.
    InvalidArgument,
    /// The caller named memory that it had already given back.
    UseAfterFree,
    /// The device is lost: no later call on it succeeds.
    DeviceLost,
    /// The device, stream or event does not exist.
    NotFound,
    /// The simulated device broke: a scripted failure, or a kernel or callback that panicked.
    Internal,
    /// The call cannot be served now, for example after the engine was shut down.
    Unavailable,
    /// The call took too long.
    TimedOut,
    /// An index that a kernel was given lies outside of what is there.
    OutOfRange,
    /// A kernel does not do what was asked.
    Unimplemented,
}

impl SimErrorKind {
    /// Every kind with the word that a script uses for it.
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

/// A failed call: its kind and one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError {
    /// What a program decides on.
    pub kind: SimErrorKind,
    /// What a person reads.
    pub message: String,
}

impl SimError {
    /// An error of the given kind.
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

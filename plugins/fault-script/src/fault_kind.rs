//! Kinds of failures, and their words in scripts.

/// The kind of a failure: what a program can act on without reading the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The memory of the device is used up.
    OutOfMemory,
    /// The caller asked for something that is never valid, such as an access past an allocation.
    InvalidArgument,
    /// The caller named memory that it had already freed.
    UseAfterFree,
    /// The device is lost: no later call on it succeeds.
    DeviceLost,
    /// The device, stream or event does not exist.
    NotFound,
    /// The device failed: a scripted failure, or a kernel or callback that panicked.
    Internal,
    /// The call cannot be served now, for example after the device was shut down.
    Unavailable,
    /// The call took too long.
    TimedOut,
    /// A kernel was given an index out of range.
    OutOfRange,
    /// A kernel does not support the request.
    Unimplemented,
}

impl FaultKind {
    /// Every kind with its word in scripts.
    pub const SCRIPT_WORDS: [(&'static str, FaultKind); 10] = [
        ("out-of-memory", FaultKind::OutOfMemory),
        ("invalid-argument", FaultKind::InvalidArgument),
        ("use-after-free", FaultKind::UseAfterFree),
        ("device-lost", FaultKind::DeviceLost),
        ("not-found", FaultKind::NotFound),
        ("internal", FaultKind::Internal),
        ("unavailable", FaultKind::Unavailable),
        ("timed-out", FaultKind::TimedOut),
        ("out-of-range", FaultKind::OutOfRange),
        ("unimplemented", FaultKind::Unimplemented),
    ];
}

//! Kinds of failures, their words in scripts, and their errors in the contract.

use oarlock_sdk::PluginError;

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

impl FaultKind {
    /// The error of the contract for a failure of this kind, with the rule that it is about.
    pub fn contract_error(self, message: impl Into<String>) -> PluginError {
        let message = message.into();
        match self {
            Self::OutOfMemory => PluginError::resource_exhausted(message).with_rule("M-3"),
            Self::InvalidArgument => PluginError::invalid_argument(message),
            Self::UseAfterFree => PluginError::invalid_argument(message).with_rule("M-1"),
            Self::DeviceLost => PluginError::unavailable(message).with_rule("R-6").as_device_lost(),
            Self::NotFound => PluginError::not_found(message),
            Self::Internal => PluginError::external(message),
            Self::Unavailable => PluginError::unavailable(message),
            Self::TimedOut => PluginError::execution_timeout(message),
            Self::OutOfRange => PluginError::out_of_range(message),
            Self::Unimplemented => PluginError::unimplemented(message),
        }
    }
}

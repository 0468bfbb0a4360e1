//! Errors: twelve kinds, and always the op, the operand and the device they concern.

use std::error::Error as StdError;
use std::fmt;

use oarlock_host::{Code, PluginFailure};

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of thing went wrong. The numbers are those of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorKind {
    /// An argument has a value it must not have.
    InvalidArgument = 1,
    /// The thing that was asked for does not exist.
    NotFound = 2,
    /// An index or a size lies outside what is there.
    OutOfRange = 3,
    /// The thing that was to be made exists already.
    AlreadyExists = 4,
    /// Memory, handles or another limited resource is used up.
    ResourceExhausted = 5,
    /// The call came at a time at which it is not allowed.
    PreconditionNotMet = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// The work did not finish in time.
    ExecutionTimeout = 8,
    /// Nobody here does what was asked.
    Unimplemented = 9,
    /// The device or service cannot be reached now.
    Unavailable = 10,
    /// Something is in a state from which it cannot go on.
    Fatal = 11,
    /// A plugin, or a library or driver below it, failed.
    External = 12,
}

impl ErrorKind {
    const ALL: [Self; 12] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::OutOfRange,
        Self::AlreadyExists,
        Self::ResourceExhausted,
        Self::PreconditionNotMet,
        Self::PermissionDenied,
        Self::ExecutionTimeout,
        Self::Unimplemented,
        Self::Unavailable,
        Self::Fatal,
        Self::External,
    ];

    /// The name, such as `InvalidArgumentError`.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "InvalidArgumentError",
            Self::NotFound => "NotFoundError",
            Self::OutOfRange => "OutOfRangeError",
            Self::AlreadyExists => "AlreadyExistsError",
            Self::ResourceExhausted => "ResourceExhaustedError",
            Self::PreconditionNotMet => "PreconditionNotMetError",
            Self::PermissionDenied => "PermissionDeniedError",
            Self::ExecutionTimeout => "ExecutionTimeoutError",
            Self::Unimplemented => "UnimplementedError",
            Self::Unavailable => "UnavailableError",
            Self::Fatal => "FatalError",
            Self::External => "ExternalError",
        }
    }

    /// The kind behind a plugin's code; one that this version does not know came from outside.
    fn from_code(code: Code) -> Self {
        Self::ALL.into_iter().find(|kind| *kind as u32 == code.0).unwrap_or(Self::External)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What went wrong, where, and what to do about it.
#[derive(Clone, Debug)]
pub struct Error(Box<ErrorDetails>);

#[derive(Clone, Debug)]
struct ErrorDetails {
    kind: ErrorKind,
    message: String,
    op: Option<String>,
    node: Option<String>,
    operand: Option<String>,
    device: Option<String>,
    hint: Option<String>,
    failure: Option<PluginFailure>,
    is_about_dtype: bool,
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        $(
            #[doc = concat!("An error of the kind [`ErrorKind::", stringify!($kind), "`].")]
            #[cold]
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            }
        )*
    };
}

impl Error {
    /// An error with a message that says what was expected and what was found.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
            kind,
            message: message.into(),
            op: None,
            node: None,
            operand: None,
            device: None,
            hint: None,
            failure: None,
            is_about_dtype: false,
        }))
    }

    constructors! {
        invalid_argument => InvalidArgument,
        not_found => NotFound,
        out_of_range => OutOfRange,
        already_exists => AlreadyExists,
        resource_exhausted => ResourceExhausted,
        precondition_not_met => PreconditionNotMet,
        unimplemented => Unimplemented,
        unavailable => Unavailable,
        fatal => Fatal,
    }

    /// Says which op failed. The innermost op that is said stays.
    pub fn with_op(mut self, op: impl fmt::Display) -> Self {
        self.0.op.get_or_insert_with(|| op.to_string());
        self
    }

    /// Says what a model calls the place where the op failed; nothing is said of one without a name.
    pub fn with_node(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.0.node.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// Says which operand is to blame, such as `input 1 (B)`.
    pub fn with_operand(mut self, operand: impl fmt::Display) -> Self {
        self.0.operand.get_or_insert_with(|| operand.to_string());
        self
    }

    /// Says on which device it happened.
    pub fn with_device(mut self, device: impl fmt::Display) -> Self {
        self.0.device.get_or_insert_with(|| device.to_string());
        self
    }

    /// Says what to do about it.
    pub fn with_advice(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says that an operand has a dtype that the op does not take.
    pub(crate) fn mark_dtype_mismatch(mut self) -> Self {
        self.0.is_about_dtype = true;
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was expected and what was found, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The op that failed.
    pub fn op(&self) -> Option<&str> {
        self.0.op.as_deref()
    }

    /// What a model calls the place where the op failed.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The operand that is to blame.
    pub fn operand(&self) -> Option<&str> {
        self.0.operand.as_deref()
    }

    /// The device on which it happened.
    pub fn device(&self) -> Option<&str> {
        self.0.device.as_deref()
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// What the plugin said, where a plugin failed.
    pub fn plugin_failure(&self) -> Option<&PluginFailure> {
        self.0.failure.as_ref()
    }

    /// Whether an operand has a dtype that the op does not take, which some languages have a type of error for.
    pub fn is_dtype_mismatch(&self) -> bool {
        self.0.is_about_dtype
    }

    /// Whether the device is gone and everything on it with it.
    pub fn is_device_lost(&self) -> bool {
        self.plugin_failure().is_some_and(PluginFailure::is_device_lost)
    }
}

impl From<PluginFailure> for Error {
    #[cold]
    fn from(failure: PluginFailure) -> Self {
        let mut error =
            Self::new(ErrorKind::from_code(failure.code), oarlock_host::sanitize_text(&failure.to_string()));
        error.0.failure = Some(failure);
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0;
        let node = details.node.as_ref().map_or_else(String::new, |node| format!(" (node `{node}`)"));
        match (&details.op, &details.device) {
            (Some(op), Some(device)) => write!(f, "`{op}`{node} on `{device}`: ")?,
            (Some(op), None) => write!(f, "`{op}`{node}: ")?,
            (None, Some(device)) => write!(f, "`{device}`: ")?,
            (None, None) => {}
        }
        if let Some(operand) = &details.operand {
            write!(f, "{operand}: ")?;
        }
        f.write_str(&details.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.failure.as_ref().map(|failure| failure as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_sentence_with_its_place() {
        let error = Error::invalid_argument("expected 2 dimensions, found 3")
            .with_operand("input 1 (B)")
            .with_op("MatMul")
            .with_device("cpu:0");
        assert_eq!(error.to_string(), "`MatMul` on `cpu:0`: input 1 (B): expected 2 dimensions, found 3");
        assert_eq!(error.kind().name(), "InvalidArgumentError");
    }

    #[test]
    fn the_innermost_place_stays() {
        let error = Error::fatal("broken").with_op("Add").with_op("Graph");
        assert_eq!(error.op(), Some("Add"));
    }
}

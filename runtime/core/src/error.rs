//! Errors: a kind, a message, and the op, the operand and the device that are concerned.

use std::error::Error as StdError;
use std::fmt;

use oarlock_host::{Code, PluginFailure};

/// The result of all fallible functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of errors. The contract defines the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorKind {
    /// An argument has a value that is not allowed.
    InvalidArgument = 1,
    /// The requested thing does not exist.
    NotFound = 2,
    /// An index or a size is out of bounds.
    OutOfRange = 3,
    /// The thing to be created already exists.
    AlreadyExists = 4,
    /// Memory, handles or another limited resource is exhausted.
    ResourceExhausted = 5,
    /// The call is not allowed in the current state.
    PreconditionNotMet = 6,
    /// The caller lacks permission.
    PermissionDenied = 7,
    /// The work did not finish in time.
    ExecutionTimeout = 8,
    /// The request is valid, but not implemented.
    Unimplemented = 9,
    /// The device or service cannot be reached at the moment.
    Unavailable = 10,
    /// The state is broken beyond recovery.
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

    /// The name of the error class in other languages, such as `InvalidArgumentError`.
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

    /// Codes that this version does not know become [`ErrorKind::External`].
    fn from_code(code: Code) -> Self {
        Self::ALL.into_iter().find(|kind| *kind as u32 == code.0).unwrap_or(Self::External)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error: what went wrong, where, and what to do about it.
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
    /// Creates an error. The message states what was expected and what was found.
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

    /// Adds the op that failed. If there is one already, it is kept: the innermost op wins.
    pub fn with_op(mut self, op: impl fmt::Display) -> Self {
        self.0.op.get_or_insert_with(|| op.to_string());
        self
    }

    /// Adds the name that a model gives the failed node. An empty name is ignored, and the first one wins.
    pub fn with_node(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.0.node.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// Adds the operand to blame, such as `input 1 (B)`. The first one wins.
    pub fn with_operand(mut self, operand: impl fmt::Display) -> Self {
        self.0.operand.get_or_insert_with(|| operand.to_string());
        self
    }

    /// Adds the device on which it happened. The first one wins.
    pub fn with_device(mut self, device: impl fmt::Display) -> Self {
        self.0.device.get_or_insert_with(|| device.to_string());
        self
    }

    /// Adds advice on what to do about it.
    pub fn with_advice(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Marks the error as caused by an operand's dtype.
    pub(crate) fn mark_dtype_mismatch(mut self) -> Self {
        self.0.is_about_dtype = true;
        self
    }

    /// The kind, which programs can match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was expected and what was found, without op, operand and device.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The op that failed.
    pub fn op(&self) -> Option<&str> {
        self.0.op.as_deref()
    }

    /// The name that a model gives the failed node.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The operand to blame, such as `input 1 (B)`.
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

    /// The failure as the plugin reported it, if one did.
    pub fn plugin_failure(&self) -> Option<&PluginFailure> {
        self.0.failure.as_ref()
    }

    /// True if the op does not support the dtype of an operand. Some languages have an error class of their own for that.
    pub fn is_dtype_mismatch(&self) -> bool {
        self.0.is_about_dtype
    }

    /// True if the device is gone, and everything on it with it.
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

//! The error type of plugins.

use std::fmt;
use std::panic::Location;

use oarlock_abi as abi;
pub use oarlock_abi::Code;

/// The result of a plugin's functions.
pub type Result<T, E = PluginError> = std::result::Result<T, E>;

/// An error of a plugin. Its message says what was expected, what was found and what to do.
///
/// Constructors record the source line of their caller; users see it with the message.
#[derive(Clone, Debug)]
pub struct PluginError {
    code: Code,
    message: String,
    rule: &'static str,
    native_code: i64,
    bits: abi::ErrorFlags,
    location: &'static Location<'static>,
}

macro_rules! constructors {
    ($($(#[$docs:meta])* $name:ident = $code:ident;)*) => {
        $(
            $(#[$docs])*
            #[track_caller]
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(Code::$code, message)
            }
        )*
    };
}

impl PluginError {
    /// An error with any code. The constructors below are shorter where one of them fits.
    #[track_caller]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            rule: "",
            native_code: 0,
            bits: abi::ErrorFlags(0),
            location: Location::caller(),
        }
    }

    constructors! {
        /// An argument has an invalid value.
        invalid_argument = INVALID_ARGUMENT;
        /// The requested object does not exist.
        not_found = NOT_FOUND;
        /// An index or a size is out of bounds.
        out_of_range = OUT_OF_RANGE;
        /// The object to create exists already.
        already_exists = ALREADY_EXISTS;
        /// Memory, handles or another limited resource ran out.
        resource_exhausted = RESOURCE_EXHAUSTED;
        /// The call is not allowed in the current state.
        precondition_not_met = PRECONDITION_NOT_MET;
        /// The caller lacks the permission.
        permission_denied = PERMISSION_DENIED;
        /// The work did not finish in time.
        execution_timeout = EXECUTION_TIMEOUT;
        /// The plugin does not support the request.
        unimplemented = UNIMPLEMENTED;
        /// The device or service cannot be reached at the moment.
        unavailable = UNAVAILABLE;
        /// The plugin is in a state from which it cannot recover.
        fatal = FATAL;
        /// A library or driver below the plugin failed; [`PluginError::with_native_code`] adds its number.
        external = EXTERNAL;
    }

    /// Adds the error number of the library or driver below the plugin.
    pub fn with_native_code(mut self, code: i64) -> Self {
        self.native_code = code;
        self
    }

    /// Names the rule of the contract that was broken, such as `M-2`.
    pub fn with_rule(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }

    /// Marks the error as temporary: the same call may succeed later.
    pub fn as_retryable(mut self) -> Self {
        self.bits = self.bits | abi::ErrorFlags::RETRYABLE;
        self
    }

    /// Marks the device as lost: every handle on it is dead.
    pub fn as_device_lost(mut self) -> Self {
        self.bits = self.bits | abi::ErrorFlags::DEVICE_LOST;
        self
    }

    /// The category of the error, which callers can act on.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The text that users see.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error of a trait function that the plugin does not implement. Its slot stays empty, so the host never calls it.
    pub(crate) fn slot_not_offered(slot: &'static str) -> Self {
        Self::unimplemented(format!("this plugin does not offer `{slot}`"))
    }

    pub(crate) fn from_panic(message: String) -> Self {
        let mut error = Self::fatal(message).with_rule("R-2");
        error.bits = abi::ErrorFlags::CAUGHT_PANIC;
        error
    }

    /// The C struct for the host. Its texts borrow from this error.
    pub(crate) fn as_error_info(&self) -> abi::ErrorInfo {
        abi::ErrorInfo {
            code: self.code,
            bits: self.bits,
            native_code: self.native_code,
            message: abi::Str::borrowed(&self.message),
            rule: abi::Str::new(self.rule),
            file: abi::Str::new(self.location.file()),
            line: self.location.line(),
            ..abi::ErrorInfo::EMPTY
        }
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PluginError {}

/// Returns early with an error unless a condition holds: `ensure!(n > 0, invalid_argument, "expected …, found {n}")`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($message:tt)+) => {
        if !$condition {
            return ::core::result::Result::Err($crate::PluginError::$kind(::std::format!($($message)+)));
        }
    };
}

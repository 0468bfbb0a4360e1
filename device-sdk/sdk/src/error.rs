//! Errors of a plugin.

use std::fmt;
use std::panic::Location;

use oarlock_abi as abi;
pub use oarlock_abi::Code;

/// What a function of a plugin returns.
pub type Result<T, E = PluginError> = std::result::Result<T, E>;

/// Something that went wrong in a plugin: what was expected, what was found, what to do.
///
/// The constructors remember the line they are called on; users see it with the message.
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
    /// An error of any kind.
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
        /// An argument has a value it must not have.
        invalid_argument = INVALID_ARGUMENT;
        /// The thing that was asked for does not exist.
        not_found = NOT_FOUND;
        /// An index or a size lies outside what is there.
        out_of_range = OUT_OF_RANGE;
        /// The thing that was to be made exists already.
        already_exists = ALREADY_EXISTS;
        /// Memory, handles or another limited resource is used up.
        resource_exhausted = RESOURCE_EXHAUSTED;
        /// The call came at a time at which it is not allowed.
        precondition_not_met = PRECONDITION_NOT_MET;
        /// The caller may not do this.
        permission_denied = PERMISSION_DENIED;
        /// The work did not finish in time.
        execution_timeout = EXECUTION_TIMEOUT;
        /// The plugin does not do what was asked.
        unimplemented = UNIMPLEMENTED;
        /// The device or service cannot be reached now.
        unavailable = UNAVAILABLE;
        /// The plugin is in a state from which it cannot go on.
        fatal = FATAL;
        /// A library or driver below the plugin failed; [`PluginError::with_native_code`] adds its number.
        external = EXTERNAL;
    }

    /// The number that the library or driver below the plugin returned.
    pub fn with_native_code(mut self, code: i64) -> Self {
        self.native_code = code;
        self
    }

    /// The rule of the contract that was broken, such as `M-2`.
    pub fn with_rule(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }

    /// The same call may succeed later.
    pub fn as_retryable(mut self) -> Self {
        self.bits = self.bits | abi::ErrorFlags::RETRYABLE;
        self
    }

    /// The device is gone.
    pub fn as_device_lost(mut self) -> Self {
        self.bits = self.bits | abi::ErrorFlags::DEVICE_LOST;
        self
    }

    /// What kind of error this is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What it says.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A function that the trait has and the plugin did not write. The host never calls it.
    pub(crate) fn slot_not_offered(slot: &'static str) -> Self {
        Self::unimplemented(format!("this plugin does not offer `{slot}`"))
    }

    pub(crate) fn from_panic(message: String) -> Self {
        let mut error = Self::fatal(message).with_rule("R-2");
        error.bits = abi::ErrorFlags::CAUGHT_PANIC;
        error
    }

    /// What the host is told. The text is borrowed from this error.
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

/// Returns an error of the given kind unless a condition holds: `ensure!(n > 0, invalid_argument, "expected …, found {n}")`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($message:tt)+) => {
        if !$condition {
            return ::core::result::Result::Err($crate::PluginError::$kind(::std::format!($($message)+)));
        }
    };
}

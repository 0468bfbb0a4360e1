//! The types that cross the interface, except those that programs only hold pointers to.

use core::ffi::{c_char, c_void};

use oarlock_core::{Dtype as CoreDtype, ErrorKind};
use oarlock_engine::PrecisionMode;
use oarlock_host::{LogLevel as HostLevel, SupportLevel as HostSupport};

use crate::describe::{callbacks, enumerations, structures};
use crate::device_handle::DeviceHandle;
use crate::value_kind::ValueKind;

/// How often the interface has grown. What breaks programs changes the name of the library instead.
pub const ABI_VERSION: u32 = 1;

enumerations! {
    /// What kind of thing went wrong.
    Code = "oarlock_code", error_codes();
    /// The type of one element of a tensor. `I4` and `U4` hold two elements a byte, the first in the low half; elements of
    /// `BOOL` are bytes of 0 or 1; `F16`, `BF16` and the types of 8 bits are bit patterns. 0 stands for one that is not known.
    Dtype = "oarlock_dtype",
        CoreDtype::ALL.iter().map(|dtype| (dtype.name().to_owned(), *dtype as u32)).collect();
    /// What a value is, or what a model says about one.
    Kind = "oarlock_kind", value_kinds();
    /// How loud a message is.
    LogLevel = "oarlock_log_level", log_levels();
    /// How precise products have to be. With `BF16` their factors, and images between convolutions, may be rounded to it where
    /// the device is faster so; sums, and all other values between ops, stay what they are.
    Precision = "oarlock_precision", precision_codes();
    /// What proves that a device works. It is the claim of its plugin.
    SupportLevel = "oarlock_support_level", support_levels();
}

callbacks! {
    /// Hears what plugins and the runtime have to say. It may be called from any thread, and from several at once, for as
    /// long as the runtime or anything made of it is there. The texts are there until it returns.
    fn LogCallback = "oarlock_log_callback"(
        context: *mut c_void,
        level: LogLevel,
        source: *const c_char,
        message: *const c_char,
    );
    /// Hears how many nodes of a model are ready, and of how many: while a session is made, and in the first run with new
    /// shapes. It may be called from any thread, for as long as the session is there.
    fn ProgressCallback = "oarlock_progress_callback"(context: *mut c_void, ready: u64, all: u64);
    /// Takes back memory that was lent. It is called exactly once, from any thread, with what was lent: when nothing needs
    /// the memory any more, which is at once where it was copied, and before the function returns if it fails.
    fn ReleaseCallback = "oarlock_release_callback"(context: *mut c_void, data: *const c_void, size: u64);
}

structures! {
    /// How a runtime is to start. Zero means the default in every field but `size`.
    struct RuntimeOptions = "oarlock_runtime_options", grows: true {
        /// `sizeof` of this struct.
        size: u64,
        /// Name and version of the program, for what plugins say.
        program: *const c_char,
        /// The configuration file in place of the user's.
        config: *const c_char,
        /// The device that is used when none is named, such as `cpu` or `gpu`.
        device: *const c_char,
        /// Plugins, and directories of plugins, that come before all others.
        plugin_paths: *const *const c_char,
        /// How many there are.
        plugin_path_count: u64,
        /// Layers to put before every plugin, the outermost first, such as `trace`.
        layers: *const *const c_char,
        /// How many there are.
        layer_count: u64,
        /// Flags, each as `NAME=VALUE`; `oarlock flags` lists them.
        flags: *const *const c_char,
        /// How many there are.
        flag_count: u64,
        /// Who hears messages. Without it nobody does.
        log: LogCallback,
        /// What `log` gets first.
        log_context: *mut c_void,
        /// The least important messages that `log` hears; without it warnings. What a layer that was asked for says to the
        /// user, such as where it wrote, is heard in any case.
        log_level: LogLevel,
        /// How many threads kernels may use together; as many as there are processors without it.
        threads: u32,
    }
    /// How a session runs its model. Zero means the default in every field but `size`.
    struct SessionOptions = "oarlock_session_options", grows: true {
        /// `sizeof` of this struct.
        size: u64,
        /// Where nodes run, each on the first of these that has a kernel for it; without any it is the runtime's default. What
        /// none has a kernel for the CPU runs, and `log` hears a warning unless the CPU is among them; with the flag
        /// `kernel_fallback` at `error` it is an error.
        devices: *const *const DeviceHandle,
        /// How many there are.
        device_count: u64,
        /// Who hears how far the session is.
        progress: ProgressCallback,
        /// What `progress` gets first.
        progress_context: *mut c_void,
        /// How precise products have to be; exact without it.
        precision: Precision,
    }
    /// How much memory a device has and gave, in bytes.
    struct MemoryStatistics = "oarlock_memory_statistics", grows: true {
        /// `sizeof` of this struct, which the caller sets.
        size: u64,
        /// All memory of the device.
        total: u64,
        /// What is free of it now, for any program.
        free: u64,
        /// What tensors and runs of this runtime hold now.
        allocated: u64,
        /// What this runtime keeps of the device now, to have it at hand.
        reserved: u64,
        /// The most that was held at once.
        peak_allocated: u64,
        /// The most that was kept at once.
        peak_reserved: u64,
    }
    /// A text with its size, for elements of tensors: UTF-8 that may have zeroes within and need not end with one.
    struct Text = "oarlock_text", grows: false {
        /// The first byte; it may be NULL where there is none.
        data: *const c_char,
        /// How many bytes.
        size: u64,
    }
}

fn error_codes() -> Vec<(String, u32)> {
    let codes = [
        ("invalid_argument", ErrorKind::InvalidArgument),
        ("not_found", ErrorKind::NotFound),
        ("out_of_range", ErrorKind::OutOfRange),
        ("already_exists", ErrorKind::AlreadyExists),
        ("resource_exhausted", ErrorKind::ResourceExhausted),
        ("precondition_not_met", ErrorKind::PreconditionNotMet),
        ("permission_denied", ErrorKind::PermissionDenied),
        ("execution_timeout", ErrorKind::ExecutionTimeout),
        ("unimplemented", ErrorKind::Unimplemented),
        ("unavailable", ErrorKind::Unavailable),
        ("fatal", ErrorKind::Fatal),
        ("external", ErrorKind::External),
    ];
    codes.map(|(name, kind)| (name.to_owned(), kind as u32)).into()
}

fn log_levels() -> Vec<(String, u32)> {
    let levels = [HostLevel::ERROR, HostLevel::WARNING, HostLevel::INFO, HostLevel::DEBUG];
    levels.iter().filter_map(|level| Some((level.name()?.to_owned(), level.0))).collect()
}

/// Precisions with their numbers in C.
fn precision_codes() -> Vec<(String, u32)> {
    (0..).zip(PrecisionMode::ALL).map(|(number, precision)| (precision.name().to_owned(), number)).collect()
}

fn value_kinds() -> Vec<(String, u32)> {
    let kinds = [
        ("unknown", ValueKind::Unknown),
        ("tensor", ValueKind::Tensor),
        ("sequence", ValueKind::Sequence),
        ("nothing", ValueKind::Nothing),
        ("optional", ValueKind::Optional),
        ("map", ValueKind::Map),
    ];
    kinds.map(|(name, kind)| (name.to_owned(), kind as u32)).into()
}

impl From<ValueKind> for Kind {
    fn from(kind: ValueKind) -> Self {
        Self(kind as u32)
    }
}

/// Support levels with their numbers in C.
pub(crate) const SUPPORT_LEVELS: [(&str, HostSupport); 4] = [
    ("unspecified", HostSupport::Unspecified),
    ("emulator_verified", HostSupport::EmulatorVerified),
    ("driver_verified", HostSupport::DriverVerified),
    ("hardware_verified", HostSupport::HardwareVerified),
];

fn support_levels() -> Vec<(String, u32)> {
    SUPPORT_LEVELS.iter().zip(0..).map(|((name, _), number)| ((*name).to_owned(), number)).collect()
}

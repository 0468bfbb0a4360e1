//! The types that cross the interface, except those that programs only hold pointers to.

use core::ffi::{c_char, c_void};

use oarlock_core::{Dtype as CoreDtype, ErrorKind};
use oarlock_engine::PrecisionMode;
use oarlock_host::{LogLevel as HostLevel, SupportLevel as HostSupport};

use crate::describe::{callbacks, enumerations, structures};
use crate::device_handle::DeviceHandle;
use crate::value_kind::ValueKind;

/// Counts additions to the interface. A breaking change changes the soname instead.
pub const ABI_VERSION: u32 = 1;

enumerations! {
    /// The kind of an error.
    Code = "oarlock_code", error_codes();
    /// The type of an element of a tensor. `I4` and `U4` pack two elements into a byte, the first in the low half; elements of
    /// `BOOL` are bytes of 0 or 1; `F16`, `BF16` and the 8-bit types are bit patterns. 0 means unknown.
    Dtype = "oarlock_dtype",
        CoreDtype::ALL.iter().map(|dtype| (dtype.name().to_owned(), *dtype as u32)).collect();
    /// The kind of a value, or the kind that a model states.
    Kind = "oarlock_kind", value_kinds();
    /// The severity of a message.
    LogLevel = "oarlock_log_level", log_levels();
    /// The precision of matrix products and convolutions. With `BF16`, their operands, and images between convolutions, may be
    /// rounded to it if that is faster on the device; sums and all other values between ops are not rounded.
    Precision = "oarlock_precision", precision_codes();
    /// The support level of a device, as its plugin claims it.
    SupportLevel = "oarlock_support_level", support_levels();
}

callbacks! {
    /// Receives messages of plugins and of the runtime. It may be called from any thread, and from several at once, as long as
    /// the runtime or anything made from it exists. The texts are valid until it returns.
    fn LogCallback = "oarlock_log_callback"(
        context: *mut c_void,
        level: LogLevel,
        source: *const c_char,
        message: *const c_char,
    );
    /// Receives how many nodes of a model are prepared, and the total: while a session is made, and in the first run with new
    /// shapes. It may be called from any thread, as long as the session exists.
    fn ProgressCallback = "oarlock_progress_callback"(context: *mut c_void, ready: u64, all: u64);
    /// Returns borrowed memory. It is called exactly once, from any thread, when the memory is no longer needed: at once if it
    /// was copied, and before the borrowing function returns if that fails.
    fn ReleaseCallback = "oarlock_release_callback"(context: *mut c_void, data: *const c_void, size: u64);
}

structures! {
    /// Options of a runtime. In every field but `size`, zero means the default.
    struct RuntimeOptions = "oarlock_runtime_options", grows: true {
        /// `sizeof` of this struct.
        size: u64,
        /// Name and version of the program, which plugins see.
        program: *const c_char,
        /// The configuration file, by default the user's.
        config: *const c_char,
        /// The default device, such as `cpu` or `gpu`.
        device: *const c_char,
        /// Plugins and directories of plugins, searched before all others.
        plugin_paths: *const *const c_char,
        /// The number of entries.
        plugin_path_count: u64,
        /// Layers around every plugin, such as `trace`, the outermost first.
        layers: *const *const c_char,
        /// The number of entries.
        layer_count: u64,
        /// Flags, each as `NAME=VALUE`; `oarlock flags` lists them.
        flags: *const *const c_char,
        /// The number of entries.
        flag_count: u64,
        /// Receives messages; NULL drops them.
        log: LogCallback,
        /// The first argument of `log`.
        log_context: *mut c_void,
        /// The lowest severity that `log` receives, by default warnings. Messages of requested layers to the user, such as the
        /// file that they wrote, always arrive.
        log_level: LogLevel,
        /// The number of threads that kernels share, by default the number of processors.
        threads: u32,
    }
    /// Options of a session. In every field but `size`, zero means the default.
    struct SessionOptions = "oarlock_session_options", grows: true {
        /// `sizeof` of this struct.
        size: u64,
        /// The devices, by default the runtime's default device. Each node runs on the first one that has a kernel for it. If
        /// none has, the CPU runs it, and `log` receives a warning unless the CPU is one of the devices; with the flag
        /// `kernel_fallback` set to `error`, it is an error.
        devices: *const *const DeviceHandle,
        /// The number of entries.
        device_count: u64,
        /// Receives progress; NULL ignores it.
        progress: ProgressCallback,
        /// The first argument of `progress`.
        progress_context: *mut c_void,
        /// The precision of products, by default exact.
        precision: Precision,
    }
    /// Memory of a device, in bytes.
    struct MemoryStatistics = "oarlock_memory_statistics", grows: true {
        /// `sizeof` of this struct, which the caller sets.
        size: u64,
        /// The total memory of the device.
        total: u64,
        /// The memory that is free for any program.
        free: u64,
        /// The memory in use by tensors and runs of this runtime.
        allocated: u64,
        /// The memory that this runtime has reserved on the device.
        reserved: u64,
        /// The peak of the memory in use.
        peak_allocated: u64,
        /// The peak of the reserved memory.
        peak_reserved: u64,
    }
    /// A text with its size, for elements of tensors: UTF-8 that may contain zeros and need not end with one.
    struct Text = "oarlock_text", grows: false {
        /// The first byte; may be NULL if the text is empty.
        data: *const c_char,
        /// The size in bytes.
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

//! Starts runtimes from C options.

#![expect(unsafe_code, reason = "handles, options and a callback come from C as pointers")]

use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use oarlock_core::flags::Flags;
use oarlock_core::{Error, Result, Runtime};
use oarlock_host::{
    BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, LogLevel as HostLevel, LogSink, PhaseWatchdog,
    PluginAdapter, PluginOutcome, PluginReport,
};

use crate::c_types::{self, LogCallback, LogLevel, RuntimeOptions};
use crate::device_handle::DeviceHandle;
use crate::pointer::{
    clear_output_handle, deref_nullable, deref_required, into_raw_handle, read_optional_text, read_options,
    read_texts, to_c_string,
};

pub(crate) use crate::pointer::free_handle;

/// The plugins linked into this library.
const BUILT_IN: &[BuiltInPlugin] = &[
    #[cfg(feature = "cpu")]
    BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltInPlugin { name: "fault", query: oarlock_plugin_fault::QUERY },
    BuiltInPlugin { name: "record", query: oarlock_plugin_record::QUERY },
    BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY },
    BuiltInPlugin { name: "validate", query: oarlock_plugin_validate::QUERY },
];

/// What makes plugins for other programs usable.
const ADAPTERS: &[PluginAdapter] =
    &[PluginAdapter { entry: oarlock_plugin_paddle::ENTRY, query: oarlock_plugin_paddle::query }];

/// A runtime with the texts that C reads from it.
pub struct RuntimeHandle {
    runtime: Arc<Runtime>,
    devices: Vec<DeviceHandle>,
    refusals: Vec<CString>,
}

impl RuntimeHandle {
    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    fn new(runtime: Runtime) -> Self {
        let devices = runtime.devices().iter().map(DeviceHandle::new).collect();
        let refusal = |plugin: &PluginReport| match &plugin.outcome {
            PluginOutcome::Refused(refusal) => Some(to_c_string(&refusal.to_string())),
            PluginOutcome::Loaded(_) => None,
        };
        let refusals = runtime.host().report().plugins.iter().filter_map(refusal).collect();
        Self { runtime: Arc::new(runtime), devices, refusals }
    }
}

/// Forwards messages to the program's callback.
struct ProgramLog {
    callback: unsafe extern "C" fn(*mut c_void, LogLevel, *const c_char, *const c_char),
    context: *mut c_void,
    least: HostLevel,
}

// SAFETY: the program promises that its function may be called from any thread, with its context.
unsafe impl Send for ProgramLog {}
// SAFETY: as above; it may also be called from several threads at once.
unsafe impl Sync for ProgramLog {}

impl LogSink for ProgramLog {
    fn log(&self, plugin: &str, level: HostLevel, message: &str) {
        if level.0 > self.least.0 {
            return;
        }
        self.forward_message(plugin, level, message);
    }

    fn log_layer_note(&self, layer: &str, message: &str) {
        self.forward_message(layer, HostLevel::INFO, message);
    }
}

impl ProgramLog {
    fn forward_message(&self, source: &str, level: HostLevel, message: &str) {
        let (plugin, message) = (to_c_string(source), to_c_string(message));
        // SAFETY: the program keeps function and context valid as long as there are messages; the texts live until it
        // returns.
        unsafe { (self.callback)(self.context, LogLevel(level.0), plugin.as_ptr(), message.as_ptr()) };
    }
}

pub(crate) unsafe fn library_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

pub(crate) unsafe fn abi_version() -> u32 {
    c_types::ABI_VERSION
}

pub(crate) unsafe fn start_runtime(
    given: *const RuntimeOptions,
    runtime: *mut *mut RuntimeHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller; zeroes are a `RuntimeOptions`.
    let (place, given) =
        unsafe { (clear_output_handle(runtime, "runtime")?, read_options(given, "options")?) };
    // SAFETY: guaranteed by the caller.
    let host = unsafe { host_options(&given)? };
    // SAFETY: guaranteed by the caller.
    let flags = unsafe { parse_flags(&given, &host.environment)? };
    let runtime = Runtime::start(host, flags)?;
    runtime.host().report().layers_left_out().iter().for_each(|note| runtime.log_warning(note));
    *place = into_raw_handle(RuntimeHandle::new(runtime));
    Ok(())
}

unsafe fn host_options(given: &RuntimeOptions) -> Result<HostOptions> {
    let mut environment = HostEnvironment::from_process();
    // SAFETY: guaranteed by the caller.
    let (program, config) = unsafe {
        (read_optional_text(given.program, "program")?, read_optional_text(given.config, "config")?)
    };
    if let Some(file) = config {
        let absolute = std::path::absolute(Path::new(file));
        let unusable =
            |error| Error::invalid_argument(format!("expected `config` to be a file, found {error}"));
        environment.config = Some(absolute.map_err(unusable)?);
    }
    let config =
        HostConfig::load(&environment).map_err(|error| Error::invalid_argument(error.to_string()))?;
    let library = format!("liboarlock {}", env!("CARGO_PKG_VERSION"));
    let mut host = HostOptions::new(program.map_or(library, str::to_owned), config, environment);
    // SAFETY: guaranteed by the caller.
    let (paths, layers) = unsafe {
        (
            read_texts(given.plugin_paths, given.plugin_path_count, "plugin_paths")?,
            read_texts(given.layers, given.layer_count, "layers")?,
        )
    };
    host.paths = paths.into_iter().map(PathBuf::from).collect();
    host.layers = layers.into_iter().map(str::to_owned).collect();
    host.built_in = BUILT_IN.to_vec();
    host.adapters = ADAPTERS.to_vec();
    if let LogCallback(Some(callback)) = given.log {
        let least = if given.log_level.0 == 0 { HostLevel::WARNING } else { HostLevel(given.log_level.0) };
        host.log = Arc::new(ProgramLog { callback, context: given.log_context, least });
        host.phases = Arc::new(PhaseWatchdog::new(host.log.clone()));
    }
    Ok(host)
}

unsafe fn parse_flags(given: &RuntimeOptions, environment: &HostEnvironment) -> Result<Flags> {
    let mut flags = Flags::from_environment(|name| environment.variable(name))?;
    // SAFETY: guaranteed by the caller.
    let (device, settings) = unsafe {
        (read_optional_text(given.device, "device")?, read_texts(given.flags, given.flag_count, "flags")?)
    };
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Error::invalid_argument(format!("expected a flag as `NAME=VALUE`, found `{setting}`"))
        })?;
        flags.set(name, value)?;
    }
    if let Some(device) = device {
        flags.set("device", device)?;
    }
    if given.threads > 0 {
        flags.set("threads", &given.threads.to_string())?;
    }
    Ok(flags)
}

pub(crate) unsafe fn device_count(runtime: *const RuntimeHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(runtime) }.map_or(0, |runtime| runtime.devices.len() as u64)
}

pub(crate) unsafe fn runtime_device(runtime: *const RuntimeHandle, index: u64) -> *const DeviceHandle {
    // SAFETY: guaranteed by the caller.
    let runtime = unsafe { deref_nullable(runtime) };
    let device = runtime.and_then(|runtime| runtime.devices.get(usize::try_from(index).ok()?));
    device.map_or(ptr::null(), ptr::from_ref)
}

pub(crate) unsafe fn find_device(
    runtime: *const RuntimeHandle,
    name: *const c_char,
    device: *mut *const DeviceHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller; a place for a pointer to what is read is one for a pointer.
    let place = unsafe { clear_output_handle(device.cast::<*mut DeviceHandle>(), "device")? };
    // SAFETY: guaranteed by the caller.
    let (runtime, name) = unsafe { (deref_required(runtime, "runtime")?, read_optional_text(name, "name")?) };
    let found = match name {
        Some(name) => runtime.runtime.device(name)?,
        None => runtime.runtime.default_device()?.clone(),
    };
    let found = runtime.devices.iter().find(|known| known.device().is_same_device(&found));
    let found = found.ok_or_else(|| Error::fatal("expected a device of the runtime, found another"))?;
    *place = ptr::from_ref(found).cast_mut();
    Ok(())
}

pub(crate) unsafe fn refusal_count(runtime: *const RuntimeHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(runtime) }.map_or(0, |runtime| runtime.refusals.len() as u64)
}

pub(crate) unsafe fn refusal_text(runtime: *const RuntimeHandle, index: u64) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let runtime = unsafe { deref_nullable(runtime) };
    let refusal = runtime.and_then(|runtime| runtime.refusals.get(usize::try_from(index).ok()?));
    refusal.map_or(ptr::null(), |refusal: &CString| CStr::as_ptr(refusal))
}

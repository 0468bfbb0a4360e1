//! The services that the host offers to plugins: the functions in the table, and the state behind them.

#![expect(unsafe_code, reason = "the services are functions that C code calls")]

pub(crate) mod errors;
pub(crate) mod host_call;
mod log_sink;
pub(crate) mod op_runner;
pub(crate) mod stop_request;
pub(crate) mod thread_pool;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use oarlock_abi as abi;
pub use oarlock_abi::LogLevel;

use crate::foreign_struct::copy_struct;
use crate::plugin_phase::RunningPhase;
use crate::services::errors::{Code, PluginFailure};
use crate::services::host_call::HostCall;
use crate::services::thread_pool::ThreadPool;
use crate::text::suggestion::did_you_mean;
use crate::{PhaseObserver, PhaseStart, PluginPhase, START_TIMEOUT, UnwatchedPhases};
pub use log_sink::{LogSink, SilentLogSink};

/// Limit on the dimensions of an output, more than any model format permits.
const MAX_DIMENSIONS: u64 = 64;
/// Limit on the key of an option.
const MAX_KEY_LENGTH: u64 = 1024;
/// Limit on the description of a kernel; longer ones are truncated.
const MAX_KERNEL_DESCRIPTION: u64 = 200;
/// Limit on a log message; longer ones are truncated.
const MAX_LOG_LENGTH: u64 = 16 * 1024;

/// State that all plugins of a host share.
pub(crate) struct SharedServices {
    pub(crate) log: Arc<dyn LogSink>,
    /// The options of each plugin, by plugin name.
    pub(crate) options: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) pool: ThreadPool,
    /// Name and version of the program.
    pub(crate) program: String,
    /// Learns when code of plugins runs.
    pub(crate) phases: Arc<dyn PhaseObserver>,
    /// The limit of each phase.
    pub(crate) start_timeout: Duration,
}

impl SharedServices {
    pub(crate) fn new(
        program: String,
        log: Arc<dyn LogSink>,
        options: BTreeMap<String, BTreeMap<String, String>>,
        threads: Option<NonZeroUsize>,
    ) -> Self {
        let pool = ThreadPool::new(threads);
        Self { log, options, pool, program, phases: Arc::new(UnwatchedPhases), start_timeout: START_TIMEOUT }
    }
}

/// The state of one plugin. Its address is the context of every service, so it never moves.
pub(crate) struct PluginServices {
    shared: Arc<SharedServices>,
    /// The name in messages until the plugin has given its own.
    file_name: String,
    name: OnceLock<String>,
    /// The limit of each phase, if its manifest asks for another than usual.
    start_timeout: OnceLock<Duration>,
    host: OnceLock<abi::Host>,
    /// The option keys that the plugin has read; these are the keys that it knows.
    asked: Mutex<BTreeSet<String>>,
    /// True if the plugin is a layer that the user requested and that is in use.
    is_layer_in_use: AtomicBool,
    /// The plugin's own context. It is never read. The memory of a refused plugin stays allocated until the process ends; this
    /// pointer keeps it reachable, so that leak checkers do not report it.
    plugin_context: AtomicPtr<c_void>,
}

/// Services of plugins whose code stays mapped, so they may call the services until the process ends.
static LEAKED_SERVICES: Mutex<Vec<Arc<PluginServices>>> = Mutex::new(Vec::new());

impl PluginServices {
    pub(crate) fn new(shared: &Arc<SharedServices>, file_name: &str) -> Arc<Self> {
        Arc::new(Self {
            shared: shared.clone(),
            file_name: file_name.to_owned(),
            name: OnceLock::new(),
            start_timeout: OnceLock::new(),
            host: OnceLock::new(),
            asked: Mutex::new(BTreeSet::new()),
            is_layer_in_use: AtomicBool::new(false),
            plugin_context: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// The name for messages: the plugin's own name, or the file's.
    pub(crate) fn plugin_name(&self) -> &str {
        self.name.get().unwrap_or(&self.file_name)
    }

    /// Tells the observer that code of the plugin, and of the layers around it, is about to run.
    pub(crate) fn begin_phase(&self, file: &Path, phase: PluginPhase, layers: &[PathBuf]) -> RunningPhase {
        let limit = *self.start_timeout.get().unwrap_or(&self.shared.start_timeout);
        RunningPhase::begin_phase(&self.shared.phases, &PhaseStart { file, phase, limit, layers })
    }

    /// Gives the plugin the time for each phase that its manifest asks for. Only the first call counts.
    pub(crate) fn allow_start_time(&self, limit: Duration) {
        self.start_timeout.get_or_init(|| limit);
    }

    /// Sets the plugin's name, which is the key of its options. Only the first call counts.
    pub(crate) fn set_name(&self, name: &str) {
        self.name.get_or_init(|| name.to_owned());
    }

    /// Logs a message on behalf of the plugin.
    pub(crate) fn log_message(&self, level: LogLevel, message: &str) {
        if level == LogLevel::INFO && self.is_layer_in_use.load(Ordering::Relaxed) {
            self.shared.log.log_layer_note(self.plugin_name(), message);
        } else {
            self.shared.log.log(self.plugin_name(), level, message);
        }
    }

    /// Marks the plugin as a layer in use.
    pub(crate) fn mark_used_as_layer(&self) {
        self.is_layer_in_use.store(true, Ordering::Relaxed);
    }

    /// One message for each configured option that the plugin has not read.
    pub(crate) fn unknown_options(&self) -> Vec<String> {
        let Some(chosen) = self.shared.options.get(self.plugin_name()) else { return Vec::new() };
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<String> = asked.iter().map(|key| format!("`{key}`")).collect();
        let known = if known.is_empty() { "no option".to_owned() } else { known.join(" or ") };
        let name = self.plugin_name();
        let unknown = chosen.keys().filter(|key| !asked.contains(*key));
        let told = unknown.map(|key| {
            let meant = did_you_mean(key, asked.iter().map(String::as_str));
            format!("expected {known} under `[plugin.{name}]` in the configuration, found `{key}`{meant}")
        });
        told.collect()
    }

    /// The option keys that the plugin has read.
    pub(crate) fn asked_options(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Notes option keys that the plugin has read in another process.
    pub(crate) fn note_asked_options(&self, keys: Vec<String>) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).extend(keys);
    }

    /// Stores the context from the plugin's answer.
    pub(crate) fn set_plugin_context(&self, context: *mut c_void) {
        self.plugin_context.store(context, Ordering::Relaxed);
    }

    /// Keeps the services until the process ends.
    pub(crate) fn leak_services(self: &Arc<Self>) {
        LEAKED_SERVICES.lock().unwrap_or_else(PoisonError::into_inner).push(self.clone());
    }

    /// The host's struct for the query. It is valid as long as the services.
    pub(crate) fn abi_host(self: &Arc<Self>) -> &abi::Host {
        self.host.get_or_init(|| abi::Host {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            contract_minor_oldest: crate::negotiate::OLDEST_MINOR,
            sanitizer: abi::SANITIZER,
            name: abi::Str::borrowed(&self.shared.program),
            context: Arc::as_ptr(self).cast_mut().cast(),
            services: &raw const HOST_TABLE,
            ..abi::Host::EMPTY
        })
    }
}

impl std::fmt::Debug for PluginServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Services").field(&self.plugin_name()).finish()
    }
}

static HOST_TABLE: abi::HostTable = abi::HostTable {
    error_create: Some(error_create),
    error_read: Some(error_read),
    error_release: Some(error_release),
    log: Some(host_log),
    option: Some(host_option),
    worker_count: Some(worker_count),
    parallel_for: Some(parallel_for),
    output_allocate: Some(output_allocate),
    experimental: Some(host_experimental),
    kernel_describe: Some(kernel_describe),
    constant_read: Some(constant_read),
    stop_check: Some(stop_check),
    ..abi::HostTable::EMPTY
};

/// Runs a service for the plugin with this context, and catches panics.
///
/// # Safety
///
/// `context` is the context that the host passed to a plugin that is still loaded.
unsafe fn serve_call(
    context: *mut c_void,
    service: impl FnOnce(&PluginServices) -> Result<(), PluginFailure>,
) -> abi::Error {
    if context.is_null() {
        return argument_failure("the context of the host", "a null pointer").into_error();
    }
    // SAFETY: the caller vouches for the context, which is the address of a `PluginServices`.
    let services = unsafe { &*context.cast::<PluginServices>() };
    match catch_unwind(AssertUnwindSafe(|| service(services))) {
        Ok(Ok(())) => abi::Error::NONE,
        Ok(Err(failure)) => failure.into_error(),
        Err(_) => PluginFailure::new("host", Code::FATAL, "a service of the host panicked").into_error(),
    }
}

fn argument_failure(expected: &str, found: &str) -> PluginFailure {
    PluginFailure::new("host", Code::INVALID_ARGUMENT, format!("expected {expected}, found {found}"))
}

/// Writes a result through a pointer of the plugin; null is an error.
///
/// # Safety
///
/// `target` is null or points to a place for a `T`.
unsafe fn write_result<T>(target: *mut T, value: T) -> Result<(), PluginFailure> {
    if target.is_null() {
        return Err(argument_failure("a place for the result", "a null pointer"));
    }
    // SAFETY: the pointer is not null and the caller vouches for it.
    unsafe { target.write(value) };
    Ok(())
}

/// Copies a text of a plugin, truncated to `longest` bytes. Invalid UTF-8 is replaced.
///
/// # Safety
///
/// The text is readable.
unsafe fn lossy_text(text: abi::Str, longest: u64) -> String {
    let cut = abi::Str { size: text.size.min(longest), ..text };
    // SAFETY: the caller vouches for the text, of which this is the beginning.
    String::from_utf8_lossy(unsafe { cut.bytes() }.unwrap_or_default()).into_owned()
}

unsafe extern "C" fn error_create(context: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    let service = |services: &PluginServices| {
        // SAFETY: the plugin vouches for the description while the call lasts.
        let failure = match unsafe { copy_struct(info) } {
            // SAFETY: as above, for its texts.
            Ok(info) => unsafe { PluginFailure::from_error_info(&info, services.plugin_name()) },
            Err(breach) => {
                let message = format!("expected {}, found {}", breach.expected, breach.found);
                PluginFailure::new(services.plugin_name(), Code::FATAL, message).with_rule(breach.rule)
            }
        };
        Err(failure)
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn error_read(
    context: *mut c_void,
    failure: abi::Error,
    info: *mut abi::ErrorInfo,
) -> abi::Error {
    let service = |_: &PluginServices| {
        let found = errors::read_error(failure)?;
        let size = if info.is_null() {
            0
        } else {
            // SAFETY: the pointer is not null, and every struct starts with its size.
            unsafe { (&raw const (*info).size).read() }
        };
        if size < abi::ErrorInfo::SIZE_AT_FIRST {
            let expected = format!("an `error_info` of at least {} bytes", abi::ErrorInfo::SIZE_AT_FIRST);
            return Err(argument_failure(&expected, &format!("one of {size} bytes")).with_rule("S-2"));
        }
        let known = size.min(found.size);
        let found = abi::ErrorInfo { size, ..found };
        // SAFETY: the plugin's struct has at least that many bytes, and so has ours.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const found).cast::<u8>(), info.cast::<u8>(), known as usize);
        }
        Ok(())
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn error_release(context: *mut c_void, failure: abi::Error) -> abi::Error {
    let service = |_: &PluginServices| {
        if failure.is_some() {
            errors::release_error(failure)?;
        }
        Ok(())
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn host_log(context: *mut c_void, level: LogLevel, message: abi::Str) -> abi::Error {
    let service = |services: &PluginServices| {
        // SAFETY: the plugin vouches for the text while the call lasts.
        let message = unsafe { lossy_text(message, MAX_LOG_LENGTH) };
        services.log_message(level, &message);
        Ok(())
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn host_option(context: *mut c_void, key: abi::Str, value: *mut abi::Str) -> abi::Error {
    let service = |services: &PluginServices| {
        // SAFETY: the plugin vouches for the text while the call lasts.
        let key = unsafe { lossy_text(key, MAX_KEY_LENGTH) };
        let options = services.shared.options.get(services.plugin_name());
        let found = options.and_then(|options| options.get(&key)).map_or("", String::as_str);
        services.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        // SAFETY: the plugin vouches for the place; the options live as long as the services.
        unsafe { write_result(value, abi::Str::borrowed(found)) }
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn worker_count(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the plugin hands back its context and vouches for the place.
    unsafe { serve_call(context, |services| write_result(count, services.shared.pool.worker_count())) }
}

unsafe extern "C" fn parallel_for(
    context: *mut c_void,
    count: u64,
    grain: u64,
    task: Option<abi::Task>,
    user: *mut c_void,
) -> abi::Error {
    /// The plugin's `user` pointer, which its tasks share.
    struct TaskPointer(*mut c_void);
    // SAFETY: a plugin that asks for several threads expects its tasks to run on them.
    unsafe impl Sync for TaskPointer {}
    impl TaskPointer {
        fn pointer(&self) -> *mut c_void {
            self.0
        }
    }
    let service = |services: &PluginServices| {
        let Some(task) = task else { return Err(argument_failure("a task", "a null pointer")) };
        let user = TaskPointer(user);
        services.shared.pool.parallel_for(count, grain, |begin, end, worker| {
            // SAFETY: the plugin vouches for its task and for what `user` points to until all tasks are done.
            unsafe { task(user.pointer(), begin, end, worker) };
        });
        Ok(())
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn output_allocate(
    context: *mut c_void,
    call: *const abi::Call,
    index: u32,
    dtype: abi::Dtype,
    dims: *const i64,
    dims_count: u64,
) -> abi::Error {
    let service = |_: &PluginServices| {
        if call.is_null() || dims_count > MAX_DIMENSIONS || (dims.is_null() && dims_count > 0) {
            let expected = format!("a call and at most {MAX_DIMENSIONS} dimensions");
            return Err(argument_failure(
                &expected,
                &format!("call {call:p} and {dims_count} dimensions at {dims:p}"),
            ));
        }
        let dims = if dims_count == 0 {
            &[]
        } else {
            // SAFETY: the pointer is not null and the plugin vouches for the list while the call lasts.
            unsafe { std::slice::from_raw_parts(dims, dims_count as usize) }
        };
        // SAFETY: the plugin hands back the call it was given, while it runs.
        unsafe { HostCall::allocate_output(call, index, dtype, dims) }
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn kernel_describe(
    context: *mut c_void,
    call: *const abi::Call,
    way: abi::Str,
) -> abi::Error {
    let service = |_: &PluginServices| {
        if call.is_null() {
            return Err(argument_failure("a call", "a null pointer"));
        }
        // SAFETY: the plugin vouches for the text while the call lasts, and hands back the call it was given.
        unsafe {
            HostCall::describe_kernel(call, crate::sanitize_text(&lossy_text(way, MAX_KERNEL_DESCRIPTION)));
        };
        Ok(())
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn constant_read(
    context: *mut c_void,
    call: *const abi::Call,
    index: u32,
    keep: u32,
) -> abi::Error {
    let service = |_: &PluginServices| {
        if call.is_null() {
            return Err(argument_failure("a call", "a null pointer"));
        }
        // SAFETY: the plugin hands back the call it was given, while it runs.
        unsafe { HostCall::read_constant(call, index, keep != 0) }
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn stop_check(context: *mut c_void) -> abi::Error {
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, |_| stop_request::check_stop()) }
}

unsafe extern "C" fn host_experimental(
    context: *mut c_void,
    name: abi::Str,
    function: *mut *mut c_void,
) -> abi::Error {
    let service = |_: &PluginServices| {
        // SAFETY: the plugin vouches for the text while the call lasts.
        let name = unsafe { lossy_text(name, MAX_KEY_LENGTH) };
        if name == op_runner::RUN_OP {
            // SAFETY: the plugin vouches for the place.
            return unsafe { write_result(function, run_op as op_runner::RunOp as *mut c_void) };
        }
        let message = format!(
            "expected the name of an experimental function, found `{name}`; this host has `{}`",
            op_runner::RUN_OP
        );
        Err(PluginFailure::new("host", Code::NOT_FOUND, message))
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

unsafe extern "C" fn run_op(
    context: *mut c_void,
    domain: abi::Str,
    op: abi::Str,
    opset: u32,
    inputs: *const *const abi::Tensor,
    inputs_count: u64,
    attributes: *const *const abi::Attribute,
    attributes_count: u64,
    outputs: *const *const abi::Tensor,
    outputs_count: u64,
) -> abi::Error {
    let service = |_: &PluginServices| {
        // SAFETY: the plugin vouches for texts and lists while the call lasts.
        unsafe {
            op_runner::serve_op(
                &lossy_text(domain, MAX_KEY_LENGTH),
                &lossy_text(op, MAX_KEY_LENGTH),
                opset,
                (inputs, inputs_count),
                (attributes, attributes_count),
                (outputs, outputs_count),
            )
        }
    };
    // SAFETY: the plugin hands back its context.
    unsafe { serve_call(context, service) }
}

#[cfg(test)]
mod tests;

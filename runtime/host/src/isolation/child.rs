//! The child's end: a host of one plugin, which serves the host of the parent.

#![expect(
    unsafe_code,
    reason = "the plugin is handed on as its tables, and shut down through its own function"
)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use oarlock_abi as abi;
use oarlock_isolation::{
    ChildEnd, HostFunctions, KeptConstants, KernelCaller, LaneHost, LogSender, ServedPlugin, WireFailure,
};

use super::parent::ChildSetup;
use crate::PluginAdapter;
use crate::load::{QueriedPlugin, open_plugin};
use crate::services::errors::PluginFailure;
use crate::services::host_call::{CallServices, HostCall};
use crate::services::stop_request::with_stop_check;
use crate::services::{LogLevel, LogSink, PluginServices, SharedServices};

/// True if the program was started to serve a plugin: its standard input is the parent's socket.
pub(crate) fn is_wanted() -> bool {
    let kind =
        rustix::fs::fstat(io::stdin()).map(|status| rustix::fs::FileType::from_raw_mode(status.st_mode));
    kind == Ok(rustix::fs::FileType::Socket)
}

/// Serves the plugin at `path` until the parent ends.
pub(crate) fn serve_parent(path: &Path, adapters: &[PluginAdapter]) -> ExitCode {
    match load_and_serve(path, adapters) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("`{}`: expected to serve it to another process, found: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn load_and_serve(path: &Path, adapters: &[PluginAdapter]) -> io::Result<()> {
    let end = ChildEnd::enter()?;
    let setup: ChildSetup = serde_json::from_slice(end.setup())?;
    let options = BTreeMap::from([(setup.name.clone(), setup.options)]);
    let log = Arc::new(ParentLog(end.log_sender()));
    let shared = Arc::new(SharedServices::new(setup.program, log, options, setup.threads));
    let services = PluginServices::new(&shared, &setup.name);
    let loaded = match open_plugin(path, services.clone(), adapters) {
        Ok(loaded) => loaded,
        Err(refusal) => return end.refuse_plugin(&serde_json::to_vec(&refusal)?),
    };
    // Everything of the plugin stays until the process ends.
    let QueriedPlugin { checked, .. } = Box::leak(Box::new(loaded));
    services.leak_services();
    let plugin = ServedPlugin {
        plugin: checked.answer,
        context: checked.context,
        core: checked.tables.core,
        asynchronous: checked.tables.r#async,
        kernels: checked.rows.iter().map(|row| row.kernel).collect(),
        kept: KeptConstants::default(),
    };
    let lanes = ChildLanes { services: services.clone(), context: checked.context, unload: checked.unload };
    // SAFETY: the plugin was checked when it was opened, and stays; so do the services.
    match unsafe { end.serve_plugin(&plugin, HostFunctions::from_host(services.abi_host()), &lanes) }? {}
}

/// Sends the messages of the plugin to the parent.
struct ParentLog(LogSender);

impl LogSink for ParentLog {
    fn log(&self, _plugin: &str, level: LogLevel, message: &str) {
        self.0.log(level, message);
    }
}

struct ChildLanes {
    services: Arc<PluginServices>,
    context: *mut c_void,
    unload: Option<unsafe extern "C" fn(*mut c_void) -> abi::Error>,
}

// SAFETY: the context is the plugin's own, whose functions may be called on any thread (rule T-1).
unsafe impl Sync for ChildLanes {}

impl LaneHost for ChildLanes {
    fn enter_lane(&self, caller: &dyn KernelCaller, serve: &mut dyn FnMut(*mut c_void)) {
        let calls = ForwardedCalls(caller);
        let record = HostCall::new(&calls);
        with_stop_check(&|| caller.check_stop().map_err(into_plugin_failure), || serve(record.as_ptr()));
    }

    fn asked_options(&self) -> Vec<String> {
        self.services.asked_options()
    }

    fn shut_down(&self) {
        if let Some(unload) = self.unload {
            // SAFETY: nobody uses the plugin any more. The process ends next, whether this fails or not.
            unsafe { unload(self.context) };
        }
    }
}

/// The requests of a kernel, which go to the parent.
struct ForwardedCalls<'a>(&'a dyn KernelCaller);

impl CallServices for ForwardedCalls<'_> {
    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), PluginFailure> {
        self.0.allocate_output(index, dtype, dims).map_err(into_plugin_failure)
    }

    fn describe_kernel(&self, way: String) {
        self.0.describe_kernel(&way);
    }
}

fn into_plugin_failure(failure: WireFailure) -> PluginFailure {
    let mut details = PluginFailure::new("host", failure.code, failure.message).with_rule(&failure.rule);
    details.set_details(failure.bits, failure.native_code, failure.file, failure.line);
    details
}

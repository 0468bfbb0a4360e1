//! A loaded plugin, from start to shutdown.

#![expect(unsafe_code, reason = "callers are made of tables that a plugin handed out")]

pub(crate) mod layers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::Library;
use oarlock_abi as abi;
use oarlock_conformance::{FloatMode, FloatModeGuard};
use oarlock_isolation::IsolatedPlugin;

use crate::generated::{AsyncCalls, CoreCalls, KernelCalls, LayerCalls};
use crate::live_handles::{LiveHandleCounts, LiveHandles};
use crate::load::device_list::{device_ids, visible_devices};
use crate::load::kernel_checks::{KernelRecord, check_kernels};
use crate::load::validate::checked_table;
use crate::load::{InUse, QueriedPlugin, breach_refusal, failure_refusal};
use crate::plugin::layers::{LayerChain, LayerWrapper};
use crate::plugin_phase::RunningPhase;
use crate::services::errors::result_from_error;
use crate::services::{LogLevel, PluginServices};
use crate::{HostEnvironment, KernelInfo, PluginInfo, PluginKind, PluginPhase, Refusal, sanitize_text};

/// Callers for the tables of a plugin, layers included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PluginCalls {
    /// Devices and their memory.
    pub(crate) core: Option<CoreCalls>,
    /// Streams and events.
    pub(crate) r#async: Option<AsyncCalls>,
    /// The plugin's own functions as a layer; never wrapped.
    pub(crate) layer: Option<LayerCalls>,
}

/// A kernel of a loaded plugin. It is valid as long as the plugin is loaded.
#[derive(Debug)]
pub struct LoadedKernel {
    /// Its op, versions, properties and requirements on operands.
    pub info: KernelInfo,
    pub(crate) calls: KernelCalls,
}

/// A loaded plugin. It is shut down when the last handle to it, or to any of its resources, is dropped.
pub struct LoadedPlugin {
    info: PluginInfo,
    file: PathBuf,
    pub(crate) calls: PluginCalls,
    kernels: Vec<LoadedKernel>,
    /// The initialized devices.
    devices: Vec<u32>,
    /// True if it has devices, and the user's variable shows none of them.
    hides_all_devices: bool,
    notes: Vec<String>,
    pub(crate) query: Option<abi::PluginQuery>,
    pub(crate) mode_change: Option<(FloatMode, FloatMode)>,
    is_initialized: bool,
    live: LiveHandles,
    end: UnloadHook,
    wrappers: Vec<LayerWrapper>,
    /// The process that it runs in, if that is not this one.
    isolated: Option<IsolatedPlugin>,
    pub(crate) services: Arc<PluginServices>,
    library: Option<Library>,
    /// Dropped last: other hosts may use the plugin from then on.
    _in_use: InUse,
}

/// The function that shuts a plugin down, and its context.
struct UnloadHook {
    context: *mut std::ffi::c_void,
    unload: Option<unsafe extern "C" fn(*mut std::ffi::c_void) -> abi::Error>,
}

// SAFETY: the context is the plugin's own, whose functions may be called on any thread (rule T-1).
unsafe impl Send for UnloadHook {}
// SAFETY: as above.
unsafe impl Sync for UnloadHook {}

impl LoadedPlugin {
    /// Wraps the tables of a queried plugin in `layers` and starts it.
    pub(crate) fn start_plugin(
        path: &Path,
        loaded: QueriedPlugin,
        layers: &[Arc<Self>],
        environment: &HostEnvironment,
    ) -> Result<Self, Refusal> {
        let QueriedPlugin { library, checked, services, in_use, isolated, query, mode_change } = loaded;
        let (plugin, notes) = (&checked.info.name, checked.notes);
        let mut chain = LayerChain { layers, plugin, wrappers: Vec::new(), notes };
        let context = checked.context;
        let tables = &checked.tables;
        macro_rules! caller {
            ($table:expr, $kind:ident, $calls:ident) => {
                $table.map(|next| {
                    // SAFETY: a layer vouches for the table that it returns.
                    let check = |wrapped| unsafe { checked_table(wrapped) }.map(|table| table.unwrap_or(next));
                    let (context, table) = chain.wrap_table(abi::TableKind::$kind, context, next, check);
                    // SAFETY: both are the plugin's or a layer's, and live as long as the plugin, which holds its layers.
                    unsafe { $calls::new(context, table) }
                })
            };
        }
        let calls = PluginCalls {
            core: caller!(tables.core, CORE, CoreCalls),
            r#async: caller!(tables.r#async, ASYNC, AsyncCalls),
            // SAFETY: both are the plugin's.
            layer: tables.layer.map(|table| unsafe { LayerCalls::new(context, table) }),
        };
        let rows = match checked.kernels {
            Some(next) if !layers.is_empty() => {
                wrap_kernels(&mut chain, context, next, &checked.info, checked.rows)
            }
            _ => checked.rows,
        };
        let LayerChain { wrappers, notes, .. } = chain;
        let mut plugin = Self {
            file: path.to_path_buf(),
            calls,
            kernels: rows.into_iter().map(load_kernel).collect(),
            devices: Vec::new(),
            hides_all_devices: false,
            notes,
            query,
            mode_change,
            is_initialized: false,
            live: LiveHandles::default(),
            end: UnloadHook { context, unload: checked.unload },
            wrappers,
            isolated,
            services,
            library,
            _in_use: in_use,
            info: checked.info,
        };
        plugin.start_devices(environment)?;
        Ok(plugin)
    }

    /// Initializes the visible devices. A device that fails is left out; if all devices fail, the plugin does too.
    fn start_devices(&mut self, environment: &HostEnvironment) -> Result<(), Refusal> {
        let Some(core) = self.calls.core else { return Ok(()) };
        let _mode = FloatModeGuard::new();
        let path = self.file.clone();
        let initializing = self.begin_phase(PluginPhase::Initialize);
        let failed = |failure| failure_refusal(&path, &failure);
        core.initialize().transpose().map_err(failed)?;
        self.is_initialized = true;
        let all = device_ids(&core).map_err(failed)?.map_err(|breach| breach_refusal(&path, &breach))?;
        let (shown, notes) =
            visible_devices(&all, self.info.visible_devices_variable.as_deref(), environment);
        self.hides_all_devices = shown.is_empty() && !all.is_empty();
        if let Some(note) = notes.first().filter(|_| self.hides_all_devices) {
            self.log_warning(&format!("all of its devices are hidden: {note}"));
        }
        self.notes.extend(notes);
        drop(initializing);
        let mut first_failure = None;
        for device in shown {
            // A machine with many devices takes its time.
            let _initializing = self.begin_phase(PluginPhase::Initialize);
            match core.device_init(device).transpose() {
                Ok(_) => self.devices.push(device),
                Err(failure) => {
                    let device_type = self.info.device_type.as_deref().unwrap_or_default();
                    self.notes.push(format!(
                        "`{device_type}:{device}` cannot be used: {}",
                        sanitize_text(&failure.to_string())
                    ));
                    first_failure.get_or_insert(failure);
                }
            }
        }
        match first_failure {
            Some(failure) if self.devices.is_empty() => Err(failed(failure)),
            _ => Ok(()),
        }
    }

    /// The plugin's identity and contents, as it described them.
    pub fn info(&self) -> &PluginInfo {
        &self.info
    }

    /// The file it came from; for a plugin that is linked in, the program.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Callers for the tables. They do not keep the plugin loaded, so keep them only together with a handle to the plugin.
    pub(crate) fn table_calls(&self) -> &PluginCalls {
        &self.calls
    }

    /// The core table that the host calls: the plugin's own, or the outermost layer's.
    pub fn core_table(&self) -> Option<&abi::CoreTable> {
        self.calls.core.as_ref().map(|calls| &calls.table)
    }

    /// The number of the process that the plugin runs in, if that is not this one.
    pub fn process_id(&self) -> Option<u32> {
        self.isolated.as_ref().map(IsolatedPlugin::process_id)
    }

    /// All kernels of the plugin.
    pub fn kernels(&self) -> &[LoadedKernel] {
        &self.kernels
    }

    /// The ids of the devices that are visible and initialized.
    pub fn device_ids(&self) -> &[u32] {
        &self.devices
    }

    /// True if it has devices, and the user's variable shows none of them.
    pub(crate) fn hides_all_devices(&self) -> bool {
        self.hides_all_devices
    }

    /// True if the plugin can wrap other plugins.
    pub(crate) fn is_layer(&self) -> bool {
        self.calls.layer.is_some()
    }

    /// The names of the layers around the plugin, the outermost first.
    pub(crate) fn layer_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.wrappers.iter().map(LayerWrapper::layer_name) {
            if !names.iter().any(|known| known == name) {
                names.insert(0, name.to_owned());
            }
        }
        names
    }

    /// Remarks for the user that do not keep the plugin from working.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Counts the live handles, which block unloading.
    pub fn live_handles(&self) -> LiveHandleCounts {
        self.live.counts()
    }

    pub(crate) fn handle_counter(&self) -> &LiveHandles {
        &self.live
    }

    pub(crate) fn log_warning(&self, message: &str) {
        self.services.log_message(LogLevel::WARNING, message);
    }

    /// Tells the observer of the host that code of the plugin, and of the layers around it, is about to run.
    pub(crate) fn begin_phase(&self, phase: PluginPhase) -> RunningPhase {
        let mut layers: Vec<PathBuf> = Vec::new();
        for file in self.wrappers.iter().rev().filter_map(LayerWrapper::layer_file) {
            if !layers.iter().any(|known| known == file) {
                layers.push(file.to_path_buf());
            }
        }
        self.services.begin_phase(&self.file, phase, &layers)
    }

    /// Warns of options that the plugin did not read during its start. A layer may read its options later, when it first wraps
    /// a plugin.
    pub(crate) fn warn_of_unknown_options(&self, is_layer_in_use: bool) {
        if let Some(isolated) = &self.isolated {
            self.services.note_asked_options(isolated.asked_options());
        }
        if self.info.kind != PluginKind::Layer || is_layer_in_use {
            self.services.unknown_options().iter().for_each(|told| self.log_warning(told));
        }
    }

    /// Marks the plugin as a layer in use.
    pub(crate) fn mark_used_as_layer(&self) {
        self.services.mark_used_as_layer();
    }

    /// Logs a failure that cannot be returned to a caller.
    fn note_failure(&self, what: &str, result: Result<(), crate::PluginFailure>) {
        if let Err(failure) = result {
            self.log_warning(&format!("{what} failed while the plugin was ended: {failure}"));
        }
    }
}

/// The kernels as the layers return them; the plugin's own kernels if the layers return invalid ones.
fn wrap_kernels(
    chain: &mut LayerChain<'_>,
    context: *mut std::ffi::c_void,
    next: abi::KernelTable,
    info: &PluginInfo,
    own: Vec<KernelRecord>,
) -> Vec<KernelRecord> {
    let device_type = info.device_type.as_deref();
    // SAFETY: a layer vouches for the table that it returns and for what the table points to.
    let check = |wrapped: *const abi::KernelTable| unsafe {
        let table = crate::foreign_struct::copy_struct(wrapped)?;
        check_kernels(&table, device_type).map(|_| table)
    };
    let (_, table) = chain.wrap_table(abi::TableKind::KERNEL, context, next, check);
    // SAFETY: the table was checked, here or when the plugin was.
    unsafe { check_kernels(&table, device_type) }.unwrap_or(own)
}

fn load_kernel(record: KernelRecord) -> LoadedKernel {
    let KernelRecord { info, kernel } = record;
    // SAFETY: the kernel and its context come from the plugin or a layer, and live as long as it does.
    LoadedKernel { info, calls: unsafe { KernelCalls::new(kernel.context, kernel) } }
}

impl Drop for LoadedPlugin {
    fn drop(&mut self) {
        if let Some(core) = self.calls.core {
            let _finalizing = self.begin_phase(PluginPhase::Finalize);
            for device in self.devices.drain(..).collect::<Vec<_>>() {
                self.note_failure("`device_deinit`", core.device_deinit(device).unwrap_or(Ok(())));
            }
            if self.is_initialized {
                self.note_failure("`finalize`", core.finalize().unwrap_or(Ok(())));
            }
        }
        // The outermost wrapper was created last, so it is freed first.
        while let Some(wrapper) = self.wrappers.pop() {
            drop(wrapper);
        }
        let _unloading = self.begin_phase(PluginPhase::Unload);
        let ended = match self.end.unload {
            // SAFETY: nothing of the plugin is in use anymore.
            Some(unload) => result_from_error(unsafe { unload(self.end.context) }),
            None => Ok(()),
        };
        let is_ended = ended.is_ok();
        self.note_failure("`unload`", ended);
        if let Some(isolated) = self.isolated.take() {
            // The process ends, and no code of the plugin was ever in this one.
            drop(isolated);
            return;
        }
        match self.library.take() {
            Some(library) if self.info.unloadable && is_ended => drop(library),
            library => {
                self.services.leak_services();
                std::mem::forget(library);
            }
        }
    }
}

impl fmt::Debug for LoadedPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("info", &self.info).field("file", &self.file).finish_non_exhaustive()
    }
}

//! A plugin that is loaded: what it can do, and how it ends.

#![expect(unsafe_code, reason = "callers are made of tables that a plugin handed out")]

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::Library;
use oarlock_abi as abi;

use crate::device::live::{Live, LiveHandles};
use crate::generated::{AsyncCalls, CoreCalls, KernelCalls, LayerCalls};
use crate::load::device_list::{device_ids, visible};
use crate::load::kernel_checks::{KernelRecord, kernels};
use crate::load::layers::{Chain, Wrapper};
use crate::load::validate::table;
use crate::load::{InUse, Loaded, broken, failed};
use crate::services::errors::outcome;
use crate::services::{LogLevel, Services};
use crate::{Environment, KernelInfo, Kind, PluginInfo, Refusal, clean_text};

/// Callers for the tables a plugin brings, with the layers around them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    /// Devices and their memory.
    pub(crate) core: Option<CoreCalls>,
    /// Streams and events.
    pub(crate) r#async: Option<AsyncCalls>,
    /// What the plugin does as a layer; never wrapped itself.
    pub(crate) layer: Option<LayerCalls>,
}

/// One kernel: what it demands, and the caller for it. It is the plugin's, and lives no longer.
#[derive(Debug)]
pub struct Kernel {
    /// What it does and demands.
    pub info: KernelInfo,
    /// How it is called.
    pub(crate) calls: KernelCalls,
}

/// A loaded plugin. It ends when the last handle on anything of it is dropped.
pub struct Plugin {
    info: PluginInfo,
    file: PathBuf,
    pub(crate) calls: Calls,
    kernels: Vec<Kernel>,
    /// The devices that were readied.
    devices: Vec<u32>,
    notes: Vec<String>,
    is_initialized: bool,
    live: LiveHandles,
    end: End,
    wrappers: Vec<Wrapper>,
    services: Arc<Services>,
    library: Option<Library>,
    /// Other hosts may use the plugin once this is dropped, after all else.
    _in_use: InUse,
}

/// How a plugin is ended.
struct End {
    context: *mut std::ffi::c_void,
    unload: Option<unsafe extern "C" fn(*mut std::ffi::c_void) -> abi::Error>,
}

// SAFETY: the context is the plugin's own, whose functions may be called on any thread (rule T-1).
unsafe impl Send for End {}
// SAFETY: as above.
unsafe impl Sync for End {}

impl Plugin {
    /// Puts `layers` before the tables of a plugin that answered well, and starts it.
    pub(crate) fn start(
        path: &Path,
        loaded: Loaded,
        layers: &[Arc<Self>],
        environment: &Environment,
    ) -> Result<Self, Refusal> {
        let Loaded { library, checked, services, in_use } = loaded;
        let (plugin, notes) = (&checked.info.name, checked.notes);
        let mut chain = Chain { layers, plugin, wrappers: Vec::new(), notes };
        let context = checked.context;
        let tables = &checked.tables;
        macro_rules! caller {
            ($table:expr, $kind:ident, $calls:ident) => {
                $table.map(|next| {
                    // SAFETY: a layer vouches for the table it hands back.
                    let check = |wrapped| unsafe { table(wrapped) }.map(|table| table.unwrap_or(next));
                    let (context, table) = chain.wrap(abi::TableKind::$kind, context, next, check);
                    // SAFETY: both are the plugin's or a layer's, and live as long as the plugin, which holds its layers.
                    unsafe { $calls::new(context, table) }
                })
            };
        }
        let calls = Calls {
            core: caller!(tables.core, CORE, CoreCalls),
            r#async: caller!(tables.r#async, ASYNC, AsyncCalls),
            // SAFETY: both are the plugin's.
            layer: tables.layer.map(|table| unsafe { LayerCalls::new(context, table) }),
        };
        let rows = match checked.kernels {
            Some(next) if !layers.is_empty() => {
                wrapped_rows(&mut chain, context, next, &checked.info, checked.rows)
            }
            _ => checked.rows,
        };
        let Chain { wrappers, notes, .. } = chain;
        let mut plugin = Self {
            file: path.to_path_buf(),
            calls,
            kernels: rows.into_iter().map(kernel).collect(),
            devices: Vec::new(),
            notes,
            is_initialized: false,
            live: LiveHandles::default(),
            end: End { context, unload: checked.unload },
            wrappers,
            services,
            library,
            _in_use: in_use,
            info: checked.info,
        };
        plugin.start_devices(environment)?;
        Ok(plugin)
    }

    /// Readies the devices to show. One that fails is left out, and all failing is the plugin's failure.
    fn start_devices(&mut self, environment: &Environment) -> Result<(), Refusal> {
        let Some(core) = self.calls.core else { return Ok(()) };
        let path = self.file.clone();
        let failed = |failure| failed(&path, &failure);
        core.initialize().transpose().map_err(failed)?;
        self.is_initialized = true;
        let all = device_ids(&core).map_err(failed)?.map_err(|breach| broken(&path, &breach))?;
        let (shown, notes) = visible(&all, self.info.visible_devices_variable.as_deref(), environment);
        self.notes.extend(notes);
        let mut first_failure = None;
        for device in shown {
            match core.device_init(device).transpose() {
                Ok(_) => self.devices.push(device),
                Err(failure) => {
                    let device_type = self.info.device_type.as_deref().unwrap_or_default();
                    self.notes.push(format!(
                        "`{device_type}:{device}` cannot be used: {}",
                        clean_text(&failure.to_string())
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

    /// What it says of itself.
    pub fn info(&self) -> &PluginInfo {
        &self.info
    }

    /// The file it came from; for one that is linked in, the program's.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Callers for its tables. They hold no plugin, so only what does may have them.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The functions of its devices as they are called: its own, or those of the outermost layer.
    pub fn core_table(&self) -> Option<&abi::CoreTable> {
        self.calls.core.as_ref().map(|calls| &calls.table)
    }

    /// Its kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The ids of its devices that are shown and ready.
    pub fn device_ids(&self) -> &[u32] {
        &self.devices
    }

    /// Whether it can stand before other plugins.
    pub(crate) fn is_layer(&self) -> bool {
        self.calls.layer.is_some()
    }

    /// The names of the layers around it, the outermost first.
    pub(crate) fn layer_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.wrappers.iter().map(Wrapper::layer_name) {
            if !names.iter().any(|known| known == name) {
                names.insert(0, name.to_owned());
            }
        }
        names
    }

    /// What the user may want to know although the plugin works.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many handles of each kind are in use.
    pub fn live(&self) -> Live {
        self.live.now()
    }

    pub(crate) fn handles(&self) -> &LiveHandles {
        &self.live
    }

    pub(crate) fn warn(&self, message: &str) {
        self.services.log(LogLevel::WARNING, message);
    }

    /// Warns of options that the plugin did not ask for while it started. A layer may ask when it is put before the first plugin.
    pub(crate) fn warn_of_unknown_options(&self, is_layer_in_use: bool) {
        if self.info.kind != Kind::Layer || is_layer_in_use {
            self.services.unknown_options().iter().for_each(|told| self.warn(told));
        }
    }

    /// Notes that it is a layer that is put before others, which somebody asked for.
    pub(crate) fn is_used_as_layer(&self) {
        self.services.is_used_as_layer();
    }

    /// Reports a failure that nobody is there to return to.
    fn note_failure(&self, what: &str, result: Result<(), crate::Failure>) {
        if let Err(failure) = result {
            self.warn(&format!("{what} failed while the plugin was ended: {failure}"));
        }
    }
}

/// The kernels as the layers hand them back; the plugin's own where they hand back nothing of use.
fn wrapped_rows(
    chain: &mut Chain<'_>,
    context: *mut std::ffi::c_void,
    next: abi::KernelTable,
    info: &PluginInfo,
    own: Vec<KernelRecord>,
) -> Vec<KernelRecord> {
    let device_type = info.device_type.as_deref();
    // SAFETY: a layer vouches for the table it hands back and for what that leads to.
    let check = |wrapped: *const abi::KernelTable| unsafe {
        let table = crate::load::foreign::take_over(wrapped)?;
        kernels(&table, device_type).map(|_| table)
    };
    let (_, table) = chain.wrap(abi::TableKind::KERNEL, context, next, check);
    // SAFETY: the table was checked, here or when the plugin was.
    unsafe { kernels(&table, device_type) }.unwrap_or(own)
}

fn kernel(record: KernelRecord) -> Kernel {
    let KernelRecord { info, kernel } = record;
    // SAFETY: the kernel and its context are what the plugin or a layer handed out, and live as long as it does.
    Kernel { info, calls: unsafe { KernelCalls::new(kernel.context, kernel) } }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        if let Some(core) = self.calls.core {
            for device in self.devices.drain(..).collect::<Vec<_>>() {
                self.note_failure("`device_deinit`", core.device_deinit(device).unwrap_or(Ok(())));
            }
            if self.is_initialized {
                self.note_failure("`finalize`", core.finalize().unwrap_or(Ok(())));
            }
        }
        // The outermost wrapper was made last and is freed first.
        while let Some(wrapper) = self.wrappers.pop() {
            drop(wrapper);
        }
        let ended = match self.end.unload {
            // SAFETY: nothing of the plugin is in use any more.
            Some(unload) => outcome(unsafe { unload(self.end.context) }),
            None => Ok(()),
        };
        let is_ended = ended.is_ok();
        self.note_failure("`unload`", ended);
        match self.library.take() {
            Some(library) if self.info.unloadable && is_ended => drop(library),
            library => {
                self.services.keep_for_ever();
                std::mem::forget(library);
            }
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("info", &self.info).field("file", &self.file).finish_non_exhaustive()
    }
}

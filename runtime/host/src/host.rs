//! The host: it finds, loads and unloads all plugins of a program.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarlock_abi as abi;

use crate::startup::start_plugins;
use crate::{
    ConfigError, HostConfig, HostEnvironment, LoadReport, LoadedPlugin, LogSink, PROBE_TIMEOUT, PluginDevice,
    PluginFailure, ProbeCommand, SilentLogSink,
};

/// A plugin that is linked into the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInPlugin {
    /// The name in messages until the plugin has answered the query.
    pub name: &'static str,
    /// The entry point, as the SDK's `query!` macro gives it.
    pub query: abi::PluginQuery,
}

/// The settings of a host.
#[derive(Clone)]
#[non_exhaustive]
pub struct HostOptions {
    /// Name and version of the program, which plugins may show in messages.
    pub program: String,
    /// Plugins, and directories of plugins, that take precedence over all others.
    pub paths: Vec<PathBuf>,
    /// The plugin directories of the installed Python packages.
    pub wheels: Vec<PathBuf>,
    /// The merged configuration files.
    pub config: HostConfig,
    /// The environment of the process.
    pub environment: HostEnvironment,
    /// Plugins that are linked in. They come first, and no file can take their names.
    pub built_in: Vec<BuiltInPlugin>,
    /// Plugin files that are part of the program. They are not judged, for whoever can change them can change the program.
    pub bundled: Vec<PathBuf>,
    /// Layers to put in front of every plugin, outside those of the configuration, the outermost first.
    pub layers: Vec<String>,
    /// The command that probes plugins without a manifest. If `None`, such plugins are refused.
    pub probe: Option<ProbeCommand>,
    /// The directory for the probe cache, such as `~/.cache`.
    pub cache_home: Option<PathBuf>,
    /// The receiver of log messages from plugins.
    pub log: Arc<dyn LogSink>,
    /// True if plugins are only searched for in `paths`.
    pub(crate) is_for_one: bool,
    /// Layers that already run in another host and wrap the plugin here too, the outermost first.
    pub(crate) around: Vec<Arc<LoadedPlugin>>,
    /// The number of threads that all plugins share; `None` means the number of processors.
    pub threads: Option<NonZeroUsize>,
}

impl HostOptions {
    /// Settings that follow the configuration and the environment.
    pub fn new(program: impl Into<String>, config: HostConfig, environment: HostEnvironment) -> Self {
        Self {
            program: program.into(),
            paths: Vec::new(),
            wheels: Vec::new(),
            cache_home: cache_home(&environment, |name| std::env::var_os(name)),
            config,
            environment,
            built_in: Vec::new(),
            bundled: Vec::new(),
            layers: Vec::new(),
            probe: None,
            log: Arc::new(SilentLogSink),
            is_for_one: false,
            around: Vec::new(),
            threads: None,
        }
    }

    /// Settings for a host with this plugin only, behind the layers of `host`, which was started with `self`.
    pub fn for_one_file(&self, file: &Path, host: &Host) -> Self {
        self.restricted_to(vec![file.to_owned()], Vec::new(), host)
    }

    /// Like [`HostOptions::for_one_file`], for a plugin that is linked into the program.
    pub fn for_built_in(&self, plugin: BuiltInPlugin, host: &Host) -> Self {
        self.restricted_to(Vec::new(), vec![plugin], host)
    }

    fn restricted_to(&self, paths: Vec<PathBuf>, built_in: Vec<BuiltInPlugin>, host: &Host) -> Self {
        let mut options = self.clone();
        (options.paths, options.built_in, options.bundled) = (paths, built_in, Vec::new());
        let mut around: Vec<Arc<LoadedPlugin>> = Vec::new();
        for layer in self.layer_names().filter_map(|name| host.plugin(name)) {
            if layer.is_layer() && !around.iter().any(|known| Arc::ptr_eq(known, layer)) {
                around.push(layer.clone());
            }
        }
        options.around = around;
        options.layers.clear();
        options.config.plugins.layers.clear();
        options.is_for_one = true;
        options
    }

    /// All requested layers, the outermost first.
    pub(crate) fn layer_names(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().chain(&self.config.plugins.layers).map(String::as_str)
    }

    pub(crate) fn probe_timeout(&self) -> Duration {
        self.config.plugins.probe_timeout_ms.map_or(PROBE_TIMEOUT, Duration::from_millis)
    }
}

/// `$XDG_CACHE_HOME`, or `~/.cache`; `None` in a program with more rights than its caller.
fn cache_home(
    environment: &HostEnvironment,
    lookup: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    let absolute = |name: &str| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if environment.elevated {
        return None;
    }
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

/// All plugins of a program. Dropping the host ends the plugins that nothing uses any more; each of the others ends when the
/// last handle to it is dropped.
#[derive(Debug)]
pub struct Host {
    /// Sorted by precedence.
    plugins: Vec<Arc<LoadedPlugin>>,
    report: LoadReport,
}

impl Host {
    /// Finds, judges and loads plugins. A plugin that cannot be used is an entry in the report, not an error. An unusable
    /// configuration is an error, since it may be what keeps a plugin out.
    pub fn start(options: &HostOptions) -> Result<Self, ConfigError> {
        let (plugins, report) = start_plugins(options)?;
        Ok(Self { plugins, report })
    }

    /// The outcome for every plugin that was considered.
    pub fn report(&self) -> &LoadReport {
        &self.report
    }

    /// The plugins in use, in order of precedence.
    pub fn plugins(&self) -> &[Arc<LoadedPlugin>] {
        &self.plugins
    }

    /// Finds a plugin in use by its name.
    pub fn plugin(&self, name: &str) -> Option<&Arc<LoadedPlugin>> {
        self.plugins.iter().find(|plugin| plugin.info().name == name)
    }

    /// All visible devices, in the order of precedence of their plugins.
    pub fn devices(&self) -> Vec<PluginDevice> {
        let devices = |plugin: &Arc<LoadedPlugin>| {
            let ids = plugin.device_ids().iter();
            ids.filter_map(|id| PluginDevice::from_plugin(plugin, *id)).collect::<Vec<_>>()
        };
        self.plugins.iter().flat_map(devices).collect()
    }

    /// Finds a device by the name that users type: `type:id`, or `type` for the first of its type.
    pub fn device(&self, name: &str) -> Option<PluginDevice> {
        let (device_type, id) = name.split_once(':').map_or((name, None), |(kind, id)| (kind, Some(id)));
        let of_type = |plugin: &&Arc<LoadedPlugin>| plugin.info().device_type.as_deref() == Some(device_type);
        let plugin = self.plugins.iter().find(of_type)?;
        let id = match id {
            Some(id) => id.parse().ok()?,
            None => *plugin.device_ids().first()?,
        };
        PluginDevice::from_plugin(plugin, id)
    }

    /// Ends a plugin and unmaps it. The plugin must permit this, and none of its handles may be live.
    pub fn unload(&mut self, name: &str) -> Result<(), PluginFailure> {
        let refuse = |code, expected: &str, found: String| {
            Err(PluginFailure::new("host", code, format!("expected {expected}, found {found}")))
        };
        let Some(index) = self.plugins.iter().position(|plugin| plugin.info().name == name) else {
            return refuse(abi::Code::NOT_FOUND, "the name of a loaded plugin", format!("`{name}`"));
        };
        let plugin = &mut self.plugins[index];
        if !plugin.info().unloadable {
            let found = format!("`{name}`, which does not; end the program instead");
            return refuse(abi::Code::PRECONDITION_NOT_MET, "a plugin that says it can be unloaded", found);
        }
        if Arc::get_mut(plugin).is_none() {
            let live = plugin.live_handles();
            let found = format!(
                "{live} and {} references to it in use; drop them first",
                Arc::strong_count(plugin) - 1
            );
            let expected = format!("nothing of `{name}` in use");
            return refuse(abi::Code::PRECONDITION_NOT_MET, &expected, found);
        }
        drop(self.plugins.remove(index));
        self.report.plugins.retain(|report| match &report.outcome {
            crate::PluginOutcome::Loaded(loaded) => loaded.info.name != name,
            crate::PluginOutcome::Refused(_) => true,
        });
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Plugins that started later may depend on earlier ones, so they end first.
        while let Some(plugin) = self.plugins.pop() {
            drop(plugin);
        }
    }
}

//! The settings of a host.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarlock_abi as abi;

use crate::{
    HostConfig, HostEnvironment, LoadedPlugin, LogSink, PROBE_TIMEOUT, PluginAdapter, ProbeCommand,
    SilentLogSink,
};

/// A plugin that is linked into the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInPlugin {
    /// The name in messages until the plugin has answered the query.
    pub name: &'static str,
    /// The entry point, as returned by the SDK's `query!` macro.
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
    /// Plugins that are linked in. They come first, so no file can replace them by using their name.
    pub built_in: Vec<BuiltInPlugin>,
    /// What makes plugins for other programs usable. Without an adapter, such files are refused.
    pub adapters: Vec<PluginAdapter>,
    /// Plugin files that are part of the program. They are not judged: a user who can change them can change the program too.
    pub bundled: Vec<PathBuf>,
    /// Layers to put in front of every plugin, outside the configured layers, the outermost first.
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
            adapters: Vec::new(),
            bundled: Vec::new(),
            layers: Vec::new(),
            probe: None,
            log: Arc::new(SilentLogSink),
            is_for_one: false,
            around: Vec::new(),
            threads: None,
        }
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

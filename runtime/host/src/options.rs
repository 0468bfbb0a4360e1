//! The settings of a host.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarlock_abi as abi;

use crate::probe::cache::{ProbeCache, ProbeSubject};
use crate::{
    FailedStart, HostConfig, HostEnvironment, JudgedPlugin, LibrarySearch, LoadedPlugin, LogSink,
    PROBE_TIMEOUT, PhaseObserver, PluginAdapter, PluginManifest, PluginSelection, ProbeCommand, ProbeResult,
    Refusal, START_TIMEOUT, SilentLogSink, UnwatchedPhases,
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
    /// Layers to put in front of every plugin, outside those of the environment and the configuration, the outermost first.
    pub layers: Vec<String>,
    /// Plugins to run in a process of their own, by name; `*` matches any characters.
    pub isolate: Vec<String>,
    /// The command that starts this program as the child process that probes plugins without a manifest, and that isolated plugins
    /// run in. If `None`, both are refused.
    pub probe: Option<ProbeCommand>,
    /// True if plugins with a manifest are probed too, as in a program that nobody watches from outside. One that crashes or hangs
    /// there is refused; whatever else the probe finds, the start finds again.
    pub probes_known: bool,
    /// The directory for the probe cache, such as `~/.cache`.
    pub cache_home: Option<PathBuf>,
    /// True if plugins are probed even if a result is in the cache, which the new result replaces.
    pub ask_again: bool,
    /// The receiver of log messages from plugins.
    pub log: Arc<dyn LogSink>,
    /// The watcher that is told before the host runs code of a plugin of its own accord.
    pub phases: Arc<dyn PhaseObserver>,
    /// Plugins that took the process of an earlier start along. They are refused.
    pub failed_starts: Vec<FailedStart>,
    /// The plugins that the user wants for this start.
    pub selection: PluginSelection,
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
            ask_again: false,
            config,
            environment,
            built_in: Vec::new(),
            adapters: Vec::new(),
            bundled: Vec::new(),
            layers: Vec::new(),
            isolate: Vec::new(),
            probe: None,
            probes_known: false,
            log: Arc::new(SilentLogSink),
            phases: Arc::new(UnwatchedPhases),
            failed_starts: Vec::new(),
            selection: PluginSelection::default(),
            is_for_one: false,
            around: Vec::new(),
            threads: None,
        }
    }

    /// All requested layers, the outermost first: those of the program, of the environment, of the configuration.
    pub(crate) fn layer_names(&self) -> impl Iterator<Item = &str> {
        let configured = self.environment.layers.iter().chain(&self.config.plugins.layers);
        self.layers.iter().chain(configured).map(String::as_str)
    }

    /// The time that a plugin has for each step of a probe. One with a manifest has as long as in a watched program.
    pub fn probe_timeout(&self, manifest: Option<&PluginManifest>) -> Duration {
        match manifest {
            Some(manifest) => {
                let asked = manifest.start_timeout_ms.map_or(Duration::ZERO, Duration::from_millis);
                asked.max(self.start_timeout())
            }
            None => self.config.plugins.probe_timeout_ms.map_or(PROBE_TIMEOUT, Duration::from_millis),
        }
    }

    /// Probes a judged plugin, even if a result is in the cache, and replaces that result.
    pub fn probe_afresh(&self, judged: &JudgedPlugin, command: &ProbeCommand) -> ProbeResult {
        let libraries = LibrarySearch::of_system(&self.environment);
        self.probe_judged(judged, command, &libraries, true)
    }

    /// Probes a judged plugin, unless a result is in the cache and may be used.
    pub(crate) fn probe_judged(
        &self,
        judged: &JudgedPlugin,
        command: &ProbeCommand,
        libraries: &LibrarySearch,
        is_afresh: bool,
    ) -> ProbeResult {
        let manifest = judged.manifest.as_ref();
        let requires = manifest.map_or(&[][..], |manifest| &manifest.requires);
        let subject = ProbeSubject {
            // The judged file is probed, even if a link on the way has changed since.
            path: &judged.real_path,
            digest: judged.digest,
            linked: libraries.linked_files(&judged.real_path, &judged.elf.links, requires),
            timeout: self.probe_timeout(manifest),
        };
        let cache = ProbeCache::new(self.cache_home.as_deref(), self.environment.identity);
        if is_afresh || self.ask_again {
            cache.probe_afresh(command, &subject, &self.config.options)
        } else {
            cache.probe_cached(command, &subject, &self.config.options)
        }
    }

    /// Refuses a plugin that took the process of an earlier start along.
    pub(crate) fn check_failed_start(&self, file: &Path) -> Result<(), Refusal> {
        let failed = self.failed_starts.iter().find(|failed| failed.concerns_file(file));
        failed.map_or(Ok(()), |failed| Err(failed.to_refusal(file)))
    }

    pub(crate) fn start_timeout(&self) -> Duration {
        self.config.plugins.start_timeout_ms.map_or(START_TIMEOUT, Duration::from_millis)
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

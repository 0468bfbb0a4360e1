//! The runtime: devices, kernels and flags of one program.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use oarlock_host::{
    BuiltInPlugin, DeviceName, Host, HostOptions, LoadedPlugin, LogLevel, LogSink, MalformedDeviceName,
    PluginDevice,
};

use crate::device;
use crate::fallback_counters::{FallbackCount, FallbackCounters};
use crate::flags::{self, Flags};
use crate::memory::PoolOptions;
use crate::post_kernel_checks::PostKernelChecks;
use crate::registry::{KernelEntry, KernelRegistry};
use crate::stream::Stream;
use crate::{Device, Error, Result, Tensor, schema};

/// The root object of a program: plugins, their devices and kernels, and the flags.
pub struct Runtime {
    registry: RwLock<Arc<KernelRegistry>>,
    devices: Vec<Device>,
    /// Devices of plugins that the core cannot use, and why.
    left_out: Vec<(PluginDevice, Error)>,
    flags: Flags,
    watch: Arc<PostKernelChecks>,
    /// The index of the default device.
    default: AtomicUsize,
    random: Arc<RandomGenerator>,
    fallbacks: FallbackCounters,
    copier: OnceLock<Box<dyn ContiguousCopier>>,
    log: Arc<dyn LogSink>,
    /// Hosts of plugins that were added later. They shut down before the first host.
    added: Mutex<Vec<Host>>,
    options: HostOptions,
    host: Host,
}

impl Runtime {
    /// Starts the host with its plugins, and sets up devices and kernels. Before that, it warns of environment
    /// variables that have no effect, each once per process.
    pub fn start(mut options: HostOptions, flags: Flags) -> Result<Self> {
        for ignored in flags::take_ignored_variables(&options.environment) {
            options.log.log("core", LogLevel::WARNING, &ignored.to_string());
        }
        if let Some(threads) =
            flags.nonzero_count("threads").and_then(|count| NonZeroUsize::new(usize::try_from(count).ok()?))
        {
            options.threads = Some(threads);
        }
        let host = Host::start(&options).map_err(|error| Error::invalid_argument(error.to_string()))?;
        let registry = KernelRegistry::new(host.plugins(), &flags.word_list("kernel_preference"));
        let pool_options = PoolOptions::from_flags(&flags);
        let ready = |device: oarlock_host::PluginDevice| {
            let runs_at_once = !registry.runs_asynchronously(device.device_type());
            Device::new(device, pool_options, runs_at_once)
        };
        let log = options.log.clone();
        let (mut devices, mut left_out) = (Vec::new(), Vec::new());
        for device in host.devices() {
            match ready(device.clone()) {
                Ok(device) => devices.push(device),
                Err(error) => {
                    log.log("core", LogLevel::WARNING, &format!("`{device}` is left out: {error}"));
                    left_out.push((device, error));
                }
            }
        }
        let runtime = Self {
            registry: RwLock::new(Arc::new(registry)),
            devices,
            left_out,
            watch: Arc::new(PostKernelChecks::new(&flags)),
            default: AtomicUsize::new(0),
            random: Arc::new(RandomGenerator {
                seed: flags.random_seed().unwrap_or_else(system_seed),
                drawn: AtomicU64::new(0),
            }),
            fallbacks: FallbackCounters::default(),
            copier: OnceLock::new(),
            flags,
            log,
            added: Mutex::default(),
            options,
            host,
        };
        if let Some(device) = runtime.flags.default_device() {
            runtime.set_device(&device)?;
        }
        Ok(runtime)
    }

    /// The host that loaded the plugins given at the start; later ones have hosts of their own.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A snapshot of the registry; [`add_plugin`](Self::add_plugin) replaces it.
    pub fn registry(&self) -> Arc<KernelRegistry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The opset to use if none is given: the newest one. For a domain without schemas, it is the newest version that
    /// a kernel of the op declares.
    pub fn latest_opset(&self, domain: &str, op: &str) -> u32 {
        schema::latest_opset(schema::normalize_domain(domain)).unwrap_or_else(|_| {
            let registry = self.registry();
            let newest = |entry: &KernelEntry| entry.info().version_max.unwrap_or(entry.info().version_min);
            registry.entries_for_op(domain, op).map(newest).max().unwrap_or(1)
        })
    }

    /// Adds the kernels of a plugin, after the same checks as at the start. From then on, its ops can be called, and
    /// models that contain them can be loaded. Plugins with devices or layers can only be loaded at the start.
    pub fn add_plugin(&self, file: &Path) -> Result<Arc<LoadedPlugin>> {
        self.add_plugins(&self.options.for_one_file(file, &self.host))
    }

    /// Adds the kernels of a plugin that is linked into the program.
    pub fn add_built_in(&self, plugin: BuiltInPlugin) -> Result<Arc<LoadedPlugin>> {
        self.add_plugins(&self.options.for_built_in(plugin, &self.host))
    }

    fn add_plugins(&self, options: &HostOptions) -> Result<Arc<LoadedPlugin>> {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let host = Host::start(options).map_err(|error| Error::invalid_argument(error.to_string()))?;
        if let Some(refusal) = host.report().refusals().next() {
            return Err(Error::invalid_argument(refusal.to_string()));
        }
        let [plugin] = host.plugins() else {
            let found = host.plugins().len();
            return Err(Error::invalid_argument(format!("expected one plugin, found {found}")));
        };
        let plugin = plugin.clone();
        let info = plugin.info();
        let mut known = std::iter::once(&self.host).chain(added.iter()).flat_map(Host::plugins);
        if known.any(|known| known.info().name == info.name) {
            let found = format!("`{}`, which is loaded already", info.name);
            return Err(Error::already_exists(format!("expected a new plugin, found {found}")));
        }
        if info.device_type.is_some() || plugin.kernel_handles().next().is_none() {
            let message = format!("expected a plugin of kernels only, found `{}`", info.name);
            return Err(Error::invalid_argument(message)
                .with_advice("name the plugin in the configuration, or start the program with it"));
        }
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        *registry = Arc::new(registry.with_plugins(host.plugins()));
        added.push(host);
        Ok(plugin)
    }

    /// The flags, which are fixed once the runtime has started. The only exception is the default device, which
    /// [`set_device`](Self::set_device) changes.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// All devices, in the order of their plugins.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Finds a device by name, such as `cpu`, `opencl:1` or `gpu`.
    pub fn device(&self, name: &str) -> Result<Device> {
        let absence = |device_type: &str| oarlock_host::explain_absence(device_type, &self.host);
        let name: DeviceName =
            name.parse().map_err(|error: MalformedDeviceName| Error::invalid_argument(error.to_string()))?;
        let found = device::select_device(&name, &self.devices, absence);
        found.cloned().map_err(|error| {
            let mut left_out = self.left_out.iter();
            match left_out.find(|(device, _)| name.names_device(device.device_type(), device.id())) {
                Some((device, cause)) => Error::unavailable(format!(
                    "expected a device that can be used, found `{device}`, which is left out: {cause}"
                ))
                .with_advice("update its plugin, or tell its vendor"),
                None => error,
            }
        })
    }

    /// Sets the default device. Calls and tensors that name a device are not affected.
    pub fn set_device(&self, name: &str) -> Result<()> {
        let device = self.device(name)?;
        if let Some(index) = self.devices.iter().position(|known| known.is_same_device(&device)) {
            self.default.store(index, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The device to use if none is specified: the one that was set, or the first.
    pub fn default_device(&self) -> Result<&Device> {
        let missing = || {
            Error::unavailable("expected a device, found none").with_advice("`oarlock doctor` explains why")
        };
        self.devices.get(self.default.load(Ordering::Relaxed)).ok_or_else(missing)
    }

    /// Op, device and cost of each fallback to the CPU.
    pub fn fallback_counts(&self) -> Vec<(String, String, FallbackCount)> {
        self.fallbacks.list_counts()
    }

    /// True if checks run after every kernel. Code that runs kernels directly must then pass their outputs to the checks.
    pub fn has_post_kernel_checks(&self) -> bool {
        self.watch.is_enabled()
    }

    pub(crate) fn post_kernel_checks(&self) -> &Arc<PostKernelChecks> {
        &self.watch
    }

    pub(crate) fn fallback_counters(&self) -> &FallbackCounters {
        &self.fallbacks
    }

    /// The function that copies tensors to contiguous memory. Dispatch sets it when it is first needed.
    pub(crate) fn contiguous_copier(&self) -> &OnceLock<Box<dyn ContiguousCopier>> {
        &self.copier
    }

    pub(crate) fn random_generator(&self) -> &Arc<RandomGenerator> {
        &self.random
    }

    /// Writes a warning to the host's log.
    pub fn log_warning(&self, message: &str) {
        self.log.log("core", LogLevel::WARNING, message);
    }
}

/// Copies tensors to contiguous memory, on their device.
pub(crate) trait ContiguousCopier: Send + Sync {
    fn copy_tensor(&self, runtime: &Runtime, tensor: &Tensor, stream: &Stream) -> Result<Tensor>;
}

/// A counter-based generator: a kernel computes its numbers from the seed and the counter values it drew.
#[derive(Debug)]
pub(crate) struct RandomGenerator {
    seed: u64,
    drawn: AtomicU64,
}

impl RandomGenerator {
    /// Reserves `count` numbers; returns the seed and the first counter value.
    #[inline]
    pub(crate) fn draw_numbers(&self, count: u64) -> (u64, u64) {
        (self.seed, self.drawn.fetch_add(count, Ordering::Relaxed))
    }
}

/// A seed that differs from run to run.
fn system_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

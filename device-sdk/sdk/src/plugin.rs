//! The plugin as a whole, and its answer to the host's query.

#![expect(unsafe_code, reason = "the host's question and the plugin's answer are C structs")]

use core::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::SupportLevel;

use crate::boundary::{self, PluginInstance};
use crate::error::Result;
use crate::generated::{Async, Core, async_table, core_table};
use crate::host::HostServices;
use crate::kernel::{Kernel, RegisteredKernel};
use crate::sized_struct::{copy_sized, write_sized};

/// A plugin: its identity, its device and its kernels.
///
/// [`export!`](crate::export) exports the function that builds one. A host calls it whenever it queries the plugin,
/// so it must not touch hardware: do that in [`Core::initialize`].
pub struct Plugin<D = ()> {
    identity: PluginIdentity,
    tables: ProfileTables,
    kernels: Vec<Kernel<D>>,
    device: D,
}

#[derive(Default)]
struct PluginIdentity {
    name: String,
    version: String,
    vendor: String,
    package: String,
    device_type: String,
    device_subtype: String,
    visible_devices_variable: String,
    support_note: String,
    support_level: SupportLevel,
    offers: abi::PluginFlags,
}

#[derive(Default)]
struct ProfileTables {
    core: Option<abi::CoreTable>,
    asynchronous: Option<abi::AsyncTable>,
    layer: Option<abi::LayerTable>,
}

impl<D> Plugin<D> {
    fn new(name: impl Into<String>, version: impl Into<String>, device: D) -> Self {
        let identity =
            PluginIdentity { name: name.into(), version: version.into(), ..PluginIdentity::default() };
        Self { identity, tables: ProfileTables::default(), kernels: Vec::new(), device }
    }

    /// Sets the name of the vendor.
    pub fn with_vendor(mut self, vendor: impl Into<String>) -> Self {
        self.identity.vendor = vendor.into();
        self
    }

    /// Sets the package that users install to update the plugin; the default is the plugin's name.
    pub fn with_package(mut self, package: impl Into<String>) -> Self {
        self.identity.package = package.into();
        self
    }

    /// Names the environment variable that lists the visible devices, such as `ACME_VISIBLE_DEVICES`. The host hides the
    /// others.
    pub fn with_visibility_variable(mut self, name: impl Into<String>) -> Self {
        self.identity.visible_devices_variable = name.into();
        self
    }

    /// Sets the variant of the device type, such as `V1`.
    pub fn with_device_subtype(mut self, subtype: impl Into<String>) -> Self {
        self.identity.device_subtype = subtype.into();
        self
    }

    /// Claims a level of support. The note is the evidence: chip, driver, date.
    pub fn with_support(mut self, level: SupportLevel, note: impl Into<String>) -> Self {
        self.identity.support_level = level;
        self.identity.support_note = note.into();
        self
    }

    /// Permits the host to unload the plugin. You promise that afterwards no code of the plugin runs and nothing refers to it: its
    /// threads have ended, and no thread of the host has a thread-local value of the plugin with a destructor.
    pub fn allow_unload(mut self) -> Self {
        self.identity.offers = self.identity.offers | abi::PluginFlags::UNLOADABLE;
        self
    }

    /// Adds kernels. May be called repeatedly.
    pub fn with_kernels(mut self, kernels: impl IntoIterator<Item = Kernel<D>>) -> Self {
        self.kernels.extend(kernels);
        self
    }
}

impl Plugin<()> {
    /// A plugin that has no device but provides kernels for devices of other plugins.
    pub fn for_kernels(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::new(name, version, ())
    }
}

impl<L: Send + Sync + 'static> Plugin<L> {
    /// A plugin that is a layer: it wraps the tables of other plugins. Its own table is raw C, like the tables it wraps; in its
    /// functions, [`instance_from_context`] recovers `layer` from the context.
    pub fn for_layer(
        name: impl Into<String>,
        version: impl Into<String>,
        layer: L,
        table: abi::LayerTable,
    ) -> Self {
        let mut plugin = Self::new(name, version, layer);
        plugin.tables.layer = Some(table);
        plugin
    }
}

/// Recovers the device or layer, and the host, from the context of a plugin.
///
/// # Safety
///
/// `context` is the context of a plugin that was made with this SDK from a `D`.
pub unsafe fn instance_from_context<'a, D>(context: *mut c_void) -> (&'a D, HostServices) {
    // SAFETY: the caller vouches for the context; the instance lives until the plugin is unloaded and is never changed.
    let instance = unsafe { &*context.cast::<PluginInstance<D>>() };
    (&instance.device, instance.host)
}

impl<D: Core> Plugin<D> {
    /// A plugin that provides a device. Users type `device_type` to name it.
    pub fn for_device(
        name: impl Into<String>,
        version: impl Into<String>,
        device_type: impl Into<String>,
        device: D,
    ) -> Self {
        let mut plugin = Self::new(name, version, device);
        plugin.identity.device_type = device_type.into();
        plugin.tables.core = Some(core_table::<D>());
        plugin
    }
}

impl<D: Core + Async> Plugin<D> {
    /// Adds the table of streams and events.
    pub fn with_async(mut self) -> Self {
        self.tables.asynchronous = Some(async_table::<D>());
        self
    }
}

impl<D> fmt::Debug for Plugin<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PluginIdentity { name, version, .. } = &self.identity;
        f.debug_struct("Plugin").field("name", name).field("version", version).finish_non_exhaustive()
    }
}

/// A plugin that has answered a host's query. It owns everything that the answer points to, at a stable address.
#[repr(C)]
struct AnsweredPlugin<D> {
    /// First, because the plugin's context is the address of this struct, and every slot reads a `PluginInstance` there.
    instance: PluginInstance<D>,
    identity: PluginIdentity,
    tables: ProfileTables,
    /// Owns the records.
    _kernels: Vec<Arc<RegisteredKernel<D>>>,
    /// The list that the kernel table points to.
    _records: Vec<*const abi::Kernel>,
    kernel_table: Option<abi::KernelTable>,
}

impl<D: Send + Sync + 'static> AnsweredPlugin<D> {
    fn new(plugin: Plugin<D>, host: HostServices) -> Box<Self> {
        let Plugin { identity, tables, kernels, device } = plugin;
        let device = Arc::new(device);
        let kernels: Vec<_> = kernels
            .into_iter()
            .map(|kernel| RegisteredKernel::new(kernel, Arc::clone(&device), host))
            .collect();
        let records: Vec<_> = kernels.iter().map(|kernel| &raw const *kernel.abi_record()).collect();
        let kernel_table = (!records.is_empty()).then_some(abi::KernelTable {
            kernels: records.as_ptr(),
            kernels_count: records.len() as u64,
            ..abi::KernelTable::EMPTY
        });
        let instance = PluginInstance { device, host };
        Box::new(Self { instance, identity, tables, _kernels: kernels, _records: records, kernel_table })
    }

    /// The answer, which points into this struct. From here on the host owns it, until it calls `unload`.
    fn into_abi_plugin(self: Box<Self>) -> abi::Plugin {
        fn pointer<T>(table: &Option<T>) -> *const T {
            table.as_ref().map_or(core::ptr::null(), |table| &raw const *table)
        }
        let this = Box::into_raw(self);
        // SAFETY: the box was just given up and nobody else knows the address yet.
        let Self { identity, tables, kernel_table, .. } = unsafe { &*this };
        abi::Plugin {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            contract_minor_oldest: abi::Versions::OURS.oldest_minor,
            sanitizer: abi::SANITIZER,
            // Each answer has an instance of its own, so one plugin can serve several hosts.
            offers: identity.offers | abi::PluginFlags::SEVERAL_HOSTS,
            name: abi::Str::borrowed(&identity.name),
            version: abi::Str::borrowed(&identity.version),
            vendor: abi::Str::borrowed(&identity.vendor),
            package: abi::Str::borrowed(&identity.package),
            device_type: abi::Str::borrowed(&identity.device_type),
            device_subtype: abi::Str::borrowed(&identity.device_subtype),
            visible_devices_variable: abi::Str::borrowed(&identity.visible_devices_variable),
            support_level: identity.support_level,
            support_note: abi::Str::borrowed(&identity.support_note),
            context: this.cast(),
            core: pointer(&tables.core),
            r#async: pointer(&tables.asynchronous),
            kernels: pointer(kernel_table),
            layer: pointer(&tables.layer),
            unload: Some(unload_plugin::<D>),
            ..abi::Plugin::EMPTY
        }
    }
}

unsafe extern "C" fn unload_plugin<D: Send + Sync + 'static>(context: *mut c_void) -> abi::Error {
    let answered: *mut AnsweredPlugin<D> = context.cast();
    // SAFETY: the host passes the context that it got from the query, once, when it no longer uses the plugin.
    let answered = unsafe { Box::from_raw(answered) };
    let host = answered.instance.host;
    boundary::guard_call(&host, || {
        drop(answered);
        Ok(())
    })
}

/// Answers the query of a host: negotiates the version, builds the plugin and fills in the answer.
///
/// # Safety
///
/// `host` and `plugin` are null or structs as the contract describes them, and the host outlives the plugin.
#[doc(hidden)]
pub unsafe fn answer_query<D: Send + Sync + 'static>(
    host: *const abi::Host,
    plugin: *mut abi::Plugin,
    make: fn(&HostServices) -> Result<Plugin<D>>,
) -> abi::Error {
    if host.is_null() || plugin.is_null() {
        return abi::Error(u64::MAX);
    }
    // SAFETY: the caller vouches for the host's struct, which starts with its size.
    let asking = unsafe { copy_sized(host, abi::Host::EMPTY) };
    let mut answer = abi::Plugin {
        contract_major: abi::CONTRACT_MAJOR,
        contract_minor: abi::CONTRACT_MINOR,
        contract_minor_oldest: abi::Versions::OURS.oldest_minor,
        sanitizer: abi::SANITIZER,
        ..abi::Plugin::EMPTY
    };
    let theirs = abi::Versions {
        major: asking.contract_major,
        newest_minor: asking.contract_minor,
        oldest_minor: asking.contract_minor_oldest,
    };
    // A host with an incompatible version gets only the versions: it writes the error message, which names both ranges.
    let failure = if theirs.meet(abi::Versions::OURS) {
        // SAFETY: the caller vouches for the services.
        let services = unsafe { HostServices::new(asking.context, asking.services) };
        boundary::guard_call(&services, || {
            answer = AnsweredPlugin::new(make(&services)?, services).into_abi_plugin();
            Ok(())
        })
    } else {
        abi::Error::NONE
    };
    if !failure.is_some() {
        // SAFETY: the caller vouches for the plugin's struct, which starts with its size and is the plugin's to fill.
        unsafe { write_sized(plugin, answer) };
    }
    failure
}

/// Exports a plugin: defines `oarlock_plugin_query`, the only symbol that its shared object exports.
///
/// ```
/// # mod plugin {
/// use oarlock_sdk::{HostServices, Kernel, Plugin, Result, export};
///
/// fn plugin(host: &HostServices) -> Result<Plugin> {
///     let kernel = Kernel::new("Nothing", |_, _| Ok(())).with_domain("com.example").with_device_type("cpu");
///     Ok(Plugin::for_kernels("example", "1.0.0").with_kernels([kernel]))
/// }
///
/// export!(plugin);
/// # }
/// ```
#[macro_export]
macro_rules! export {
    ($make:path) => {
        /// The entry point of this plugin: tells a host the plugin's identity and tables.
        ///
        /// # Safety
        ///
        /// Both structs are as the contract describes them, and the host outlives the plugin.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn oarlock_plugin_query(
            host: *const $crate::abi::Host,
            plugin: *mut $crate::abi::Plugin,
        ) -> $crate::abi::Error {
            $crate::silence_caught_panics();
            // SAFETY: the host vouches for both structs.
            unsafe { $crate::answer_query(host, plugin, $make) }
        }
    };
}

/// The function that [`export!`](crate::export) would export, for a plugin that is linked into the program.
#[macro_export]
macro_rules! query {
    ($make:path) => {{
        unsafe extern "C" fn query(
            host: *const $crate::abi::Host,
            plugin: *mut $crate::abi::Plugin,
        ) -> $crate::abi::Error {
            // SAFETY: the host vouches for both structs.
            unsafe { $crate::answer_query(host, plugin, $make) }
        }
        query as $crate::abi::PluginQuery
    }};
}

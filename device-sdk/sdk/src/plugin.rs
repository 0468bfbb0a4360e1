//! The plugin as a whole: what it says of itself when the host asks.

#![expect(unsafe_code, reason = "the host's question and the plugin's answer are C structs")]

use core::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::SupportLevel;

use crate::boundary::{self, PluginInstance, copy_sized};
use crate::error::Result;
use crate::generated::{Async, Core, async_table, core_table};
use crate::host::HostServices;
use crate::kernel::{Kernel, RegisteredKernel};

/// What a plugin is and brings.
///
/// A function that makes one is exported with [`export!`](crate::export). It is called whenever a host asks who the plugin
/// is, so it must not touch hardware: that is for [`Core::initialize`].
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

    /// Who makes the plugin.
    pub fn with_vendor(mut self, vendor: impl Into<String>) -> Self {
        self.identity.vendor = vendor.into();
        self
    }

    /// The package that a user installs to update the plugin; without it, its name.
    pub fn with_package(mut self, package: impl Into<String>) -> Self {
        self.identity.package = package.into();
        self
    }

    /// The environment variable that lists the devices to show.
    pub fn with_visibility_variable(mut self, name: impl Into<String>) -> Self {
        self.identity.visible_devices_variable = name.into();
        self
    }

    /// A variant of the device type.
    pub fn with_device_subtype(mut self, subtype: impl Into<String>) -> Self {
        self.identity.device_subtype = subtype.into();
        self
    }

    /// What proves that the plugin works, and what stands behind it: chip, driver, date.
    pub fn with_support(mut self, level: SupportLevel, note: impl Into<String>) -> Self {
        self.identity.support_level = level;
        self.identity.support_note = note.into();
        self
    }

    /// Promises that nothing of the plugin runs or is referred to after it was unloaded: no thread of its own goes on, and
    /// nothing with a destructor lies in thread-local storage of the host's threads.
    pub fn allow_unload(mut self) -> Self {
        self.identity.offers = self.identity.offers | abi::PluginFlags::UNLOADABLE;
        self
    }

    /// The kernels the plugin brings.
    pub fn with_kernels(mut self, kernels: impl IntoIterator<Item = Kernel<D>>) -> Self {
        self.kernels.extend(kernels);
        self
    }
}

impl Plugin<()> {
    /// A plugin that brings kernels for devices of other plugins.
    pub fn for_kernels(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::new(name, version, ())
    }
}

impl<L: Send + Sync + 'static> Plugin<L> {
    /// A plugin that is a layer. Its table is written against the raw contract, since wrapping raw tables is what it does;
    /// [`instance_from_context`] finds the layer behind the context its functions get.
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

/// The device or layer behind the context of a plugin, and the host that loaded it.
///
/// # Safety
///
/// `context` is the context of a plugin that was made with this SDK from a `D`.
pub unsafe fn instance_from_context<'a, D>(context: *mut c_void) -> (&'a D, HostServices) {
    // SAFETY: the caller vouches for the context; the answer lives until the plugin is unloaded and is never changed.
    let instance = unsafe { &*context.cast::<PluginInstance<D>>() };
    (&instance.device, instance.host)
}

impl<D: Core> Plugin<D> {
    /// A plugin that brings a device of the given type, which is the name users type.
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
    /// The device has streams and events.
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

/// A plugin that has answered a host: everything the answer points to, in one place that does not move.
#[repr(C)]
struct AnsweredPlugin<D> {
    /// First, because the context of the plugin is the address of this and every slot reads an `PluginInstance` there.
    instance: PluginInstance<D>,
    identity: PluginIdentity,
    tables: ProfileTables,
    /// The records point into these.
    _kernels: Vec<Arc<RegisteredKernel<D>>>,
    /// The kernel table points into these.
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

    /// The answer. It points into this, which from here on belongs to the host until the host calls `unload`.
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
            // Each answer has an instance of its own.
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
    // SAFETY: the host hands back the context it got from `describe`, once, when it uses nothing of the plugin any more.
    let answered = unsafe { Box::from_raw(answered) };
    let host = answered.instance.host;
    boundary::guard_call(&host, || {
        drop(answered);
        Ok(())
    })
}

/// Answers a host that asks who the plugin is: negotiates the version, makes the plugin, and hands out what it points to.
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
    // A host that does not understand this plugin gets the versions alone: it words the message, naming both ranges.
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
        unsafe { boundary::write_sized(plugin, answer) };
    }
    failure
}

/// Exports a plugin: defines `oarlock_plugin_query`, the one symbol of a shared object.
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
        /// Tells a host who this plugin is.
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

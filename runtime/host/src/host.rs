//! The host: it finds, loads and unloads all plugins of a program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_abi as abi;

use crate::startup::start_plugins;
use crate::{
    BuiltInPlugin, ConfigError, DeviceName, DeviceReport, HostOptions, LoadReport, LoadedPlugin,
    PluginDevice, PluginFailure,
};

impl HostOptions {
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
}

/// All plugins of a program. Dropping the host unloads the plugins that are no longer in use; each of the others is unloaded when
/// the last handle to it is dropped.
#[derive(Debug)]
pub struct Host {
    /// Sorted by precedence.
    plugins: Vec<Arc<LoadedPlugin>>,
    report: LoadReport,
}

impl Host {
    /// Queries all devices of all plugins.
    pub fn device_reports(&self) -> Vec<DeviceReport> {
        self.devices().iter().map(DeviceReport::from_device).collect()
    }

    /// Finds, judges and loads plugins. A plugin that cannot be used is an entry in the report, not an error. An unusable
    /// configuration is an error, since it may be meant to keep a plugin out.
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

    /// Finds a device by the name that users type: `type:id`, or `type` for the first of its type. Upper and lower case are the same.
    pub fn device(&self, name: &str) -> Option<PluginDevice> {
        let name: DeviceName = name.parse().ok()?;
        let of_type = |plugin: &&Arc<LoadedPlugin>| {
            plugin.info().device_type.as_deref().is_some_and(|own| name.names_type(own))
        };
        let plugin = self.plugins.iter().find(of_type)?;
        let id = name.id.or_else(|| plugin.device_ids().first().copied())?;
        PluginDevice::from_plugin(plugin, id)
    }

    /// Shuts a plugin down and unmaps it. The plugin must permit this, and it must have no live handles.
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
            return refuse(abi::Code::PRECONDITION_NOT_MET, "a plugin that supports unloading", found);
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
        // A plugin may depend on plugins that started before it, so shut down in reverse order.
        while let Some(plugin) = self.plugins.pop() {
            drop(plugin);
        }
    }
}

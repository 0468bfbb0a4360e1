//! Runs the conformance suite on a loaded plugin.
//!
//! Kernels for the processor run in host memory, for which the suite has a device of its own. Kernels for another device type
//! need the plugin that drives it. A layer is checked through a plugin that it wraps: seen through the layer, that plugin must
//! pass as it does without.

#![expect(unsafe_code, reason = "the suite trusts the tables it is given")]

use std::sync::Arc;

use oarlock_abi as abi;
use oarlock_conformance::{
    ConformanceReport, ConformanceSubject, ErrorText, PluginEntry, SubjectRole, SuiteSettings,
    host_memory_table,
};

use crate::services::errors::take_failure;
use crate::{LoadedPlugin, PluginKind};

/// The rule that every error comes from the host.
const MADE_BY_THE_HOST: &str = "R-1";
/// The device type whose memory is host memory.
const PROCESSOR: &str = "cpu";

impl LoadedPlugin {
    /// Runs the conformance suite on the plugin; `progress` gets the name of each check before it starts. `others` are the loaded
    /// plugins: kernels run on the device of one of them, and a layer is checked through one that it wraps. The error is the
    /// reason why there is nothing to check.
    ///
    /// The plugin may end the process or print, so a program that must survive this runs it in a child process.
    pub fn check_conformance(
        self: &Arc<Self>,
        others: &[Arc<Self>],
        settings: &SuiteSettings,
        progress: &mut dyn FnMut(&str),
    ) -> Result<ConformanceReport, String> {
        let subject = match self.info().kind {
            PluginKind::Device => self.own_devices(SubjectRole::Device, self),
            PluginKind::Kernels => self.kernels_on_device(others),
            PluginKind::Layer => self.layer_around(others),
        }?;
        // SAFETY: the tables were checked when the plugin was loaded, and the subject keeps the plugin.
        Ok(unsafe { oarlock_conformance::run_suite(subject, settings, progress) })
    }

    /// The devices of `driver` as the subject, in the name of this plugin.
    fn own_devices(
        self: &Arc<Self>,
        role: SubjectRole,
        driver: &Arc<Self>,
    ) -> Result<ConformanceSubject, String> {
        let core = driver.table_calls().core.ok_or("the plugin drives no device")?;
        Ok(ConformanceSubject {
            role,
            name: self.info().name.clone(),
            version: self.info().version.clone(),
            device_type: driver.info().device_type.clone().unwrap_or_default(),
            context: core.context,
            core: core.table,
            asynchronous: driver.table_calls().r#async.map(|calls| (calls.context, calls.table)),
            kernels: driver.kernels().iter().map(|kernel| kernel.calls.table).collect(),
            layer: None,
            mode_change: self.mode_change,
            entry: self.plugin_entry(),
            devices: driver.device_ids().to_vec(),
            read_error: self.error_reader(driver),
        })
    }

    fn kernels_on_device(self: &Arc<Self>, others: &[Arc<Self>]) -> Result<ConformanceSubject, String> {
        let kernels: Vec<abi::Kernel> = self.kernels().iter().map(|kernel| kernel.calls.table).collect();
        let first = self.kernels().first().ok_or("the plugin has no kernel")?;
        let device_type = first.info.device_type.clone();
        if device_type == PROCESSOR {
            return Ok(ConformanceSubject {
                role: SubjectRole::Kernels { device: "host memory".to_owned() },
                name: self.info().name.clone(),
                version: self.info().version.clone(),
                device_type,
                context: std::ptr::null_mut(),
                core: host_memory_table(),
                asynchronous: None,
                kernels,
                layer: None,
                mode_change: self.mode_change,
                entry: self.plugin_entry(),
                devices: vec![0],
                read_error: self.error_reader(self),
            });
        }
        let drives = |other: &&Arc<Self>| {
            other.info().device_type.as_ref() == Some(&device_type) && !other.device_ids().is_empty()
        };
        let driver = others.iter().find(drives).ok_or_else(|| {
            format!("its kernels are for `{device_type}`, which no loaded plugin drives here; name one with `--plugin`")
        })?;
        let role = SubjectRole::Kernels { device: driver.info().name.clone() };
        Ok(ConformanceSubject { kernels, ..self.own_devices(role, driver)? })
    }

    fn layer_around(self: &Arc<Self>, others: &[Arc<Self>]) -> Result<ConformanceSubject, String> {
        let name = &self.info().name;
        let has_devices = |other: &&Arc<Self>| !other.device_ids().is_empty();
        let wraps = |other: &&Arc<Self>| other.layer_names().contains(name) && has_devices(other);
        // A layer may have no interest in any table, or the host has left it out for a mistake that the suite finds too.
        let wrapped = others.iter().find(wraps).or_else(|| others.iter().find(has_devices));
        let wrapped =
            wrapped.ok_or("a layer is checked around a plugin with a device, and there is none here")?;
        let role = SubjectRole::Layer { around: wrapped.info().name.clone() };
        let layer = self.table_calls().layer.map(|calls| (calls.context, calls.table));
        Ok(ConformanceSubject { layer, ..self.own_devices(role, wrapped)? })
    }

    fn plugin_entry(&self) -> Option<PluginEntry> {
        self.query.map(|query| PluginEntry { query, host: &raw const *self.services.abi_host() })
    }

    /// Reads errors of this plugin and of another one that is called with it, and keeps both loaded.
    fn error_reader(
        self: &Arc<Self>,
        other: &Arc<Self>,
    ) -> Box<dyn Fn(abi::Error) -> ErrorText + Send + Sync> {
        let owners = [Arc::clone(self), Arc::clone(other)];
        Box::new(move |error| {
            let failure = take_failure(error);
            let is_ours = owners.iter().any(|owner| owner.info().name == failure.origin);
            let is_unknown = !is_ours && failure.rule == MADE_BY_THE_HOST;
            ErrorText {
                code: failure.code,
                breach: is_unknown.then(|| failure.message.clone()),
                message: failure.message.clone(),
            }
        })
    }
}

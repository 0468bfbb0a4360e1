//! The outcome for every plugin and the list of devices, as data for people and programs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::{
    ConformanceRecord, Digest, MemoryStats, PluginInfo, PluginManifest, PluginOrigin, PluginPhase, Refusal,
    RefusalReason, SupportLevel,
};

/// The outcome for every plugin, in the order in which they were considered.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// An entry for each plugin, and for each place that could not be searched.
    pub plugins: Vec<PluginReport>,
    /// Notes that concern no single plugin.
    pub notes: Vec<String>,
}

impl LoadReport {
    /// The plugins in use, with their details.
    pub fn loaded_plugins(&self) -> impl Iterator<Item = (&PluginReport, &LoadedPluginReport)> {
        self.plugins.iter().filter_map(|report| match &report.outcome {
            PluginOutcome::Loaded(loaded) => Some((report, loaded.as_ref())),
            PluginOutcome::Refused(_) => None,
        })
    }

    /// True if a refusal means that something is wrong. Disabled plugins, files that the program provides itself, libraries of other plugins, and variants
    /// for other processors are left out on purpose, the latter as long as there is a variant for this one.
    pub fn is_fault(&self, refusal: &Refusal) -> bool {
        match refusal.reason {
            RefusalReason::Disabled
            | RefusalReason::BetterVariant
            | RefusalReason::PartOfProgram
            | RefusalReason::PartOfPlugin => false,
            RefusalReason::IsaUnsupported => {
                let manifest =
                    PluginManifest::read_manifest(&PluginManifest::path_beside(&refusal.file)).ok().flatten();
                !manifest.is_some_and(|manifest| {
                    self.loaded_plugins().any(|(_, used)| used.info.name == manifest.name)
                })
            }
            _ => true,
        }
    }

    /// Notes about requested layers that are missing or do not wrap a plugin; each reason is listed once.
    pub fn layers_left_out(&self) -> Vec<String> {
        let mut all = self.notes.clone();
        let mut reasons = BTreeSet::new();
        for note in self.plugins.iter().flat_map(|plugin| &plugin.notes) {
            let is_of_layer = note.starts_with("the layer ");
            if is_of_layer && reasons.insert(note.split_once(": ").map_or(&**note, |(_, reason)| reason)) {
                all.push(note.clone());
            }
        }
        all
    }

    /// The refusals of all plugins that are not in use.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.plugins.iter().filter_map(|report| match &report.outcome {
            PluginOutcome::Loaded(_) => None,
            PluginOutcome::Refused(refusal) => Some(refusal),
        })
    }
}

/// The outcome for one plugin.
#[derive(Clone, Debug, Serialize)]
pub struct PluginReport {
    /// The file as it was requested; for a plugin that is linked in, the program.
    #[serde(serialize_with = "crate::text::paths::serialize_path")]
    pub file: PathBuf,
    /// The source of the request; `None` for a part of the program, and for a place that could not be searched.
    pub origin: Option<PluginOrigin>,
    /// Loaded or refused, with the details.
    #[serde(flatten)]
    pub outcome: PluginOutcome,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// The outcome of loading a plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum PluginOutcome {
    /// The plugin is in use.
    Loaded(Box<LoadedPluginReport>),
    /// The plugin is not in use, for this reason.
    Refused(Refusal),
}

/// Details of a plugin in use.
#[derive(Clone, Debug, Serialize)]
pub struct LoadedPluginReport {
    /// The plugin's own description.
    #[serde(flatten)]
    pub info: PluginInfo,
    /// True if the plugin is linked into the program or bundled with it.
    pub built_in: bool,
    /// The names of its devices, as users type them.
    pub devices: Vec<String>,
    /// The number of the process that it runs in, if it is isolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The layers around it, the outermost first.
    pub layers: Vec<String>,
    /// The last run of the conformance suite, according to its manifest.
    pub conformance: Option<ConformanceRecord>,
    /// The hash of its file.
    pub sha256: Option<Digest>,
    /// The file of the key that verified its signature.
    #[serde(serialize_with = "crate::text::paths::serialize_optional_path")]
    pub signed_by: Option<PathBuf>,
}

/// Details of a device, as far as it answered.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// The name that users type, such as `cpu:0`.
    pub device: String,
    /// The name of the plugin that drives it.
    pub plugin: String,
    /// The version of that plugin.
    pub plugin_version: String,
    /// The product name.
    pub name: String,
    /// The name of the vendor.
    pub vendor: String,
    /// The bus address such as `0000:3b:00.0`, or empty.
    pub bus_id: String,
    /// Total and free memory.
    pub memory: Option<MemoryStats>,
    /// The number of cores or multiprocessors, if known.
    pub compute_units: Option<u32>,
    /// The compute capability of the chip, such as `9.0`.
    pub compute_capability: Option<String>,
    /// The version of the vendor's runtime library.
    pub runtime_version: Option<String>,
    /// The version of the vendor's driver.
    pub driver_version: Option<String>,
    /// The profiles that its plugin implements.
    pub profiles: Vec<String>,
    /// The evidence that its plugin works.
    pub support_level: SupportLevel,
    /// Details of that evidence.
    pub support_note: String,
    /// True if software simulates the device.
    pub simulated: bool,
    /// True if the host can read and write its memory directly.
    pub host_addressable: bool,
    /// True if its memory is host memory.
    pub shares_host_memory: bool,
    /// The number of the process that its plugin runs in, if it is isolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Queries that failed, and why.
    pub problems: Vec<String>,
}

impl DeviceReport {
    /// Queries a device. A query that fails is noted under `problems`, and its value left empty.
    pub(crate) fn from_device(device: &crate::PluginDevice) -> Self {
        let _describing = device.plugin().begin_phase(PluginPhase::Describe);
        let info = device.plugin().info();
        let mut problems = Vec::new();
        let description = ok_or_note(device.describe_device(), &mut problems);
        let flags = description.as_ref().map_or(crate::DeviceFlags(0), |description| description.flags);
        let core = device.core_calls();
        let memory =
            ok_or_note(device.memory_stats(), &mut problems).map(|stats| stats.clamp_to_total(&mut problems));
        Self {
            device: device.to_string(),
            plugin: info.name.clone(),
            plugin_version: info.version.clone(),
            name: description.as_ref().map_or_else(|| device.device_type().to_owned(), |d| d.name.clone()),
            vendor: description.as_ref().map_or_else(|| info.vendor.clone(), |d| d.vendor.clone()),
            bus_id: description.as_ref().map_or_else(String::new, |d| d.bus_id.clone()),
            memory,
            compute_units: description.as_ref().and_then(|description| description.compute_units),
            compute_capability: ok_or_note(device.compute_capability(), &mut problems).and_then(version_text),
            runtime_version: ok_or_note(core.runtime_version(), &mut problems).and_then(version_text),
            driver_version: ok_or_note(core.driver_version(), &mut problems).and_then(version_text),
            profiles: info.profiles.clone(),
            support_level: info.support_level,
            support_note: info.support_note.clone(),
            simulated: flags.contains(crate::DeviceFlags::SIMULATED),
            host_addressable: flags.contains(crate::DeviceFlags::HOST_ADDRESSABLE),
            shares_host_memory: flags.contains(crate::DeviceFlags::SHARES_HOST_MEMORY),
            process: device.plugin().process_id(),
            problems,
        }
    }
}

impl MemoryStats {
    /// These numbers, with free memory capped at the total.
    fn clamp_to_total(self, problems: &mut Vec<String>) -> Self {
        let Self { total, free } = self;
        if free > total {
            problems.push(format!(
                "expected at most the total of {total} bytes of memory to be free, found {free}; it is shown as {total}"
            ));
        }
        Self { total, free: free.min(total) }
    }
}

fn ok_or_note<T>(result: Result<T, crate::PluginFailure>, problems: &mut Vec<String>) -> Option<T> {
    result.map_err(|failure| problems.push(crate::sanitize_text(&failure.to_string()))).ok()
}

/// A version without trailing zeros, but with at least two numbers; `None` if all are 0.
fn version_text(version: oarlock_abi::Version) -> Option<String> {
    let numbers = [version.major, version.minor, version.patch, version.build];
    let parts = numbers.iter().rposition(|number| *number != 0)? + 1;
    Some(numbers[..parts.max(2)].iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_never_has_more_free_than_there_is() {
        let mut problems = Vec::new();
        let sound = MemoryStats { total: 8, free: 8 };
        assert_eq!((sound.clamp_to_total(&mut problems), problems.len()), (sound, 0));
        assert_eq!(MemoryStats { total: 8, free: 9 }.clamp_to_total(&mut problems), sound);
        assert!(problems[0].contains('9'), "{problems:?}");
    }

    #[test]
    fn version_text_omits_unknown_parts_and_unknown_versions() {
        let text = |major, minor, patch| version_text(oarlock_abi::Version { major, minor, patch, build: 0 });
        assert_eq!(text(12, 4, 1).as_deref(), Some("12.4.1"));
        assert_eq!(text(9, 0, 0).as_deref(), Some("9.0"));
        assert_eq!(text(0, 0, 0), None);
    }
}

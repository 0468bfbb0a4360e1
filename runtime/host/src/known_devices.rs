//! The types of devices that Oarlock knows, with or without a plugin for them. If a user names one that is missing,
//! the error tells which wheel provides it, or that none does yet.
//!
//! A plugin may provide devices of any other type. `packaging/matrix.toml` lists the wheels; tests keep this table in
//! step with it.

use std::sync::Arc;

use crate::{Host, LoadedPlugin, Refusal};

/// A type of device, and what provides it.
#[derive(Debug)]
pub struct KnownDevice {
    /// The name that users type, such as `cuda`.
    pub device_type: &'static str,
    /// Other common names for it.
    pub aliases: &'static [&'static str],
    /// The wheels that provide it, without the prefix `oarlock-`; empty if the plugin is only planned.
    pub wheels: &'static [&'static str],
}

/// All known types except the CPU, which is always available.
pub static KNOWN_DEVICES: &[KnownDevice] = &[
    KnownDevice { device_type: "cuda", aliases: &["nvidia"], wheels: &["cuda12", "cuda13"] },
    KnownDevice { device_type: "rocm", aliases: &["hip", "dcu", "amd"], wheels: &[] },
    KnownDevice { device_type: "opencl", aliases: &["ocl"], wheels: &["opencl"] },
    KnownDevice { device_type: "xpu", aliases: &[], wheels: &[] },
    KnownDevice { device_type: "npu", aliases: &["ascend"], wheels: &[] },
    KnownDevice { device_type: "ipu", aliases: &[], wheels: &[] },
];

/// Why a device is missing, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceAbsence {
    /// Follows the name of the device in a message.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

/// Explains why there is no device of a type; `None` for an unknown type.
pub fn explain_absence(name: &str, host: &Host) -> Option<DeviceAbsence> {
    let known = KNOWN_DEVICES.iter().find(|known| known.all_names().any(|other| other == name));
    let device_type = known.map_or(name, |known| known.device_type);
    let of_type = |plugin: &&Arc<LoadedPlugin>| {
        plugin.info().device_type.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(device_type))
    };
    if let Some(plugin) = host.plugins().iter().find(of_type) {
        let variable = plugin.info().visible_devices_variable.as_deref().unwrap_or_default();
        return Some(if plugin.hides_all_devices() {
            let reason = format!("whose devices are all hidden by the variable `{variable}`");
            DeviceAbsence { reason, hint: format!("set `{variable}` to numbers of devices, or unset it") }
        } else if plugin.device_ids().is_empty() {
            let reason = format!("whose plugin `{}` is loaded and found no device", plugin.info().name);
            DeviceAbsence { reason, hint: "`oarlock doctor` explains what its driver is missing".to_owned() }
        } else {
            let reason = format!("which is `{device_type}` here");
            DeviceAbsence { reason, hint: format!("name it `{device_type}`") }
        });
    }
    let known = known?;
    let refused = host.report().refusals().find(|refusal| known.matches_refusal(refusal));
    Some(known.describe_absence(name, refused))
}

impl KnownDevice {
    /// True if there is no plugin for it yet.
    pub fn is_planned(&self) -> bool {
        self.wheels.is_empty()
    }

    fn all_names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.device_type).chain(self.aliases.iter().copied())
    }

    /// True if the file name of a refused plugin shows that it is the plugin for this type.
    fn matches_refusal(&self, refusal: &Refusal) -> bool {
        let name = refusal.file.file_name().unwrap_or_default().to_string_lossy();
        name.contains(&format!("oarlock_plugin_{}", self.device_type))
    }

    fn describe_absence(&self, name: &str, refused: Option<&Refusal>) -> DeviceAbsence {
        let Self { device_type, wheels, .. } = self;
        let is_alias = name != *device_type;
        let means = if is_alias { format!("which is `{device_type}` here, ") } else { String::new() };
        if let Some(refusal) = refused {
            return DeviceAbsence {
                reason: format!("{means}whose plugin `{}` is not used", refusal.file.display()),
                hint: "`oarlock doctor` explains why, and what to do about it".to_owned(),
            };
        }
        if self.is_planned() {
            let what =
                if is_alias { format!("`{device_type}` here and planned") } else { "planned".to_owned() };
            return DeviceAbsence {
                reason: format!("which is {what}: there is no plugin for it yet"),
                hint: "use an available device, or a plugin of its vendor; `Write a device in C` in the book explains how one is \
                       made"
                    .to_owned(),
            };
        }
        let joined = |pattern: &dyn Fn(&str) -> String| {
            wheels.iter().map(|wheel| pattern(wheel)).collect::<Vec<_>>().join(" or ")
        };
        let hint = if cfg!(target_arch = "x86_64") {
            format!(
                "install {} (pip) or {} (apt), or build the plugin; `Install` in the book says how",
                joined(&|wheel| format!("`oarlock[{wheel}]`")),
                joined(&|wheel| format!("`oarlock-plugin-{wheel}`"))
            )
        } else {
            "build the plugin, which has packages for x86-64 alone; `Install` in the book says how".to_owned()
        };
        DeviceAbsence {
            reason: format!("{means}whose plugin `oarlock-plugin-{device_type}` is not here"),
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use crate::RefusalReason;

    use super::*;

    fn known_device(device_type: &str) -> &'static KnownDevice {
        KNOWN_DEVICES.iter().find(|known| known.device_type == device_type).unwrap()
    }

    #[test]
    fn a_name_means_one_type_of_devices() {
        let names: Vec<&str> = KNOWN_DEVICES.iter().flat_map(KnownDevice::all_names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn what_is_planned_and_what_is_only_not_here_are_told_apart() {
        let reason =
            |device_type: &str, name: &str| known_device(device_type).describe_absence(name, None).reason;
        assert_eq!(reason("npu", "npu"), "which is planned: there is no plugin for it yet");
        assert_eq!(reason("rocm", "dcu"), "which is `rocm` here and planned: there is no plugin for it yet");
        assert_eq!(reason("cuda", "cuda"), "whose plugin `oarlock-plugin-cuda` is not here");
        let hint = known_device("cuda").describe_absence("cuda", None).hint;
        assert!(hint.contains("`oarlock[cuda12]` or `oarlock[cuda13]` (pip)"), "{hint}");
    }

    #[test]
    fn a_plugin_that_was_refused_is_named() {
        let file = Path::new("/opt/plugins/liboarlock_plugin_cuda.so");
        let refusal = Refusal::new(RefusalReason::LoadFailed, file, "a library", "none", "install it");
        assert!(
            known_device("cuda").matches_refusal(&refusal) && !known_device("rocm").matches_refusal(&refusal)
        );
        assert_eq!(
            known_device("cuda").describe_absence("cuda", Some(&refusal)).reason,
            "whose plugin `/opt/plugins/liboarlock_plugin_cuda.so` is not used"
        );
    }
}

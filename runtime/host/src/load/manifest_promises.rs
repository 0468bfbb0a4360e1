//! Compares what a manifest says of its plugin with what the plugin says of itself, once it is loaded.

use std::path::Path;

use oarlock_abi as abi;

use crate::{PluginInfo, PluginKind, PluginManifest, Refusal, RefusalReason};

/// Compares the manifest with the plugin's own description.
pub(crate) fn check_manifest_promises(
    path: &Path,
    manifest: &PluginManifest,
    info: &PluginInfo,
) -> Result<(), Refusal> {
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let sorted = |profiles: &[String]| {
        let mut profiles = profiles.to_vec();
        profiles.sort();
        profiles.join(", ")
    };
    let unloadable = |can: bool| if can { "yes" } else { "no" }.to_owned();
    let kind = |kind: PluginKind| format!("{kind:?}").to_lowercase();
    let pairs = [
        ("name", manifest.name.clone(), info.name.clone()),
        ("version", manifest.version.clone(), info.version.clone()),
        ("kind", kind(manifest.kind), kind(info.kind)),
        ("device type", said(&manifest.device_type), said(&info.device_type)),
        ("contract", manifest.contract.to_string(), info.contract.to_string()),
        ("profiles", sorted(&manifest.profiles), sorted(&info.profiles)),
        (
            "variable of the visible devices",
            said(&manifest.visible_devices_env),
            // A manifest that leaves it out promises nothing.
            said(&manifest.visible_devices_env.as_ref().and(info.visible_devices_variable.clone())),
        ),
        // It is safe to keep a plugin loaded that supports unloading, so only the opposite mismatch is an error.
        ("`unloadable`", unloadable(manifest.unloadable && !info.unloadable), unloadable(false)),
    ];
    match pairs.into_iter().find(|(_, promised, kept)| promised != kept) {
        None => check_conformance_record(path, manifest, info),
        Some((what, promised, kept)) => Err(Refusal::new(
            RefusalReason::ManifestLies,
            path,
            format!("the {what} in its manifest, `{promised}`"),
            format!("`{kept}`, as reported by the plugin"),
            "write the manifest again with `oarlock plugin manifest --write`",
        )),
    }
}

/// A run of the suite cannot have passed a profile that the plugin does not have. Other parts of the suite are not known here.
fn check_conformance_record(
    path: &Path,
    manifest: &PluginManifest,
    info: &PluginInfo,
) -> Result<(), Refusal> {
    let has = |profile: &str| {
        info.profiles.iter().any(|own| own == profile) || info.drafts.iter().any(|own| own.profile == profile)
    };
    let is_profile = |name: &str| {
        abi::PROFILES.iter().any(|(known, _)| *known == name)
            || abi::draft::PROFILES.iter().any(|(known, _, _)| *known == name)
    };
    let passed = manifest.conformance.iter().flat_map(|run| &run.passed);
    match passed.into_iter().find(|name| is_profile(name) && !has(name)) {
        None => Ok(()),
        Some(name) => Err(Refusal::new(
            RefusalReason::ManifestLies,
            path,
            format!("the profile `{name}`, which passed the conformance suite by the manifest"),
            "a plugin without it",
            "write the manifest again with `oarlock plugin manifest --write`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContractRange, SupportLevel};

    const PATH: &str = "/p/libnpu.so";
    const MANIFEST: &str = "name = 'npu'\nversion = '1.2.3'\nkind = 'device'\ndevice_type = 'npu'\ncontract = '1.0..1.2'\n\
        profiles = ['async', 'core']\narchitecture = 'x86_64-linux'\nvisible_devices_env = 'NPU_DEVICES'\n\
        unloadable = true\nconformance = { suite = '1', passed = ['core', 'kernels'], date = '2026-01-31', \
        report_sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' }\n";

    fn make_info() -> PluginInfo {
        PluginInfo {
            name: "npu".to_owned(),
            version: "1.2.3".to_owned(),
            vendor: String::new(),
            package: String::new(),
            kind: PluginKind::Device,
            device_type: Some("npu".to_owned()),
            device_subtype: None,
            visible_devices_variable: Some("NPU_DEVICES".to_owned()),
            support_level: SupportLevel::Unspecified,
            support_note: String::new(),
            contract: "1.0..1.2".parse::<ContractRange>().expect("versions"),
            profiles: vec!["core".to_owned(), "async".to_owned()],
            drafts: Vec::new(),
            kernel_count: 0,
            unloadable: true,
            several_hosts: false,
        }
    }

    /// Checks the manifest with one text in it replaced.
    fn check_with(from: &str, to: &str, info: &PluginInfo) -> Result<(), Refusal> {
        assert!(MANIFEST.contains(from), "{from}");
        let text = MANIFEST.replace(from, to);
        let manifest = PluginManifest::parse_manifest(Path::new(PATH), text.as_bytes()).expect("a manifest");
        check_manifest_promises(Path::new(PATH), &manifest, info)
    }

    #[test]
    fn each_field_that_says_something_else_than_the_plugin_is_a_lie() {
        let info = make_info();
        assert_eq!(check_with("npu", "npu", &info), Ok(()));
        let layer = "kind = 'layer'\n";
        for (from, to, what) in [
            ("name = 'npu'", "name = 'gpu'", "the name"),
            ("1.2.3", "1.2.4", "the version"),
            ("kind = 'device'\ndevice_type = 'npu'\n", layer, "the kind"),
            ("device_type = 'npu'", "device_type = 'gpu'", "the device type"),
            ("1.0..1.2", "1.0..1.3", "the contract"),
            ("['async', 'core']", "['core']", "the profiles"),
            ("'NPU_DEVICES'", "'GPU_DEVICES'", "the variable of the visible devices"),
            ("passed = ['core', 'kernels']", "passed = ['core', 'collective']", "the profile `collective`"),
        ] {
            let refusal = check_with(from, to, &info).expect_err(what);
            assert_eq!(refusal.reason, RefusalReason::ManifestLies);
            assert!(refusal.expected.starts_with(what), "{what}: {refusal}");
        }
        let pinned = PluginInfo { unloadable: false, ..make_info() };
        assert!(
            check_with("npu", "npu", &pinned).expect_err("a lie").expected.starts_with("the `unloadable`")
        );
        assert_eq!(check_with("unloadable = true", "unloadable = false", &info), Ok(()));
        assert_eq!(check_with("visible_devices_env = 'NPU_DEVICES'\n", "", &info), Ok(()));
    }
}

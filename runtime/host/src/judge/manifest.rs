//! The manifest beside a plugin, which lets the host decide without loading anything.
//!
//! `libfoo.so` has `libfoo.oarlock.toml`. Unknown keys are errors: otherwise a misspelled key would be a rule that is silently
//! ignored. Every text that may end up in a message is limited to plain characters, so that a manifest cannot send control
//! sequences to the user's terminal.

use std::io;
use std::path::{Path, PathBuf};

use oarlock_conformance::ConformanceException;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::read_start;
use crate::text::name::check_name;
use crate::text::toml;
use crate::{ContractRange, Digest, IsaPredicate, Refusal, RefusalReason, VersionRange};

/// Limit on the size of a manifest.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// The role of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginKind {
    /// It drives devices.
    Device,
    /// It provides kernels for devices of other plugins.
    Kernels,
    /// It wraps other plugins.
    Layer,
}

/// The plugin's own claims, and the findings of the tools that released it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginManifest {
    /// The name of the plugin. Files with the same name are variants of one plugin; the host uses one of them.
    #[serde(deserialize_with = "deserialize_name")]
    pub name: String,
    /// The version of the plugin itself, not of the contract.
    #[serde(deserialize_with = "deserialize_version")]
    pub version: String,
    /// The role of the plugin: device, kernels or layer.
    pub kind: PluginKind,
    /// The device type that it provides. `device` plugins must have one, others must not.
    #[serde(
        default,
        deserialize_with = "deserialize_optional_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub device_type: Option<String>,
    /// The label of this variant among its siblings, such as `avx2`.
    #[serde(
        default,
        deserialize_with = "deserialize_optional_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub variant: Option<String>,
    /// The versions of the contract that it understands.
    pub contract: ContractRange,
    /// The profiles that it implements, such as `async`.
    #[serde(default, deserialize_with = "deserialize_names")]
    pub profiles: Vec<String>,
    /// The processor and system that it is built for, such as `x86_64-linux`.
    #[serde(deserialize_with = "deserialize_name")]
    pub architecture: String,
    /// The processor features that it needs beyond the architecture's baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isa: Option<IsaPredicate>,
    /// The hash of the shared object, which the host verifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The environment variable that lists the visible devices.
    #[serde(
        default,
        deserialize_with = "deserialize_optional_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub visible_devices_env: Option<String>,
    /// The package to update if this plugin is too old.
    #[serde(
        default,
        deserialize_with = "deserialize_optional_package",
        skip_serializing_if = "Option::is_none"
    )]
    pub package: Option<String>,
    /// True if the plugin may be unloaded while the program runs.
    #[serde(default)]
    pub unloadable: bool,
    /// The last run of the conformance suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformance: Option<ConformanceRecord>,
    /// Libraries that it opens at run time, which its ELF header does not name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<RequiredLibrary>,
    /// Checks of the conformance suite, and kernels, that it is not to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<ConformanceException>,
    /// Checks and kernels that fail. One that passes is a mistake of the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_failure: Vec<ConformanceException>,
}

/// A library that a plugin opens at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredLibrary {
    /// The name that the plugin opens it by.
    #[serde(deserialize_with = "deserialize_package")]
    pub soname: String,
    /// The supported versions, compared with the version in the name of the real file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionRange>,
    /// The package that provides the library, for messages.
    #[serde(
        default,
        deserialize_with = "deserialize_optional_package",
        skip_serializing_if = "Option::is_none"
    )]
    pub package: Option<String>,
    /// True if the plugin also works without the library.
    #[serde(default)]
    pub optional: bool,
}

/// A run of the conformance suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceRecord {
    /// The version of the suite.
    #[serde(deserialize_with = "deserialize_version")]
    pub suite: String,
    /// The profiles that passed.
    #[serde(deserialize_with = "deserialize_names")]
    pub passed: Vec<String>,
    /// The day of the run, such as `2026-01-31`.
    #[serde(deserialize_with = "deserialize_name")]
    pub date: String,
    /// The hash of the report.
    pub report_sha256: Digest,
}

impl PluginManifest {
    /// The path of the manifest for the plugin at `library`.
    pub fn path_beside(library: &Path) -> PathBuf {
        library.with_extension("oarlock.toml")
    }

    /// Reads the manifest at `path`; `None` if the file does not exist.
    pub fn read_manifest(path: &Path) -> Result<Option<Self>, Refusal> {
        match read_start(path, MAX_MANIFEST_BYTES) {
            Ok(bytes) => Self::parse_manifest(path, &bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable_refusal(path, &error)),
        }
    }

    /// Parses a manifest; `path` only appears in the refusal.
    pub fn parse_manifest(path: &Path, bytes: &[u8]) -> Result<Self, Refusal> {
        let manifest = if bytes.len() as u64 > MAX_MANIFEST_BYTES {
            Err(format!("a file of more than {MAX_MANIFEST_BYTES} bytes"))
        } else {
            toml::parse_toml::<Self>(bytes)
                .and_then(|manifest| manifest.check_consistency().map(|()| manifest))
        };
        manifest.map_err(|found| {
            let remedy = "correct the manifest, or write it anew with `oarlock plugin manifest`";
            Refusal::new(RefusalReason::ManifestInvalid, path, "a valid plugin manifest", found, remedy)
        })
    }

    /// Writes the manifest as text that [`PluginManifest::parse_manifest`] reads back.
    pub fn to_toml(&self) -> Result<String, String> {
        self.check_consistency()?;
        ::toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Checks rules that involve more than one key.
    fn check_consistency(&self) -> Result<(), String> {
        match (self.kind, &self.device_type) {
            (PluginKind::Device, None) => {
                return Err("no `device_type`, which `kind = \"device\"` needs".to_owned());
            }
            (PluginKind::Kernels | PluginKind::Layer, Some(_)) => {
                return Err("a `device_type`, which only `kind = \"device\"` has".to_owned());
            }
            _ => {}
        }
        let processor = self.architecture.split('-').next().unwrap_or_default();
        self.isa.as_ref().map_or(Ok(()), |isa| isa.check_names(processor).map_err(|e| format!("`isa`: {e}")))
    }
}

fn deserialize_checked<'de, D: Deserializer<'de>>(deserializer: D, more: &str) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_name(&text, more).map_err(D::Error::custom).map(|()| text)
}

fn deserialize_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserialize_checked(deserializer, "")
}

fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserialize_checked(deserializer, "+~")
}

/// Names of packages and libraries may also contain `+` and `:`, as in `libstdc++6:amd64`.
fn deserialize_package<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserialize_checked(deserializer, "+:")
}

fn deserialize_optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_name(deserializer).map(Some)
}

fn deserialize_optional_package<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    deserialize_package(deserializer).map(Some)
}

fn deserialize_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().try_for_each(|text| check_name(text, "")).map_err(D::Error::custom).map(|()| names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL_MANIFEST: &str = r#"
name = "npu"
version = "1.2.3+cu12"
kind = "device"
device_type = "npu"
variant = "avx2"
contract = "1.0..1.3"
profiles = ["core", "async"]
architecture = "x86_64-linux"
isa = "avx2 & fma"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
visible_devices_env = "NPU_VISIBLE_DEVICES"
package = "oarlock-npu"
unloadable = true
conformance = { suite = "1.0", passed = ["core"], date = "2026-01-31", report_sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" }

[[requires]]
soname = "libcudart.so.12"
version = ">=12.2"
package = "cuda-runtime"
"#;

    fn parse_text(text: &str) -> Result<PluginManifest, String> {
        PluginManifest::parse_manifest(Path::new("/p/libnpu.oarlock.toml"), text.as_bytes()).map_err(
            |refusal| {
                assert_eq!(refusal.reason, RefusalReason::ManifestInvalid);
                refusal.found
            },
        )
    }

    /// Parses the full manifest with one line replaced.
    fn parse_with_line(old: &str, new: &str) -> Result<PluginManifest, String> {
        assert!(FULL_MANIFEST.contains(old));
        parse_text(&FULL_MANIFEST.replace(old, new))
    }

    #[test]
    fn a_manifest_lies_beside_its_library() {
        assert_eq!(
            PluginManifest::path_beside(Path::new("/p/libnpu.so")),
            Path::new("/p/libnpu.oarlock.toml")
        );
        assert_eq!(PluginManifest::read_manifest(Path::new("/nowhere/libnpu.oarlock.toml")), Ok(None));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let manifest = parse_text(FULL_MANIFEST).unwrap();
        assert_eq!(parse_text(&manifest.to_toml().unwrap()).unwrap(), manifest);
        let least = "name='a'\nversion='1'\nkind='layer'\ncontract='1.0'\narchitecture='x86_64-linux'";
        let least = parse_text(least).unwrap();
        assert_eq!(parse_text(&least.to_toml().unwrap()).unwrap(), least);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let error = parse_with_line("package = \"oarlock-npu\"", "packge = \"x\"").unwrap_err();
        assert!(error.starts_with("line 13: unknown field `packge`"), "{error}");
        assert!(error.ends_with("did you mean `package`"), "{error}");
        let error = parse_with_line("kind = \"device\"", "kind = \"devcie\"").unwrap_err();
        assert!(error.starts_with("line 4: ") && error.ends_with("did you mean `device`"), "{error}");
        assert!(
            parse_with_line("1.0..1.3", "1.3..1.0").unwrap_err().starts_with("line 7: expected versions")
        );
        assert!(parse_with_line("avx2 & fma", "avx2 & fmaa").unwrap_err().contains("did you mean `fma`"));
        assert!(parse_with_line("\"avx2 & fma\"", "3").unwrap_err().starts_with("line 10: "));
    }

    #[test]
    fn names_are_short_and_plain() {
        for bad in ["", "a b", "\\u001b[31m", "é", "../x", &"a".repeat(65)] {
            assert!(
                parse_with_line("name = \"npu\"", &format!("name = \"{bad}\""))
                    .unwrap_err()
                    .starts_with("line 2: "),
                "{bad}"
            );
        }
        assert!(parse_with_line("libcudart.so.12", "../libcudart.so.12").is_err());
        assert!(parse_with_line("libcudart.so.12", "libstdc++.so.6").is_ok());
    }

    #[test]
    fn the_device_type_goes_with_the_kind() {
        assert!(parse_with_line("kind = \"device\"", "kind = \"kernels\"").is_err());
        assert!(parse_with_line("device_type = \"npu\"", "").is_err());
    }

    #[test]
    fn a_manifest_of_another_architecture_may_name_its_features() {
        assert!(parse_with_line("x86_64-linux", "aarch64-linux").is_err());
        assert!(
            parse_text(&FULL_MANIFEST.replace("x86_64", "aarch64").replace("avx2 & fma", "sve2")).is_ok()
        );
    }

    #[test]
    fn any_bytes_give_a_manifest_or_a_refusal() {
        let mut state = 0x9e37_79b9_u32;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as usize
        };
        for _ in 0..3000 {
            let mut bytes = FULL_MANIFEST.as_bytes().to_vec();
            for _ in 0..=random() % 4 {
                let at = random() % bytes.len();
                bytes[at] = u8::try_from(random() % 256).unwrap();
            }
            bytes.truncate(random() % (bytes.len() + 1) + bytes.len() / 2);
            let _ = PluginManifest::parse_manifest(Path::new("/p/x.oarlock.toml"), &bytes);
        }
        assert!(parse_text(&format!("x = {}", "[".repeat(60_000))).is_err());
        assert!(parse_text(&" ".repeat(65 * 1024)).unwrap_err().contains("65536"));
    }
}

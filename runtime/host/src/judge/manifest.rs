//! The manifest beside a plugin, which lets the host decide without loading anything.
//!
//! `libfoo.so` has `libfoo.oarlock.toml`. Unknown keys are errors: otherwise a misspelled key would be a rule that is silently
//! ignored. Every text that may end up in a message is limited to plain characters, so that a manifest cannot send control
//! sequences to the user's terminal.

use std::collections::BTreeMap;
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

/// Limit on the time that a manifest may ask for: no start of a program waits longer for one plugin.
const MAX_START_TIMEOUT_MS: u64 = 120_000;

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
    /// The time in milliseconds that it needs at most for each phase of its start and its end, in a probe and in a watched program.
    #[serde(
        default,
        deserialize_with = "deserialize_start_timeout",
        skip_serializing_if = "Option::is_none"
    )]
    pub start_timeout_ms: Option<u64>,
    /// True if the plugin may be unloaded while the program runs.
    #[serde(default)]
    pub unloadable: bool,
    /// True if the plugin asks for a process of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub isolated: bool,
    /// The last run of the conformance suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformance: Option<ConformanceRecord>,
    /// The hashes of the libraries that are shipped with the plugin, by their paths from its directory, which the host verifies.
    #[serde(default, deserialize_with = "deserialize_files", skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
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
        let bytes = Self::read_bytes(path)?;
        bytes.map(|bytes| Self::parse_manifest(path, &bytes)).transpose()
    }

    /// The bytes of the manifest at `path`, which a signature covers; `None` if the file does not exist.
    pub fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, Refusal> {
        match read_start(path, MAX_MANIFEST_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
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
        if let Some(run) = self.conformance.as_ref().filter(|run| !is_day(&run.date)) {
            return Err(format!("`conformance`: expected a day such as `2026-01-31`, found `{}`", run.date));
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

fn deserialize_start_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let milliseconds = u64::deserialize(deserializer)?;
    if (1..=MAX_START_TIMEOUT_MS).contains(&milliseconds) {
        return Ok(Some(milliseconds));
    }
    let problem =
        format!("expected `start_timeout_ms` to be from 1 to {MAX_START_TIMEOUT_MS}, found {milliseconds}");
    Err(D::Error::custom(problem))
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Paths from the directory of the plugin: `libfoo.so.1`, `lib/libfoo.so.1`, `../acme.libs/libfoo.so.1`.
fn deserialize_files<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Digest>, D::Error> {
    let files = BTreeMap::<String, Digest>::deserialize(deserializer)?;
    for path in files.keys() {
        let mut parts = path.split('/').skip_while(|part| *part == "..").peekable();
        let is_file = parts.peek().is_some();
        if !is_file || parts.any(|part| part == "." || part == ".." || check_name(part, "+").is_err()) {
            let rule =
                "expected the path of a file from the directory of the plugin, such as `lib/libfoo.so.1`";
            return Err(D::Error::custom(format!("{rule}, found `{}`", path.escape_debug())));
        }
    }
    Ok(files)
}

fn deserialize_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().try_for_each(|text| check_name(text, "")).map_err(D::Error::custom).map(|()| names)
}

#[cfg(test)]
mod tests;

//! Wheel variants, a draft (PEP 825): wheels of the plain version that state their requirements on a machine, so that an
//! installer can choose. Each has the same files as a wheel with a separate page, under another name.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::wheel_name::{WheelName, WheelVersion};
use oarlock_matrix::{VariantProperty, WheelMatrix};

use super::listed_wheel::{ListedWheel, WheelSource};
use super::{WheelIndex, find_row, local_segments};
use serde_json::{Map, Value, json};

/// The version of the draft.
const VARIANT_SCHEMA: &str = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json";

impl WheelIndex {
    /// Adds a variant of the plain version for each wheel with a separate page and requirements in the matrix.
    ///
    /// # Errors
    ///
    /// When a wheel can no longer be read, or two variants have the same requirements.
    pub fn with_variants(mut self, matrix: &WheelMatrix) -> Result<Self, Error> {
        let mut labels: BTreeMap<(String, String), BTreeMap<String, Value>> = BTreeMap::new();
        let listed: Vec<ListedWheel> = self.directories.values().flatten().cloned().collect();
        for wheel in listed {
            let properties = find_row(matrix, &wheel.name).map(|row| &row.properties[..]).unwrap_or_default();
            let Some(label) = variant_label(&wheel.name).filter(|_| !properties.is_empty()) else { continue };
            let properties = nest_properties(properties);
            let variant = variant_wheel(
                &wheel,
                &label,
                &variant_metadata(matrix, [(label.clone(), properties.clone())]),
            )?;
            let plain = (variant.name.distribution.clone(), variant.name.version.to_string());
            let others = labels.entry(plain).or_default();
            if let Some((other, _)) =
                others.iter().find(|(other, needs)| **other != label && **needs == properties)
            {
                return Err(Error::new(format!(
                    "expected variants that need different things of a machine; `{other}` and `{label}` need the same"
                )));
            }
            others.insert(label, properties);
            self.projects.entry(variant.name.distribution.clone()).or_default().push(variant);
        }
        for ((project, version), labels) in labels {
            let name = format!("{}-{version}-variants.json", project.replace('-', "_"));
            let text = variant_metadata(matrix, labels);
            self.variants.entry(project).or_default().insert(name, text);
        }
        self.sort_wheels();
        Ok(self)
    }
}

/// The label of a variant: the local part of the version.
fn variant_label(name: &WheelName) -> Option<String> {
    let words: Vec<String> = local_segments(name).iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| words.join("."))
}

/// Repacks a wheel as a variant of the plain version.
fn variant_wheel(wheel: &ListedWheel, label: &str, about: &[u8]) -> Result<ListedWheel, Error> {
    let plain = match &wheel.name.version {
        WheelVersion::Valid(version) => version.clone().without_local(),
        WheelVersion::Word(word) => return Err(Error::new(format!("expected a version, found `{word}`"))),
    };
    let WheelSource::File(file) = &wheel.source else { return Ok(wheel.clone()) };
    let distribution = wheel.name.distribution.replace('-', "_");
    let mut packed = Wheel::read_file(file)?.with_name(&format!("{distribution}-{plain}"));
    let said = String::from_utf8_lossy(&wheel.metadata);
    let version = |version: &dyn std::fmt::Display| format!("Version: {version}\n");
    let metadata = said.replacen(&version(&wheel.name.version), &version(&plain), 1).into_bytes();
    packed.add_metadata("METADATA", metadata.clone());
    packed.add_metadata("variant.json", about.to_vec());
    let bytes = packed.to_bytes(&CompressionEffort::Usual.into())?;
    let name = WheelName { version: WheelVersion::Valid(plain), ..wheel.name.clone() };
    Ok(ListedWheel {
        file_name: name.to_string().replace(".whl", &format!("-{label}.whl")),
        name,
        size: bytes.len() as u64,
        sha256: sha256_hex(&bytes),
        source: WheelSource::Made(bytes),
        metadata,
        requires_python: wheel.requires_python.clone(),
        yanked: wheel.yanked.clone(),
    })
}

/// Nests properties as namespaces, features and values.
fn nest_properties(properties: &[VariantProperty]) -> Value {
    let mut namespaces: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for VariantProperty { namespace, feature, value } in properties {
        namespaces.entry(namespace).or_default().entry(feature).or_default().insert(value);
    }
    json!(namespaces)
}

/// Variant metadata, for a single wheel or for a whole version.
fn variant_metadata(matrix: &WheelMatrix, variants: impl IntoIterator<Item = (String, Value)>) -> Vec<u8> {
    let about = json!({
        "$schema": VARIANT_SCHEMA,
        "default-priorities": { "namespace": matrix.namespaces },
        "variants": variants.into_iter().collect::<Map<_, _>>(),
    });
    format!("{about:#}\n").into_bytes()
}

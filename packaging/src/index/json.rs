//! The JSON form of the index.

use std::collections::BTreeMap;

use super::WheelIndex;
use super::listed_wheel::ListedWheel;
use serde_json::{Value, json};

/// The version of the JSON API.
const API_VERSION: &str = "1.1";

/// The list of all projects.
pub(super) fn projects_json(index: &WheelIndex) -> Value {
    let projects: Vec<Value> = index.projects.keys().map(|name| json!({ "name": name })).collect();
    json!({ "meta": { "api-version": API_VERSION }, "projects": projects })
}

/// The page of a project; `files` is the relative path to its wheels and variant metadata.
pub(super) fn project_json(
    name: &str,
    wheels: &[ListedWheel],
    variants: &BTreeMap<String, Vec<u8>>,
    files: &str,
) -> Value {
    let about = variants.iter().map(|(name, text)| {
        json!({
            "filename": name,
            "url": format!("{files}{}", oarlock_matrix::html::encode_path(name)),
            "hashes": { "sha256": oarlock_formats::digest::sha256_hex(text) },
            "size": text.len(),
        })
    });
    let mut versions: Vec<String> = wheels.iter().map(|wheel| wheel.name.version.to_string()).collect();
    versions.dedup();
    json!({
        "meta": { "api-version": API_VERSION },
        "name": name,
        "versions": versions,
        "files": wheels.iter().map(|wheel| file_json(wheel, files)).chain(about).collect::<Vec<_>>(),
    })
}

fn file_json(wheel: &ListedWheel, files: &str) -> Value {
    let name = &wheel.file_name;
    let mut file = json!({
        "filename": name,
        "url": format!("{files}{}", oarlock_matrix::html::encode_path(name)),
        "hashes": { "sha256": wheel.sha256 },
        "size": wheel.size,
        // Only under the newer name: pip 22.3 to 23.1.2 expect a string under the old name, which pages also have, and fail on an
        // object.
        "core-metadata": { "sha256": oarlock_formats::digest::sha256_hex(&wheel.metadata) },
    });
    if let Some(python) = &wheel.requires_python {
        file["requires-python"] = python.as_str().into();
    }
    if let Some(reason) = &wheel.yanked {
        file["yanked"] = reason.as_str().into();
    }
    file
}

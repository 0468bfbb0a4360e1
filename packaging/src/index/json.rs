//! The index as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Index;
use super::listed::Listed;

/// Which version of the interface it is.
const VERSION: &str = "1.1";

/// All projects.
pub(super) fn projects(index: &Index) -> Value {
    let projects: Vec<Value> = index.projects.keys().map(|name| json!({ "name": name })).collect();
    json!({ "meta": { "api-version": VERSION }, "projects": projects })
}

/// A project, from which `files` leads to its wheels and to what is said about its variants.
pub(super) fn project(
    name: &str,
    wheels: &[Listed],
    variants: &BTreeMap<String, Vec<u8>>,
    files: &str,
) -> Value {
    let about = variants.iter().map(|(name, text)| {
        json!({
            "filename": name,
            "url": format!("{files}{}", crate::html::address(name)),
            "hashes": { "sha256": crate::wheel::sha256(text) },
            "size": text.len(),
        })
    });
    let mut versions: Vec<String> = wheels.iter().map(|wheel| wheel.name.version.to_string()).collect();
    versions.dedup();
    json!({
        "meta": { "api-version": VERSION },
        "name": name,
        "versions": versions,
        "files": wheels.iter().map(|wheel| file(wheel, files)).chain(about).collect::<Vec<_>>(),
    })
}

fn file(wheel: &Listed, files: &str) -> Value {
    let name = &wheel.file_name;
    let mut file = json!({
        "filename": name,
        "url": format!("{files}{}", crate::html::address(name)),
        "hashes": { "sha256": wheel.sha256 },
        "size": wheel.size,
        // By its first name, which pages have beside this, pip 22.3 to 23.1.2 read a text and fail on what it has to be here.
        "core-metadata": { "sha256": crate::wheel::sha256(&wheel.metadata) },
    });
    if let Some(python) = &wheel.requires_python {
        file["requires-python"] = python.as_str().into();
    }
    if let Some(reason) = &wheel.yanked {
        file["yanked"] = reason.as_str().into();
    }
    file
}

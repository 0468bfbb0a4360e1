//! The index as pages of HTML.

use std::collections::BTreeMap;

use super::Index;
use super::listed::Listed;
use crate::html::{address, escape, page};

/// The page of all projects.
pub(super) fn projects(index: &Index) -> String {
    let links = index.projects.keys().map(|name| format!("<a href=\"{name}/\">{name}</a><br>\n"));
    page("Projects", "", &links.collect::<String>())
}

/// A page of wheels, from which `files` leads to them and to what is said about their variants.
pub(super) fn wheels(
    title: &str,
    wheels: &[Listed],
    variants: &BTreeMap<String, Vec<u8>>,
    files: &str,
) -> String {
    let about = variants.iter().map(|(name, text)| {
        let hash = crate::wheel::sha256(text);
        format!("<a href=\"{files}{}#sha256={hash}\">{name}</a><br>\n", address(name))
    });
    let links = wheels.iter().map(|wheel| link(wheel, files) + "<br>\n").chain(about);
    page(title, "", &links.collect::<String>())
}

fn link(wheel: &Listed, files: &str) -> String {
    let name = &wheel.file_name;
    let mut attributes = String::new();
    let mut add = |name: &str, value: &str| attributes += &format!(" {name}=\"{}\"", escape(value));
    if let Some(python) = &wheel.requires_python {
        add("data-requires-python", python);
    }
    let metadata = format!("sha256={}", crate::wheel::sha256(&wheel.metadata));
    // The second is what the first was called by mistake; pip read it for years.
    add("data-core-metadata", &metadata);
    add("data-dist-info-metadata", &metadata);
    if let Some(reason) = &wheel.yanked {
        add("data-yanked", reason);
    }
    format!("<a href=\"{files}{}#sha256={}\"{attributes}>{name}</a>", address(name), wheel.sha256)
}

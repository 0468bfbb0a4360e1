//! The HTML form of the index.

use std::collections::BTreeMap;

use oarlock_matrix::html::{encode_path, escape_html, render_page};

use super::WheelIndex;
use super::listed_wheel::ListedWheel;

/// The page of all projects.
pub(super) fn projects_page(index: &WheelIndex) -> String {
    let links = index.projects.keys().map(|name| format!("<a href=\"{name}/\">{name}</a><br>\n"));
    render_page("Projects", "", &links.collect::<String>())
}

/// A page of wheels; `files` is the relative path to them and to their variant metadata.
pub(super) fn wheels_page(
    title: &str,
    wheels: &[ListedWheel],
    variants: &BTreeMap<String, Vec<u8>>,
    files: &str,
) -> String {
    let about = variants.iter().map(|(name, text)| {
        let hash = oarlock_formats::digest::sha256_hex(text);
        format!("<a href=\"{files}{}#sha256={hash}\">{name}</a><br>\n", encode_path(name))
    });
    let links = wheels.iter().map(|wheel| wheel_link(wheel, files) + "<br>\n").chain(about);
    render_page(title, "", &links.collect::<String>())
}

fn wheel_link(wheel: &ListedWheel, files: &str) -> String {
    let name = &wheel.file_name;
    let mut attributes = String::new();
    let mut add = |name: &str, value: &str| attributes += &format!(" {name}=\"{}\"", escape_html(value));
    if let Some(python) = &wheel.requires_python {
        add("data-requires-python", python);
    }
    let metadata = format!("sha256={}", oarlock_formats::digest::sha256_hex(&wheel.metadata));
    // The second attribute is the old name from a mistake in the standard, which pip used for years.
    add("data-core-metadata", &metadata);
    add("data-dist-info-metadata", &metadata);
    if let Some(reason) = &wheel.yanked {
        add("data-yanked", reason);
    }
    format!("<a href=\"{files}{}#sha256={}\"{attributes}>{name}</a>", encode_path(name), wheel.sha256)
}

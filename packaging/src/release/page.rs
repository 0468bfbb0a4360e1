//! The HTML page of a release.

use oarlock_formats::date;
use oarlock_matrix::CpuArchitecture;
use oarlock_matrix::html::{self, escape_html};

use super::{
    CHECKSUMS_FILE, CHECKSUMS_SIGNATURE_FILE, KEYRING_FILE, PROVENANCE_FILE, ReleaseDescription, ReleaseItem,
    ReleaseItemKind,
};

/// The heading of each kind of file.
const KIND_TITLES: [(ReleaseItemKind, &str); 3] = [
    (ReleaseItemKind::Wheel, "Wheels"),
    (ReleaseItemKind::Package, "Packages for Debian"),
    (ReleaseItemKind::Image, "Images for containers"),
];

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top }
td:nth-child(2) { text-align: right; white-space: nowrap }
td:nth-child(3) { overflow-wrap: anywhere }
code, pre { font: 13px/1.5 ui-monospace, monospace }
pre { background: #8882; overflow-x: auto; padding: .6rem }
";

/// Renders the page.
pub(super) fn release_page(about: &ReleaseDescription<'_>, items: &[ReleaseItem]) -> String {
    let source = &about.source;
    let mut body = String::new();
    if source.tag.is_none() {
        body += "<p><strong>This is a rehearsal: its sources have no release tag.</strong></p>\n";
    }
    let tag = source.tag.as_ref().map_or_else(String::new, |tag| format!("{}, ", escape_html(tag)));
    body += &format!(
        "<p>Made of {tag}the commit <code>{}</code> of {}. Read <a href=\"book/index.html\">the book</a>.</p>\n",
        escape_html(&source.commit),
        date::format_rfc2822(source.seconds)
    );
    let has = |kind: ReleaseItemKind| items.iter().any(|item| item.kind == kind);
    body += "<h2>Install</h2>\n";
    if has(ReleaseItemKind::Wheel) {
        // The exact version: another index may have the same name with different contents.
        let pip = format!(
            "pip install oarlock=={} --index-url {}",
            about.version,
            about.part_address("wheels/simple/")
        );
        body += &shell_block("With pip, on Linux with glibc 2.28 or newer, for CPython 3.11 or newer", &pip);
    }
    if has(ReleaseItemKind::Package) {
        let lines = format!(
            "curl --output /etc/apt/sources.list.d/oarlock.sources {}\n\
             curl --output /usr/share/keyrings/oarlock-archive-keyring.gpg {}\n\
             apt update\napt install oarlock python3-oarlock",
            about.part_address("apt/oarlock.sources"),
            about.part_address("apt/oarlock-archive-keyring.gpg")
        );
        body += &shell_block("With apt, on Debian 12 and newer, as root", &lines);
    }
    for (architecture, title) in [
        (CpuArchitecture::X86_64, "In a container"),
        (CpuArchitecture::Aarch64, "In a container, on 64-bit ARM"),
    ] {
        let end = format!("-{}.tar", architecture.debian_name());
        let is_it = |item: &&ReleaseItem| item.kind == ReleaseItemKind::Image && item.path.ends_with(&end);
        // The image without a suffix is the default one.
        let Some(image) = items.iter().filter(is_it).min_by_key(|item| item.path.len()) else { continue };
        let lines = format!(
            "curl --remote-name {}\ndocker load --input {}",
            about.part_address(&image.path),
            image.path.trim_start_matches("images/")
        );
        body += &shell_block(title, &lines);
    }
    body += &shell_block(
        "Verify the downloaded files",
        &format!(
            "gpgv --keyring ./{KEYRING_FILE} {CHECKSUMS_SIGNATURE_FILE} {CHECKSUMS_FILE}\nsha256sum --check --ignore-missing {CHECKSUMS_FILE}"
        ),
    );
    body += &format!(
        "<p><a href=\"{CHECKSUMS_FILE}\">{CHECKSUMS_FILE}</a> and its <a href=\"{CHECKSUMS_SIGNATURE_FILE}\">signatures</a>, by the keys in \
         <a href=\"{KEYRING_FILE}\">{KEYRING_FILE}</a>; <a href=\"{PROVENANCE_FILE}\">{PROVENANCE_FILE}</a> says what everything was built \
         of.</p>\n"
    );
    for (kind, title) in KIND_TITLES {
        if has(kind) {
            body +=
                &format!("<h2>{title}</h2>\n{}", item_table(items.iter().filter(|item| item.kind == kind)));
        }
    }
    html::render_page(&format!("Oarlock {}", about.version), PAGE_STYLE, &body)
}

/// Shell commands under a heading.
fn shell_block(title: &str, lines: &str) -> String {
    format!("<p>{}:</p>\n<pre>{}</pre>\n", escape_html(title), escape_html(lines))
}

/// A size with a unit.
fn format_size(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{} kB", bytes.div_ceil(1000))
    } else {
        format!("{:.2} MB", bytes as f64 / 1e6)
    }
}

fn item_table<'i>(items: impl Iterator<Item = &'i ReleaseItem>) -> String {
    let rows: String = items
        .map(|item| {
            let name = item.path.rsplit('/').next().unwrap_or_default();
            let sbom = html::encode_path(name);
            format!(
                "<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td><code>{}</code></td>\
                 <td><a href=\"sboms/{sbom}.spdx.json\">SPDX</a> <a href=\"sboms/{sbom}.cdx.json\">CycloneDX</a></td></tr>\n",
                escape_html(&html::encode_path(&item.path)),
                escape_html(name),
                format_size(item.bytes),
                item.sha256
            )
        })
        .collect();
    let head = "<tr><th>file</th><th>size</th><th>SHA-256</th><th>made of</th></tr>\n";
    format!("<table>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

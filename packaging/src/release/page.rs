//! The page of a release, for people.

use super::{About, Item, KEYRING, Kind, PROVENANCE, SIGNATURES, SUMS};
use crate::date;
use crate::html::{self, escape};

/// What the kinds of files are called.
const TITLES: [(Kind, &str); 3] =
    [(Kind::Wheel, "Wheels"), (Kind::Package, "Packages for Debian"), (Kind::Image, "Images for containers")];

const STYLE: &str = "\
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top }
td:nth-child(2) { text-align: right; white-space: nowrap }
td:nth-child(3) { overflow-wrap: anywhere }
code, pre { font: 13px/1.5 ui-monospace, monospace }
pre { background: #8882; overflow-x: auto; padding: .6rem }
";

/// The page.
pub(super) fn html(about: &About<'_>, items: &[Item]) -> String {
    let source = &about.source;
    let mut body = String::new();
    if source.tag.is_none() {
        body += "<p><strong>This is a rehearsal: nobody has tagged its sources as a release.</strong></p>\n";
    }
    let tag = source.tag.as_ref().map_or_else(String::new, |tag| format!("{}, ", escape(tag)));
    body += &format!(
        "<p>Made of {tag}the commit <code>{}</code> of {}. Read <a href=\"book/index.html\">the book</a>.</p>\n",
        escape(&source.commit),
        date::text(source.seconds)
    );
    let has = |kind: Kind| items.iter().any(|item| item.kind == kind);
    body += "<h2>Install</h2>\n";
    if has(Kind::Wheel) {
        // Exactly this one: somebody else may have the name elsewhere.
        let pip =
            format!("pip install oarlock=={} --index-url {}", about.version, about.address("wheels/simple/"));
        body += &command("With pip, on Linux with glibc 2.28 or newer, for CPython 3.11 or newer", &pip);
    }
    if has(Kind::Package) {
        let lines = format!(
            "curl --output /etc/apt/sources.list.d/oarlock.sources {}\n\
             curl --output /usr/share/keyrings/oarlock-archive-keyring.gpg {}\n\
             apt update\napt install oarlock python3-oarlock",
            about.address("apt/oarlock.sources"),
            about.address("apt/oarlock-archive-keyring.gpg")
        );
        body += &command("With apt, on Debian 12 and newer, as root", &lines);
    }
    // The one without a suffix is for everybody.
    let images = items.iter().filter(|item| item.kind == Kind::Image);
    if let Some(image) = images.min_by_key(|item| item.path.len()) {
        let lines = format!(
            "curl --remote-name {}\ndocker load --input {}",
            about.address(&image.path),
            image.path.trim_start_matches("images/")
        );
        body += &command("In a container", &lines);
    }
    body += &command(
        "What was fetched is what was made, if this says so",
        &format!("gpgv --keyring ./{KEYRING} {SIGNATURES} {SUMS}\nsha256sum --check --ignore-missing {SUMS}"),
    );
    body += &format!(
        "<p><a href=\"{SUMS}\">{SUMS}</a> and its <a href=\"{SIGNATURES}\">signatures</a>, by the keys in \
         <a href=\"{KEYRING}\">{KEYRING}</a>; <a href=\"{PROVENANCE}\">{PROVENANCE}</a> says what everything was built \
         of.</p>\n"
    );
    for (kind, title) in TITLES {
        if has(kind) {
            body += &format!("<h2>{title}</h2>\n{}", table(items.iter().filter(|item| item.kind == kind)));
        }
    }
    html::page(&format!("Oarlock {}", about.version), STYLE, &body)
}

/// Lines for a shell, with what they are for.
fn command(title: &str, lines: &str) -> String {
    format!("<p>{}:</p>\n<pre>{}</pre>\n", escape(title), escape(lines))
}

/// How large something is, in words.
fn size(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{} kB", bytes.div_ceil(1000))
    } else {
        format!("{:.2} MB", bytes as f64 / 1e6)
    }
}

fn table<'i>(items: impl Iterator<Item = &'i Item>) -> String {
    let rows: String = items
        .map(|item| {
            let name = item.path.rsplit('/').next().unwrap_or_default();
            let bill = html::address(name);
            format!(
                "<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td><code>{}</code></td>\
                 <td><a href=\"bills/{bill}.spdx.json\">SPDX</a> <a href=\"bills/{bill}.cdx.json\">CycloneDX</a></td></tr>\n",
                escape(&html::address(&item.path)),
                escape(name),
                size(item.bytes),
                item.sha256
            )
        })
        .collect();
    let head = "<tr><th>file</th><th>size</th><th>SHA-256</th><th>made of</th></tr>\n";
    format!("<table>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

//! A page that lists plugins: what their packages say, without running any of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use oarlock_formats::deb::DebPackage;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sbom::SUPPORT_LEVEL_PROPERTY;

/// The ends of the names of a manifest, and of the signatures beside it.
const MANIFEST_ENDING: &str = ".oarlock.toml";
const SIGNATURE_ENDING: &str = ".oarlock.sig";

/// The largest SBOM that is read.
const MAX_SBOM_BYTES: u64 = 64 << 20;

const STYLE: &str = include_str!("index.css");

/// What a manifest says of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ManifestClaims {
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `device`, `kernels` or `layer`.
    pub kind: String,
    /// The device type, if it has one.
    pub device_type: Option<String>,
    /// The versions of the contract that it speaks.
    pub contract: String,
    /// The profiles that it implements.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Processor and system.
    pub architecture: String,
    /// The last run of the conformance suite.
    pub conformance: Option<ConformanceClaim>,
}

/// What a manifest says of a run of the conformance suite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConformanceClaim {
    /// The version of the suite.
    pub suite: String,
    /// The profiles that passed.
    #[serde(default)]
    pub passed: Vec<String>,
    /// The day of the run.
    pub date: String,
    /// The hash of the report.
    pub report_sha256: String,
}

/// A file with a plugin in it: a wheel, a Debian package, or a shared object with its manifest.
#[derive(Clone, Debug, Serialize)]
pub struct IndexedFile {
    /// Its name, from the directory of the index.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
    /// True if there is a signature for the plugin. Whose it is, and whether it is right, depends on whom a host trusts.
    pub signed: bool,
    /// The support level that the plugin claims, if its package says so.
    pub support_level: Option<String>,
    /// What the manifest says.
    pub manifest: ManifestClaims,
}

/// All files with plugins in a directory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PluginIndex {
    /// The files, sorted by plugin, version and name.
    pub files: Vec<IndexedFile>,
    /// Why other files that look like plugins are not listed.
    pub problems: Vec<String>,
}

/// The files of a package by path.
type PackageContents = BTreeMap<String, Vec<u8>>;

impl PluginIndex {
    /// Reads a directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read. A file that cannot be read is a problem in the index.
    pub fn read_directory(directory: &Path) -> Result<Self, Error> {
        let entries =
            fs::read_dir(directory).map_err(|error| Error::from(error).in_file(directory.display()))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        let mut index = Self::default();
        for name in names {
            let path = directory.join(&name);
            let found = if name.ends_with(".whl") || name.ends_with(".deb") {
                read_package(&path, &name).map(Some)
            } else if name.ends_with(MANIFEST_ENDING) {
                read_library(directory, &name).map(Some)
            } else {
                Ok(None)
            };
            match found {
                Ok(found) => index.files.extend(found),
                Err(error) => index.problems.push(error.in_file(path.display()).to_string()),
            }
        }
        let key = |file: &IndexedFile| {
            (file.manifest.name.clone(), file.manifest.version.clone(), file.file.clone())
        };
        index.files.sort_by_key(key);
        Ok(index)
    }

    /// The page: a whole HTML file without scripts.
    #[must_use]
    pub fn render_html(&self) -> String {
        let mut rows = String::new();
        let mut plugins: BTreeMap<(&str, &str), Vec<&IndexedFile>> = BTreeMap::new();
        for file in &self.files {
            plugins.entry((&file.manifest.name, &file.manifest.version)).or_default().push(file);
        }
        for files in plugins.values() {
            _ = write!(rows, "{}", render_plugin(files));
        }
        if rows.is_empty() {
            rows = "<p>There are no plugins here.</p>\n".to_owned();
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Plugins for Oarlock</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Plugins for Oarlock</h1>\n\
             <p>What a plugin says of itself is a claim of its vendor: the support level, and the run of the conformance suite. \
             <code>oarlock plugin check FILE</code> finds out for itself.</p>\n{rows}</body>\n</html>\n"
        )
    }
}

/// The part of the page about one version of a plugin.
fn render_plugin(files: &[&IndexedFile]) -> String {
    let manifest = &files[0].manifest;
    let level = files.iter().find_map(|file| file.support_level.as_deref());
    let conformance = files.iter().find_map(|file| file.manifest.conformance.as_ref());
    let tested = conformance.map_or_else(
        || "no run in the manifest".to_owned(),
        |run| {
            format!(
                "suite {} of {}: {}; report {}",
                escape_html(&run.suite),
                escape_html(&run.date),
                escape_html(&run.passed.join(", ")),
                escape_html(run.report_sha256.get(..16).unwrap_or(&run.report_sha256))
            )
        },
    );
    let device = manifest
        .device_type
        .as_ref()
        .map_or_else(String::new, |device| format!(" <b>{}</b>", escape_html(device)));
    let mut text = format!(
        "<section>\n<h2>{} <small>{}</small></h2>\n<dl>\n<dt>Kind</dt><dd>{}{device}</dd>\n<dt>Contract</dt><dd>{}</dd>\n\
         <dt>Profiles</dt><dd>{}</dd>\n<dt>Support level</dt><dd>{}</dd>\n<dt>Conformance</dt><dd>{tested}</dd>\n</dl>\n\
         <table>\n<tr><th>File</th><th>For</th><th>Size</th><th>Signature</th><th>SHA-256</th></tr>\n",
        escape_html(&manifest.name),
        escape_html(&manifest.version),
        escape_html(&manifest.kind),
        escape_html(&manifest.contract),
        escape_html(&if manifest.profiles.is_empty() {
            "none".to_owned()
        } else {
            manifest.profiles.join(", ")
        }),
        escape_html(level.unwrap_or("unspecified")),
    );
    for file in files {
        let name = escape_html(&file.file);
        _ = writeln!(
            text,
            "<tr><td><a href=\"{name}\">{name}</a></td><td>{}</td><td>{} KiB</td><td>{}</td><td><code>{}</code></td></tr>",
            escape_html(&file.manifest.architecture),
            file.bytes.div_ceil(1024),
            if file.signed { "signed" } else { "not signed" },
            file.sha256
        );
    }
    text + "</table>\n</section>\n"
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Reads a wheel or a Debian package.
fn read_package(path: &Path, name: &str) -> Result<IndexedFile, Error> {
    let bytes = fs::read(path)?;
    let owned = |(path, bytes): (&str, &[u8])| (path.to_owned(), bytes.to_vec());
    let contents: PackageContents = if name.ends_with(".whl") {
        Wheel::from_bytes(&bytes)?.files().map(owned).collect()
    } else {
        DebPackage::from_bytes(&bytes)?.contents.files().map(owned).collect()
    };
    let mut manifests = contents.iter().filter(|(path, _)| path.ends_with(MANIFEST_ENDING));
    let (manifest, text) =
        manifests.next().ok_or_else(|| Error::new("expected the manifest of a plugin in it, found none"))?;
    let stem = manifest.strip_suffix(MANIFEST_ENDING).unwrap_or(manifest);
    Ok(IndexedFile {
        file: name.to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256_hex(&bytes),
        signed: contents.contains_key(&format!("{stem}{SIGNATURE_ENDING}")),
        support_level: support_level(&contents),
        manifest: parse_claims(manifest, text)?,
    })
}

/// Reads a shared object by its manifest.
fn read_library(directory: &Path, manifest: &str) -> Result<IndexedFile, Error> {
    let stem = manifest.strip_suffix(MANIFEST_ENDING).unwrap_or(manifest);
    let (text, bytes) =
        (fs::read(directory.join(manifest))?, fs::read(directory.join(format!("{stem}.so")))?);
    Ok(IndexedFile {
        file: format!("{stem}.so"),
        bytes: bytes.len() as u64,
        sha256: sha256_hex(&bytes),
        signed: directory.join(format!("{stem}{SIGNATURE_ENDING}")).exists(),
        support_level: None,
        manifest: parse_claims(manifest, &text)?,
    })
}

fn parse_claims(file: &str, bytes: &[u8]) -> Result<ManifestClaims, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new("expected UTF-8").in_part(file))?;
    toml::from_str(text).map_err(|error| Error::from_toml(file, text, &error))
}

/// The support level that an SBOM in a package states.
fn support_level(contents: &PackageContents) -> Option<String> {
    contents.iter().find_map(|(path, bytes)| {
        let text = match path.strip_suffix(".gz") {
            Some(path) if path.ends_with(".cyclonedx.json") => {
                let mut text = Vec::new();
                flate2::read::GzDecoder::new(&bytes[..]).take(MAX_SBOM_BYTES).read_to_end(&mut text).ok()?;
                text
            }
            None if path.ends_with(".cyclonedx.json") => bytes.clone(),
            _ => return None,
        };
        let sbom: Value = serde_json::from_slice(&text).ok()?;
        let properties = sbom["metadata"]["component"]["properties"].as_array()?;
        let level = properties.iter().find(|property| property["name"] == SUPPORT_LEVEL_PROPERTY)?;
        level["value"].as_str().map(str::to_owned)
    })
}

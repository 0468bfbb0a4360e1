//! The provenance of a release: an in-toto statement in SLSA 1.0 form that lists the sources and materials of all files, in a
//! DSSE envelope with its signatures.

use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_image::lock::LockedPackage;

use super::release_sboms::package_url;
use super::{ReleaseDescription, ReleaseItem};
use crate::crates::{LockedCrate, RustCompiler};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The media type of the signed statement.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The materials of a build besides the sources.
#[derive(Debug)]
pub struct BuildMaterials {
    /// The crates in `Cargo.lock`.
    pub crates: Vec<LockedCrate>,
    /// The Debian packages in images.
    pub debian: Vec<LockedPackage>,
    /// The PyPI tools that build wheels, such as `maturin==1.16.0`.
    pub tools: Vec<String>,
    /// The compilers, one for each architecture.
    pub compilers: Vec<RustCompiler>,
}

/// The provenance statement for the files of a release.
#[must_use]
pub fn provenance_statement(
    about: &ReleaseDescription<'_>,
    materials: &BuildMaterials,
    items: &[ReleaseItem],
) -> Value {
    let source = &about.source;
    let subjects = items.iter().map(|item| json!({ "name": item.path, "digest": { "sha256": item.sha256 } }));
    let mut built_of = vec![json!({
        "uri": format!("git+{}@{}", env!("CARGO_PKG_REPOSITORY"), source.display_name()),
        "digest": { "gitCommit": source.commit },
    })];
    built_of.extend(materials.crates.iter().filter_map(|it| {
        let sha256 = it.sha256.as_ref()?;
        Some(json!({ "uri": package_url("cargo", &it.name, &it.version), "digest": { "sha256": sha256 } }))
    }));
    built_of.extend(materials.debian.iter().map(|it| {
        let place = format!("{}?arch={}", package_url("deb/debian", &it.name, &it.version), it.architecture);
        json!({ "uri": place, "digest": { "sha256": it.sha256 } })
    }));
    built_of.extend(materials.tools.iter().map(|tool| {
        let (name, version) = tool.split_once("==").unwrap_or((tool, ""));
        json!({ "uri": package_url("pypi", name, version) })
    }));
    for RustCompiler { version, commit } in &materials.compilers {
        let mut compiler = json!({ "uri": package_url("generic", "rustc", version) });
        if let Some(commit) = commit {
            compiler["digest"] = json!({ "gitCommit": commit });
        }
        if !built_of.contains(&compiler) {
            built_of.push(compiler);
        }
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects.collect::<Vec<_>>(),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": concat!(env!("CARGO_PKG_REPOSITORY"), "/build/release/v1"),
                "externalParameters": {
                    "source": source.display_name(),
                    "is_rehearsal": source.tag.is_none(),
                    "wheels": about.rows,
                    "images": about.images,
                },
                "resolvedDependencies": built_of,
            },
            "runDetails": {
                // The key's owner ran the build on their own machine; nothing more is known about it.
                "builder": {
                    "id": concat!(env!("CARGO_PKG_REPOSITORY"), "/build/by-hand"),
                    "version": { "oarlock-pack": env!("CARGO_PKG_VERSION") },
                },
            },
        },
    })
}

/// Wraps a statement in a DSSE envelope with the signatures of all keys.
#[must_use]
pub fn sign_envelope(statement: &Value, keys: &[OpenPgpKey]) -> String {
    let payload = format!("{statement:#}\n");
    let signed = [
        format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).as_bytes(),
        payload.as_bytes(),
    ]
    .concat();
    let signatures = keys
        .iter()
        .map(|key| json!({ "keyid": key.fingerprint_hex(), "sig": STANDARD.encode(key.sign_raw(&signed)) }));
    let envelope = json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": STANDARD.encode(&payload),
        "signatures": signatures.collect::<Vec<_>>(),
    });
    format!("{envelope}\n")
}

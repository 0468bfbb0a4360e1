//! Where a release comes from: a statement of in-toto that says, as SLSA 1.0 wants it, of which sources and of what else everything in
//! it was built; and the envelope (DSSE) in which it is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::sboms::package_url;
use super::{ReleaseDescription, ReleaseItem};
use crate::crates::{LockedCrate as Crate, RustCompiler};
use crate::image::lock::LockedPackage;
use crate::openpgp::OpenPgpKey;

/// What the envelope says that is in it.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// What else a release is built of.
#[derive(Debug)]
pub struct BuildMaterials {
    /// The crates of the workspace, as its lock has them.
    pub crates: Vec<Crate>,
    /// The packages of Debian in images.
    pub debian: Vec<LockedPackage>,
    /// The tools from PyPI that build wheels, such as `maturin==1.16.0`.
    pub tools: Vec<String>,
    /// What compiles all of it.
    pub compiler: RustCompiler,
}

/// The statement about files.
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
    let mut compiler = json!({ "uri": package_url("generic", "rustc", &materials.compiler.version) });
    if let Some(commit) = &materials.compiler.commit {
        compiler["digest"] = json!({ "gitCommit": commit });
    }
    built_of.push(compiler);
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
                // Whoever has the key ran it on a machine of theirs; nothing else is known of that machine.
                "builder": {
                    "id": concat!(env!("CARGO_PKG_REPOSITORY"), "/build/by-hand"),
                    "version": { "oarlock-pack": env!("CARGO_PKG_VERSION") },
                },
            },
        },
    })
}

/// A statement in an envelope, signed by all keys.
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

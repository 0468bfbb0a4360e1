//! The SBOM of a compiled part in CycloneDX format: the crates in it, and the libraries that it opens.

use crate::crates::{CrateGraph, CratePackage, RustCompiler};
use serde_json::{Value, json};

/// The SBOM of a package, which comes first, with its linked crates and the standard library. It only depends on the sources
/// and the compiler: it contains no time, no path and no random number.
#[must_use]
pub fn render_sbom(crates: &CrateGraph, packages: &[&CratePackage], opens: &[String]) -> String {
    let described: Vec<Value> = packages.iter().map(|package| describe_crate(crates, package)).collect();
    let opened = opens.iter().map(|soname| {
        json!({
            "type": "library",
            "bom-ref": opened_library_reference(soname),
            "name": soname,
            "scope": "optional",
            "description": "not in this file: opened at run time, if the machine has it",
        })
    });
    let dependencies = packages.iter().enumerate().map(|(place, package)| {
        let is_here = |other: &&CratePackage| packages.iter().any(|it| it.id == other.id);
        let linked = crates.dependencies_of(package).filter(is_here).map(CratePackage::package_url);
        let opened = opens.iter().filter(|_| place == 0).map(|soname| opened_library_reference(soname));
        let standard = (place == 0).then(|| STANDARD_LIBRARY_REFERENCE.to_owned());
        json!({ "ref": package.package_url(), "dependsOn": linked.chain(opened).chain(standard).collect::<Vec<_>>() })
    });
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": described.first() },
        "components": described.iter().skip(1).cloned().chain(opened).chain([describe_standard_library(crates.compiler())]).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    format!("{sbom:#}\n")
}

/// The id of the Rust standard library.
const STANDARD_LIBRARY_REFERENCE: &str = "rust-std";

/// The standard library, which no lock file lists; its version and commit are the compiler's.
fn describe_standard_library(compiler: &RustCompiler) -> Value {
    let mut described = json!({
        "type": "library",
        "bom-ref": STANDARD_LIBRARY_REFERENCE,
        "name": STANDARD_LIBRARY_REFERENCE,
        "version": compiler.version,
        "description": "the standard library of Rust, with the crates that it is made of",
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    });
    if let Some(commit) = &compiler.commit {
        let place = format!("git+https://github.com/rust-lang/rust#{commit}");
        described["externalReferences"] = json!([{ "type": "vcs", "url": place }]);
    }
    described
}

fn opened_library_reference(soname: &str) -> String {
    format!("opened:{soname}")
}

fn describe_crate(crates: &CrateGraph, package: &CratePackage) -> Value {
    let mut described = json!({
        "type": "library",
        "bom-ref": package.package_url(),
        "name": package.name,
        "version": package.version,
        "purl": package.package_url(),
    });
    if let Some(license) = package.license() {
        described["licenses"] = json!([{ "expression": license }]);
    }
    if let Some(hash) = crates.registry_checksum(package) {
        described["hashes"] = json!([{ "alg": "SHA-256", "content": hash }]);
    }
    if let Some(repository) = &package.repository {
        described["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    described
}

//! The bill of materials of what was compiled, in the form of CycloneDX: which crates are in it, and what it opens.

use serde_json::{Value, json};

use crate::crates::{Compiler, Crates, Package};

/// The bill of a package, which comes first, of the crates that are linked with it, and of the standard library of the compiler.
/// It depends on the sources and the compiler alone: no time, no directory and no random number is in it.
#[must_use]
pub fn of_packages(crates: &Crates, packages: &[&Package], opens: &[String]) -> String {
    let described: Vec<Value> = packages.iter().map(|package| describe(crates, package)).collect();
    let opened = opens.iter().map(|soname| {
        json!({
            "type": "library",
            "bom-ref": reference(soname),
            "name": soname,
            "scope": "optional",
            "description": "not in this file: opened while the program runs, where the machine has it",
        })
    });
    let dependencies = packages.iter().enumerate().map(|(place, package)| {
        let is_here = |other: &&Package| packages.iter().any(|it| it.id == other.id);
        let linked = crates.used_by(package).filter(is_here).map(Package::address);
        let opened = opens.iter().filter(|_| place == 0).map(|soname| reference(soname));
        let standard = (place == 0).then(|| STANDARD.to_owned());
        json!({ "ref": package.address(), "dependsOn": linked.chain(opened).chain(standard).collect::<Vec<_>>() })
    });
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": described.first() },
        "components": described.iter().skip(1).cloned().chain(opened).chain([standard(crates.compiler())]).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    format!("{bill:#}\n")
}

/// What refers to the standard library of Rust.
const STANDARD: &str = "rust-std";

/// The standard library, which no lock file names: it comes with the compiler, and is of its version and commit.
fn standard(compiler: &Compiler) -> Value {
    let mut described = json!({
        "type": "library",
        "bom-ref": STANDARD,
        "name": STANDARD,
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

fn reference(soname: &str) -> String {
    format!("opened:{soname}")
}

fn describe(crates: &Crates, package: &Package) -> Value {
    let mut described = json!({
        "type": "library",
        "bom-ref": package.address(),
        "name": package.name,
        "version": package.version,
        "purl": package.address(),
    });
    if let Some(licence) = package.licence() {
        described["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(hash) = crates.hash(package) {
        described["hashes"] = json!([{ "alg": "SHA-256", "content": hash }]);
    }
    if let Some(repository) = &package.repository {
        described["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    described
}

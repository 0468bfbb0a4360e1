//! SBOMs and license texts of compiled parts.

use std::collections::BTreeSet;
use std::path::Path;

use oarlock_matrix::CpuArchitecture;
use oarlock_pack::crates::CrateGraph;
use oarlock_pack::{licenses, part_sbom};

use serde_json::Value;

fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn render_sbom_of(package: &str, opens: &[String]) -> Value {
    let crates =
        CrateGraph::of_workspace(workspace_root(), CpuArchitecture::X86_64, None).expect("the workspace");
    let packages = crates.linked_crates(package, &["shared-object".to_owned()]).expect("a package");
    let text = part_sbom::render_sbom(&crates, &packages, opens);
    assert!(
        !text.contains(&workspace_root().join("plugins").display().to_string()),
        "it says where it was built"
    );
    serde_json::from_str(&text).expect("JSON")
}

fn string_values<'v>(values: &'v Value, key: &str) -> BTreeSet<&'v str> {
    values.as_array().expect("a list").iter().map(|it| it[key].as_str().expect("a text")).collect()
}

#[test]
fn a_bill_names_what_is_linked_and_what_is_opened_and_nothing_else() {
    let sbom = render_sbom_of("oarlock-plugin-openblas", &["libopenblas.so.0".to_owned()]);
    assert_eq!((&sbom["bomFormat"], &sbom["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(sbom["metadata"]["component"]["name"], "oarlock-plugin-openblas");
    let names = string_values(&sbom["components"], "name");
    for linked in ["libloading", "oarlock-blas", "oarlock-sdk", "libopenblas.so.0"] {
        assert!(names.contains(linked), "{linked} in {names:?}");
    }
    // Procedural macros run at compile time, and features of tests are off in builds.
    for absent in ["oarlock-sdk-macros", "syn", "libtest-mimic", "clap"] {
        assert!(!names.contains(absent), "{absent} in {names:?}");
    }
    let of_registry =
        sbom["components"].as_array().expect("a list").iter().find(|it| it["name"] == "libloading");
    let hash = of_registry.expect("a crate")["hashes"][0]["content"].as_str().expect("a hash");
    assert_eq!(hash.len(), 64);
}

#[test]
fn the_standard_library_is_that_of_the_compiler() {
    let sbom = render_sbom_of("oarlock-plugin-openblas", &[]);
    let components = sbom["components"].as_array().expect("a list");
    let standard = components.iter().find(|it| it["name"] == "rust-std").expect("the standard library");
    let message = std::process::Command::new("rustc").arg("--version").output().expect("the compiler");
    let message = String::from_utf8_lossy(&message.stdout).into_owned();
    assert!(message.contains(standard["version"].as_str().expect("a text")), "{standard} of {message}");
    assert_eq!(standard["licenses"][0]["expression"], "MIT OR Apache-2.0");
    let first = sbom["dependencies"][0]["dependsOn"].as_array().expect("a list");
    assert!(first.contains(&"rust-std".into()), "{first:?}");
}

#[test]
fn whatever_a_bill_refers_to_is_in_it() {
    let sbom = render_sbom_of("oarlock-plugin-opencl", &["libOpenCL.so.1".to_owned()]);
    let mut known = string_values(&sbom["components"], "bom-ref");
    known.insert(sbom["metadata"]["component"]["bom-ref"].as_str().expect("a text"));
    for dependency in sbom["dependencies"].as_array().expect("a list") {
        assert!(known.contains(dependency["ref"].as_str().expect("a text")), "{dependency}");
        for other in dependency["dependsOn"].as_array().expect("a list") {
            assert!(known.contains(other.as_str().expect("a text")), "{dependency}");
        }
    }
    let first = &sbom["dependencies"][0];
    assert!(
        first["dependsOn"].as_array().expect("a list").contains(&"opened:libOpenCL.so.1".into()),
        "{first}"
    );
}

#[test]
fn third_party_licenses_are_included_in_full() {
    let crates =
        CrateGraph::of_workspace(workspace_root(), CpuArchitecture::X86_64, None).expect("the workspace");
    let packages = crates.linked_crates("oarlock-plugin-openblas", &[]).expect("a package");
    let text = licenses::collect_licenses(&packages).expect("licenses");
    // One crate is under another license alone, and one is also available under ours.
    let (_, expected) = text.split_once("\nlibloading ").expect("its license");
    assert!(expected.contains("Permission to use, copy, modify"), "{expected}");
    assert!(
        text.contains("Under the Apache License 2.0, which is in this directory: ")
            && text.contains(" libc ")
    );
    assert!(!text.contains("oarlock-sdk"), "ours is no license of others");
}

#[test]
fn a_package_that_is_not_there_is_named() {
    let crates =
        CrateGraph::of_workspace(workspace_root(), CpuArchitecture::X86_64, None).expect("the workspace");
    let error = crates.linked_crates("oarlock-plugin-abacus", &[]).expect_err("no such package").to_string();
    assert!(error.contains("oarlock-plugin-abacus"), "{error}");
}

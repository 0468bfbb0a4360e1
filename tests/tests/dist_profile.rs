//! The profiles `release` and `dist` optimize every crate with kernels for speed. With link-time optimization, passes run at the opt
//! level of the root crate, so a command that is optimized for size loses the vectorization of its kernels and still computes the
//! right results. So does a crate of kernels in several units without link-time optimization, which calls what it should inline.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

const KERNEL_CRATE: &str = "oarlock-plugin-cpu";
/// The common prefix of the crates with CPU kernels.
const KERNEL_PARTS: &str = "oarlock-cpu-";

#[derive(Deserialize)]
struct RootManifest {
    workspace: WorkspaceMembers,
    profile: BTreeMap<String, ProfileLevels>,
}

#[derive(Deserialize)]
struct WorkspaceMembers {
    members: Vec<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ProfileLevels {
    opt_level: Option<toml::Value>,
    codegen_units: Option<u32>,
    package: BTreeMap<String, ProfileLevels>,
}

#[derive(Deserialize)]
struct CrateManifest {
    package: PackageName,
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct PackageName {
    name: String,
}

fn read_toml<T: serde::de::DeserializeOwned>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The crate with the CPU kernels, and the crates that link them.
fn crates_with_kernels(root: &Path, members: &[PathBuf]) -> Vec<String> {
    let manifests =
        members.iter().map(|member| read_toml::<CrateManifest>(&root.join(member).join("Cargo.toml")));
    let has_kernels = |manifest: &CrateManifest| {
        [KERNEL_CRATE, KERNEL_PARTS].iter().any(|name| manifest.package.name.starts_with(name))
            || manifest.dependencies.contains_key(KERNEL_CRATE)
    };
    manifests.filter(has_kernels).map(|manifest| manifest.package.name).collect()
}

/// The crates of a list that the profile `dist` does not optimize for speed.
fn unoptimized_crates<'a>(profiles: &BTreeMap<String, ProfileLevels>, crates: &'a [String]) -> Vec<&'a str> {
    let fastest = toml::Value::Integer(3);
    let is_slow = |name: &&String| {
        let of_profile = |profile: &str| {
            let profile = profiles.get(profile)?;
            let of_package = profile.package.get(*name).and_then(|package| package.opt_level.as_ref());
            of_package.or(profile.opt_level.as_ref())
        };
        // A level that `dist` does not set is inherited from `release`, whose default is the fastest.
        of_profile("dist").or_else(|| of_profile("release")).is_some_and(|level| *level != fastest)
    };
    crates.iter().filter(is_slow).map(String::as_str).collect()
}

#[test]
fn no_crate_that_is_linked_with_kernels_is_published_small_rather_than_fast() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository");
    let RootManifest { workspace, profile } = read_toml(&root.join("Cargo.toml"));
    let crates = crates_with_kernels(root, &workspace.members);
    for name in [KERNEL_CRATE, "oarlock-cli", "oarlock-capi", "oarlock-python"] {
        assert!(crates.iter().any(|known| known == name), "{name} is linked with kernels; found {crates:?}");
    }
    assert_eq!(unoptimized_crates(&profile, &crates), Vec::<&str>::new());
}

#[test]
fn every_crate_of_kernels_is_one_unit_in_builds_without_link_time_optimization() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository");
    let RootManifest { workspace, profile } = read_toml(&root.join("Cargo.toml"));
    let crates = crates_with_kernels(root, &workspace.members);
    let kernels = crates.iter().filter(|name| name.starts_with(KERNEL_PARTS) && !name.ends_with("testing"));
    let units =
        |name: &&String| profile["release"].package.get(*name).and_then(|package| package.codegen_units);
    let split: Vec<&String> = kernels.filter(|name| units(name) != Some(1)).collect();
    assert_eq!(split, Vec::<&String>::new(), "expected `codegen-units = 1` in `[profile.release.package.…]`");
}

#[test]
fn a_command_that_asks_for_size_is_noticed() {
    let profiles = |text: &str| {
        let manifest = format!("workspace = {{ members = [] }}\n{text}");
        toml::from_str::<RootManifest>(&manifest).expect("a manifest").profile
    };
    let crates = ["oarlock-cli".to_owned()];
    let small = "[profile.dist.package.oarlock-cli]\nopt-level = \"s\"";
    let fast = "[profile.release.package.oarlock-cli]\nopt-level = 1\n[profile.dist.package.oarlock-cli]\nopt-level = 3";
    let inherited =
        "[profile.release.package.oarlock-cli]\nopt-level = 1\n[profile.dist]\ninherits = \"release\"";
    assert_eq!(unoptimized_crates(&profiles(small), &crates), ["oarlock-cli"]);
    assert_eq!(unoptimized_crates(&profiles(fast), &crates), Vec::<&str>::new());
    assert_eq!(unoptimized_crates(&profiles(inherited), &crates), ["oarlock-cli"]);
}

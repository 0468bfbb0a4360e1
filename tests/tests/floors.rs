//! Each floor may depend on the floors below it and on none above; ARCHITECTURE.md lists them.
//!
//! The floors let a vendor build a plugin without the runtime, and let the host be built without any device. A dependency in the
//! wrong direction fails here, development dependencies included: tests that cross floors belong to this crate.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Each floor, and the floors that its crates may depend on besides itself.
const ALLOWED_FLOORS: &[(&str, &[&str])] = &[
    ("device-sdk", &[]),
    ("plugins", &["device-sdk"]),
    ("runtime/isolation", &["device-sdk"]),
    ("runtime/host", &["device-sdk", "runtime/isolation"]),
    ("runtime/core", &["device-sdk", "runtime/host"]),
    ("runtime/model", &["device-sdk", "runtime/core", "runtime/host"]),
    ("runtime/engine", &["device-sdk", "runtime/core", "runtime/host", "runtime/model"]),
    ("runtime/report", &["device-sdk", "runtime/core", "runtime/engine", "runtime/host"]),
    ("runtime/rust", &["device-sdk", "plugins", "runtime/core", "runtime/engine", "runtime/host"]),
    ("runtime/capi", &["device-sdk", "plugins", "runtime/core", "runtime/engine", "runtime/host"]),
    (
        "runtime/cli",
        &[
            "device-sdk",
            "packaging/formats",
            "packaging/plugin",
            "plugins",
            "runtime/core",
            "runtime/engine",
            "runtime/host",
            "runtime/report",
        ],
    ),
    (
        "runtime/python",
        &["device-sdk", "plugins", "runtime/core", "runtime/engine", "runtime/host", "runtime/report"],
    ),
    ("packaging", &["device-sdk"]),
    ("scripts", &["device-sdk"]),
    ("tests", &["device-sdk", "packaging", "plugins", "runtime", "scripts"]),
];

/// A crate of the workspace: its directory and those of its dependencies, relative to the root.
struct WorkspaceMember {
    directory: String,
    dependencies: Vec<String>,
}

/// True if a directory is that of the floor or below it.
fn lies_in(directory: &str, floor: &str) -> bool {
    Path::new(directory).starts_with(floor)
}

/// One sentence for every forbidden dependency and for every crate without a floor.
fn floor_breaches(members: &[WorkspaceMember]) -> Vec<String> {
    let mut found = Vec::new();
    for WorkspaceMember { directory, dependencies } in members {
        let Some((floor, below)) = ALLOWED_FLOORS.iter().find(|(floor, _)| lies_in(directory, floor)) else {
            found.push(format!(
                "`{directory}` is on no floor; add it to `ALLOWED_FLOORS` and to ARCHITECTURE.md"
            ));
            continue;
        };
        for dependency in dependencies {
            if !lies_in(dependency, floor) && !below.iter().any(|floor| lies_in(dependency, floor)) {
                found.push(format!("`{directory}` depends on `{dependency}`, which `{floor}` must not"));
            }
        }
    }
    found
}

/// The relevant part of the output of `cargo metadata`.
#[derive(Deserialize)]
struct CargoMetadata {
    workspace_root: PathBuf,
    packages: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    manifest_path: PathBuf,
    dependencies: Vec<CargoDependency>,
}

#[derive(Deserialize)]
struct CargoDependency {
    /// The crate's directory, if it does not come from a registry.
    path: Option<PathBuf>,
}

/// The crates of this workspace, as cargo sees them.
fn workspace_members() -> Vec<WorkspaceMember> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo built this test, so it can be started");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let CargoMetadata { workspace_root, packages } =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let from_root = |path: &Path| path.strip_prefix(&workspace_root).unwrap_or(path).display().to_string();
    let member = |package: CargoPackage| WorkspaceMember {
        directory: from_root(package.manifest_path.parent().unwrap_or(&workspace_root)),
        dependencies: package
            .dependencies
            .into_iter()
            .filter_map(|it| it.path)
            .map(|it| from_root(&it))
            .collect(),
    };
    packages.into_iter().map(member).collect()
}

#[test]
fn every_crate_depends_only_on_its_own_floor_and_those_below() {
    let members = workspace_members();
    assert!(members.iter().any(|member| member.directory == "runtime/host"), "the host is a crate");
    assert_eq!(floor_breaches(&members), Vec::<String>::new());
}

#[test]
fn a_dependency_upwards_is_noticed() {
    let upwards = [
        ("plugins/cpu", "runtime/host"),
        ("device-sdk/sdk", "plugins/cpu"),
        ("runtime/host", "plugins/cpu"),
        ("runtime/host", "runtime/cli"),
        ("packaging", "runtime/host"),
    ];
    for (directory, dependency) in upwards {
        let member = WorkspaceMember { directory: directory.into(), dependencies: vec![dependency.into()] };
        assert_eq!(floor_breaches(&[member]).len(), 1, "{directory} on {dependency}");
    }
}

#[test]
fn a_crate_on_no_floor_is_noticed() {
    let member = WorkspaceMember { directory: "plugins-too/cpu".into(), dependencies: Vec::new() };
    assert_eq!(floor_breaches(&[member]).len(), 1);
}

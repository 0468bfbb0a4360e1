//! The crates of the workspace, from cargo: names, directories and dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// All crates, by name.
pub(crate) struct CargoWorkspace {
    pub(crate) root: PathBuf,
    pub(crate) members: BTreeMap<String, WorkspaceMember>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WorkspaceMember {
    pub(crate) name: String,
    /// The directory, relative to the root of the workspace.
    pub(crate) directory: PathBuf,
    /// The crates of the workspace that it depends on.
    pub(crate) dependencies: BTreeSet<String>,
    /// Integration tests by name, with the main file of each relative to the crate.
    pub(crate) tests: BTreeMap<String, PathBuf>,
    /// The integration tests to run when a dependency has changed.
    pub(crate) quick: BTreeSet<String>,
}

impl CargoWorkspace {
    /// Runs `cargo metadata` in the root of a workspace.
    pub(crate) fn of_cargo(cargo: &OsStr, root: &Path) -> Result<Self> {
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
            .current_dir(root)
            .output()
            .context("starting cargo")?;
        if !output.status.success() {
            bail!("`cargo metadata`: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Self::read(&output.stdout)
    }

    /// Parses the output of `cargo metadata`.
    fn read(json: &[u8]) -> Result<Self> {
        let CargoMetadata { workspace_root: root, packages } =
            serde_json::from_slice(json).context("reading what `cargo metadata` printed")?;
        let directories: BTreeSet<PathBuf> = packages
            .iter()
            .filter_map(|package| package.manifest_path.parent().map(Path::to_owned))
            .collect();
        let mut members = BTreeMap::new();
        for package in packages {
            let directory = package.manifest_path.parent().context("a manifest without a directory")?;
            let dependencies = package.dependencies.into_iter();
            let member = WorkspaceMember {
                directory: directory.strip_prefix(&root).unwrap_or(directory).to_owned(),
                dependencies: dependencies
                    .filter(|it| it.path.as_ref().is_some_and(|path| directories.contains(path)))
                    .map(|it| it.name)
                    .collect(),
                tests: package
                    .targets
                    .into_iter()
                    .filter(|target| target.kind == ["test"])
                    .map(|it| {
                        (it.name, it.src_path.strip_prefix(directory).unwrap_or(&it.src_path).to_owned())
                    })
                    .collect(),
                quick: package.metadata.map(|it| it.check.quick).unwrap_or_default(),
                name: package.name,
            };
            if let Some(unknown) = member.quick.iter().find(|name| !member.tests.contains_key(*name)) {
                bail!(
                    "`{}/Cargo.toml`: expected a test in `quick` of `[package.metadata.check]`, found `{unknown}`",
                    member.directory.display()
                );
            }
            members.insert(member.name.clone(), member);
        }
        Ok(Self { root, members })
    }

    /// Finds a crate by its package name, by its directory, or by a short form of either.
    pub(crate) fn find(&self, called: &str) -> Result<&WorkspaceMember> {
        let path = called.trim_start_matches("./").trim_end_matches('/');
        let is_it = |member: &&WorkspaceMember| {
            member.name == path || member.directory == Path::new(path) || member.short_names().contains(path)
        };
        if let Some(member) = self.members.values().find(is_it) {
            return Ok(member);
        }
        let names = self.members.values().flat_map(|member| {
            let directory = member.directory.display().to_string();
            let names = member.short_names().into_iter().chain([member.name.clone(), directory]);
            names.map(move |name| (strsim::damerau_levenshtein(&name, path), name, member))
        });
        let (_, name, member) =
            names.min_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1))).context("no crates")?;
        bail!(
            "expected a crate of the workspace, found `{called}`; the nearest is `{name}`, package `{}` in `{}`",
            member.name,
            member.directory.display()
        );
    }

    /// The crates that depend on any of these, directly or indirectly, without these.
    pub(crate) fn dependents(&self, of: &BTreeSet<String>) -> BTreeSet<String> {
        let mut reached = of.clone();
        loop {
            let next: Vec<String> = self
                .members
                .values()
                .filter(|member| {
                    !reached.contains(&member.name) && !member.dependencies.is_disjoint(&reached)
                })
                .map(|member| member.name.clone())
                .collect();
            if next.is_empty() {
                return reached.difference(of).cloned().collect();
            }
            reached.extend(next);
        }
    }

    /// The crate that a file belongs to, by its path from the root: the crate of the nearest manifest above it.
    pub(crate) fn owner(&self, file: &Path, is_manifest: impl Fn(&Path) -> bool) -> Option<&WorkspaceMember> {
        let nearest =
            file.ancestors().skip(1).find(|directory| is_manifest(&directory.join("Cargo.toml")))?;
        self.members.values().find(|member| member.directory == nearest)
    }
}

impl WorkspaceMember {
    /// Short names: the last component of its directory, and its name without the common prefix.
    fn short_names(&self) -> BTreeSet<String> {
        let name = self.name.strip_prefix("oarlock-").unwrap_or(&self.name);
        let directory = self.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let names = [name, name.strip_prefix("plugin-").unwrap_or(name)].map(str::to_owned);
        names.into_iter().chain(directory).collect()
    }

    /// The integration test that a file belongs to, by its path from the root, if it is only part of that one.
    pub(crate) fn test_of(&self, file: &Path) -> Option<&str> {
        let file = file.strip_prefix(&self.directory).ok()?;
        let (name, _) = self.tests.iter().find(|(_, main)| match main.file_name() {
            Some(name) if name == "main.rs" => {
                main.parent().is_some_and(|directory| file.starts_with(directory))
            }
            _ => file == *main,
        })?;
        Some(name)
    }
}

/// The fields of `cargo metadata` that are needed here.
#[derive(Deserialize)]
struct CargoMetadata {
    workspace_root: PathBuf,
    packages: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<CargoDependency>,
    targets: Vec<PackageTarget>,
    metadata: Option<OwnMetadata>,
}

#[derive(Deserialize)]
struct CargoDependency {
    name: String,
    /// The directory of a path dependency; `None` for a crate from a registry.
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct PackageTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

/// The fields below `[package.metadata]` in manifests of this workspace.
#[derive(Default, Deserialize)]
struct OwnMetadata {
    #[serde(default)]
    check: CheckMetadata,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckMetadata {
    #[serde(default)]
    quick: BTreeSet<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of an engine on a core on a host, and a crate of tests.
    fn workspace() -> CargoWorkspace {
        let json = serde_json::json!({
            "workspace_root": "/tree",
            "packages": [
                {
                    "name": "oarlock-host", "manifest_path": "/tree/runtime/host/Cargo.toml", "metadata": null,
                    "dependencies": [{ "name": "libc", "path": null }], "targets": [],
                },
                {
                    "name": "oarlock-core", "manifest_path": "/tree/runtime/core/Cargo.toml", "metadata": null,
                    "dependencies": [{ "name": "oarlock-host", "path": "/tree/runtime/host" }],
                    "targets": [{ "name": "oarlock_core", "kind": ["lib"], "src_path": "/tree/runtime/core/src/lib.rs" }],
                },
                {
                    "name": "oarlock-plugin-cpu", "manifest_path": "/tree/plugins/cpu/Cargo.toml", "metadata": null,
                    "dependencies": [], "targets": [],
                },
                {
                    "name": "oarlock-tests", "manifest_path": "/tree/tests/Cargo.toml",
                    "dependencies": [{ "name": "oarlock-core", "path": "/tree/runtime/core" }],
                    "targets": [
                        { "name": "engine", "kind": ["test"], "src_path": "/tree/tests/tests/engine/main.rs" },
                        { "name": "house", "kind": ["test"], "src_path": "/tree/tests/tests/house.rs" },
                    ],
                    "metadata": { "check": { "quick": ["house"] } },
                },
            ],
        });
        CargoWorkspace::read(json.to_string().as_bytes()).expect("a workspace")
    }

    #[test]
    fn a_crate_is_found_by_its_package_its_directory_or_its_short_name() {
        let workspace = workspace();
        for name in ["oarlock-plugin-cpu", "plugins/cpu", "./plugins/cpu/", "plugin-cpu", "cpu"] {
            assert_eq!(workspace.find(name).expect(name).name, "oarlock-plugin-cpu");
        }
    }

    #[test]
    fn a_crate_that_there_is_not_is_an_error_with_the_nearest() {
        let error = workspace().find("croe").expect_err("no crate").to_string();
        assert_eq!(
            error,
            "expected a crate of the workspace, found `croe`; the nearest is `core`, package `oarlock-core` in `runtime/core`"
        );
    }

    #[test]
    fn what_depends_on_a_crate_is_found_at_any_remove() {
        let workspace = workspace();
        let of = |name: &str| workspace.dependents(&BTreeSet::from([name.to_owned()]));
        assert_eq!(
            of("oarlock-host"),
            BTreeSet::from(["oarlock-core".to_owned(), "oarlock-tests".to_owned()])
        );
        assert_eq!(of("oarlock-tests"), BTreeSet::new());
    }

    #[test]
    fn a_file_belongs_to_the_crate_of_the_nearest_manifest() {
        let workspace = workspace();
        let manifests = ["Cargo.toml", "tests/Cargo.toml", "tests/fuzz/Cargo.toml"];
        let owner = |file: &str| {
            let owner =
                workspace.owner(Path::new(file), |it| manifests.iter().any(|there| it == Path::new(there)));
            owner.map(|member| member.name.as_str())
        };
        assert_eq!(owner("tests/tests/house.rs"), Some("oarlock-tests"));
        assert_eq!(owner("tests/fuzz/fuzz_targets/model.rs"), None);
        assert_eq!(owner("docs/src/SUMMARY.md"), None);
        assert_eq!(owner("Cargo.lock"), None);
    }

    #[test]
    fn a_file_of_one_test_is_told_from_one_of_all() {
        let workspace = workspace();
        let tests = workspace.find("tests").expect("a crate");
        assert_eq!(tests.test_of(Path::new("tests/tests/engine/passes.rs")), Some("engine"));
        assert_eq!(tests.test_of(Path::new("tests/tests/house.rs")), Some("house"));
        assert_eq!(tests.test_of(Path::new("tests/src/lib.rs")), None);
        assert_eq!(tests.test_of(Path::new("runtime/core/src/lib.rs")), None);
    }

    #[test]
    fn a_quick_test_that_there_is_not_is_an_error() {
        let json = r#"{"workspace_root": "/tree", "packages": [{"name": "a", "manifest_path": "/tree/a/Cargo.toml",
            "dependencies": [], "targets": [], "metadata": {"check": {"quick": ["gone"]}}}]}"#;
        let error = CargoWorkspace::read(json.as_bytes()).err().expect("an error").to_string();
        assert_eq!(
            error,
            "`a/Cargo.toml`: expected a test in `quick` of `[package.metadata.check]`, found `gone`"
        );
    }
}

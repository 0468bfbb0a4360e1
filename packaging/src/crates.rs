//! Crate graphs: the crates that a package is compiled from, as cargo reports them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use serde::Deserialize;

/// Cargo's metadata of a workspace and of all its dependencies, for an architecture.
#[derive(Debug)]
pub struct CrateGraph {
    root: PathBuf,
    packages: BTreeMap<String, CratePackage>,
    /// The dependencies that each package links, by cargo's package id.
    uses: BTreeMap<String, BTreeSet<String>>,
    /// The checksums of crates from a registry, by name and version.
    hashes: BTreeMap<(String, String), String>,
    compiler: RustCompiler,
    architecture: CpuArchitecture,
}

/// The compiler, whose standard library is linked into everything.
#[derive(Debug, Eq, PartialEq)]
pub struct RustCompiler {
    /// Its version.
    pub version: String,
    /// The commit of its sources; `None` for a build that does not state it.
    pub commit: Option<String>,
}

/// A crate with the metadata of its manifest.
#[derive(Debug, Deserialize)]
pub struct CratePackage {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) repository: Option<String>,
    /// The registry; `None` for a crate of the workspace.
    pub(crate) source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<CratePackage>,
    resolve: CargoResolve,
}

#[derive(Deserialize)]
struct CargoResolve {
    nodes: Vec<ResolveNode>,
}

#[derive(Deserialize)]
struct ResolveNode {
    id: String,
    deps: Vec<ResolvedDependency>,
}

#[derive(Deserialize)]
struct ResolvedDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for a normal dependency; otherwise `build` or `dev`.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct CargoLock {
    package: Vec<LockedCrate>,
}

/// A crate in a `Cargo.lock`.
#[derive(Clone, Debug, Deserialize)]
pub struct LockedCrate {
    /// The name of the crate.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The checksum of its archive; `None` for a crate of the workspace.
    #[serde(rename = "checksum")]
    pub sha256: Option<String>,
}

impl CrateGraph {
    /// Runs `cargo metadata` for a workspace; `compiler` is another one than cargo's own.
    ///
    /// # Errors
    ///
    /// When cargo fails, for example because the lock file is out of date.
    pub fn of_workspace(
        root: &Path,
        architecture: CpuArchitecture,
        compiler: Option<&Path>,
    ) -> Result<Self, Error> {
        let triple = architecture.target_triple();
        let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", triple];
        let output = run_cargo(root, &arguments)?;
        let metadata: WorkspaceMetadata =
            serde_json::from_slice(&output.stdout).map_err(|error| Error::new(format!("cargo: {error}")))?;
        let hash = |it: LockedCrate| Some(((it.name, it.version), it.sha256?));
        let is_used =
            |dependency: &ResolvedDependency| dependency.dep_kinds.iter().any(|it| it.kind.is_none());
        let uses = |node: ResolveNode| {
            let used = node.deps.into_iter().filter(is_used).map(|it| it.pkg).collect();
            (node.id, used)
        };
        Ok(Self {
            root: root.to_owned(),
            packages: metadata.packages.into_iter().map(|it| (it.id.clone(), it)).collect(),
            uses: metadata.resolve.nodes.into_iter().map(uses).collect(),
            hashes: locked_crates(root)?.into_iter().filter_map(hash).collect(),
            compiler: RustCompiler::of_workspace(root, compiler)?,
            architecture,
        })
    }

    pub(crate) fn compiler(&self) -> &RustCompiler {
        &self.compiler
    }

    /// The named package, followed by all crates linked into it with these features, sorted by name.
    ///
    /// # Errors
    ///
    /// When the workspace has no such package, or the package no such features.
    pub fn linked_crates(&self, name: &str, features: &[String]) -> Result<Vec<&CratePackage>, Error> {
        if !self.packages.values().any(|it| it.name == name && it.source.is_none()) {
            return Err(Error::new(format!("expected a package of the workspace, found `{name}`")));
        }
        // For a whole workspace, cargo unifies the features that all packages request, so this queries the one package again.
        let features = features.join(",");
        let mut arguments =
            vec!["tree", "--locked", "--package", name, "--no-default-features", "--features", &features];
        arguments.extend([
            "--target",
            self.architecture.target_triple(),
            "--edges",
            "normal,no-proc-macro",
            "--no-dedupe",
        ]);
        arguments.extend(["--prefix", "none", "--format", "{p}"]);
        let output = run_cargo(&self.root, &arguments)?.stdout;
        let output = String::from_utf8_lossy(&output);
        let linked: BTreeSet<(&str, &str)> = output
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                Some((words.next()?, words.next()?.strip_prefix('v')?))
            })
            .collect();
        let is_linked = |it: &&CratePackage| linked.contains(&(it.name.as_str(), it.version.as_str()));
        let mut packages: Vec<&CratePackage> = self.packages.values().filter(is_linked).collect();
        packages.sort_by_key(|it| (it.name != name, &it.name, &it.version));
        Ok(packages)
    }

    /// The crates that a package links: its normal dependencies.
    pub(crate) fn dependencies_of<'s>(
        &'s self,
        package: &CratePackage,
    ) -> impl Iterator<Item = &'s CratePackage> {
        self.uses.get(&package.id).into_iter().flatten().filter_map(|id| self.packages.get(id))
    }

    /// The checksum of a crate from a registry.
    pub(crate) fn registry_checksum(&self, package: &CratePackage) -> Option<&str> {
        self.hashes.get(&(package.name.clone(), package.version.clone())).map(String::as_str)
    }
}

impl RustCompiler {
    /// The compiler that cargo runs in a workspace, or another program.
    pub(crate) fn of_workspace(root: &Path, program: Option<&Path>) -> Result<Self, Error> {
        let own = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let program = program.unwrap_or(own.as_ref());
        let output = Command::new(program).arg("-vV").current_dir(root).output()?;
        Self::parse_version(&String::from_utf8_lossy(&output.stdout))
    }

    /// Parses the output of `rustc --version --verbose`.
    fn parse_version(output: &str) -> Result<Self, Error> {
        let of = |name: &str| output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let version = of("release")
            .ok_or_else(|| Error::new("expected `release` in the output of `rustc -vV`, found none"))?;
        let commit = of("commit-hash").filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Ok(Self { version: version.to_owned(), commit: commit.map(str::to_owned) })
    }
}

impl CratePackage {
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// Its license as a current SPDX expression.
    pub(crate) fn license(&self) -> Option<String> {
        self.license.as_ref().map(|text| text.replace('/', " OR "))
    }

    /// Its package URL, which identifies it globally.
    pub(crate) fn package_url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// All crates in a workspace's `Cargo.lock`.
///
/// # Errors
///
/// When there is no lock file, or it cannot be read.
pub fn locked_crates(root: &Path) -> Result<Vec<LockedCrate>, Error> {
    let file = root.join("Cargo.lock");
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| Error::from(error).in_file(file.display()))?;
    let lock: Result<CargoLock, _> = toml::from_str(&text);
    Ok(lock.map_err(|error| Error::from_toml(&file.display().to_string(), &text, &error))?.package)
}

fn run_cargo(root: &Path, arguments: &[&str]) -> Result<Output, Error> {
    let output = Command::new("cargo").args(arguments).current_dir(root).output()?;
    if output.status.success() {
        return Ok(output);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!("`cargo {}` failed: {}", arguments[0], why.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_says_its_version_and_its_commit_where_it_knows_it() {
        let output = "rustc 1.89.0\nbinary: rustc\ncommit-hash: 29483883eed6\nhost: x86_64-unknown-linux-gnu\nrelease: 1.89.0\n";
        let compiler = |version: &str, commit: Option<&str>| RustCompiler {
            version: version.to_owned(),
            commit: commit.map(str::to_owned),
        };
        assert_eq!(RustCompiler::parse_version(output), Ok(compiler("1.89.0", Some("29483883eed6"))));
        // As in a compiler that a distribution built.
        let output = output.replace("29483883eed6", "unknown");
        assert_eq!(RustCompiler::parse_version(&output), Ok(compiler("1.89.0", None)));
        assert!(RustCompiler::parse_version("").is_err());
    }
}

//! What building takes from the network, kept beside the sources so that it can be done without one, there or wherever the
//! directory is moved.
//!
//! | where | what |
//! |---|---|
//! | `vendor/crates/` | the crates of the workspace, and those of what makes the book |
//! | `vendor/tools/` | what makes the book |
//! | `vendor/cargo.toml` | what tells cargo of them; `.cargo/config.toml` includes it where it is there |
//! | `vendor/python/` | the tools from PyPI that build wheels, and the libraries that plugins are asked with |
//! | `vendor/debian/` | the packages of Debian that images are made of |

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::Plan;
use crate::build::book::{MAKER, SCRIPT};
use crate::build::tools::{self, Tools};
use crate::error::Error;
use crate::file;

/// Where all of it lies in the sources.
const DIRECTORY: &str = "vendor";
const CRATES: &str = "crates";

/// What says that the directory is filled, in the words of cargo.
const SETTINGS: &str = "cargo.toml";

/// What says that it is being filled.
const UNFINISHED: &str = ".unfinished";

/// What tells cargo to take crates from there and to ask nobody else; the place is said from the root of the sources.
const SETTINGS_TEXT: &str = "\
# `oarlock-pack vendor` wrote this. Without this file, cargo takes crates from their registry again.

[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor/crates\"

[net]
offline = true
";

/// Where packages of Debian lie, where sources have been given what building them takes.
#[must_use]
pub fn debian(root: &Path) -> Option<PathBuf> {
    below(root, "debian")
}

/// Where wheels for pip lie, in the same case.
pub(crate) fn python(root: &Path) -> Option<PathBuf> {
    below(root, "python")
}

/// Where crates lie, in the same case, as cargo says it: from where the file is that includes its settings.
pub(crate) fn crates(root: &Path) -> Option<PathBuf> {
    below(&root.join(".cargo/.."), CRATES)
}

fn below(root: &Path, name: &str) -> Option<PathBuf> {
    let place = root.join(DIRECTORY).join(name);
    (root.join(DIRECTORY).join(SETTINGS).is_file() && place.is_dir()).then_some(place)
}

/// Sources that are given what building them takes.
#[derive(Debug)]
pub struct Vendored {
    root: PathBuf,
    /// Where what tools say can be read.
    target: PathBuf,
}

impl Vendored {
    /// Sources in a directory, which has nothing of somebody else where it all goes.
    ///
    /// # Errors
    ///
    /// When there is something else.
    pub fn new(root: &Path) -> Result<Self, Error> {
        let root = root.canonicalize()?;
        let place = root.join(DIRECTORY);
        let is_empty = std::fs::read_dir(&place).map_or(true, |mut entries| entries.next().is_none());
        if !is_empty && !place.join(SETTINGS).is_file() && !place.join(UNFINISHED).is_file() {
            return Err(Error::new(format!(
                "expected nothing, or what `oarlock-pack vendor` put there, found neither its `{SETTINGS}` nor its `{UNFINISHED}`"
            ))
            .of_file(DIRECTORY));
        }
        Ok(Self { target: root.join("target/pack"), root })
    }

    /// Where packages of Debian are put.
    #[must_use]
    pub fn debian(&self) -> PathBuf {
        self.root.join(DIRECTORY).join("debian")
    }

    /// Begins: until it is finished, nothing there is used.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written.
    pub fn begin(&self) -> Result<(), Error> {
        let place = self.root.join(DIRECTORY);
        file::write(&place.join(UNFINISHED), b"")?;
        match std::fs::remove_file(place.join(SETTINGS)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Takes the crates of the workspace, and what makes the book with those that it is locked to.
    ///
    /// # Errors
    ///
    /// When cargo cannot get them.
    pub fn take_crates(&self) -> Result<(), Error> {
        let tools = self.tools();
        let versions = tools.run(Command::new(self.root.join(SCRIPT)).arg("--versions"), "versions")?;
        let versions = versions.lines().filter_map(|line| line.split_once(' '));
        let (maker, version) = versions.into_iter().find(|(name, _)| *name == MAKER).unwrap_or_default();
        // Cargo gives the sources of a crate to who depends on it.
        let scratch = tempfile::tempdir_in(self.root.join(DIRECTORY))?;
        let manifest = format!(
            "[package]\nname = \"x\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{maker} = \"={version}\"\n"
        );
        file::write(&scratch.path().join("Cargo.toml"), manifest.as_bytes())?;
        file::write(&scratch.path().join("src/lib.rs"), b"")?;
        let given = scratch.path().join("given");
        let mut cargo = Command::new("cargo");
        cargo.args(["vendor", "--quiet", "--versioned-dirs", "--manifest-path"]);
        tools.run(cargo.arg(scratch.path().join("Cargo.toml")).arg(&given), "vendor")?;
        let named = format!("{maker}-{version}");
        let place = self.root.join(DIRECTORY).join("tools").join(&named);
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        std::fs::create_dir_all(place.parent().unwrap_or(&self.root))?;
        std::fs::rename(given.join(&named), &place)?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["vendor", "--quiet", "--locked", "--versioned-dirs", "--sync"])
            .arg(place.join("Cargo.toml"));
        tools.run(cargo.arg(self.root.join(DIRECTORY).join(CRATES)), "vendor").map(drop)
    }

    /// Takes from PyPI the tools that build wheels, and what the plugins of a plan are asked with.
    ///
    /// # Errors
    ///
    /// When pip cannot get them.
    pub fn take_python(&self, plan: &Plan<'_>) -> Result<(), Error> {
        let libraries = plan.recipes().iter().flat_map(|recipe| &recipe.part.libraries).cloned();
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--quiet",
            "--only-binary",
            ":all:",
        ]);
        pip.arg("--dest").arg(self.root.join(DIRECTORY).join("python"));
        self.tools().run(pip.args(tools::names()).args(libraries), "download").map(drop)
    }

    /// Ends: from now on building takes what is there, and nothing else.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written.
    pub fn finish(&self) -> Result<(), Error> {
        let place = self.root.join(DIRECTORY);
        file::write(&place.join(SETTINGS), SETTINGS_TEXT.as_bytes())?;
        Ok(std::fs::remove_file(place.join(UNFINISHED))?)
    }

    fn tools(&self) -> Tools<'_> {
        Tools::in_directory(&self.root, &self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_is_not_used_and_what_is_not_ours_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path();
        std::fs::create_dir_all(root.join("vendor/debian")).expect("a directory");
        let error = Vendored::new(root).expect_err("somebody's directory").to_string();
        assert!(
            error.starts_with("`vendor`: expected nothing, or what `oarlock-pack vendor` put there"),
            "{error}"
        );
        std::fs::remove_dir(root.join("vendor/debian")).expect("a directory");
        let vendored = Vendored::new(root).expect("an empty directory");
        vendored.begin().expect("a directory");
        std::fs::create_dir_all(vendored.debian()).expect("a directory");
        assert_eq!((debian(root), python(root)), (None, None));
        // A run that was stopped goes on.
        let vendored = Vendored::new(root).expect("what was begun");
        vendored.begin().expect("a directory");
        vendored.finish().expect("a directory");
        assert_eq!((debian(root), python(root)), (Some(root.join("vendor/debian")), None));
        Vendored::new(root).expect("what is finished").begin().expect("a directory");
        assert_eq!(debian(root), None);
    }

    #[test]
    fn cargo_is_told_where_crates_lie() {
        let settings: toml::Table = SETTINGS_TEXT.parse().expect("a file of cargo");
        let place = settings["source"]["vendored"]["directory"].as_str();
        assert_eq!(place.map(PathBuf::from), Some(Path::new(DIRECTORY).join(CRATES)));
        let ours = include_str!("../../.cargo/config.toml");
        assert!(ours.contains(&format!("\"../{DIRECTORY}/{SETTINGS}\", optional = true")), "{ours}");
    }
}

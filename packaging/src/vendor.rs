//! Vendors everything that a build downloads, beside the sources, for offline builds here or on another machine.
//!
//! | where | what |
//! |---|---|
//! | `vendor/crates/` | the crates of the workspace and of the documentation tool |
//! | `vendor/tools/` | the documentation tool |
//! | `vendor/cargo.toml` | cargo's settings for them, which `.cargo/config.toml` includes if the file exists |
//! | `vendor/python/` | the PyPI tools that build wheels, and the libraries for querying plugins |
//! | `vendor/debian/` | the Debian packages of images |

use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_formats::error::Error;
use oarlock_formats::file;

use crate::build_plan::WheelPlan;
use crate::build_tools::{self as tools, BOOK_TOOL, BuildTools, TOOL_SCRIPT};
use crate::vendored_tree::{CARGO_SETTINGS_FILE, CRATES_DIRECTORY, VENDOR_DIRECTORY};

/// Marks a directory that is incomplete.
const UNFINISHED_MARKER: &str = ".unfinished";

/// Makes cargo use only crates from the vendored directory; its path is relative to the root of the sources.
const CARGO_SETTINGS_TEXT: &str = "\
# `oarlock-pack vendor` wrote this. Without this file, cargo takes crates from their registry again.

[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor/crates\"

[net]
offline = true
";

/// Vendored downloads of a source tree.
#[derive(Debug)]
pub struct VendorDirectory {
    root: PathBuf,
    /// The directory for logs of tools.
    target: PathBuf,
}

impl VendorDirectory {
    /// Opens the directory, which must not contain foreign files.
    ///
    /// # Errors
    ///
    /// When it contains foreign files.
    pub fn new(root: &Path) -> Result<Self, Error> {
        let root = root.canonicalize()?;
        let place = root.join(VENDOR_DIRECTORY);
        let is_empty = std::fs::read_dir(&place).map_or(true, |mut entries| entries.next().is_none());
        if !is_empty && !place.join(CARGO_SETTINGS_FILE).is_file() && !place.join(UNFINISHED_MARKER).is_file()
        {
            return Err(Error::new(format!(
                "expected nothing, or what `oarlock-pack vendor` put there, found neither its `{CARGO_SETTINGS_FILE}` nor its `{UNFINISHED_MARKER}`"
            ))
            .in_file(VENDOR_DIRECTORY));
        }
        Ok(Self { target: root.join("target/pack"), root })
    }

    /// The directory to put Debian packages into.
    #[must_use]
    pub fn debian_path(&self) -> PathBuf {
        self.root.join(VENDOR_DIRECTORY).join("debian")
    }

    /// Starts vendoring: until it is finished, builds ignore the directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written.
    pub fn begin_vendoring(&self) -> Result<(), Error> {
        let place = self.root.join(VENDOR_DIRECTORY);
        file::write_file(&place.join(UNFINISHED_MARKER), b"")?;
        match std::fs::remove_file(place.join(CARGO_SETTINGS_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Vendors the crates of the workspace, and the documentation tool with its locked dependencies.
    ///
    /// # Errors
    ///
    /// When cargo cannot download them.
    pub fn vendor_crates(&self) -> Result<(), Error> {
        let tools = self.build_tools();
        let versions =
            tools.run_tool(Command::new(self.root.join(TOOL_SCRIPT)).arg("--versions"), "versions")?;
        let versions = versions.lines().filter_map(|line| line.split_once(' '));
        let (maker, version) = versions.into_iter().find(|(name, _)| *name == BOOK_TOOL).unwrap_or_default();
        // `cargo vendor` only handles dependencies, so a scratch package depends on the tool.
        let scratch = tempfile::tempdir_in(self.root.join(VENDOR_DIRECTORY))?;
        let manifest = format!(
            "[package]\nname = \"x\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{maker} = \"={version}\"\n"
        );
        file::write_file(&scratch.path().join("Cargo.toml"), manifest.as_bytes())?;
        file::write_file(&scratch.path().join("src/lib.rs"), b"")?;
        let given = scratch.path().join("given");
        let mut cargo = Command::new("cargo");
        cargo.args(["vendor", "--quiet", "--versioned-dirs", "--manifest-path"]);
        tools.run_tool(cargo.arg(scratch.path().join("Cargo.toml")).arg(&given), "vendor")?;
        let named = format!("{maker}-{version}");
        let place = self.root.join(VENDOR_DIRECTORY).join("tools").join(&named);
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        std::fs::create_dir_all(place.parent().unwrap_or(&self.root))?;
        std::fs::rename(given.join(&named), &place)?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["vendor", "--quiet", "--locked", "--versioned-dirs", "--sync"])
            .arg(place.join("Cargo.toml"));
        tools.run_tool(cargo.arg(self.root.join(VENDOR_DIRECTORY).join(CRATES_DIRECTORY)), "vendor").map(drop)
    }

    /// Vendors the PyPI tools that build wheels, and the libraries that plugins of a plan need to be queried.
    ///
    /// # Errors
    ///
    /// When pip cannot download them.
    pub fn vendor_python(&self, plan: &WheelPlan<'_>) -> Result<(), Error> {
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
        pip.arg("--dest").arg(self.root.join(VENDOR_DIRECTORY).join("python"));
        self.build_tools()
            .run_tool(pip.args(tools::tool_requirements()).args(libraries), "download")
            .map(drop)
    }

    /// Finishes vendoring: from now on builds only use the directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written.
    pub fn finish_vendoring(&self) -> Result<(), Error> {
        let place = self.root.join(VENDOR_DIRECTORY);
        file::write_file(&place.join(CARGO_SETTINGS_FILE), CARGO_SETTINGS_TEXT.as_bytes())?;
        Ok(std::fs::remove_file(place.join(UNFINISHED_MARKER))?)
    }

    fn build_tools(&self) -> BuildTools<'_> {
        BuildTools::in_directory(&self.root, &self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendored_tree::{debian_directory, python_directory};

    #[test]
    fn what_is_not_finished_is_not_used_and_what_is_not_ours_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path();
        std::fs::create_dir_all(root.join("vendor/debian")).expect("a directory");
        let error = VendorDirectory::new(root).expect_err("somebody's directory").to_string();
        assert!(
            error.starts_with("`vendor`: expected nothing, or what `oarlock-pack vendor` put there"),
            "{error}"
        );
        std::fs::remove_dir(root.join("vendor/debian")).expect("a directory");
        let vendored = VendorDirectory::new(root).expect("an empty directory");
        vendored.begin_vendoring().expect("a directory");
        std::fs::create_dir_all(vendored.debian_path()).expect("a directory");
        assert_eq!((debian_directory(root), python_directory(root)), (None, None));
        // An interrupted run can be continued.
        let vendored = VendorDirectory::new(root).expect("what was begun");
        vendored.begin_vendoring().expect("a directory");
        vendored.finish_vendoring().expect("a directory");
        assert_eq!(
            (debian_directory(root), python_directory(root)),
            (Some(root.join("vendor/debian")), None)
        );
        VendorDirectory::new(root).expect("what is finished").begin_vendoring().expect("a directory");
        assert_eq!(debian_directory(root), None);
    }

    #[test]
    fn cargo_settings_point_to_the_vendored_crates() {
        let settings: toml::Table = CARGO_SETTINGS_TEXT.parse().expect("a file of cargo");
        let place = settings["source"]["vendored"]["directory"].as_str();
        assert_eq!(place.map(PathBuf::from), Some(Path::new(VENDOR_DIRECTORY).join(CRATES_DIRECTORY)));
        let ours = include_str!("../../.cargo/config.toml");
        assert!(
            ours.contains(&format!("\"../{VENDOR_DIRECTORY}/{CARGO_SETTINGS_FILE}\", optional = true")),
            "{ours}"
        );
    }
}

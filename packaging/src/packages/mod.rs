//! Assembles our Debian packages from compiled parts, without compiling anything.

mod catalog;
mod contents;
mod package_metadata;
mod shared_libraries;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use crate::build_artifact::BuildArtifact;
pub use catalog::{PackageCatalog, PackageSpec};
pub(crate) use catalog::{PackageContent, PackagePart};

/// Oarlock's own packages, from `packaging/packages.toml`.
pub const OWN_PACKAGES: &str = include_str!("../../packages.toml");

/// The home page, the same in packages and wheels.
pub(crate) fn homepage() -> Result<String, Error> {
    PackageCatalog::from_toml("packaging/packages.toml", OWN_PACKAGES).map(|packages| packages.homepage)
}

/// Inputs that all packages share.
pub(crate) struct PackageBuilder<'m> {
    /// The root of the sources.
    pub(crate) root: &'m Path,
    pub(crate) packages: &'m PackageCatalog,
    pub(crate) architecture: CpuArchitecture,
    pub(crate) made: BTreeMap<PackagePart, BuildArtifact>,
    /// The version of Oarlock.
    pub(crate) version: &'m str,
    /// The timestamp of everything.
    pub(crate) seconds: u64,
    /// The words that run the command of this release, which generates some files.
    pub(crate) command: &'m [PathBuf],
    /// The public keys of the archive that will list the packages.
    pub(crate) keys: &'m [u8],
    /// The directory of debug information, by build id.
    pub(crate) debug: &'m Path,
}

impl PackageBuilder<'_> {
    /// Builds a package and, if it has compiled contents, its debug package.
    pub(crate) fn build_packages(&self, about: &PackageSpec) -> Result<Vec<DebPackage>, Error> {
        let mut package = DebPackage { contents: self.assemble_contents(about)?, ..DebPackage::default() };
        let compiled = self.compiled_artifacts(about)?;
        self.add_documentation(about, &compiled, &mut package.contents)?;
        let needs = shared_libraries::needs_of_contents(&package.contents)?;
        package.control = self.control_fields(about, &needs);
        self.add_maintainer_scripts(about, &mut package)?;
        let mut made = vec![package];
        made.extend(self.debug_package(about, &needs)?);
        Ok(made)
    }

    /// The Debian version of the packages.
    pub(crate) fn package_version(&self) -> String {
        // In Debian versions a tilde sorts before a release.
        let at = self.version.find(|letter: char| letter.is_ascii_alphabetic());
        let upstream = at.map_or_else(
            || self.version.to_owned(),
            |at| format!("{}~{}", self.version[..at].trim_end_matches(['.', '-']), &self.version[at..]),
        );
        format!("{upstream}-{}", self.packages.revision)
    }

    /// Replaces placeholders for versions and directories.
    fn fill_placeholders(&self, text: &str) -> String {
        fill_path(text, self.version, self.architecture).replace("{package}", &self.package_version())
    }
}

/// Fills the placeholders for the Oarlock version and the library directory in a path.
pub(crate) fn fill_path(at: &str, version: &str, architecture: CpuArchitecture) -> String {
    at.replace("{lib}", &library_directory(architecture)).replace("{version}", version)
}

/// The multiarch library directory.
fn library_directory(architecture: CpuArchitecture) -> String {
    format!("usr/lib/{}", architecture.multiarch_name())
}

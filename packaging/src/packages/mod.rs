//! Our packages for Debian, put together of what was built, without compiling anything.

mod catalog;
mod contents;
mod package_metadata;
mod shared_libraries;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

pub use catalog::{PackageCatalog, PackageSpec};
pub(crate) use catalog::{PackageContent, PackagePart};

use crate::assemble::BuildArtifact;
use crate::deb::DebPackage;
use crate::error::Error;

/// Our own, as `packaging/packages.toml` has them.
pub const OWN_PACKAGES: &str = include_str!("../../packages.toml");

/// Where people read more of Oarlock: packages and wheels say the same.
pub(crate) fn homepage() -> Result<String, Error> {
    PackageCatalog::from_toml("packaging/packages.toml", OWN_PACKAGES).map(|packages| packages.homepage)
}

/// What packages are made of, and what they have in common.
pub(crate) struct PackageBuilder<'m> {
    /// Where the sources lie.
    pub(crate) root: &'m Path,
    pub(crate) packages: &'m PackageCatalog,
    /// What was compiled.
    pub(crate) made: BTreeMap<PackagePart, BuildArtifact>,
    /// The version of Oarlock.
    pub(crate) version: &'m str,
    /// The one time of everything.
    pub(crate) seconds: u64,
    /// The command of this release, which says what is made of it.
    pub(crate) command: &'m Path,
    /// The public keys of the archive that the packages are to lie in.
    pub(crate) keys: &'m [u8],
    /// What debuggers find by build id.
    pub(crate) debug: &'m Path,
}

impl PackageBuilder<'_> {
    /// A package, and the one that debuggers want beside it where something in it was compiled.
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

    /// The version of packages.
    pub(crate) fn package_version(&self) -> String {
        // Before a release comes, for Debian, what has a tilde.
        let at = self.version.find(|letter: char| letter.is_ascii_alphabetic());
        let upstream = at.map_or_else(
            || self.version.to_owned(),
            |at| format!("{}~{}", self.version[..at].trim_end_matches(['.', '-']), &self.version[at..]),
        );
        format!("{upstream}-{}", self.packages.revision)
    }

    /// A text with what stands in it for versions and places.
    fn fill_placeholders(&self, text: &str) -> String {
        fill_path(text, self.version).replace("{package}", &self.package_version())
    }
}

/// Where something lies that is told with what stands for the version of Oarlock and for the directory of libraries.
pub(crate) fn fill_path(at: &str, version: &str) -> String {
    at.replace("{lib}", &library_directory()).replace("{version}", version)
}

/// Where libraries lie.
fn library_directory() -> String {
    format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}

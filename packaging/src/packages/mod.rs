//! Our packages for Debian, put together of what was built, without compiling anything.

mod about;
mod contents;
mod file;
mod library;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

pub use file::{About, Packages};
pub(crate) use file::{Compiled, Content};

use crate::assemble::Made;
use crate::deb::Package;
use crate::error::Error;

/// Our own, as `packaging/packages.toml` has them.
pub const OWN: &str = include_str!("../../packages.toml");

/// Where people read more of Oarlock: packages and wheels say the same.
pub(crate) fn homepage() -> Result<String, Error> {
    Packages::read("packaging/packages.toml", OWN).map(|packages| packages.homepage)
}

/// What packages are made of, and what they have in common.
pub(crate) struct Maker<'m> {
    /// Where the sources lie.
    pub(crate) root: &'m Path,
    pub(crate) packages: &'m Packages,
    /// What was compiled.
    pub(crate) made: BTreeMap<Compiled, Made>,
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

impl Maker<'_> {
    /// A package, and the one that debuggers want beside it where something in it was compiled.
    pub(crate) fn make(&self, about: &About) -> Result<Vec<Package>, Error> {
        let mut package = Package { contents: self.contents(about)?, ..Package::default() };
        let compiled = self.compiled(about)?;
        self.document(about, &compiled, &mut package.contents)?;
        let needs = library::needs(&package.contents)?;
        package.control = self.control(about, &needs);
        self.scripts(about, &mut package)?;
        let mut made = vec![package];
        made.extend(self.debugging(about, &needs)?);
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
    fn filled(&self, text: &str) -> String {
        place(text, self.version).replace("{package}", &self.package_version())
    }
}

/// Where something lies that is told with what stands for the version of Oarlock and for the directory of libraries.
pub(crate) fn place(at: &str, version: &str) -> String {
    at.replace("{lib}", &library_directory()).replace("{version}", version)
}

/// Where libraries lie.
fn library_directory() -> String {
    format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}

//! Our own packages in a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::error::Error;

/// An index of the packages in a directory.
pub struct LocalPackages {
    directory: PathBuf,
    /// The files of each package, by name.
    files: BTreeMap<String, Vec<PathBuf>>,
}

impl LocalPackages {
    /// Lists the packages in a directory; a missing directory counts as empty.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn in_directory(directory: &Path, architecture: &str) -> Result<Self, Error> {
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let entries = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { directory: directory.to_owned(), files });
            }
            entries => entries.map_err(|error| Error::from(error).in_file(directory.display()))?,
        };
        for entry in entries {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some([package, _, kind]) = split_file_name(&name)
                && [architecture, "all"].contains(&kind)
            {
                files.entry(package.to_owned()).or_default().push(file);
            }
        }
        files.values_mut().for_each(|files| files.sort());
        Ok(Self { directory: directory.to_owned(), files })
    }

    /// True if there is a file of this package.
    #[must_use]
    pub fn has_package(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The version of Oarlock that these packages share.
    ///
    /// # Errors
    ///
    /// When a package is missing or has several files, or versions differ.
    pub fn upstream_version<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<String, Error> {
        let mut found: Option<(String, String)> = None;
        for name in names {
            let file =
                self.package_path(name)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let version =
                split_file_name(&file).map_or("", |[_, version, _]| strip_revision(version)).to_owned();
            match &found {
                Some((other, there)) if *there != version => {
                    return Err(Error::new(format!(
                        "expected packages of one version, found {there} of `{other}` and {version} of `{name}`"
                    ))
                    .in_file(self.directory.display()));
                }
                Some(_) => {}
                None => found = Some((name.to_owned(), version)),
            }
        }
        found
            .map(|(_, version)| version)
            .ok_or_else(|| Error::new("expected packages of our own, found none"))
    }

    /// Reads a package by name.
    ///
    /// # Errors
    ///
    /// When it is missing, has several files or is damaged.
    pub fn read_package(&self, name: &str) -> Result<DebPackage, Error> {
        let file = self.package_path(name)?;
        let package = DebPackage::read_file(file)?;
        if package.name()? != name {
            let found = package.name()?;
            return Err(
                Error::new(format!("expected the package `{name}`, found `{found}`")).in_file(file.display())
            );
        }
        Ok(package)
    }

    fn package_path(&self, name: &str) -> Result<&Path, Error> {
        let of_directory = |message: String| Error::new(message).in_file(self.directory.display());
        match self.files.get(name).map(Vec::as_slice) {
            Some([file]) => Ok(file),
            Some(files) => {
                let names = files
                    .iter()
                    .filter_map(|file| file.file_name())
                    .map(|name| format!("`{}`", name.display()));
                let names = names.collect::<Vec<_>>().join(", ");
                Err(of_directory(format!(
                    "expected one package `{name}`, found {names}; remove those that are not meant"
                )))
            }
            None => Err(of_directory(format!("expected the package `{name}`, found none"))),
        }
    }
}

/// Splits a file name into package, version and architecture.
fn split_file_name(file: &str) -> Option<[&str; 3]> {
    <[&str; 3]>::try_from(file.strip_suffix(".deb")?.split('_').collect::<Vec<_>>()).ok()
}

/// The version of the contents, without Debian's revision of the package.
fn strip_revision(version: &str) -> &str {
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_by_name_and_are_of_one_version() {
        let place = tempfile::tempdir().expect("a directory");
        for name in [
            "a_1.0-1_amd64.deb",
            "b_1.0-2_all.deb",
            "c_1.1-1_all.deb",
            "d_1.0-1_arm64.deb",
            "d_1.0-1_all.deb",
            "note.txt",
        ] {
            std::fs::write(place.path().join(name), "").expect("a file");
        }
        let own = LocalPackages::in_directory(place.path(), "amd64").expect("packages");
        let version =
            |names: &[&str]| own.upstream_version(names.iter().copied()).map_err(|error| error.to_string());
        assert_eq!(version(&["a", "b", "d"]), Ok("1.0".to_owned()));
        assert!(version(&["a", "c"]).expect_err("two versions").contains("found 1.0 of `a` and 1.1 of `c`"));
        assert!(version(&["e"]).expect_err("none").contains("expected the package `e`, found none"));
        std::fs::write(place.path().join("a_1.0-2_amd64.deb"), "").expect("a file");
        let own = LocalPackages::in_directory(place.path(), "amd64").expect("packages");
        let error = own.read_package("a").expect_err("two packages").to_string();
        assert!(error.contains("found `a_1.0-1_amd64.deb`, `a_1.0-2_amd64.deb`"), "{error}");
        assert!(
            !LocalPackages::in_directory(&place.path().join("no"), "amd64").expect("none").has_package("a")
        );
    }
}

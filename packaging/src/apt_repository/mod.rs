//! A Debian package repository, for apt.
//!
//! | where | what |
//! |---|---|
//! | `pool/` | the packages |
//! | `dists/stable/main/binary-amd64/Packages` and the like | the packages of a component for an architecture, also as `.xz` |
//! | `…/by-hash/SHA256/` | the same lists by hash, including those of recent repositories, for clients with an older `Release` file |
//! | `dists/stable/Release` | the hashes of the lists, signed in `InRelease` and `Release.gpg` |
//! | `oarlock-archive-keyring.gpg` | the public keys of the signatures |
//! | `oarlock.sources` | the description of the repository for apt |

mod generations;
mod listed_package;
mod suite_release;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use oarlock_formats::deb::compression;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::error::Error;
use oarlock_formats::openpgp::{self, OpenPgpKey};
use oarlock_formats::output_directory::{DirectoryKind, DirectoryWriter};

use self::generations::ListGenerations;
use self::listed_package::ListedPackage;
pub use self::suite_release::SuiteRelease;

/// The packages of a repository.
#[derive(Debug)]
pub struct AptRepository {
    packages: Vec<ListedPackage>,
}

/// Package lists by path below the suite.
type PackageLists = BTreeMap<String, Vec<u8>>;

/// The kind of directory that a repository is.
const REPOSITORY_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-repository", one: "a repository", none: "no repository" };

/// The architecture of packages for every machine.
const ARCHITECTURE_ALL: &str = "all";

/// Files to install on a client: the keyring, and the description of the repository.
const KEYRING_FILE: &str = "oarlock-archive-keyring.gpg";
pub(crate) const SOURCES_FILE: &str = "oarlock.sources";

/// True if a directory is a repository.
pub(crate) fn is_repository(directory: &Path) -> bool {
    directory.join("dists").is_dir()
}

impl AptRepository {
    /// Reads and checks packages. `report` is called with the number of packages read and their total.
    ///
    /// # Errors
    ///
    /// When a package is damaged, or two different ones have the same path.
    pub fn of_files(files: &[PathBuf], mut report: impl FnMut(usize, usize)) -> Result<Self, Error> {
        let mut packages: BTreeMap<String, ListedPackage> = BTreeMap::new();
        for (done, file) in files.iter().enumerate() {
            let listed = ListedPackage::read_package(file).map_err(|error| error.in_file(file.display()))?;
            match packages.get(&listed.path) {
                Some(there) if there.sha256 != listed.sha256 => {
                    let (one, other) = (there.file.display(), file.display());
                    return Err(Error::new(format!(
                        "expected one file for `{}`, found `{one}` and `{other}`, which are different",
                        listed.path
                    )));
                }
                Some(_) => {}
                None => _ = packages.insert(listed.path.clone(), listed),
            }
            report(done + 1, files.len());
        }
        if packages.is_empty() {
            return Err(Error::new("expected packages, found none"));
        }
        Ok(Self { packages: packages.into_values().collect() })
    }

    /// The `.deb` files in a directory.
    ///
    /// # Errors
    ///
    /// When there are none, or the directory cannot be read.
    pub fn package_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
        let of_directory = |error: Error| error.in_file(directory.display());
        let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(|error| of_directory(error.into()))?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "deb") && file.is_file());
        files.sort();
        if files.is_empty() {
            return Err(of_directory(Error::new("expected files `*.deb`, found none")));
        }
        Ok(files)
    }

    /// The number of packages.
    #[must_use]
    pub fn package_count(&self) -> usize {
        self.packages.len()
    }

    /// Writes the repository in place of an older one, signed with all keys; without a key it is unsigned. Readers see the old or
    /// the new repository in full.
    ///
    /// # Errors
    ///
    /// When the directory contains anything but a repository of the same suite, or cannot be written.
    pub fn write_repository(
        &self,
        directory: &Path,
        release: &SuiteRelease,
        keys: &[OpenPgpKey],
    ) -> Result<(), Error> {
        let lists = self.package_lists()?;
        let earlier = self.earlier_generations(directory, release, &lists)?;
        REPOSITORY_DIRECTORY.write_directory(directory, |files| {
            for package in &self.packages {
                files.copy_file(&package.path, &package.file)?;
            }
            let suite = release.suite_directory();
            for (path, bytes) in &lists {
                files.write_file(&format!("{suite}/{path}"), bytes)?;
                files.write_file(&format!("{suite}/{}", by_hash_path(path, bytes)), bytes)?;
            }
            earlier.carry_over(files, directory)?;
            let text = release.to_paragraph(&self.components(), &self.architectures(), &lists).to_string();
            files.write_file(&format!("{suite}/Release"), text.as_bytes())?;
            self.sign_release(files, release, keys, &text)
        })
    }

    /// Checks that the repository may be written to a directory.
    ///
    /// # Errors
    ///
    /// When the directory contains anything but a repository of the same suite, or cannot be read.
    pub fn check_target(&self, directory: &Path, release: &SuiteRelease) -> Result<(), Error> {
        self.earlier_generations(directory, release, &PackageLists::new())?;
        REPOSITORY_DIRECTORY.check_directory(directory)
    }

    /// The retained lists of earlier repositories.
    fn earlier_generations(
        &self,
        directory: &Path,
        release: &SuiteRelease,
        lists: &PackageLists,
    ) -> Result<ListGenerations, Error> {
        let suite = release.suite_directory();
        let now =
            lists.iter().map(|(path, bytes)| format!("{suite}/{}", by_hash_path(path, bytes))).collect();
        let earlier = ListGenerations::read_generations(directory)
            .map_err(|error| error.in_file(directory.display()))?;
        if let Some(other) = earlier.path_outside(&format!("{suite}/")) {
            return Err(Error::new(format!(
                "expected a repository of the suite `{}`, for a directory has one alone; found `{other}` in it",
                release.suite
            ))
            .in_file(directory.display()));
        }
        Ok(earlier.followed_by(now))
    }

    fn sign_release(
        &self,
        files: &mut DirectoryWriter<'_>,
        release: &SuiteRelease,
        keys: &[OpenPgpKey],
        text: &str,
    ) -> Result<(), Error> {
        let suite = release.suite_directory();
        let [signed, signatures] = ["InRelease", "Release.gpg"].map(|name| format!("{suite}/{name}"));
        if keys.is_empty() {
            // Another program may hold the key and sign later.
            [&*signed, &*signatures, KEYRING_FILE].into_iter().for_each(|path| files.reserve_path(path));
        } else {
            files.write_file(&signed, openpgp::sign_cleartext(text, keys, release.made)?.as_bytes())?;
            files.write_file(
                &signatures,
                openpgp::sign_detached(text.as_bytes(), keys, release.made)?.as_bytes(),
            )?;
            files.write_file(
                KEYRING_FILE,
                &keys.iter().flat_map(OpenPgpKey::to_public_packets).collect::<Vec<u8>>(),
            )?;
        }
        let mut sources = ControlParagraph::default();
        sources.set("Types", "deb");
        sources.set("URIs", &release.host);
        sources.set("Suites", &release.suite);
        sources.set("Components", &join_words(&self.components()));
        // With a single architecture, multiarch clients must not request others. With several, each client requests its own.
        let architectures = self.architectures();
        if architectures.len() == 1 && !architectures.contains(ARCHITECTURE_ALL) {
            sources.set("Architectures", &join_words(&architectures));
        }
        sources.set("Signed-By", &format!("/usr/share/keyrings/{KEYRING_FILE}"));
        files.write_file(SOURCES_FILE, sources.to_string().as_bytes())
    }

    /// The package lists by component and architecture.
    fn package_lists(&self) -> Result<PackageLists, Error> {
        let mut lists = PackageLists::new();
        for component in self.components() {
            for architecture in self.architectures() {
                let is_in = |package: &&ListedPackage| {
                    package.component == component
                        && [ARCHITECTURE_ALL, architecture].contains(&&*package.architecture)
                };
                let of_packages = self.packages.iter().filter(is_in).map(ListedPackage::to_paragraph);
                let text: Vec<String> = of_packages.map(|paragraph| paragraph.to_string()).collect();
                let text = text.join("\n").into_bytes();
                let path = format!("{component}/binary-{architecture}/Packages");
                lists.insert(format!("{path}.xz"), compression::compress_xz(&text)?);
                lists.insert(path, text);
            }
        }
        Ok(lists)
    }

    fn components(&self) -> BTreeSet<&str> {
        self.packages.iter().map(|package| &*package.component).collect()
    }

    /// The architectures in the repository. Packages for `all` appear in each list; they get a separate list only if there is
    /// no other architecture.
    fn architectures(&self) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = self.packages.iter().map(|package| &*package.architecture).collect();
        if found.len() > 1 {
            found.remove(ARCHITECTURE_ALL);
        }
        found
    }
}

/// The path of a list by its hash.
fn by_hash_path(path: &str, bytes: &[u8]) -> String {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("{directory}/by-hash/SHA256/{}", oarlock_formats::digest::sha256_hex(bytes))
}

fn join_words(set: &BTreeSet<&str>) -> String {
    set.iter().copied().collect::<Vec<_>>().join(" ")
}

//! A repository of Debian packages, from which apt installs.
//!
//! | where | what |
//! |---|---|
//! | `pool/` | the packages |
//! | `dists/stable/main/binary-amd64/Packages` and the like | what is said of those of a component for a kind of machine, also as `.xz` |
//! | `…/by-hash/SHA256/` | the same under names that say what is in them, also that of the last repositories that were here: who read an older list of lists finds what it names |
//! | `dists/stable/Release` | the list of those lists with their hashes, signed in `InRelease` and `Release.gpg` |
//! | `oarlock-archive-keyring.gpg` | what the signatures are checked with |
//! | `oarlock.sources` | what tells apt about the repository |

mod generations;
mod listed_package;
mod suite_release;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::generations::ListGenerations;
use self::listed_package::ListedPackage;
pub use self::suite_release::SuiteRelease;
use crate::deb::compression;
use crate::deb::control::ControlParagraph;
use crate::error::Error;
use crate::openpgp::{self, OpenPgpKey};
use crate::output_directory::{DirectoryKind, DirectoryWriter};

/// The packages of a repository.
#[derive(Debug)]
pub struct AptRepository {
    packages: Vec<ListedPackage>,
}

/// What is said of packages, by paths below the suite.
type PackageLists = BTreeMap<String, Vec<u8>>;

/// Where a repository lies.
const REPOSITORY_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-repository", one: "a repository", none: "no repository" };

/// The kind of machine of packages that are for all.
const ARCHITECTURE_ALL: &str = "all";

/// What is installed on a machine that uses the repository: what signatures are checked with, and where the repository is.
const KEYRING_FILE: &str = "oarlock-archive-keyring.gpg";
pub(crate) const SOURCES_FILE: &str = "oarlock.sources";

/// Whether a directory is a repository.
pub(crate) fn is_repository(directory: &Path) -> bool {
    directory.join("dists").is_dir()
}

impl AptRepository {
    /// The packages in files, each of which is checked. `tell` hears how many are read, of how many.
    ///
    /// # Errors
    ///
    /// When one is not whole, or two are different and should have one place.
    pub fn of_files(files: &[PathBuf], mut tell: impl FnMut(usize, usize)) -> Result<Self, Error> {
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
            tell(done + 1, files.len());
        }
        if packages.is_empty() {
            return Err(Error::new("expected packages, found none"));
        }
        Ok(Self { packages: packages.into_values().collect() })
    }

    /// The files in a directory that are packages by their names.
    ///
    /// # Errors
    ///
    /// When there are none, or it cannot be read.
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

    /// How many packages there are.
    #[must_use]
    pub fn package_count(&self) -> usize {
        self.packages.len()
    }

    /// Writes the repository in place of the one that was there, signed with all keys; without one, it is not signed. Readers see
    /// the old one or the new one.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a repository of the same suite, or cannot be written.
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

    /// That the repository may be written there.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a repository of the same suite, or cannot be read.
    pub fn check_target(&self, directory: &Path, release: &SuiteRelease) -> Result<(), Error> {
        self.earlier_generations(directory, release, &PackageLists::new())?;
        REPOSITORY_DIRECTORY.check_directory(directory)
    }

    /// What stays of the repositories that were there.
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
            // Who keeps the key elsewhere signs there.
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
        // Where it is for one kind of machine, those that have programs for others too should not ask for them. Where it is for
        // several, each asks for its own.
        let architectures = self.architectures();
        if architectures.len() == 1 && !architectures.contains(ARCHITECTURE_ALL) {
            sources.set("Architectures", &join_words(&architectures));
        }
        sources.set("Signed-By", &format!("/usr/share/keyrings/{KEYRING_FILE}"));
        files.write_file(SOURCES_FILE, sources.to_string().as_bytes())
    }

    /// What is said of the packages of each component for each kind of machine.
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

    /// The kinds of machines that there are packages for. Those for all of them are listed for each, and alone where there are no
    /// others.
    fn architectures(&self) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = self.packages.iter().map(|package| &*package.architecture).collect();
        if found.len() > 1 {
            found.remove(ARCHITECTURE_ALL);
        }
        found
    }
}

/// The name of a list that says what is in it.
fn by_hash_path(path: &str, bytes: &[u8]) -> String {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("{directory}/by-hash/SHA256/{}", crate::wheel::sha256_hex(bytes))
}

fn join_words(set: &BTreeSet<&str>) -> String {
    set.iter().copied().collect::<Vec<_>>().join(" ")
}

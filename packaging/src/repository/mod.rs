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
mod listed;
mod release;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::generations::Generations;
use self::listed::Listed;
pub use self::release::Release;
use crate::deb::compression;
use crate::deb::control::Paragraph;
use crate::error::Error;
use crate::openpgp::{self, Key};
use crate::place::{Files, Place};

/// The packages of a repository.
#[derive(Debug)]
pub struct Repository {
    packages: Vec<Listed>,
}

/// What is said of packages, by paths below the suite.
type Lists = BTreeMap<String, Vec<u8>>;

/// Where a repository lies.
const PLACE: Place = Place { list: ".oarlock-repository", one: "a repository", none: "no repository" };

/// The kind of machine of packages that are for all.
const ALL: &str = "all";

/// What is installed on a machine that uses the repository: what signatures are checked with, and where the repository is.
const KEYRING: &str = "oarlock-archive-keyring.gpg";
pub(crate) const SOURCES: &str = "oarlock.sources";

/// Whether a directory is a repository.
pub(crate) fn is_one(directory: &Path) -> bool {
    directory.join("dists").is_dir()
}

impl Repository {
    /// The packages in files, each of which is checked. `tell` hears how many are read, of how many.
    ///
    /// # Errors
    ///
    /// When one is not whole, or two are different and should have one place.
    pub fn of_files(files: &[PathBuf], mut tell: impl FnMut(usize, usize)) -> Result<Self, Error> {
        let mut packages: BTreeMap<String, Listed> = BTreeMap::new();
        for (done, file) in files.iter().enumerate() {
            let listed = Listed::read(file).map_err(|error| error.of_file(file.display()))?;
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
    pub fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
        let of_directory = |error: Error| error.of_file(directory.display());
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
    pub fn count(&self) -> usize {
        self.packages.len()
    }

    /// Writes the repository in place of the one that was there, signed with all keys; without one, it is not signed. Readers see
    /// the old one or the new one.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a repository of the same suite, or cannot be written.
    pub fn write(&self, directory: &Path, release: &Release, keys: &[Key]) -> Result<(), Error> {
        let lists = self.lists()?;
        let earlier = self.earlier(directory, release, &lists)?;
        PLACE.write(directory, |files| {
            for package in &self.packages {
                files.take(&package.path, &package.file)?;
            }
            let suite = release.directory();
            for (path, bytes) in &lists {
                files.write(&format!("{suite}/{path}"), bytes)?;
                files.write(&format!("{suite}/{}", by_hash(path, bytes)), bytes)?;
            }
            earlier.put(files, directory)?;
            let text = release.paragraph(&self.components(), &self.architectures(), &lists).to_string();
            files.write(&format!("{suite}/Release"), text.as_bytes())?;
            self.sign(files, release, keys, &text)
        })
    }

    /// That the repository may be written there.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a repository of the same suite, or cannot be read.
    pub fn check_place(&self, directory: &Path, release: &Release) -> Result<(), Error> {
        self.earlier(directory, release, &Lists::new())?;
        PLACE.check(directory)
    }

    /// What stays of the repositories that were there.
    fn earlier(&self, directory: &Path, release: &Release, lists: &Lists) -> Result<Generations, Error> {
        let suite = release.directory();
        let now = lists.iter().map(|(path, bytes)| format!("{suite}/{}", by_hash(path, bytes))).collect();
        let earlier = Generations::read(directory).map_err(|error| error.of_file(directory.display()))?;
        if let Some(other) = earlier.outside(&format!("{suite}/")) {
            return Err(Error::new(format!(
                "expected a repository of the suite `{}`, for a directory has one alone; found `{other}` in it",
                release.suite
            ))
            .of_file(directory.display()));
        }
        Ok(earlier.before(now))
    }

    fn sign(&self, files: &mut Files<'_>, release: &Release, keys: &[Key], text: &str) -> Result<(), Error> {
        let suite = release.directory();
        let [signed, signatures] = ["InRelease", "Release.gpg"].map(|name| format!("{suite}/{name}"));
        if keys.is_empty() {
            // Who keeps the key elsewhere signs there.
            [&*signed, &*signatures, KEYRING].into_iter().for_each(|path| files.leave(path));
        } else {
            files.write(&signed, openpgp::sign_text(text, keys, release.made)?.as_bytes())?;
            files.write(&signatures, openpgp::sign_bytes(text.as_bytes(), keys, release.made)?.as_bytes())?;
            files.write(KEYRING, &keys.iter().flat_map(Key::public_bytes).collect::<Vec<u8>>())?;
        }
        let mut sources = Paragraph::default();
        sources.set("Types", "deb");
        sources.set("URIs", &release.host);
        sources.set("Suites", &release.suite);
        sources.set("Components", &words(&self.components()));
        // Where it is for one kind of machine, those that have programs for others too should not ask for them. Where it is for
        // several, each asks for its own.
        let architectures = self.architectures();
        if architectures.len() == 1 && !architectures.contains(ALL) {
            sources.set("Architectures", &words(&architectures));
        }
        sources.set("Signed-By", &format!("/usr/share/keyrings/{KEYRING}"));
        files.write(SOURCES, sources.to_string().as_bytes())
    }

    /// What is said of the packages of each component for each kind of machine.
    fn lists(&self) -> Result<Lists, Error> {
        let mut lists = Lists::new();
        for component in self.components() {
            for architecture in self.architectures() {
                let is_in = |package: &&Listed| {
                    package.component == component && [ALL, architecture].contains(&&*package.architecture)
                };
                let of_packages = self.packages.iter().filter(is_in).map(Listed::paragraph);
                let text: Vec<String> = of_packages.map(|paragraph| paragraph.to_string()).collect();
                let text = text.join("\n").into_bytes();
                let path = format!("{component}/binary-{architecture}/Packages");
                lists.insert(format!("{path}.xz"), compression::xz(&text)?);
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
            found.remove(ALL);
        }
        found
    }
}

/// The name of a list that says what is in it.
fn by_hash(path: &str, bytes: &[u8]) -> String {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("{directory}/by-hash/SHA256/{}", crate::wheel::sha256(bytes))
}

fn words(set: &BTreeSet<&str>) -> String {
    set.iter().copied().collect::<Vec<_>>().join(" ")
}

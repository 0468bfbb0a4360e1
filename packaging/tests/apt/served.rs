//! Repositories of small packages, and the command that serves them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use oarlock_pack::date::{self, DAY};
use oarlock_pack::openpgp::Key;
use oarlock_pack::repository::{Release, Repository};
use tempfile::TempDir;

use crate::package;
use crate::server::{Server, pack};

/// A repository while it is served.
pub(crate) struct Served {
    directory: TempDir,
    pub(crate) server: Server,
}

/// What needs something that is for all machines, what needs that, and what is for other machines alone.
const PACKAGES: [(&str, &[(&str, &str)]); 4] = [
    ("oarlock", &[("Depends", "oarlock-data"), ("Section", "science")]),
    ("oarlock-data", &[("Architecture", "all")]),
    ("oarlock-cuda12", &[("Depends", "oarlock"), ("Section", "contrib/science")]),
    ("oarlock-npu", &[("Architecture", "arm64"), ("Section", "non-free/science")]),
];

impl Served {
    /// One that the command signed with a new key.
    pub(crate) fn signed() -> Self {
        Self::of_command(&["--key", "key"])
    }

    /// One that the command wrote with these arguments. A key lies in each of the files `key` and `next`.
    pub(crate) fn of_command(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for key in ["key", "next"] {
            done(directory.path(), &["apt-key", "new", "--out", key]);
        }
        fill(&directory.path().join("packages"), "1");
        done(directory.path(), &[["apt-repo", "packages", "--out", "apt"].as_slice(), arguments].concat());
        Self::start(directory)
    }

    /// One that apt took for the newest until yesterday.
    pub(crate) fn ended() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fill(&directory.path().join("packages"), "1");
        let made = date::now() - 3 * DAY;
        let key = Key::new("Archive", made).expect("a key");
        let release = Release {
            suite: "stable".to_owned(),
            codename: "stable".to_owned(),
            origin: "Oarlock".to_owned(),
            host: "https://oarlock.example/apt".to_owned(),
            made,
            ends: made + 2 * DAY,
        };
        let files = Repository::files(&directory.path().join("packages")).expect("packages");
        let repository = Repository::of_files(&files, |_, _| ()).expect("packages");
        repository.write(&directory.path().join("apt"), &release, &[key]).expect("a repository");
        Self::start(directory)
    }

    fn start(directory: TempDir) -> Self {
        let server = Server::start(directory.path(), "apt");
        Self { directory, server }
    }

    /// Puts a repository of a later version in its place.
    pub(crate) fn renew(&self, version: &str) {
        self.renew_with(version, "key");
    }

    /// The same, signed with another key.
    pub(crate) fn renew_with(&self, version: &str, key: &str) {
        fill(&self.directory.path().join("packages"), version);
        done(self.directory.path(), &["apt-repo", "packages", "--out", "apt", "--key", key]);
    }

    /// A file of it.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.directory.path().join("apt").join(path)
    }

    /// A package as it was made.
    pub(crate) fn package(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join("packages").join(format!("{name}.deb"))).expect("a package")
    }

    /// Changes the last byte of files of it.
    pub(crate) fn change(&self, paths: &[PathBuf]) {
        for path in paths {
            let mut bytes = std::fs::read(path).expect("a file");
            *bytes.last_mut().expect("a byte") ^= 1;
            // The old bytes may have another name, and are to stay there.
            std::fs::remove_file(path).expect("the file");
            std::fs::write(path, bytes).expect("a file");
        }
    }
}

/// Puts the packages into a directory, all of a version.
fn fill(directory: &Path, version: &str) {
    for (name, fields) in PACKAGES {
        package::put(directory, name, &[&[("Version", version)], fields].concat());
    }
}

/// Does what has to succeed.
fn done(directory: &Path, arguments: &[&str]) {
    let output = pack(directory).args(arguments).stdout(Stdio::null()).output().expect("the command");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

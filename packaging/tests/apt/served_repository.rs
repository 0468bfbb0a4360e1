//! Repositories of tiny packages, served by the command.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use oarlock_formats::date::{self, SECONDS_PER_DAY};
use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_pack::apt_repository::{AptRepository, SuiteRelease};

use crate::package;
use crate::server::{PackServer, pack_command};
use tempfile::TempDir;

/// A repository while it is served.
pub(crate) struct ServedRepository {
    directory: TempDir,
    pub(crate) server: PackServer,
}

/// A package that depends on an architecture-independent one, one that depends on it in turn, and one for another architecture.
const TEST_PACKAGES: [(&str, &[(&str, &str)]); 4] = [
    ("oarlock", &[("Depends", "oarlock-data"), ("Section", "science")]),
    ("oarlock-data", &[("Architecture", "all")]),
    ("oarlock-cuda12", &[("Depends", "oarlock"), ("Section", "contrib/science")]),
    ("oarlock-npu", &[("Architecture", "arm64"), ("Section", "non-free/science")]),
];

impl ServedRepository {
    /// A repository signed with a new key.
    pub(crate) fn signed_with_new_key() -> Self {
        Self::written_by_command(&["--key", "key"])
    }

    /// A repository that the command wrote with these arguments. The files `key` and `next` each contain a key.
    pub(crate) fn written_by_command(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for key in ["key", "next"] {
            run_successfully(directory.path(), &["apt-key", "new", "--out", key]);
        }
        write_packages(&directory.path().join("packages"), "1");
        run_successfully(
            directory.path(),
            &[["apt-repo", "packages", "--out", "apt"].as_slice(), arguments].concat(),
        );
        Self::start_serving(directory)
    }

    /// A repository that expired yesterday.
    pub(crate) fn expired_yesterday() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        write_packages(&directory.path().join("packages"), "1");
        let made = date::seconds_now() - 3 * SECONDS_PER_DAY;
        let key = OpenPgpKey::new("Archive", made).expect("a key");
        let release = SuiteRelease {
            suite: "stable".to_owned(),
            codename: "stable".to_owned(),
            origin: "Oarlock".to_owned(),
            host: "https://oarlock.example/apt".to_owned(),
            made,
            ends: made + 2 * SECONDS_PER_DAY,
        };
        let files = AptRepository::package_files(&directory.path().join("packages")).expect("packages");
        let repository = AptRepository::of_files(&files, |_, _| ()).expect("packages");
        repository.write_repository(&directory.path().join("apt"), &release, &[key]).expect("a repository");
        Self::start_serving(directory)
    }

    fn start_serving(directory: TempDir) -> Self {
        let server = PackServer::start_serving(directory.path(), "apt");
        Self { directory, server }
    }

    /// Publishes a later version in its place.
    pub(crate) fn publish_version(&self, version: &str) {
        self.publish_version_with_key(version, "key");
    }

    /// Publishes a later version signed with another key.
    pub(crate) fn publish_version_with_key(&self, version: &str, key: &str) {
        write_packages(&self.directory.path().join("packages"), version);
        run_successfully(self.directory.path(), &["apt-repo", "packages", "--out", "apt", "--key", key]);
    }

    /// The path of a file in the repository.
    pub(crate) fn file_path(&self, path: &str) -> PathBuf {
        self.directory.path().join("apt").join(path)
    }

    /// The bytes of a package as it was built.
    pub(crate) fn package_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join("packages").join(format!("{name}.deb"))).expect("a package")
    }

    /// Flips the last byte of files.
    pub(crate) fn corrupt_files(&self, paths: &[PathBuf]) {
        for path in paths {
            let mut bytes = std::fs::read(path).expect("a file");
            *bytes.last_mut().expect("a byte") ^= 1;
            // The old file may be hard-linked under another name, and must not change there.
            std::fs::remove_file(path).expect("the file");
            std::fs::write(path, bytes).expect("a file");
        }
    }
}

/// Writes all packages with this version into a directory.
fn write_packages(directory: &Path, version: &str) {
    for (name, fields) in TEST_PACKAGES {
        package::put_package(directory, name, &[&[("Version", version)], fields].concat());
    }
}

/// Runs the command, which must succeed.
fn run_successfully(directory: &Path, arguments: &[&str]) {
    let output = pack_command(directory).args(arguments).stdout(Stdio::null()).output().expect("the command");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

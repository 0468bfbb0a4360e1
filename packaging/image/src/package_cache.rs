//! A cache of Debian packages: each file is complete and matches the lock, or is absent.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::file;

use super::lock::LockedPackage;
use super::mirror::DebianMirror;

/// A directory of cached packages.
pub struct PackageCache {
    directory: PathBuf,
    /// The source of missing packages; the error matters only once a package is missing.
    mirror: Option<Result<DebianMirror, Error>>,
}

impl PackageCache {
    /// A directory that must contain everything. Nothing is fetched or written.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), mirror: None }
    }

    /// A directory that is filled from a mirror, if there is one.
    #[must_use]
    pub fn with_mirror(directory: &Path, mirror: Result<DebianMirror, Error>) -> Self {
        Self { directory: directory.to_owned(), mirror: Some(mirror) }
    }

    /// True if a package is cached.
    #[must_use]
    pub fn has_package(&self, package: &LockedPackage) -> bool {
        self.package_path(package).metadata().is_ok_and(|it| it.len() == package.size)
    }

    /// The bytes of a package, verified against the lock.
    ///
    /// # Errors
    ///
    /// When it cannot be found, or its contents do not match the lock.
    pub fn read_package(&self, package: &LockedPackage) -> Result<Vec<u8>, Error> {
        let place = self.package_path(package);
        let kept = match std::fs::read(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            kept => Some(kept.map_err(|error| Error::from(error).in_file(place.display()))?),
        };
        match (kept, &self.mirror) {
            (Some(bytes), _) if matches_lock(package, &bytes) => Ok(bytes),
            (Some(bytes), None) => Err(mismatch_error(package, &bytes).in_file(place.display())),
            (None, None) => Err(Error::new(format!(
                "expected {}, found none; without `--pool` it is fetched from a mirror",
                pool_file_name(package)
            ))
            .in_file(place.display())),
            (_, Some(mirror)) => {
                let fetched =
                    mirror.as_ref().map_err(Error::clone)?.fetch_file(&package.suite, &package.path)?;
                let bytes = fetched.ok_or_else(|| vanished_error(package))?;
                if !matches_lock(package, &bytes) {
                    return Err(
                        mismatch_error(package, &bytes).in_file(format!("{} of the mirror", package.path))
                    );
                }
                file::write_file(&place, &bytes)?;
                Ok(bytes)
            }
        }
    }

    fn package_path(&self, package: &LockedPackage) -> PathBuf {
        self.directory.join(package.file_name())
    }
}

fn pool_file_name(package: &LockedPackage) -> String {
    format!("`{}` {}", package.name, package.version)
}

fn matches_lock(package: &LockedPackage, bytes: &[u8]) -> bool {
    bytes.len() as u64 == package.size && sha256_hex(bytes) == package.sha256
}

fn mismatch_error(package: &LockedPackage, bytes: &[u8]) -> Error {
    Error::new(format!(
        "expected {} of {} bytes with the SHA-256 {}, found {} bytes with {}; nothing of it is used, and an image is not made of \
         anything else",
        pool_file_name(package),
        package.size,
        package.sha256,
        bytes.len(),
        sha256_hex(bytes)
    ))
}

fn vanished_error(package: &LockedPackage) -> Error {
    Error::new(format!(
        "expected {} on the mirror, found none: a mirror keeps only the newest of each suite. A directory that has it can be named \
         with `--pool`; `oarlock-pack image lock` takes the newest for all images",
        pool_file_name(package)
    ))
    .in_file(&package.path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn locked_package(bytes: &[u8]) -> LockedPackage {
        LockedPackage {
            name: "x".to_owned(),
            version: "1".to_owned(),
            architecture: "all".to_owned(),
            layers: Vec::new(),
            suite: "trixie".to_owned(),
            path: "pool/main/x/x_1_all.deb".to_owned(),
            size: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        }
    }

    /// A mirror that gives every request the same response.
    fn single_answer_mirror(status: &'static str, body: &'static [u8]) -> DebianMirror {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/debian", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut asked = [0; 1024];
                let length = stream.read(&mut asked).expect("a request");
                assert!(asked[..length].starts_with(b"GET /debian/pool/main/x/x_1_all.deb HTTP/1.1"));
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(&[head.as_bytes(), body].concat()).expect("an answer");
            }
        });
        DebianMirror::at_address(&address).expect("an address")
    }

    #[test]
    fn what_is_fetched_is_kept_and_what_was_spoiled_is_fetched_again() {
        let place = tempfile::tempdir().expect("a directory");
        let package = locked_package(b"text");
        let pool = PackageCache::with_mirror(place.path(), Ok(single_answer_mirror("200 OK", b"text")));
        assert!(!pool.has_package(&package));
        assert_eq!(pool.read_package(&package), Ok(b"text".to_vec()));
        assert!(pool.has_package(&package));
        let alone = PackageCache::in_directory(place.path());
        assert_eq!(alone.read_package(&package), Ok(b"text".to_vec()));
        std::fs::write(place.path().join("x_1_all.deb"), "tExt").expect("a file");
        assert!(
            alone
                .read_package(&package)
                .expect_err("a wrong hash")
                .to_string()
                .contains("expected `x` 1 of 4 bytes")
        );
        assert_eq!(pool.read_package(&package), Ok(b"text".to_vec()));
        assert_eq!(alone.read_package(&package), Ok(b"text".to_vec()));
        let without = PackageCache::with_mirror(place.path(), Err(Error::new("no mirror")));
        assert_eq!(without.read_package(&package), Ok(b"text".to_vec()));
        let other = LockedPackage { path: "pool/y_1_all.deb".to_owned(), ..package };
        assert_eq!(without.read_package(&other), Err(Error::new("no mirror")));
    }

    #[test]
    fn what_is_not_as_locked_or_not_there_is_refused_and_nothing_is_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let refused = |status, body| {
            let pool = PackageCache::with_mirror(place.path(), Ok(single_answer_mirror(status, body)));
            let error = pool.read_package(&locked_package(b"text")).expect_err("a refusal").to_string();
            assert_eq!(std::fs::read_dir(place.path()).expect("a directory").count(), 0);
            error
        };
        assert!(refused("200 OK", b"other").contains("found 5 bytes with"));
        let vanished = refused("404 Not Found", b"");
        assert!(vanished.contains("keeps only the newest") && vanished.contains("image lock"), "{vanished}");
        assert!(refused("500 Oops", b"").contains("found the status 500"));
        let nowhere = PackageCache::in_directory(place.path())
            .read_package(&locked_package(b"text"))
            .expect_err("nothing")
            .to_string();
        assert!(nowhere.contains("expected `x` 1, found none"), "{nowhere}");
    }
}

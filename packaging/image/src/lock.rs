//! The lock of Debian packages for an architecture, with exact hashes. It keeps images reproducible when Debian publishes newer versions.

use std::collections::BTreeSet;

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use super::images::ImageSpec;
use serde::{Deserialize, Serialize};

/// Debian's packages in images.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DebianLock {
    /// The architecture.
    pub architecture: CpuArchitecture,
    /// The date of the newest index, in seconds since 1970; it becomes the timestamp of everything in images.
    pub date: u64,
    /// The packages, sorted by name.
    pub packages: Vec<LockedPackage>,
}

/// A package with its exact hash.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// The package name.
    pub name: String,
    /// The package version.
    pub version: String,
    /// The architecture that it is for, or `all`.
    pub architecture: String,
    /// The layers that need it.
    pub layers: Vec<String>,
    /// The suite that it came from.
    pub suite: String,
    /// Its path on a mirror.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// The directory of the locks of Oarlock's own images in the sources.
pub const LOCK_DIRECTORY: &str = "packaging";

/// The file name of the lock for an architecture.
#[must_use]
pub fn lock_file_name(architecture: CpuArchitecture) -> String {
    format!("debian.{}.lock.toml", architecture.debian_name())
}

/// The path of the lock of Oarlock's own images for an architecture in the sources.
#[must_use]
pub fn lock_path(architecture: CpuArchitecture) -> String {
    format!("{LOCK_DIRECTORY}/{}", lock_file_name(architecture))
}

/// The lock of Oarlock's own images for an architecture.
pub(crate) fn own_lock(architecture: CpuArchitecture) -> &'static str {
    match architecture {
        CpuArchitecture::X86_64 => include_str!("../../debian.amd64.lock.toml"),
        CpuArchitecture::Aarch64 => include_str!("../../debian.arm64.lock.toml"),
    }
}

const LOCK_HEADER: &str =
    "# The packages of Debian that images are made of; `oarlock-pack image lock` writes this file.\n\n";

impl DebianLock {
    /// Reads a lock.
    ///
    /// # Errors
    ///
    /// When the text is not a valid lock.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Error> {
        let lock: Self = toml::from_str(text).map_err(|error| Error::from_toml(file, text, &error))?;
        let mut names = BTreeSet::new();
        for package in &lock.packages {
            package.check_fields().map_err(|error| error.in_part(&package.name).in_file(file))?;
            if !names.insert(&package.name) {
                return Err(
                    Error::new(format!("expected `{}` once, found it twice", package.name)).in_file(file)
                );
            }
        }
        Ok(lock)
    }

    /// Writes the lock as TOML.
    ///
    /// # Errors
    ///
    /// When it cannot be serialized.
    pub fn to_toml(&self) -> Result<String, Error> {
        let text = toml::to_string(self).map_err(|error| Error::new(error.to_string()))?;
        Ok(format!("{LOCK_HEADER}{text}"))
    }

    /// The packages that any of these images needs.
    pub fn packages_of_images<'l>(&'l self, images: &[&ImageSpec]) -> Vec<&'l LockedPackage> {
        let is_needed = |package: &&LockedPackage| {
            package.layers.iter().any(|layer| images.iter().any(|image| image.layers.contains(layer)))
        };
        self.packages.iter().filter(is_needed).collect()
    }

    /// The packages that a layer needs.
    pub fn packages_of_layer<'l>(&'l self, layer: &'l str) -> impl Iterator<Item = &'l LockedPackage> {
        self.packages.iter().filter(move |package| package.layers.iter().any(|it| it == layer))
    }
}

impl LockedPackage {
    fn check_fields(&self) -> Result<(), Error> {
        let is_hash =
            self.sha256.len() == 64 && self.sha256.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        if !is_hash {
            return Err(Error::new(format!("expected a SHA-256 of 64 digits, found `{}`", self.sha256)));
        }
        let is_part = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._~%".contains(&byte))
        };
        if !self.path.split('/').all(is_part) || !self.path.ends_with(".deb") {
            return Err(Error::new(format!("expected the path of a package, found `{}`", self.path)));
        }
        Ok(())
    }

    /// The file name on a mirror.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImageSources;
    use super::*;

    fn example_lock() -> DebianLock {
        let package = |name: &str| LockedPackage {
            name: name.to_owned(),
            version: "1:1.0-1+b2".to_owned(),
            architecture: "amd64".to_owned(),
            layers: vec!["base".to_owned()],
            suite: "trixie".to_owned(),
            path: format!("pool/main/x/{name}_1.0-1+b2_amd64.deb"),
            size: 7,
            sha256: "0f".repeat(32),
        };
        DebianLock {
            architecture: CpuArchitecture::X86_64,
            date: 9,
            packages: vec![package("libx"), package("x")],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = example_lock().to_toml().expect("a text");
        assert_eq!(DebianLock::from_toml("lock", &text).expect("a lock"), example_lock());
        assert_eq!(example_lock().packages[1].file_name(), "x_1.0-1+b2_amd64.deb");
        assert_eq!(example_lock().packages_of_layer("base").count(), 2);
        assert_eq!(example_lock().packages_of_layer("other").count(), 0);
    }

    #[test]
    fn a_lock_that_no_lock_should_be_is_refused() {
        let refused = |change: fn(&mut DebianLock)| {
            let mut lock = example_lock();
            change(&mut lock);
            DebianLock::from_toml("lock", &lock.to_toml().expect("a text"))
                .expect_err("a mistake")
                .to_string()
        };
        assert!(
            refused(|it| it.packages[0].sha256.make_ascii_uppercase()).contains("`libx`: expected a SHA-256")
        );
        for path in ["../x.deb", "pool//x.deb", "pool/x.rpm", "pool/a b.deb", "/pool/x.deb", ".hidden/x.deb"]
        {
            let mut lock = example_lock();
            path.clone_into(&mut lock.packages[0].path);
            let error =
                DebianLock::from_toml("lock", &lock.to_toml().expect("a text")).expect_err(path).to_string();
            assert!(error.contains("expected the path of a package"), "{error}");
        }
        assert!(refused(|it| it.packages[1].name = "libx".to_owned()).contains("expected `libx` once"));
        let syntax = DebianLock::from_toml("lock", "date = 1\narchitecture = 2\npackages = []\n")
            .expect_err("a number");
        assert!(syntax.to_string().contains("line 2"), "{syntax}");
    }

    #[test]
    fn our_own_lock_has_every_package_that_our_own_images_name() {
        for ImageSources { images, lock } in ImageSources::of_all_architectures().expect("our own images") {
            assert_eq!(images.architecture, lock.architecture);
            for (name, layer) in &images.layers {
                for root in &layer.debian {
                    let is_locked = lock.packages_of_layer(name).any(|package| package.name == *root);
                    assert!(is_locked, "{name}: {root} for {}", lock.architecture.debian_name());
                }
            }
            let is_ours = |it: &LockedPackage| {
                it.architecture == "all" || it.architecture == lock.architecture.debian_name()
            };
            assert_eq!(lock.packages.iter().find(|package| !is_ours(package)), None);
        }
    }
}

//! What Oarlock's own images are made of.

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use super::images::{self, ImageCatalog};
use super::lock::{self, DebianLock};

/// The catalog and the lock for an architecture.
#[derive(Debug)]
pub struct ImageSources {
    /// The images.
    pub images: ImageCatalog,
    /// The Debian packages in them.
    pub lock: DebianLock,
}

impl ImageSources {
    /// Oarlock's own images for an architecture.
    ///
    /// # Errors
    ///
    /// When the catalog or the lock in these sources is invalid.
    pub fn of_oarlock(architecture: CpuArchitecture) -> Result<Self, Error> {
        Ok(Self {
            images: ImageCatalog::from_toml(images::CATALOG_PATH, images::OWN_IMAGES, architecture)?,
            lock: DebianLock::from_toml(&lock::lock_path(architecture), lock::own_lock(architecture))?,
        })
    }

    /// Oarlock's own images for each architecture.
    ///
    /// # Errors
    ///
    /// As [`ImageSources::of_oarlock`].
    pub fn of_all_architectures() -> Result<Vec<Self>, Error> {
        CpuArchitecture::ALL.into_iter().map(Self::of_oarlock).collect()
    }
}

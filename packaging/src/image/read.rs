//! Reads an image out of an archive, and holds everything in it to what says so elsewhere: one that was changed is none.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::archive::{BLOBS, DOCKER, INDEX, TAG};
use super::layer::Packed;
use crate::deb::compression;
use crate::error::Error;
use crate::tree::Tree;
use crate::wheel::sha256;

/// More than any layer of ours holds.
const LARGEST_LAYER: u64 = 4 << 30;

/// An image as it was found.
pub(crate) struct Image {
    /// What stands behind the colon in its name.
    pub(crate) tag: String,
    /// What it says of itself.
    pub(crate) config: Value,
    /// Its layers, the lowest first.
    pub(crate) layers: Vec<Layer>,
}

/// A layer as it was found.
pub(crate) struct Layer {
    pub(crate) packed: Packed,
    pub(crate) tree: Tree,
    /// The time of everything in it.
    pub(crate) seconds: u64,
}

/// The list of what is in an archive.
#[derive(Deserialize)]
struct Index {
    manifests: Vec<Blob>,
}

/// What an image is made of.
#[derive(Deserialize)]
struct Manifest {
    config: Blob,
    layers: Vec<Blob>,
}

/// A file that is called by the hash of its bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// Where else it may be had.
    #[serde(default)]
    urls: Vec<String>,
}

/// What Docker reads in place of all that.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ForDocker {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Image {
    /// Reads the one image of an archive.
    ///
    /// # Errors
    ///
    /// When it is no layout of OCI, holds no image or several, or a file in it is not what another one says of it.
    pub(crate) fn read(archive: &[u8]) -> Result<Self, Error> {
        let files = Tree::of_tar(archive)?;
        let index: Index = parsed(INDEX, file(&files, INDEX)?)?;
        let [listed] = &index.manifests[..] else {
            let found = index.manifests.len();
            return Err(Error::new(format!("expected one image in the archive, found {found}")));
        };
        let manifest: Manifest = parsed(&listed.digest, listed.bytes(&files)?)?;
        let config: Value = parsed(&manifest.config.digest, manifest.config.bytes(&files)?)?;
        let layers = manifest.layers.iter().map(|layer| layer.read(&files)).collect::<Result<Vec<_>, _>>()?;
        let digests = layers.iter().map(|layer| format!("sha256:{}", layer.packed.unpacked_digest));
        if config["rootfs"]["diff_ids"] != Value::from_iter(digests) {
            return Err(Error::new("expected the layers that the image says it has, found others"));
        }
        let tag = listed.annotations.get(TAG).map(|name| name.rsplit(':').next().unwrap_or_default());
        let tag = tag.unwrap_or_default().to_owned();
        check_for_docker(&files, &manifest, &tag)?;
        Ok(Self { tag, config, layers })
    }

    /// How many bytes its layers have, packed.
    pub(crate) fn packed(&self) -> u64 {
        self.layers.iter().map(|layer| layer.packed.bytes.len() as u64).sum()
    }
}

impl Blob {
    /// The layer that it is.
    fn read(&self, files: &Tree) -> Result<Layer, Error> {
        let bytes = self.bytes(files)?;
        let name = if self.media_type.ends_with("gzip") { "layer.tar.gz" } else { "layer.tar" };
        let unpacked = compression::unpack(name, bytes, LARGEST_LAYER)?;
        let (tree, seconds) = Tree::of_own_tar(&unpacked).map_err(|error| error.of_part(&self.digest))?;
        let packed = Packed {
            bytes: bytes.to_vec(),
            digest: sha256(bytes),
            unpacked_digest: sha256(&unpacked),
            unpacked: unpacked.len() as u64,
        };
        Ok(Layer { packed, tree, seconds })
    }

    /// Its bytes, which are what it is called by.
    fn bytes<'f>(&self, files: &'f Tree) -> Result<&'f [u8], Error> {
        let bytes = file(files, &self.path())?;
        let found = format!("sha256:{}", sha256(bytes));
        if let Some(elsewhere) = self.urls.first() {
            return Err(Error::new(format!(
                "expected {} in the archive alone, found it at `{elsewhere}` too",
                self.digest
            )));
        }
        if found != self.digest || bytes.len() as u64 != self.size {
            return Err(Error::new(format!(
                "expected {} bytes of the hash {}, found {} of {found}",
                self.size,
                self.digest,
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    fn path(&self) -> String {
        format!("{BLOBS}/{}", self.digest.trim_start_matches("sha256:"))
    }
}

/// That Docker is told of the same image, where it is told of one.
fn check_for_docker(files: &Tree, manifest: &Manifest, tag: &str) -> Result<(), Error> {
    let Some(list) = files.file(DOCKER) else { return Ok(()) };
    let images: Vec<ForDocker> = parsed(DOCKER, list)?;
    let is_same = |image: &ForDocker| {
        let layers = manifest.layers.iter().map(Blob::path);
        let tags = image.repo_tags.as_deref().unwrap_or_default();
        image.config == manifest.config.path()
            && layers.eq(image.layers.iter().cloned())
            && tags.iter().all(|name| name.rsplit(':').next() == Some(tag))
    };
    if images.len() == 1 && images.iter().all(is_same) {
        return Ok(());
    }
    Err(Error::new(format!("expected the same image in `{DOCKER}` as in `{INDEX}`, found another one")))
}

fn file<'f>(files: &'f Tree, path: &str) -> Result<&'f [u8], Error> {
    files.file(path).ok_or_else(|| Error::new(format!("expected `{path}` in the archive, found none")))
}

fn parsed<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::new(format!("`{name}`: {error}")))
}

//! Reads an image out of an archive, and holds everything in it to what says so elsewhere: one that was changed is none.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::archive::{BLOB_DIRECTORY, DOCKER_MANIFEST_FILE, INDEX_FILE, TAG_ANNOTATION};
use super::layer::PackedLayer;
use crate::deb::compression;
use crate::error::Error;
use crate::tree::FileTree;
use crate::wheel::sha256_hex;

/// More than any layer of ours holds.
const MAX_LAYER_BYTES: u64 = 4 << 30;

/// An image as it was found.
pub(crate) struct LoadedImage {
    /// What stands behind the colon in its name.
    pub(crate) tag: String,
    /// What it says of itself.
    pub(crate) config: Value,
    /// Its layers, the lowest first.
    pub(crate) layers: Vec<LoadedLayer>,
}

/// A layer as it was found.
pub(crate) struct LoadedLayer {
    pub(crate) packed: PackedLayer,
    pub(crate) tree: FileTree,
    /// The time of everything in it.
    pub(crate) seconds: u64,
}

/// The list of what is in an archive.
#[derive(Deserialize)]
struct OciIndex {
    manifests: Vec<OciDescriptor>,
}

/// What an image is made of.
#[derive(Deserialize)]
struct OciManifest {
    config: OciDescriptor,
    layers: Vec<OciDescriptor>,
}

/// A file that is called by the hash of its bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciDescriptor {
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
struct DockerManifest {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl LoadedImage {
    /// Reads the one image of an archive.
    ///
    /// # Errors
    ///
    /// When it is no layout of OCI, holds no image or several, or a file in it is not what another one says of it.
    pub(crate) fn read_archive(archive: &[u8]) -> Result<Self, Error> {
        let files = FileTree::from_tar(archive)?;
        let index: OciIndex = parse_json(INDEX_FILE, require_file(&files, INDEX_FILE)?)?;
        let [listed] = &index.manifests[..] else {
            let found = index.manifests.len();
            return Err(Error::new(format!("expected one image in the archive, found {found}")));
        };
        let manifest: OciManifest = parse_json(&listed.digest, listed.verified_bytes(&files)?)?;
        let config: Value = parse_json(&manifest.config.digest, manifest.config.verified_bytes(&files)?)?;
        let layers =
            manifest.layers.iter().map(|layer| layer.read_layer(&files)).collect::<Result<Vec<_>, _>>()?;
        let digests = layers.iter().map(|layer| format!("sha256:{}", layer.packed.unpacked_digest));
        if config["rootfs"]["diff_ids"] != Value::from_iter(digests) {
            return Err(Error::new("expected the layers that the image says it has, found others"));
        }
        let tag =
            listed.annotations.get(TAG_ANNOTATION).map(|name| name.rsplit(':').next().unwrap_or_default());
        let tag = tag.unwrap_or_default().to_owned();
        check_docker_manifest(&files, &manifest, &tag)?;
        Ok(Self { tag, config, layers })
    }

    /// How many bytes its layers have, packed.
    pub(crate) fn packed_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.packed.bytes.len() as u64).sum()
    }
}

impl OciDescriptor {
    /// The layer that it is.
    fn read_layer(&self, files: &FileTree) -> Result<LoadedLayer, Error> {
        let bytes = self.verified_bytes(files)?;
        let name = if self.media_type.ends_with("gzip") { "layer.tar.gz" } else { "layer.tar" };
        let unpacked = compression::decompress_by_name(name, bytes, MAX_LAYER_BYTES)?;
        let (tree, seconds) =
            FileTree::from_own_tar(&unpacked).map_err(|error| error.in_part(&self.digest))?;
        let packed = PackedLayer {
            bytes: bytes.to_vec(),
            digest: sha256_hex(bytes),
            unpacked_digest: sha256_hex(&unpacked),
            unpacked: unpacked.len() as u64,
        };
        Ok(LoadedLayer { packed, tree, seconds })
    }

    /// Its bytes, which are what it is called by.
    fn verified_bytes<'f>(&self, files: &'f FileTree) -> Result<&'f [u8], Error> {
        let bytes = require_file(files, &self.blob_path())?;
        let found = format!("sha256:{}", sha256_hex(bytes));
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

    fn blob_path(&self) -> String {
        format!("{BLOB_DIRECTORY}/{}", self.digest.trim_start_matches("sha256:"))
    }
}

/// That Docker is told of the same image, where it is told of one.
fn check_docker_manifest(files: &FileTree, manifest: &OciManifest, tag: &str) -> Result<(), Error> {
    let Some(list) = files.file_bytes(DOCKER_MANIFEST_FILE) else { return Ok(()) };
    let images: Vec<DockerManifest> = parse_json(DOCKER_MANIFEST_FILE, list)?;
    let is_same = |image: &DockerManifest| {
        let layers = manifest.layers.iter().map(OciDescriptor::blob_path);
        let tags = image.repo_tags.as_deref().unwrap_or_default();
        image.config == manifest.config.blob_path()
            && layers.eq(image.layers.iter().cloned())
            && tags.iter().all(|name| name.rsplit(':').next() == Some(tag))
    };
    if images.len() == 1 && images.iter().all(is_same) {
        return Ok(());
    }
    Err(Error::new(format!(
        "expected the same image in `{DOCKER_MANIFEST_FILE}` as in `{INDEX_FILE}`, found another one"
    )))
}

fn require_file<'f>(files: &'f FileTree, path: &str) -> Result<&'f [u8], Error> {
    files.file_bytes(path).ok_or_else(|| Error::new(format!("expected `{path}` in the archive, found none")))
}

fn parse_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::new(format!("`{name}`: {error}")))
}

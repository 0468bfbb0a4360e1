//! Reads images from archives and verifies every digest, so that a modified image is rejected.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::deb::compression;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::tree::FileTree;
use oarlock_matrix::CpuArchitecture;

use super::archive::{BLOB_DIRECTORY, DOCKER_MANIFEST_FILE, INDEX_FILE, INDEX_MEDIA_TYPE, TAG_ANNOTATION};
use super::layer::PackedLayer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Limit for decompression, larger than any of our layers.
const MAX_LAYER_BYTES: u64 = 4 << 30;

/// An image from an archive.
pub struct LoadedImage {
    /// The tag of its name.
    pub tag: String,
    /// Its configuration.
    pub config: Value,
    /// Its layers, starting with the lowest.
    pub layers: Vec<LoadedLayer>,
}

/// A layer from an archive.
pub struct LoadedLayer {
    /// The layer as it is stored.
    pub packed: PackedLayer,
    /// Its files.
    pub tree: FileTree,
    /// The timestamp that all its entries share.
    pub seconds: u64,
}

/// The `index.json` of an OCI layout.
#[derive(Deserialize)]
struct OciIndex {
    manifests: Vec<OciDescriptor>,
}

/// An OCI image manifest.
#[derive(Deserialize)]
struct OciManifest {
    config: OciDescriptor,
    layers: Vec<OciDescriptor>,
}

/// A reference to a blob by digest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciDescriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// The machines that an image is for.
    platform: Option<OciPlatform>,
    /// Alternative sources of the blob.
    #[serde(default)]
    urls: Vec<String>,
}

/// The machines that an image is for.
#[derive(Deserialize)]
struct OciPlatform {
    architecture: String,
    os: String,
}

/// Docker's own `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl LoadedImage {
    /// Reads an archive of one image: for one architecture, or for several.
    ///
    /// # Errors
    ///
    /// When it is not an OCI layout, does not contain exactly one image, or a blob contradicts its descriptor.
    pub fn read_archive(archive: &[u8]) -> Result<Vec<Self>, Error> {
        let files = FileTree::from_tar(archive)?;
        let index: OciIndex = parse_json(INDEX_FILE, require_file(&files, INDEX_FILE)?)?;
        let [listed] = &index.manifests[..] else {
            let found = index.manifests.len();
            return Err(Error::new(format!("expected one image in the archive, found {found}")));
        };
        let tag =
            listed.annotations.get(TAG_ANNOTATION).map(|name| name.rsplit(':').next().unwrap_or_default());
        let tag = tag.unwrap_or_default().to_owned();
        if listed.media_type != INDEX_MEDIA_TYPE {
            return Ok(vec![Self::read_image(&files, listed, &tag)?]);
        }
        if files.get(DOCKER_MANIFEST_FILE).is_some() {
            return Err(Error::new(format!(
                "expected no `{DOCKER_MANIFEST_FILE}` beside images for several architectures, found one"
            )));
        }
        let inner: OciIndex = parse_json(&listed.digest, listed.verified_bytes(&files)?)?;
        let read = |image: &OciDescriptor| Self::read_image(&files, image, &tag);
        let images = inner.manifests.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let architectures = images.iter().map(|image| image.config["architecture"].to_string());
        let different: BTreeSet<String> = architectures.collect();
        if images.is_empty() || different.len() != images.len() {
            return Err(Error::new(format!(
                "expected images for different architectures, found {} for {}",
                images.len(),
                different.len()
            )));
        }
        Ok(images)
    }

    /// Reads an image that an index lists.
    fn read_image(files: &FileTree, listed: &OciDescriptor, tag: &str) -> Result<Self, Error> {
        let manifest: OciManifest = parse_json(&listed.digest, listed.verified_bytes(files)?)?;
        let config: Value = parse_json(&manifest.config.digest, manifest.config.verified_bytes(files)?)?;
        let layers =
            manifest.layers.iter().map(|layer| layer.read_layer(files)).collect::<Result<Vec<_>, _>>()?;
        let digests = layers.iter().map(|layer| format!("sha256:{}", layer.packed.unpacked_digest));
        if config["rootfs"]["diff_ids"] != Value::from_iter(digests) {
            return Err(Error::new("expected the layers that the image says it has, found others"));
        }
        if let Some(platform) = &listed.platform
            && (platform.os != config["os"] || platform.architecture != config["architecture"])
        {
            let [os, architecture] =
                ["os", "architecture"].map(|key| config[key].as_str().unwrap_or_default());
            return Err(Error::new(format!(
                "expected an image for {} on {}, as the index says; found one for {os} on {architecture}",
                platform.os, platform.architecture
            )));
        }
        check_docker_manifest(files, &manifest, tag)?;
        Ok(Self { tag: tag.to_owned(), config, layers })
    }

    /// The architecture that it says it is for.
    ///
    /// # Errors
    ///
    /// When there are no images for it.
    pub fn architecture(&self) -> Result<CpuArchitecture, Error> {
        self.config["architecture"].as_str().unwrap_or_default().parse()
    }

    /// The total compressed size of its layers.
    pub fn packed_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.packed.bytes.len() as u64).sum()
    }
}

impl OciDescriptor {
    /// Reads the blob as a layer.
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

    /// The blob, whose size and digest match the descriptor.
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

/// Checks that Docker's manifest, if there is one, describes the same image.
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

//! Image archives: an OCI layout that `docker load` also accepts; both manifests refer to the same blobs.

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::tree::{FileTree, TreeEntry};

use super::config::{DescribedLayer, ImageConfig};
use super::name::ImageName;
use serde_json::{Value, json};

/// The directory of blobs, which are named by their SHA-256.
pub(super) const BLOB_DIRECTORY: &str = "blobs/sha256";

/// The version of the layout, the OCI index, and Docker's list of images.
pub(super) const LAYOUT_FILE: &str = "oci-layout";
pub(super) const INDEX_FILE: &str = "index.json";
pub(super) const DOCKER_MANIFEST_FILE: &str = "manifest.json";

/// The annotation for the tag of an image.
pub(super) const TAG_ANNOTATION: &str = "org.opencontainers.image.ref.name";

/// The media type of an OCI index.
pub(super) const INDEX_MEDIA_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// An image archive with the digest of its image.
pub struct ImageArchive {
    /// The archive.
    pub bytes: Vec<u8>,
    /// The digest of the manifest, which identifies the image in registries.
    pub digest: String,
}

/// Assembles an image. The archive only depends on the contents.
///
/// # Errors
///
/// When the archive cannot be written.
pub fn write_archive(
    name: &ImageName,
    config: &ImageConfig,
    layers: &[DescribedLayer<'_>],
) -> Result<ImageArchive, Error> {
    let mut tree = FileTree::default();
    let mut blob = |bytes: Vec<u8>, kind: &str| -> Result<Value, Error> {
        let digest = sha256_hex(&bytes);
        let size = bytes.len();
        tree.insert_entry(&format!("{BLOB_DIRECTORY}/{digest}"), TreeEntry::file(bytes))?;
        Ok(json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": size,
        }))
    };
    let described = blob(config.to_json(layers).to_string().into_bytes(), "config.v1+json")?;
    let packed: Vec<Value> = layers
        .iter()
        .map(|layer| blob(layer.packed.bytes.clone(), "layer.v1.tar+gzip"))
        .collect::<Result<_, _>>()?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described,
        "layers": packed,
    });
    let manifest = manifest.to_string().into_bytes();
    let digest = sha256_hex(&manifest);
    let mut listed = blob(manifest, "manifest.v1+json")?;
    listed["platform"] = json!({ "architecture": config.architecture.debian_name(), "os": "linux" });
    listed["annotations"] = name_annotations(name);
    let index = index_of(&[listed]);
    let path = |blob: &Value| {
        blob["digest"].as_str().unwrap_or_default().replace("sha256:", &format!("{BLOB_DIRECTORY}/"))
    };
    let docker = json!([{
        "Config": path(&described),
        "RepoTags": [name.to_string()],
        "Layers": packed.iter().map(path).collect::<Vec<_>>(),
    }]);
    let layout = layout_version();
    for (path, value) in [(LAYOUT_FILE, layout), (INDEX_FILE, index), (DOCKER_MANIFEST_FILE, docker)] {
        tree.insert_entry(path, TreeEntry::file(value.to_string().into_bytes()))?;
    }
    Ok(ImageArchive { bytes: tree.to_tar("", config.seconds)?, digest })
}

/// An OCI index of these descriptors.
pub(super) fn index_of(listed: &[Value]) -> Value {
    json!({ "schemaVersion": 2, "mediaType": INDEX_MEDIA_TYPE, "manifests": listed })
}

/// The annotations with the name of an image.
pub(super) fn name_annotations(name: &ImageName) -> Value {
    json!({ TAG_ANNOTATION: name.tag(), "io.containerd.image.name": name.with_registry() })
}

/// The contents of the file with the version of the layout.
pub(super) fn layout_version() -> Value {
    json!({ "imageLayoutVersion": "1.0.0" })
}

#[cfg(test)]
mod tests {
    use super::super::images::ImageKind;
    use super::super::layer::PackedLayer;
    use super::*;
    use oarlock_matrix::CpuArchitecture;

    fn example_archive() -> ImageArchive {
        let mut tree = FileTree::default();
        tree.insert_entry("usr/bin/x", TreeEntry::program(*b"text")).expect("a path");
        let packed = PackedLayer::new(&tree, 1_700_000_000, ImageKind::Prod).expect("a layer");
        let layers = [
            DescribedLayer { name: "base", purpose: "to be there", packed: &packed },
            DescribedLayer { name: "more", purpose: "to be more", packed: &packed },
        ];
        let config = ImageConfig {
            kind: ImageKind::Prod,
            title: "An image".to_owned(),
            version: "1.0".to_owned(),
            architecture: CpuArchitecture::X86_64,
            has_entry: true,
            has_notebook: true,
            environment: vec!["A=b".to_owned()],
            seconds: 1_700_000_000,
        };
        write_archive(&ImageName::new("team/x", "1.0-y").expect("a name"), &config, &layers)
            .expect("an image")
    }

    fn read_json(tree: &FileTree, path: &str) -> Value {
        serde_json::from_slice(tree.file_bytes(path).expect(path)).expect("JSON")
    }

    #[test]
    fn an_image_is_the_same_whenever_it_is_written() {
        assert_eq!(example_archive().bytes, example_archive().bytes);
    }

    #[test]
    fn every_blob_matches_its_digest_and_its_descriptor() {
        let tree = FileTree::from_tar(&example_archive().bytes).expect("an archive");
        let blobs: Vec<_> = tree.files().filter(|(path, _)| path.starts_with(BLOB_DIRECTORY)).collect();
        assert_eq!(blobs.len(), 3, "a layer, the configuration and the manifest");
        for (path, bytes) in blobs {
            assert_eq!(path.rsplit('/').next(), Some(sha256_hex(bytes).as_str()));
        }
        let index = read_json(&tree, "index.json");
        let listed = &index["manifests"][0];
        assert_eq!(listed["digest"], format!("sha256:{}", example_archive().digest));
        assert_eq!(listed["annotations"]["io.containerd.image.name"], "docker.io/team/x:1.0-y");
        let manifest = read_json(&tree, &format!("{BLOB_DIRECTORY}/{}", example_archive().digest));
        for blob in [&manifest["config"], &manifest["layers"][0], &manifest["layers"][1], listed] {
            let digest = blob["digest"].as_str().expect("a digest").replace("sha256:", "");
            let bytes = tree.file_bytes(&format!("{BLOB_DIRECTORY}/{digest}")).expect("a blob");
            assert_eq!(blob["size"], bytes.len());
        }
        let docker = read_json(&tree, "manifest.json");
        let config = read_json(&tree, docker[0]["Config"].as_str().expect("a path"));
        assert_eq!(docker[0]["Layers"].as_array().map(Vec::len), Some(2));
        assert_eq!(config["rootfs"]["diff_ids"].as_array().map(Vec::len), Some(2));
        assert_eq!(config["history"][1]["comment"], "to be more");
        assert_eq!(config["created"], "2023-11-14T22:13:20Z");
        assert_eq!(config["config"]["User"], "10001:10001");
        assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/oarlock-entry");
        assert_eq!(config["config"]["Cmd"][0], "oarlock-notebook");
        assert_eq!(config["config"]["ExposedPorts"], json!({ "8888/tcp": {} }));
    }
}

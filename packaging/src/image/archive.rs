//! Images as files: an archive that is both a layout of OCI and what `docker load` reads, over the same bytes.

use serde_json::{Value, json};

use super::config::{Config, Described};
use super::name::Name;
use crate::error::Error;
use crate::tree::{Entry, Tree};
use crate::wheel::sha256;

/// Where files lie by the hashes of their bytes.
pub(super) const BLOBS: &str = "blobs/sha256";

/// What lists the images of an archive, and what does so for Docker.
pub(super) const INDEX: &str = "index.json";
pub(super) const DOCKER: &str = "manifest.json";

/// By what the index says what stands behind the colon in the name of an image.
pub(super) const TAG: &str = "org.opencontainers.image.ref.name";

/// An image as a file.
pub struct Archive {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The hash by which registries know the image.
    pub digest: String,
}

/// Puts an image together. The archive depends on what is in it alone.
///
/// # Errors
///
/// When it cannot be packed.
pub fn write(name: &Name, config: &Config, layers: &[Described<'_>]) -> Result<Archive, Error> {
    let mut tree = Tree::default();
    let mut blob = |bytes: Vec<u8>, kind: &str| -> Result<Value, Error> {
        let digest = sha256(&bytes);
        let size = bytes.len();
        tree.put(&format!("{BLOBS}/{digest}"), Entry::file(bytes))?;
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
    let digest = sha256(&manifest);
    let mut listed = blob(manifest, "manifest.v1+json")?;
    listed["platform"] = json!({ "architecture": config.architecture, "os": "linux" });
    listed["annotations"] = json!({
        TAG: name.tag(),
        "io.containerd.image.name": name.full(),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [listed],
    });
    let path =
        |blob: &Value| blob["digest"].as_str().unwrap_or_default().replace("sha256:", &format!("{BLOBS}/"));
    let docker = json!([{
        "Config": path(&described),
        "RepoTags": [name.to_string()],
        "Layers": packed.iter().map(path).collect::<Vec<_>>(),
    }]);
    let layout = json!({ "imageLayoutVersion": "1.0.0" });
    for (path, value) in [("oci-layout", layout), (INDEX, index), (DOCKER, docker)] {
        tree.put(path, Entry::file(value.to_string().into_bytes()))?;
    }
    Ok(Archive { bytes: tree.to_tar("", config.seconds)?, digest })
}

#[cfg(test)]
mod tests {
    use super::super::images::Kind;
    use super::super::layer::Packed;
    use super::*;

    fn image() -> Archive {
        let mut tree = Tree::default();
        tree.put("usr/bin/x", Entry::program(*b"text")).expect("a path");
        let packed = Packed::new(&tree, 1_700_000_000, Kind::Prod).expect("a layer");
        let layers = [
            Described { name: "base", purpose: "to be there", packed: &packed },
            Described { name: "more", purpose: "to be more", packed: &packed },
        ];
        let config = Config {
            kind: Kind::Prod,
            title: "An image".to_owned(),
            version: "1.0".to_owned(),
            architecture: "amd64".to_owned(),
            has_entry: true,
            has_notebook: true,
            environment: vec!["A=b".to_owned()],
            seconds: 1_700_000_000,
        };
        write(&Name::new("team/x", "1.0-y").expect("a name"), &config, &layers).expect("an image")
    }

    fn read(tree: &Tree, path: &str) -> Value {
        serde_json::from_slice(tree.file(path).expect(path)).expect("JSON")
    }

    #[test]
    fn an_image_is_the_same_whenever_it_is_written() {
        assert_eq!(image().bytes, image().bytes);
    }

    #[test]
    fn every_blob_is_what_its_name_and_whoever_names_it_say() {
        let tree = Tree::of_tar(&image().bytes).expect("an archive");
        let blobs: Vec<_> = tree.files().filter(|(path, _)| path.starts_with(BLOBS)).collect();
        assert_eq!(blobs.len(), 3, "a layer, the configuration and the manifest");
        for (path, bytes) in blobs {
            assert_eq!(path.rsplit('/').next(), Some(sha256(bytes).as_str()));
        }
        let index = read(&tree, "index.json");
        let listed = &index["manifests"][0];
        assert_eq!(listed["digest"], format!("sha256:{}", image().digest));
        assert_eq!(listed["annotations"]["io.containerd.image.name"], "docker.io/team/x:1.0-y");
        let manifest = read(&tree, &format!("{BLOBS}/{}", image().digest));
        for blob in [&manifest["config"], &manifest["layers"][0], &manifest["layers"][1], listed] {
            let digest = blob["digest"].as_str().expect("a digest").replace("sha256:", "");
            let bytes = tree.file(&format!("{BLOBS}/{digest}")).expect("a blob");
            assert_eq!(blob["size"], bytes.len());
        }
        let docker = read(&tree, "manifest.json");
        let config = read(&tree, docker[0]["Config"].as_str().expect("a path"));
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

//! Images for several architectures have one name, in an archive whose index names each of them, and `verify` checks them all.

#[path = "common/directory.rs"]
mod directory;
#[path = "common/image.rs"]
mod image;

use std::path::PathBuf;

use oarlock_formats::tree::{FileTree, TreeEntry};
use oarlock_image::ImageSources;
use oarlock_image::image_builder::FinishedImage;
use oarlock_image::image_index::{self, FinishedIndex};
use oarlock_matrix::{CpuArchitecture, OWN_MATRIX, WheelMatrix};
use oarlock_pack::packages::{OWN_PACKAGES, PackageCatalog};
use oarlock_pack::verify::FoundParts;

use crate::directory::file_names;
use crate::image::{IMAGE_CATALOG, ImageFixture, read_catalog, sha256_hex};
use serde_json::Value;
use tempfile::TempDir;

/// An image for each architecture.
struct ImagePair {
    out: TempDir,
    fixtures: [ImageFixture; 2],
}

impl ImagePair {
    fn new() -> Self {
        let out = tempfile::tempdir().expect("a directory");
        Self {
            out,
            fixtures: [ImageFixture::new(), ImageFixture::for_architecture(CpuArchitecture::Aarch64)],
        }
    }

    fn build_images(&self, catalog: &str) -> [FinishedImage; 2] {
        let build = |it: &ImageFixture| it.build_first_image(catalog, self.out.path()).expect("an image");
        [build(&self.fixtures[0]), build(&self.fixtures[1])]
    }

    fn build_index(&self) -> FinishedIndex {
        let images = self.build_images(IMAGE_CATALOG);
        let mut indexes = image_index::write_indexes(&images, self.out.path()).expect("an index");
        assert_eq!(indexes.len(), 1);
        indexes.remove(0)
    }

    /// Verifies an archive as one of ours.
    fn verify_archive(&self, archive: &FileTree) -> Result<(), String> {
        let file = self.out.path().join("image.tar");
        std::fs::write(&file, archive.to_tar("", 0).expect("an archive")).expect("a file");
        let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
        let packages = PackageCatalog::from_toml("packages.toml", OWN_PACKAGES).expect("our own packages");
        let sources: Vec<ImageSources> = self
            .fixtures
            .iter()
            .map(|it| ImageSources {
                images: read_catalog(IMAGE_CATALOG, it.lock.architecture).expect("images"),
                lock: it.lock.clone(),
            })
            .collect();
        let mut found = FoundParts::default();
        found.add_image(&matrix, &packages, &sources, &file).map_err(|error| error.to_string())
    }
}

fn read_archive(file: &PathBuf) -> FileTree {
    FileTree::from_tar(&std::fs::read(file).expect("a file")).expect("an archive")
}

fn read_json(files: &FileTree, path: &str) -> Value {
    serde_json::from_slice(files.file_bytes(path).expect(path)).expect("JSON")
}

/// The path of the blob that a descriptor refers to.
fn blob_path(blob: &Value) -> String {
    blob["digest"].as_str().expect("a digest").replace("sha256:", "blobs/sha256/")
}

/// The archive with another list of images.
fn with_listed_images(archive: &FileTree, change: impl FnOnce(&mut Vec<Value>)) -> FileTree {
    let mut files = archive.clone();
    let mut index = read_json(&files, "index.json");
    let mut inner = read_json(&files, &blob_path(&index["manifests"][0]));
    change(inner["manifests"].as_array_mut().expect("a list"));
    let inner = inner.to_string().into_bytes();
    index["manifests"][0]["digest"] = format!("sha256:{}", sha256_hex(&inner)).into();
    index["manifests"][0]["size"] = inner.len().into();
    let path = blob_path(&index["manifests"][0]);
    files.insert_entry(&path, TreeEntry::file(inner)).expect("a path");
    files.insert_entry("index.json", TreeEntry::file(index.to_string().into_bytes())).expect("a path");
    files
}

#[test]
fn an_index_names_the_image_of_each_architecture_and_has_all_their_blobs() {
    let pair = ImagePair::new();
    let index = pair.build_index();
    assert_eq!(index.name.to_string(), "example:1.0-small");
    assert_eq!(index.architectures, CpuArchitecture::ALL);
    let names = file_names(pair.out.path());
    for name in ["example-1.0-small-amd64.tar", "example-1.0-small-arm64.tar", "example-1.0-small.tar"] {
        assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
    }
    let archive = read_archive(&index.file);
    let outer = read_json(&archive, "index.json");
    let listed = &outer["manifests"][0];
    assert_eq!(outer["manifests"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["mediaType"], "application/vnd.oci.image.index.v1+json");
    assert_eq!(listed["digest"], format!("sha256:{}", index.digest));
    assert_eq!(listed["annotations"]["org.opencontainers.image.ref.name"], "1.0-small");
    for (path, bytes) in archive.files().filter(|(path, _)| path.starts_with("blobs/")) {
        assert_eq!(path.rsplit('/').next(), Some(sha256_hex(bytes).as_str()));
    }
    let inner = read_json(&archive, &blob_path(listed));
    let images = inner["manifests"].as_array().expect("a list");
    for (image, architecture) in images.iter().zip(CpuArchitecture::ALL) {
        assert_eq!(image["platform"]["architecture"], architecture.debian_name());
        let manifest = read_json(&archive, &blob_path(image));
        let config = read_json(&archive, &blob_path(&manifest["config"]));
        assert_eq!(config["architecture"], architecture.debian_name());
        for layer in manifest["layers"].as_array().expect("layers") {
            assert!(archive.file_bytes(&blob_path(layer)).is_some(), "{layer}");
        }
        // The same image as in the archive for that architecture alone.
        let alone = index.name.archive_file_name(architecture);
        let alone = read_json(&read_archive(&pair.out.path().join(alone)), "index.json");
        assert_eq!(alone["manifests"][0]["digest"], image["digest"]);
    }
    assert_eq!(images.len(), 2);
    // Engines that read this list would take its first image on every machine.
    assert!(archive.get("manifest.json").is_none());
    assert_eq!(pair.verify_archive(&archive), Ok(()));
}

#[test]
fn an_index_is_the_same_bytes_twice() {
    let indexes = [ImagePair::new(), ImagePair::new()].map(|pair| {
        let index = pair.build_index();
        std::fs::read(index.file).expect("a file")
    });
    assert_eq!(indexes[0], indexes[1]);
}

#[test]
fn images_of_different_names_are_in_no_index() {
    let pair = ImagePair::new();
    let [first, _] = pair.build_images(IMAGE_CATALOG);
    let [_, other] = pair.build_images(&IMAGE_CATALOG.replace("-small", "-large"));
    let indexes = image_index::write_indexes(&[first, other], pair.out.path()).expect("no index");
    assert_eq!(indexes.len(), 0);
}

#[test]
fn an_index_that_says_something_else_than_its_images_is_refused() {
    let pair = ImagePair::new();
    let archive = read_archive(&pair.build_index().file);
    let refusal = |archive: &FileTree| pair.verify_archive(archive).expect_err("a refusal");
    let swapped = refusal(&with_listed_images(&archive, |images| {
        let first = images[0]["platform"].take();
        images[0]["platform"] = images[1]["platform"].take();
        images[1]["platform"] = first;
    }));
    let expected = "expected an image for linux on arm64, as the index says; found one for linux on amd64";
    assert!(swapped.contains(expected), "{swapped}");
    let twice = refusal(&with_listed_images(&archive, |images| images[1] = images[0].clone()));
    assert!(twice.contains("expected images for different architectures, found 2 for 1"), "{twice}");
    let none = refusal(&with_listed_images(&archive, Vec::clear));
    assert!(none.contains("expected images for different architectures, found 0 for 0"), "{none}");
    let mut with_list = archive.clone();
    with_list.insert_entry("manifest.json", TreeEntry::file(*b"[]")).expect("a path");
    let with_list = refusal(&with_list);
    assert!(with_list.contains("expected no `manifest.json` beside images for several"), "{with_list}");
    let index = read_json(&archive, "index.json");
    let mut damaged = archive;
    let path = blob_path(&index["manifests"][0]);
    damaged.insert_entry(&path, TreeEntry::file(*b"{}")).expect("a path");
    let damaged = refusal(&damaged);
    assert!(damaged.contains(" bytes of the hash sha256:"), "{damaged}");
}

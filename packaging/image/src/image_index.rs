//! Archives of one image for several architectures: an OCI layout whose index names another index, which lists an image for each.
//! Registries and engines choose from that one. They have no list of images for older engines, which would choose wrongly.

use std::path::{Path, PathBuf};

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::file;
use oarlock_formats::tree::{FileTree, TreeEntry};
use oarlock_matrix::CpuArchitecture;

use super::archive::{
    self, BLOB_DIRECTORY, INDEX_FILE, INDEX_MEDIA_TYPE, ImageArchive, LAYOUT_FILE, name_annotations,
};
use super::image_builder::FinishedImage;
use super::name::ImageName;
use serde_json::{Value, json};

/// An archive of one image for several architectures.
pub struct FinishedIndex {
    /// The name and tag.
    pub name: ImageName,
    /// The archive.
    pub file: PathBuf,
    /// The digest that identifies the image in registries.
    pub digest: String,
    /// The architectures.
    pub architectures: Vec<CpuArchitecture>,
    /// The size of the archive in bytes.
    pub bytes: u64,
}

/// Writes an archive for each name that several images have, of all images of that name.
///
/// # Errors
///
/// When the archive of an image cannot be read, or writing fails.
pub fn write_indexes(images: &[FinishedImage], out: &Path) -> Result<Vec<FinishedIndex>, Error> {
    let mut written = Vec::new();
    for (number, first) in images.iter().enumerate() {
        let is_same = |image: &&FinishedImage| image.name == first.name;
        let of_name: Vec<&FinishedImage> = images[number..].iter().filter(is_same).collect();
        if of_name.len() < 2 || images[..number].iter().any(|image| image.name == first.name) {
            continue;
        }
        let read = |image: &&FinishedImage| {
            std::fs::read(&image.file).map_err(|error| Error::from(error).in_file(image.file.display()))
        };
        let archives = of_name.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let ImageArchive { bytes, digest } = join_archives(&first.name, &archives)?;
        let file = out.join(first.name.index_file_name());
        file::write_file(&file, &bytes)?;
        written.push(FinishedIndex {
            name: first.name.clone(),
            file,
            digest,
            architectures: of_name.iter().map(|image| image.architecture).collect(),
            bytes: bytes.len() as u64,
        });
    }
    Ok(written)
}

/// Joins archives of single images. The result only depends on their bytes.
fn join_archives(name: &ImageName, archives: &[Vec<u8>]) -> Result<ImageArchive, Error> {
    let (mut tree, mut seconds, mut listed) = (FileTree::default(), 0, Vec::new());
    for archive in archives {
        let (files, time) = FileTree::from_own_tar(archive)?;
        let index = files.file_bytes(INDEX_FILE).unwrap_or_default();
        let index: Value =
            serde_json::from_slice(index).map_err(|error| Error::new(format!("`{INDEX_FILE}`: {error}")))?;
        for image in index["manifests"].as_array().into_iter().flatten() {
            listed.push(json!({
                "mediaType": image["mediaType"],
                "digest": image["digest"],
                "size": image["size"],
                "platform": image["platform"],
            }));
        }
        let mut blobs = files.entries().filter(|(path, _)| path.starts_with(BLOB_DIRECTORY));
        blobs.try_for_each(|(path, entry)| tree.insert_entry(path, entry.clone()))?;
        seconds = seconds.max(time);
    }
    let inner = archive::index_of(&listed).to_string().into_bytes();
    let digest = sha256_hex(&inner);
    let outer = archive::index_of(&[json!({
        "mediaType": INDEX_MEDIA_TYPE,
        "digest": format!("sha256:{digest}"),
        "size": inner.len(),
        "annotations": name_annotations(name),
    })]);
    tree.insert_entry(&format!("{BLOB_DIRECTORY}/{digest}"), TreeEntry::file(inner))?;
    for (path, value) in [(LAYOUT_FILE, archive::layout_version()), (INDEX_FILE, outer)] {
        tree.insert_entry(path, TreeEntry::file(value.to_string().into_bytes()))?;
    }
    Ok(ImageArchive { bytes: tree.to_tar("", seconds)?, digest })
}

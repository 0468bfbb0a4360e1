//! Compressed layers.

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::tree::FileTree;

use super::images::ImageKind;
use libdeflater::{CompressionLvl, Compressor};

/// A layer as images store it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackedLayer {
    /// The gzip-compressed archive.
    pub bytes: Vec<u8>,
    /// SHA-256 of the compressed archive.
    pub digest: String,
    /// SHA-256 of the uncompressed archive.
    pub unpacked_digest: String,
    /// The uncompressed size, in bytes.
    pub unpacked: u64,
}

impl PackedLayer {
    /// Packs the files of a layer. The same tree always gives the same bytes.
    ///
    /// # Errors
    ///
    /// When a path is too long for the archive format.
    pub fn new(tree: &FileTree, seconds: u64, kind: ImageKind) -> Result<Self, Error> {
        let archive = tree.to_tar("", seconds)?;
        // gzip, because every engine reads it. It stores no name and no time, so the bytes only depend on the archive. Build
        // images are large and rarely downloaded, so they use a level that is ten times as fast and a few percent larger.
        let effort = if kind == ImageKind::Prod { CompressionLvl::best() } else { CompressionLvl::default() };
        let mut packer = Compressor::new(effort);
        let mut bytes = vec![0; packer.gzip_compress_bound(archive.len())];
        let length = packer.gzip_compress(&archive, &mut bytes);
        bytes.truncate(length.map_err(|error| Error::new(format!("packing failed: {error}")))?);
        Ok(Self {
            digest: sha256_hex(&bytes),
            unpacked_digest: sha256_hex(&archive),
            unpacked: archive.len() as u64,
            bytes,
        })
    }
}

//! Layers, packed as images hold them.

use libdeflater::{CompressionLvl, Compressor};

use super::images::ImageKind;
use crate::error::Error;
use crate::tree::FileTree;
use crate::wheel::sha256_hex;

/// A layer as it lies in an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackedLayer {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The hash of those.
    pub digest: String,
    /// The hash of what is packed in them.
    pub unpacked_digest: String,
    /// How many bytes are packed in them.
    pub unpacked: u64,
}

impl PackedLayer {
    /// Packs what a layer adds. The same tree is the same bytes wherever and whenever that is done.
    ///
    /// # Errors
    ///
    /// When a path is longer than archives can say.
    pub fn new(tree: &FileTree, seconds: u64, kind: ImageKind) -> Result<Self, Error> {
        let archive = tree.to_tar("", seconds)?;
        // By gzip, which every engine reads. No name and no time is in it, so that the bytes depend on the archive alone.
        // Compilers are large, and few fetch them: larger by some hundredths, they are packed in a tenth of the time.
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

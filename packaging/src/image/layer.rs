//! Layers, packed as images hold them.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::error::Error;
use crate::tree::Tree;
use crate::wheel::sha256;

/// A layer as it lies in an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The hash of those.
    pub digest: String,
    /// The hash of what is packed in them.
    pub unpacked_digest: String,
    /// How many bytes are packed in them.
    pub unpacked: u64,
}

impl Packed {
    /// Packs what a layer adds. The same tree is the same bytes wherever and whenever that is done.
    ///
    /// # Errors
    ///
    /// When a path is longer than archives can say.
    pub fn new(tree: &Tree, seconds: u64) -> Result<Self, Error> {
        let archive = tree.to_tar("", seconds)?;
        // No name and no time, so that the bytes depend on the archive alone.
        let mut packer = GzBuilder::new().write(Vec::new(), Compression::best());
        packer.write_all(&archive)?;
        let bytes = packer.finish()?;
        Ok(Self {
            digest: sha256(&bytes),
            unpacked_digest: sha256(&archive),
            unpacked: archive.len() as u64,
            bytes,
        })
    }
}

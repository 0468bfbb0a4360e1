//! Compresses files for archives, with a cache: slow compression runs once for each file, not once for each wheel.

use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::digest::sha256_hex;
use crate::error::Error;
use crate::file;
use flate2::{Compression, GzBuilder};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// How much time to spend on making a wheel small.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompressionEffort {
    /// Ordinary deflate compression.
    Usual,
    /// A few percent smaller; takes minutes for a large library.
    Most,
}

/// Compresses files, with an optional cache.
#[derive(Clone, Debug)]
pub struct FilePacker {
    effort: CompressionEffort,
    kept_in: Option<PathBuf>,
}

/// Input per Zopfli run. Zopfli splits its input into few blocks, so a larger input would compress worse.
const ZOPFLI_BLOCK_BYTES: usize = 512 << 10;

/// Smaller files compress too fast to be worth caching.
const MIN_CACHED_BYTES: usize = 256 << 10;

/// The name of the file in each cached archive.
const ARCHIVED_NAME: &str = "file";

impl From<CompressionEffort> for FilePacker {
    fn from(effort: CompressionEffort) -> Self {
        Self { effort, kept_in: None }
    }
}

impl FilePacker {
    /// Adds a cache directory.
    #[must_use]
    pub fn with_cache(self, directory: &Path) -> Self {
        Self { kept_in: Some(directory.to_owned()), ..self }
    }

    /// An archive of one file, whose compressed data can be copied into another archive. It only depends on the file and the
    /// effort.
    pub fn pack_file(&self, bytes: &[u8], is_executable: bool) -> Result<Vec<u8>, Error> {
        let worth = self.effort == CompressionEffort::Most && bytes.len() >= MIN_CACHED_BYTES;
        let Some(directory) = self.kept_in.as_ref().filter(|_| worth) else {
            return self.compress_file(bytes, is_executable);
        };
        let kind = if is_executable { "executable" } else { "plain" };
        let place = directory.join(format!("{}-{kind}.zip", sha256_hex(bytes)));
        if let Ok(kept) = std::fs::read(&place)
            && holds_bytes(&kept, bytes)
        {
            return Ok(kept);
        }
        let packed = self.compress_file(bytes, is_executable)?;
        file::write_file(&place, &packed)?;
        Ok(packed)
    }

    fn compress_file(&self, bytes: &[u8], is_executable: bool) -> Result<Vec<u8>, Error> {
        let failed = |error: ZipError| Error::new(format!("packing failed: {error}"));
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file(ARCHIVED_NAME, zip_options(is_executable, self.effort)).map_err(failed)?;
        for part in bytes.chunks(ZOPFLI_BLOCK_BYTES) {
            writer.write_all(part)?;
        }
        Ok(writer.finish().map_err(failed)?.into_inner())
    }
}

/// Compresses to a reproducible `.gz`.
pub fn compress_gzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

/// True if a cached archive is intact and contains exactly these bytes.
fn holds_bytes(kept: &[u8], bytes: &[u8]) -> bool {
    let mut found = Vec::with_capacity(bytes.len());
    let unpack = |found: &mut Vec<u8>| -> Option<()> {
        let mut archive = ZipArchive::new(Cursor::new(kept)).ok()?;
        archive.by_name(ARCHIVED_NAME).ok()?.take(bytes.len() as u64 + 1).read_to_end(found).ok()?;
        Some(())
    };
    unpack(&mut found).is_some() && found == bytes
}

fn zip_options(is_executable: bool, effort: CompressionEffort) -> SimpleFileOptions {
    /// Zopfli iterations, which follow the nine ordinary levels; more of them gain almost nothing.
    const MAX_ZOPFLI_LEVEL: i64 = 9 + 5;
    let level = match effort {
        CompressionEffort::Usual => 9,
        CompressionEffort::Most => MAX_ZOPFLI_LEVEL,
    };
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(level))
        // The input is already chunked.
        .with_zopfli_buffer(None)
        // The earliest time that the format can express.
        .last_modified_time(DateTime::default())
        .unix_permissions(if is_executable { 0o755 } else { 0o644 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_numbers() -> Vec<u8> {
        (0..70_000).flat_map(|number: u32| (number.wrapping_mul(number) % 977).to_le_bytes()).collect()
    }

    #[test]
    fn what_was_packed_is_not_packed_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let packer = FilePacker::from(CompressionEffort::Most).with_cache(directory.path());
        let packed = packer.pack_file(&sample_numbers(), true).expect("an archive");
        let kept: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").collect();
        let kept = kept[0].as_ref().expect("a file").path();
        assert_eq!(std::fs::read(&kept).expect("a file"), packed);
        let other = packer.compress_file(b"something else", true).expect("an archive");
        for wrong in [&packed[..packed.len() / 2], &other] {
            std::fs::write(&kept, wrong).expect("a file");
            assert_eq!(
                packer.pack_file(&sample_numbers(), true).expect("an archive"),
                packed,
                "what is kept is not trusted"
            );
        }
        assert_eq!(std::fs::read(&kept).expect("a file"), packed, "and is mended");
    }

    #[test]
    fn small_files_and_little_effort_leave_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let usual = FilePacker::from(CompressionEffort::Usual).with_cache(directory.path());
        usual.pack_file(&sample_numbers(), false).expect("an archive");
        FilePacker::from(CompressionEffort::Most)
            .with_cache(directory.path())
            .pack_file(b"few", false)
            .expect("an archive");
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}

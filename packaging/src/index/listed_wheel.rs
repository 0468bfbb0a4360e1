//! Wheels as entries of an index.

use std::path::{Path, PathBuf};

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::WheelMatrix;
use oarlock_matrix::headers::MetadataHeaders;
use oarlock_matrix::wheel_name::WheelName;

use crate::check;

/// A wheel with the facts that an index lists.
#[derive(Clone, Debug)]
pub(super) struct ListedWheel {
    pub(super) name: WheelName,
    /// The file name, which may differ from the canonical form that `name` produces if other tools built the wheel.
    pub(super) file_name: String,
    pub(super) source: WheelSource,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// Its METADATA file.
    pub(super) metadata: Vec<u8>,
    pub(super) requires_python: Option<String>,
    /// The reason why it was yanked: installers only accept it if it is pinned exactly.
    pub(super) yanked: Option<String>,
}

/// The source of a wheel's bytes.
#[derive(Clone, Debug)]
pub(super) enum WheelSource {
    File(PathBuf),
    /// Generated for the index.
    Made(Vec<u8>),
}

impl ListedWheel {
    /// Reads and checks a wheel; if the matrix has its distribution, also against its row.
    pub(super) fn read_wheel(file: &Path, matrix: &WheelMatrix) -> Result<Self, Error> {
        let file_name = file.file_name().and_then(|name| name.to_str());
        let file_name = file_name.ok_or_else(|| Error::new("expected the name of a wheel in UTF-8"))?;
        let name: WheelName = file_name.parse()?;
        let bytes = std::fs::read(file)?;
        let wheel = Wheel::from_bytes(&bytes)?;
        let metadata = wheel.metadata_file("METADATA")?.to_vec();
        let of_wheel = MetadataHeaders::parse_metadata(&metadata)?;
        of_wheel.check_wheel_name(&name)?;
        let size = bytes.len() as u64;
        if let Some(row) = super::find_row(matrix, &name) {
            check::check_wheel_contents(matrix, row, &name, &wheel, size)?;
        }
        Ok(Self {
            size,
            sha256: oarlock_formats::digest::sha256_hex(&bytes),
            requires_python: of_wheel.single_value("Requires-Python").ok().map(ToOwned::to_owned),
            yanked: None,
            file_name: file_name.to_owned(),
            source: WheelSource::File(file.to_owned()),
            metadata,
            name,
        })
    }
}

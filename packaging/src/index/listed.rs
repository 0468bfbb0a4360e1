//! A wheel as an index lists it.

use std::path::{Path, PathBuf};

use crate::check;
use crate::error::Error;
use crate::headers::Headers;
use crate::matrix::Matrix;
use crate::matrix::wheel_name::WheelName;
use crate::wheel::Wheel;

/// A wheel as an index lists it.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) name: WheelName,
    /// What the file is called, which is not what `name` makes of it where other tools called it so.
    pub(super) file_name: String,
    pub(super) source: Source,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// What is said about the wheel in it.
    pub(super) metadata: Vec<u8>,
    pub(super) requires_python: Option<String>,
    /// Why nobody should install it any more who does not ask for just this one.
    pub(super) yanked: Option<String>,
}

/// Where the bytes of a wheel are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// They were made for the index.
    Made(Vec<u8>),
}

impl Listed {
    /// Reads and checks a wheel; one of a distribution of the matrix is held to its row.
    pub(super) fn read(file: &Path, matrix: &Matrix) -> Result<Self, Error> {
        let file_name = file.file_name().and_then(|name| name.to_str());
        let file_name = file_name.ok_or_else(|| Error::new("expected the name of a wheel in UTF-8"))?;
        let name: WheelName = file_name.parse()?;
        let bytes = std::fs::read(file)?;
        let wheel = Wheel::read_bytes(&bytes)?;
        let metadata = wheel.information("METADATA")?.to_vec();
        let of_wheel = Headers::read(&metadata)?;
        of_wheel.check(&name)?;
        let size = bytes.len() as u64;
        if let Some(row) = super::row(matrix, &name) {
            check::contents(matrix, row, &name, &wheel, size)?;
        }
        Ok(Self {
            size,
            sha256: crate::wheel::sha256(&bytes),
            requires_python: of_wheel.get("Requires-Python").ok().map(ToOwned::to_owned),
            yanked: None,
            file_name: file_name.to_owned(),
            source: Source::File(file.to_owned()),
            metadata,
            name,
        })
    }
}

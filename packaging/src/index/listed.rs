//! A wheel as an index lists it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use pep440_rs::Version;

use crate::check;
use crate::error::Error;
use crate::matrix::Matrix;
use crate::matrix::wheel_name::{WheelName, WheelVersion, normal};
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
        let (distribution, version) = (of_wheel.get("Name")?, of_wheel.get("Version")?);
        let is_version = Version::from_str(version).is_ok_and(|it| name.version == WheelVersion::Valid(it));
        if normal(distribution) != name.distribution || !is_version {
            return Err(Error::new(format!(
                "expected what its name says, {}=={}; found {distribution}=={version} in its METADATA",
                name.distribution, name.version
            )));
        }
        let size = bytes.len() as u64;
        if let Some(row) = super::row(matrix, &name) {
            check::contents(matrix, row, &name, &wheel, size)?;
        }
        Ok(Self {
            size,
            sha256: crate::wheel::sha256(&bytes),
            requires_python: of_wheel.0.get("Requires-Python").cloned(),
            yanked: None,
            file_name: file_name.to_owned(),
            source: Source::File(file.to_owned()),
            metadata,
            name,
        })
    }
}

/// The first lines of a METADATA, each with a name and a value.
struct Headers(BTreeMap<String, String>);

impl Headers {
    fn read(metadata: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(metadata).map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
        let lines = text.lines().take_while(|line| !line.is_empty());
        let pairs = lines.filter_map(|line| line.split_once(": "));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    fn get(&self, name: &str) -> Result<&str, Error> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| Error::new(format!("expected `{name}` in METADATA, found none")))
    }
}

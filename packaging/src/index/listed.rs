//! A wheel as an index lists it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::matrix::wheel_name::WheelName;
use crate::wheel::Wheel;

/// A wheel as an index lists it.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) name: WheelName,
    /// What follows the tags in the name of a variant.
    pub(super) variant: Option<String>,
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
    /// What the file is called.
    pub(super) fn file_name(&self) -> String {
        let name = self.name.to_string();
        match (&self.variant, name.strip_suffix(".whl")) {
            (Some(label), Some(stem)) => format!("{stem}-{label}.whl"),
            _ => name,
        }
    }

    /// Reads and checks a wheel.
    pub(super) fn read(file: &Path) -> Result<Self, Error> {
        let name = file.file_name().and_then(|name| name.to_str());
        let name: WheelName =
            name.ok_or_else(|| Error::new("expected the name of a wheel in UTF-8"))?.parse()?;
        let bytes = std::fs::read(file)?;
        let wheel = Wheel::read_bytes(&bytes)?;
        let metadata = wheel.information("METADATA")?.to_vec();
        let of_wheel = Headers::read(&metadata)?;
        let said = format!(
            "{}=={}",
            of_wheel.get("Name")?.replace('_', "-").to_lowercase(),
            of_wheel.get("Version")?
        );
        let named = format!("{}=={}", name.distribution, name.version);
        if said != named {
            return Err(Error::new(format!(
                "expected what its name says, {named}; found {said} in its METADATA"
            )));
        }
        Ok(Self {
            size: bytes.len() as u64,
            sha256: crate::wheel::sha256(&bytes),
            requires_python: of_wheel.0.get("Requires-Python").cloned(),
            yanked: None,
            variant: None,
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

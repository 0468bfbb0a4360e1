//! What a wheel says of itself in its METADATA, as far as it is asked here.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use pep440_rs::Version;

use crate::error::Error;
use crate::matrix::wheel_name::{WheelName, WheelVersion, normal};

/// Lines such as `Name: oarlock`, of each name the last.
pub(crate) struct Headers(BTreeMap<String, String>);

impl Headers {
    pub(crate) fn read(metadata: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(metadata).map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
        let lines = text.lines().take_while(|line| !line.is_empty());
        let pairs = lines.filter_map(|line| line.split_once(": "));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    pub(crate) fn get(&self, name: &str) -> Result<&str, Error> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| Error::new(format!("expected `{name}` in METADATA, found none")))
    }

    /// That they are those of a wheel of this name.
    pub(crate) fn check(&self, name: &WheelName) -> Result<(), Error> {
        let (distribution, version) = (self.get("Name")?, self.get("Version")?);
        let is_version = Version::from_str(version).is_ok_and(|it| name.version == WheelVersion::Valid(it));
        if normal(distribution) == name.distribution && is_version {
            return Ok(());
        }
        Err(Error::new(format!(
            "expected what its name says, {}=={}; found {distribution}=={version} in its METADATA",
            name.distribution, name.version
        )))
    }
}

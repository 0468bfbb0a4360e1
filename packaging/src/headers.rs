//! What a wheel says of itself in its METADATA, as far as it is asked here.

use std::str::FromStr as _;

use pep440_rs::Version;

use crate::error::Error;
use crate::matrix::wheel_name::{WheelName, WheelVersion, normal};

/// Lines such as `Name: oarlock`.
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn read(metadata: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(metadata).map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
        let lines = text.lines().take_while(|line| !line.is_empty());
        let pairs = lines.filter_map(|line| line.split_once(": "));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    /// What stands behind a name, of several lines behind the last.
    pub(crate) fn get(&self, name: &str) -> Result<&str, Error> {
        let value = self.0.iter().rev().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        value.ok_or_else(|| Error::new(format!("expected `{name}` in METADATA, found none")))
    }

    /// All lines of some names, which may be written in any case.
    pub(crate) fn all(&self, names: &[&'static str]) -> impl Iterator<Item = String> {
        let known = |name: &str| names.iter().find(|it| it.eq_ignore_ascii_case(name));
        self.0.iter().filter_map(move |(name, value)| Some(format!("{}: {value}", known(name)?)))
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

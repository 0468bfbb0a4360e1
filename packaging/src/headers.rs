//! What a wheel says of itself in its METADATA, as far as it is asked here.

use std::str::FromStr as _;

use pep440_rs::Version;

use crate::error::Error;
use crate::matrix::wheel_name::{WheelName, WheelVersion, normalize_distribution};

/// Lines such as `Name: oarlock`.
pub(crate) struct MetadataHeaders(Vec<(String, String)>);

impl MetadataHeaders {
    pub(crate) fn parse_metadata(metadata: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(metadata).map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
        let lines = text.lines().take_while(|line| !line.is_empty());
        // What reads them elsewhere needs no space there, and takes names in any case.
        let pairs = lines.filter_map(|line| line.split_once(':'));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    /// What stands behind a name that is there once: of several some take the first and others the last.
    pub(crate) fn single_value(&self, name: &str) -> Result<&str, Error> {
        let mut found = self.0.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Ok(value),
            (None, _) => Err(Error::new(format!("expected `{name}` in METADATA, found none"))),
            (Some(_), Some(_)) => {
                Err(Error::new(format!("expected one `{name}` in METADATA, found several")))
            }
        }
    }

    /// All lines of some names, which may be written in any case.
    pub(crate) fn lines_named(&self, names: &[&'static str]) -> impl Iterator<Item = String> {
        let known = |name: &str| names.iter().find(|it| it.eq_ignore_ascii_case(name));
        self.0.iter().filter_map(move |(name, value)| Some(format!("{}: {value}", known(name)?)))
    }

    /// That they are those of a wheel of this name.
    pub(crate) fn check_wheel_name(&self, name: &WheelName) -> Result<(), Error> {
        let (distribution, version) = (self.single_value("Name")?, self.single_value("Version")?);
        let is_version = Version::from_str(version).is_ok_and(|it| name.version == WheelVersion::Valid(it));
        if normalize_distribution(distribution) == name.distribution && is_version {
            return Ok(());
        }
        Err(Error::new(format!(
            "expected what its name says, {}=={}; found {distribution}=={version} in its METADATA",
            name.distribution, name.version
        )))
    }
}

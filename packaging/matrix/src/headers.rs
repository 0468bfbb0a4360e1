//! Headers of a wheel's METADATA file, as far as they are needed here.

use std::str::FromStr as _;

use oarlock_formats::error::Error;

use crate::wheel_name::{WheelName, WheelVersion, normalize_distribution};
use pep440_rs::Version;

/// Headers as name and value, such as `Name: oarlock`.
pub struct MetadataHeaders(Vec<(String, String)>);

impl MetadataHeaders {
    /// Reads the headers of a METADATA file, up to the first empty line.
    pub fn parse_metadata(metadata: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(metadata).map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
        let lines = text.lines().take_while(|line| !line.is_empty());
        // Other readers accept names in any case and no space after the colon.
        let pairs = lines.filter_map(|line| line.split_once(':'));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    /// The value of a header that occurs exactly once: if it were repeated, some readers would use the first value and others
    /// the last.
    pub fn single_value(&self, name: &str) -> Result<&str, Error> {
        let mut found = self.0.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Ok(value),
            (None, _) => Err(Error::new(format!("expected `{name}` in METADATA, found none"))),
            (Some(_), Some(_)) => {
                Err(Error::new(format!("expected one `{name}` in METADATA, found several")))
            }
        }
    }

    /// All lines with these header names, in any case.
    pub fn lines_named(&self, names: &[&'static str]) -> impl Iterator<Item = String> {
        let known = |name: &str| names.iter().find(|it| it.eq_ignore_ascii_case(name));
        self.0.iter().filter_map(move |(name, value)| Some(format!("{}: {value}", known(name)?)))
    }

    /// Checks that name and version match the wheel's file name.
    pub fn check_wheel_name(&self, name: &WheelName) -> Result<(), Error> {
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

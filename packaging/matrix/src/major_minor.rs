//! Versions of the form `major.minor`.

use std::fmt;
use std::str::FromStr;

use oarlock_formats::error::Error;

use serde::{Deserialize, Deserializer};

/// A version such as 12.4 of CUDA or 3.11 of Python.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct MajorMinor {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot; 0 if there is none.
    pub minor: u32,
}

impl FromStr for MajorMinor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        let number = major.parse().ok().zip(minor.parse().ok()).map(|(major, minor)| Self { major, minor });
        number.ok_or_else(|| Error::new(format!("expected a number such as `12` or `12.4`, found `{text}`")))
    }
}

impl fmt::Display for MajorMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl<'de> Deserialize<'de> for MajorMinor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

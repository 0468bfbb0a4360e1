//! Versions of libraries and of the contract, and ranges of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Numbers separated by dots, such as the `12.3.1` of `libfoo.so.12.3.1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u64>);

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        };
        let numbers = text.split('.').map(number).collect::<Option<_>>();
        numbers.map(Self).ok_or_else(|| "expected a version such as `12.2`".to_owned())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

const COMPARISONS: [(&str, Comparison); 5] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
    ("=", Comparison::Equal),
];

/// Bounds on a version, all of which must hold, written `>=12.2, <13`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VersionRange(Vec<(Comparison, Version)>);

impl VersionRange {
    /// True if `version` lies in the range.
    ///
    /// The comparison ends with the last known number: the name `libfoo.so.12` does not reveal the minor version, so it satisfies
    /// `>=12.2` but not `>=13`. Otherwise, every library whose file name has only a major version would be refused.
    pub fn contains(&self, version: &Version) -> bool {
        self.0.iter().all(|(comparison, bound)| {
            let known = version.0.len().min(bound.0.len());
            let undecided = version.0.len() < bound.0.len() && version.0[..known] == bound.0[..known];
            let shared = version.0[..known].cmp(&bound.0[..known]);
            undecided
                || match comparison {
                    Comparison::AtLeast => version >= bound,
                    Comparison::Above => version > bound,
                    Comparison::Below => version < bound,
                    // `<=12` and `=12` mean all of 12, so 12.3 is in both.
                    Comparison::AtMost => shared.is_le(),
                    Comparison::Equal => shared.is_eq(),
                }
        })
    }
}

impl FromStr for VersionRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bound = |part: &str| {
            let part = part.trim();
            let found = COMPARISONS.iter().find_map(|(sign, c)| Some((*c, part.strip_prefix(sign)?)));
            let (comparison, version) = found.ok_or("expected a range such as `>=12.2, <13`")?;
            Ok((comparison, version.trim().parse()?))
        };
        text.split(',').map(bound).collect::<Result<_, String>>().map(Self)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (comparison, version)) in self.0.iter().enumerate() {
            let sign = COMPARISONS.iter().find(|(_, c)| c == comparison).map_or("", |(sign, _)| sign);
            write!(f, "{}{sign}{version}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for VersionRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<VersionRange> for String {
    fn from(range: VersionRange) -> Self {
        range.to_string()
    }
}

/// The versions of the contract that one side understands, written `1.0..1.3`; both ends are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContractRange {
    /// The major version. Different ones are never compatible.
    pub major: u32,
    /// The oldest minor version.
    pub min_minor: u32,
    /// The newest minor version.
    pub max_minor: u32,
}

impl ContractRange {
    /// True if there is a version that both sides understand.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.major == other.major && self.min_minor <= other.max_minor && other.min_minor <= self.max_minor
    }
}

impl FromStr for ContractRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let version = |text: &str| -> Option<(u32, u32)> {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let range = || {
            let (low, high) = text.split_once("..").unwrap_or((text, text));
            let ((major, min_minor), (high_major, max_minor)) = (version(low)?, version(high)?);
            (major == high_major && min_minor <= max_minor).then_some(Self { major, min_minor, max_minor })
        };
        range().ok_or_else(|| "expected versions of one major such as `1.0..1.3`".to_owned())
    }
}

impl fmt::Display for ContractRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, min_minor, max_minor } = self;
        write!(f, "{major}.{min_minor}")?;
        if min_minor == max_minor { Ok(()) } else { write!(f, "..{major}.{max_minor}") }
    }
}

impl TryFrom<String> for ContractRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ContractRange> for String {
    fn from(range: ContractRange) -> Self {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in_range(range: &str, version: &str) -> bool {
        range.parse::<VersionRange>().unwrap().contains(&version.parse().unwrap())
    }

    #[test]
    fn a_version_is_compared_number_by_number_and_only_as_far_as_it_is_known() {
        assert!(is_in_range(">=12.2", "12.10"));
        assert!(is_in_range(">=12.2", "12.2.0"));
        assert!(is_in_range(">=12.2", "12"));
        assert!(!is_in_range(">=12.2", "12.1.9"));
        assert!(!is_in_range(">=12.2", "11"));
        assert!(is_in_range(">=12.2, <13", "12.9"));
        assert!(!is_in_range(">=12.2, <13", "13.0"));
        assert!(is_in_range("=12", "12.3"));
        assert!(is_in_range("<=12", "12.3"));
        assert!(!is_in_range("<=12", "13"));
    }

    #[test]
    fn text_that_is_no_range_is_an_error_and_a_range_survives_its_text_form() {
        for text in ["", "12", ">=", ">=a", ">=1..2", ">=1,", ">=+1", ">=99999999999999999999999"] {
            assert!(text.parse::<VersionRange>().is_err(), "{text}");
        }
        assert_eq!(">= 1.2,<3".parse::<VersionRange>().unwrap().to_string(), ">=1.2, <3");
    }

    #[test]
    fn contract_ranges_overlap_only_within_one_major() {
        let range = |text: &str| text.parse::<ContractRange>().unwrap();
        assert!(range("1.0..1.3").overlaps(&range("1.3..1.9")));
        assert!(!range("1.0..1.3").overlaps(&range("1.4..1.9")));
        assert!(!range("1.0..1.3").overlaps(&range("2.0..2.3")));
        assert_eq!(range("1.2").to_string(), "1.2");
        for text in ["", "1", "1.0..2.0", "1.3..1.0", "a.b", "1.0...1.3"] {
            assert!(text.parse::<ContractRange>().is_err(), "{text}");
        }
    }
}

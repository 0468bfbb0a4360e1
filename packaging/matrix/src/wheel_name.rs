//! Wheel file names: distribution, version and tags, each with its own syntax.

use std::fmt;
use std::str::FromStr;

use oarlock_formats::error::Error;

use pep440_rs::Version;

/// A name of the form `{distribution}-{version}-{python}-{abi}-{platform}.whl`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WheelName {
    /// In its usual spelling, such as `oarlock-cuda12`.
    pub distribution: String,
    /// The version or a historical word.
    pub version: WheelVersion,
    /// Interpreter and ABI, such as `cp311-abi3`.
    pub python: String,
    /// The platform tag, such as `manylinux_2_28_x86_64`.
    pub platform: String,
}

/// The version field of a wheel name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WheelVersion {
    /// A version as defined by PEP 440.
    Valid(Version),
    /// A word that was published in place of a version. pip rejects such names.
    Word(String),
}

impl WheelName {
    /// True if pip accepts the name.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        matches!(self.version, WheelVersion::Valid(_))
    }
}

impl fmt::Display for WheelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid(version) => version.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { distribution, version, python, platform } = self;
        write!(f, "{}-{version}-{python}-{platform}.whl", distribution.replace('-', "_"))
    }
}

/// Parses a file name, possibly one of another tool: with a build number, several tags per field, or a distribution that is not
/// in normalized form.
impl FromStr for WheelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unexpected =
            || Error::new(format!("expected a name such as `example-1.0-py3-none-any.whl`, found `{text}`"));
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-_.+!".contains(&it);
        let stem = text.strip_suffix(".whl").filter(|stem| stem.bytes().all(is_letter));
        let parts: Vec<&str> = stem.ok_or_else(unexpected)?.split('-').collect();
        let (name, number, tags) = match parts[..] {
            [name, number, ref tags @ ..] if tags.len() == 3 => (name, number, tags),
            [name, number, build, ref tags @ ..]
                if tags.len() == 3 && build.starts_with(|it: char| it.is_ascii_digit()) =>
            {
                (name, number, tags)
            }
            _ => return Err(unexpected()),
        };
        let are_tags = |tags: &str| tags.split('.').all(|tag| is_word(tag, b"_"));
        if !tags.iter().all(|tags| are_tags(tags)) {
            return Err(unexpected());
        }
        Ok(Self {
            distribution: parse_distribution(&normalize_distribution(name)).map_err(|_| unexpected())?,
            version: WheelVersion::Valid(Version::from_str(number).map_err(|_| unexpected())?),
            python: format!("{}-{}", tags[0], tags[1]),
            platform: tags[2].to_owned(),
        })
    }
}

/// Normalizes a distribution name as indexes do.
pub fn normalize_distribution(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// True for a non-empty text of lowercase letters, digits and `others`.
pub fn is_word(text: &str, others: &[u8]) -> bool {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || others.contains(&it);
    !text.is_empty() && text.bytes().all(is_letter)
}

/// Parses a version, which must be in normalized form.
pub fn parse_version(text: &str) -> Result<Version, Error> {
    let found = || format!("expected a version such as `1.2.3` or `1.2.3+cuda12`, found `{text}`");
    let version = Version::from_str(text).map_err(|_| Error::new(found()))?;
    if version.to_string() == text {
        return Ok(version);
    }
    Err(Error::new(format!("expected the version as it is written in names, `{version}`; found `{text}`")))
}

/// Parses a distribution, which must be in normalized form.
pub fn parse_distribution(text: &str) -> Result<String, Error> {
    if text.split('-').all(|word| is_word(word, b"")) {
        return Ok(text.to_owned());
    }
    Err(Error::new(format!(
        "expected a distribution of lower-case letters and digits with single `-` between, found `{text}`"
    )))
}

/// Parses an interpreter tag and an ABI tag that fit each other.
pub fn parse_python_tags(text: &str) -> Result<String, Error> {
    if text
        .split_once('-')
        .is_some_and(|(interpreter, abi)| is_interpreter(interpreter) && is_abi(interpreter, abi))
    {
        return Ok(text.to_owned());
    }
    Err(Error::new(format!(
        "expected an interpreter and its ABI such as `cp311-abi3`, `cp314-cp314t` or `py3-none`, found `{text}`"
    )))
}

/// True for a tag such as `py3` or `cp311`.
fn is_interpreter(text: &str) -> bool {
    let version = text.strip_prefix("cp").or_else(|| text.strip_prefix("py"));
    version.is_some_and(|digits| (1..=3).contains(&digits.len()) && is_number(digits))
}

/// True for `none`, the stable ABI, or the ABI of one interpreter with build flags, such as `cp27mu` and `cp314t`.
fn is_abi(interpreter: &str, abi: &str) -> bool {
    let letters = abi.strip_prefix(interpreter);
    let of_one =
        interpreter.starts_with("cp") && letters.is_some_and(|it| matches!(it, "" | "m" | "mu" | "t"));
    let stable = interpreter.starts_with("cp3") && matches!(abi, "abi3" | "abi3.abi3t");
    abi == "none" || of_one || stable
}

/// Parses a platform tag such as `linux_x86_64`, `manylinux_2_28_x86_64`, `win_amd64` or `any`.
pub fn parse_platform_tag(text: &str) -> Result<String, Error> {
    let families = ["linux_", "manylinux_", "musllinux_", "macosx_", "win_"];
    let is_known = families.iter().any(|family| text.starts_with(family))
        && text.split('_').all(|word| is_word(word, b""));
    let has_versions = !text.starts_with("manylinux_") && !text.starts_with("musllinux_")
        || text.split('_').skip(1).take(2).filter(|it| is_number(it)).count() == 2;
    if text == "any" || text == "win32" || is_known && has_versions {
        return Ok(text.to_owned());
    }
    Err(Error::new(format!(
        "expected the tag of a platform such as `manylinux_2_28_x86_64` or `win_amd64`, found `{text}`"
    )))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_all_its_parts() {
        let name = WheelName {
            distribution: "oarlock-cuda12".into(),
            version: WheelVersion::Valid(parse_version("1.2.3").expect("a version")),
            python: "py3-none".into(),
            platform: "manylinux_2_28_x86_64".into(),
        };
        assert_eq!(name.to_string(), "oarlock_cuda12-1.2.3-py3-none-manylinux_2_28_x86_64.whl");
    }

    #[test]
    fn versions_are_as_they_stand_in_names() {
        for good in ["1.5.0", "2.2.1.post112", "0.0.0", "2.3.0rc0", "0.1.0+cuda12.mkl", "1.0.dev3", "1!2.0"] {
            assert!(parse_version(good).is_ok(), "{good}");
        }
        for bad in ["latest", "", "1.0-1", "1.0.RC1", "v1.0", "1.0+cuda-12", "1..0", "1.0 "] {
            assert!(parse_version(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tags_of_python_fit_each_other() {
        for good in
            ["cp311-abi3", "cp27-cp27mu", "cp37-cp37m", "cp314-cp314t", "cp315-abi3.abi3t", "py3-none"]
        {
            assert!(parse_python_tags(good).is_ok(), "{good}");
        }
        for bad in [
            "cp311",
            "cp311-cp312",
            "py3-py3",
            "cp27-abi3",
            "cp3111-none",
            "pp39-none",
            "cp-none",
            "cp311-abi3-x",
        ] {
            assert!(parse_python_tags(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_other_tools_gave_are_read() {
        for (file, distribution, version) in [
            (
                "zope.interface-8.7-cp311-cp311-manylinux1_x86_64.manylinux2014_x86_64.whl",
                "zope-interface",
                "8.7",
            ),
            ("PyYAML-6.0.3-2-cp311-cp311-win_amd64.whl", "pyyaml", "6.0.3"),
            ("six-1.17.0-py2.py3-none-any.whl", "six", "1.17.0"),
            ("some_Name-1.0+Local-1-py3-none-any.whl", "some-name", "1.0+local"),
        ] {
            let name = WheelName::from_str(file).expect(file);
            assert_eq!(
                (name.distribution.as_str(), name.version.to_string().as_str()),
                (distribution, version)
            );
        }
        for file in [
            "x-1.0-py3-none-any.zip",
            "x-1.0-any.whl",
            "x-1.0-b-py3-none-any.whl",
            "x-1.0-py3-none-any-label.whl",
            "x-one-py3-none-any.whl",
            "x-1.0-py3-none-.whl",
            "é-1.0-py3-none-any.whl",
            "-1.0-py3-none-any.whl",
            "x-1.0-1\"-py3-none-any.whl",
            "x- 1.0-py3-none-any.whl",
        ] {
            assert!(WheelName::from_str(file).is_err(), "{file}");
        }
    }

    #[test]
    fn platforms_are_named_as_pip_names_them() {
        for good in [
            "linux_x86_64",
            "manylinux_2_17_aarch64",
            "musllinux_1_2_x86_64",
            "macosx_10_6_intel",
            "win_amd64",
            "any",
        ] {
            assert!(parse_platform_tag(good).is_ok(), "{good}");
        }
        for bad in ["linux-x86_64", "manylinux_x86_64", "Linux_x86_64", "windows", "", "win__amd64"] {
            assert!(parse_platform_tag(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn distributions_are_as_indexes_list_them() {
        assert!(parse_distribution("oarlock-cuda12").is_ok());
        for bad in ["Oarlock", "oarlock_cuda12", "oarlock--x", "-x", "", "x.y"] {
            assert!(parse_distribution(bad).is_err(), "{bad}");
        }
    }
}

//! The version of a plugin, as wheels and Debian write it.

use oarlock_formats::error::Error;

/// The words for versions before a release, as plugins and as Python write them.
const PRERELEASES: [(&str, &str); 3] = [("alpha", "a"), ("beta", "b"), ("rc", "rc")];

/// The revision of the Debian package, which this program makes the only one.
const DEBIAN_REVISION: &str = "1";

/// A version of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageVersion {
    /// Numbers with dots between them.
    release: String,
    /// Such as `rc` and `1`.
    prerelease: Option<(&'static str, &'static str, String)>,
}

impl PackageVersion {
    /// Reads a version such as `1.2.3` or `1.2.3-rc.1`.
    pub(crate) fn parse_version(text: &str) -> Result<Self, Error> {
        let is_number = |part: &str| {
            !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let (release, after) =
            text.split_once('-').map_or((text, None), |(release, after)| (release, Some(after)));
        let prerelease = after.map(|after| {
            let (word, number) = after.split_once('.').unwrap_or((after, "0"));
            let known = PRERELEASES.iter().find(|(ours, _)| *ours == word).filter(|_| is_number(number));
            known.map(|(ours, python)| (*ours, *python, number.to_owned()))
        });
        match prerelease {
            _ if !release.split('.').all(is_number) => {}
            Some(None) => {}
            prerelease => return Ok(Self { release: release.to_owned(), prerelease: prerelease.flatten() }),
        }
        Err(Error::new(format!(
            "expected a version that wheels and Debian can have, such as `1.2.3` or `1.2.3-rc.1`; the plugin says `{}`",
            text.escape_debug()
        )))
    }

    /// As a wheel has it, such as `1.2.3rc1`.
    pub(crate) fn python(&self) -> String {
        let prerelease = self.prerelease.as_ref().map(|(_, word, number)| format!("{word}{number}"));
        self.release.clone() + &prerelease.unwrap_or_default()
    }

    /// As a Debian package has it, such as `1.2.3~rc1-1`.
    pub(crate) fn debian(&self) -> String {
        let prerelease = self.prerelease.as_ref().map(|(word, _, number)| format!("~{word}{number}"));
        format!("{}{}-{DEBIAN_REVISION}", self.release, prerelease.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_written_as_each_kind_of_package_wants_it() {
        for (text, python, debian) in [
            ("1.2.3", "1.2.3", "1.2.3-1"),
            ("0.1", "0.1", "0.1-1"),
            ("2.0.0-rc.1", "2.0.0rc1", "2.0.0~rc1-1"),
            ("2.0.0-alpha", "2.0.0a0", "2.0.0~alpha0-1"),
        ] {
            let version = PackageVersion::parse_version(text).expect(text);
            assert_eq!((version.python(), version.debian()), (python.to_owned(), debian.to_owned()));
        }
        for text in ["", "1.", "v1", "1.2-dev", "1.2-rc.x", "1.2+local", "1..2", "1.2-rc.1.2"] {
            assert!(PackageVersion::parse_version(text).is_err(), "{text}");
        }
    }
}

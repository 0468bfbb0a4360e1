//! The `Release` file of a repository.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use oarlock_formats::date;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::openpgp::OpenPgpKey;

use super::{PackageLists, join_words};

/// The metadata of a suite.
#[derive(Clone, Debug)]
pub struct SuiteRelease {
    /// The name that clients use, such as `stable`.
    pub suite: String,
    /// The permanent name.
    pub codename: String,
    /// The publisher.
    pub origin: String,
    /// The address where it will be published.
    pub host: String,
    /// Its timestamp, in seconds since 1970.
    pub made: u64,
    /// Its expiration time (`Valid-Until`), after which clients reject it.
    pub ends: u64,
}

impl SuiteRelease {
    /// Checks that it is valid now and that the keys can sign it.
    ///
    /// # Errors
    ///
    /// When it is dated in the future or expired, a key is expired, or a field is invalid.
    pub fn check_usable(&self, keys: &[OpenPgpKey], now: u64) -> Result<(), Error> {
        for (what, name) in [("suite", &self.suite), ("codename", &self.codename)] {
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.+".contains(&byte);
            if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.bytes().all(is_plain) {
                return Err(Error::new(format!(
                    "expected a {what} such as `stable`, found `{}`",
                    name.escape_debug()
                )));
            }
        }
        if self.origin.trim().is_empty() || self.origin.contains(char::is_control) {
            let found = self.origin.escape_debug();
            return Err(Error::new(format!("expected an origin such as `Oarlock`, found `{found}`")));
        }
        let is_plain = |it: char| it.is_ascii_graphic();
        let is_served = ["http://", "https://", "file:/"].iter().any(|scheme| self.host.starts_with(scheme));
        if !is_served || !self.host.chars().all(is_plain) {
            return Err(Error::new(format!(
                "expected an address such as `https://example.org/apt`, found `{}`",
                self.host.escape_debug()
            )));
        }
        let (made, ends) = (date::format_rfc2822(self.made), date::format_rfc2822(self.ends));
        if self.made > now {
            return Err(Error::new(format!(
                "expected a repository that is made by now, found one of {made}"
            )));
        }
        if self.ends <= now {
            return Err(Error::new(format!(
                "expected a repository that apt takes now, found one of {made} that ends on {ends}; it may be valid for longer"
            )));
        }
        for (number, key) in keys.iter().enumerate() {
            let name = key.fingerprint_hex();
            if keys[..number].iter().any(|other| other.fingerprint_hex() == name) {
                return Err(Error::new(format!("expected each key once, found {name} twice")));
            }
            if let Some(end) = key.expiration_time().filter(|end| *end <= now) {
                let (key, end) = (key.fingerprint_hex(), date::format_rfc2822(end));
                return Err(Error::new(format!(
                    "expected a key that signs now, found that {key} ended on {end}"
                )));
            }
        }
        Ok(())
    }

    /// The directory of its lists.
    pub(super) fn suite_directory(&self) -> String {
        format!("dists/{}", self.suite)
    }

    pub(super) fn to_paragraph(
        &self,
        components: &BTreeSet<&str>,
        architectures: &BTreeSet<&str>,
        lists: &PackageLists,
    ) -> ControlParagraph {
        let mut hashes = String::new();
        for (path, bytes) in lists {
            // Writing to a `String` cannot fail.
            _ = write!(hashes, "\n{} {} {path}", sha256_hex(bytes), bytes.len());
        }
        let mut paragraph = ControlParagraph::default();
        for (name, value) in [
            ("Origin", &*self.origin),
            ("Label", &*self.origin),
            ("Suite", &*self.suite),
            ("Codename", &*self.codename),
            ("Date", &*date::format_rfc2822(self.made)),
            ("Valid-Until", &*date::format_rfc2822(self.ends)),
            ("Acquire-By-Hash", "yes"),
            ("Architectures", &*join_words(architectures)),
            ("Components", &*join_words(components)),
            ("SHA256", &*hashes),
        ] {
            paragraph.set(name, value);
        }
        paragraph
    }
}

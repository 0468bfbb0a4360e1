//! What a repository says of itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{PackageLists, join_words};
use crate::date;
use crate::deb::control::ControlParagraph;
use crate::error::Error;
use crate::openpgp::OpenPgpKey;
use crate::wheel::sha256_hex;

/// What a repository says of itself.
#[derive(Clone, Debug)]
pub struct SuiteRelease {
    /// What those who use it call it, such as `stable`.
    pub suite: String,
    /// What it is called beside that for as long as it exists.
    pub codename: String,
    /// Who made it.
    pub origin: String,
    /// The address at which it will be.
    pub host: String,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// From when on nobody takes it for the newest any more.
    pub ends: u64,
}

impl SuiteRelease {
    /// That it can be used now, and that keys can sign it.
    ///
    /// # Errors
    ///
    /// When it is made in the future, has ended, or a key has; or when a word is none that may stand there.
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

    /// Where what it lists lies.
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
            // Writing to a text cannot fail.
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

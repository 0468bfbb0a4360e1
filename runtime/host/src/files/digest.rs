//! SHA-256 of plugin files, and the administrator's allow-list.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{Refusal, RefusalReason};

/// The piece size for reading a file while it is hashed.
const HASH_CHUNK: usize = 1 << 16;

/// The SHA-256 of a file. Its text form is 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Hashes bytes in memory.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes the rest of a stream, without storing it in memory.
    pub(crate) fn hash_reader(mut source: impl Read) -> io::Result<Self> {
        let (mut hash, mut piece) = (Sha256::new(), vec![0; HASH_CHUNK]);
        loop {
            match source.read(&mut piece) {
                Ok(0) => return Ok(Self(hash.finalize().into())),
                Ok(size) => hash.update(&piece[..size]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text of a digest is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidDigest;

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a SHA-256 as 64 hexadecimal digits, with or without `sha256:` before them")
    }
}

impl std::error::Error for InvalidDigest {}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let pairs = digits.chunks(2).map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        });
        let bytes: Vec<u8> = pairs.collect::<Option<_>>().ok_or(InvalidDigest)?;
        bytes.try_into().map(Self).map_err(|_| InvalidDigest)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The digests of the only files that may be loaded. An empty list allows every file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(BTreeSet<Digest>);

impl AllowList {
    /// True if every file may be loaded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a file that a non-empty list does not contain.
    pub fn check_digest(&self, path: &Path, digest: Digest) -> Result<(), Refusal> {
        if self.0.is_empty() || self.0.contains(&digest) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalReason::NotAllowed,
            path,
            "a file whose hash is on the allow-list",
            format!("`sha256:{digest}`"),
            "add that hash to `allow` under `[plugins]` in the configuration if you trust the file",
        ))
    }
}

impl FromIterator<Digest> for AllowList {
    fn from_iter<I: IntoIterator<Item = Digest>>(digests: I) -> Self {
        Self(digests.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_the_published_one_and_survives_its_text_form() {
        let digest = Digest::hash_bytes(b"abc");
        assert_eq!(digest.to_string(), OF_ABC);
        assert_eq!(OF_ABC.parse(), Ok(digest));
        assert_eq!(Digest::hash_reader(&b"abc"[..]).unwrap(), digest);
        assert_eq!(format!("sha256:{}", OF_ABC.to_uppercase()).parse(), Ok(digest));
    }

    #[test]
    fn text_that_is_not_a_digest_is_an_error() {
        for text in ["", "sha256:", "zz", &OF_ABC[1..], &format!("{OF_ABC}0"), &format!("{OF_ABC}00"), "é"] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest), "{text}");
        }
    }

    #[test]
    fn an_empty_list_allows_all_and_any_entry_refuses_the_rest() {
        let (abc, other) = (Digest::hash_bytes(b"abc"), Digest::hash_bytes(b"other"));
        assert!(AllowList::default().check_digest(Path::new("/x"), other).is_ok());
        let list: AllowList = [abc].into_iter().collect();
        assert!(list.check_digest(Path::new("/x"), abc).is_ok());
        assert_eq!(list.check_digest(Path::new("/x"), other).unwrap_err().reason, RefusalReason::NotAllowed);
    }
}

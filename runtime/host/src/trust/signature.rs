//! The signatures of a manifest: `libfoo.oarlock.sig` beside `libfoo.oarlock.toml`.
//!
//! The file is text: a line that names the format, and a line for each key that signed. A vendor who changes keys signs with the
//! old and the new one, so that users of either can verify.
//!
//! ```text
//! oarlock-signature 1
//! ed25519 FINGERPRINT SIGNATURE
//! ```
//!
//! The message that a key signs is the first line followed by the bytes of the manifest. The line keeps a signature from meaning
//! something else: a vendor's key may also sign other files. A value has one text form only, and nothing is skipped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ed25519_dalek::SIGNATURE_LENGTH;

use crate::files::regular_file::read_start;
use crate::trust::key::{KeyFingerprint, PrivateKey, PublicKey, format_hex, parse_hex};

const SIGNATURE_HEADER: &str = "oarlock-signature 1\n";
const ALGORITHM: &str = "ed25519";
/// Limit on the number of signatures of one file.
const MAX_SIGNATURES: usize = 16;
/// Limit on the size of a file of signatures.
pub(crate) const MAX_SIGNATURE_BYTES: u64 = 8 * 1024;

/// One signature and the key that it claims to be made by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySignature {
    /// The key, as the file has it.
    pub key: KeyFingerprint,
    signature: [u8; SIGNATURE_LENGTH],
}

/// The content of a file of signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestSignatures {
    /// At least one signature, of different keys.
    pub signatures: Vec<KeySignature>,
}

impl KeySignature {
    pub(crate) fn sign_message(message: &[u8], key: &PrivateKey) -> Result<Self, String> {
        Ok(Self { key: key.public_key()?.fingerprint(), signature: key.sign_message(message) })
    }

    /// True if `key` made this signature of `message`.
    pub(crate) fn is_valid(&self, message: &[u8], key: &PublicKey) -> bool {
        self.key == key.fingerprint() && key.has_signed(message, &self.signature)
    }

    /// Parses lines of signatures, at most `most` and at least one.
    pub(crate) fn parse_lines(text: &str, most: usize) -> Result<Vec<Self>, String> {
        let mut signatures = Vec::<Self>::new();
        for line in text.lines() {
            if signatures.len() == most {
                return Err(format!("more than {most} signatures"));
            }
            let words: Vec<&str> = line.split(' ').collect();
            let [ALGORITHM, fingerprint, signature] = words[..] else {
                return Err(format!("a line that is not `{ALGORITHM} FINGERPRINT SIGNATURE`"));
            };
            let digits =
                "a signature whose key and value are not 64 and 128 hexadecimal digits in lower case";
            let is_plain = parse_hex::<32>(fingerprint).is_some();
            let key = fingerprint.parse().ok().filter(|_| is_plain).ok_or(digits)?;
            let signature = parse_hex(signature).ok_or(digits)?;
            if signatures.iter().any(|other| other.key == key) {
                return Err(format!("two signatures by the key {key}"));
            }
            signatures.push(Self { key, signature });
        }
        if signatures.is_empty() { Err("no signature".to_owned()) } else { Ok(signatures) }
    }

    pub(crate) fn to_line(&self) -> String {
        format!("{ALGORITHM} {} {}\n", self.key, format_hex(&self.signature))
    }
}

impl ManifestSignatures {
    /// The path of the signatures for the plugin at `library`.
    pub fn path_beside(library: &Path) -> PathBuf {
        library.with_extension("oarlock.sig")
    }

    /// Reads the signatures of the plugin at `library`; `None` if there are none that can be read.
    pub fn read_beside(library: &Path) -> Option<Self> {
        let bytes = read_start(&Self::path_beside(library), MAX_SIGNATURE_BYTES).ok()?;
        Self::parse_bytes(&bytes).ok()
    }

    /// Signs the bytes of a manifest with each of the keys. `oarlock plugin sign` checks before that the manifest is true.
    pub fn sign_manifest(manifest: &[u8], keys: &[PrivateKey]) -> Result<Self, String> {
        let message = signed_message(manifest);
        let mut signatures = Vec::<KeySignature>::new();
        for key in keys {
            let signature = KeySignature::sign_message(&message, key)?;
            if signatures.iter().any(|other| other.key == signature.key) {
                return Err(format!("expected different keys, found {} twice", signature.key));
            }
            signatures.push(signature);
        }
        match signatures.len() {
            1..=MAX_SIGNATURES => Ok(Self { signatures }),
            found => Err(format!("expected 1 to {MAX_SIGNATURES} keys, found {found}")),
        }
    }

    /// Parses the bytes of a file; the error says what was found.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_SIGNATURE_BYTES {
            return Err(format!("a file of more than {MAX_SIGNATURE_BYTES} bytes"));
        }
        let text = plain_text(bytes)?;
        let lines = text.strip_prefix(SIGNATURE_HEADER);
        let lines = lines
            .ok_or_else(|| format!("a file that does not start with `{}`", SIGNATURE_HEADER.trim_end()))?;
        KeySignature::parse_lines(lines, MAX_SIGNATURES).map(|signatures| Self { signatures })
    }

    /// The content of the file.
    pub fn to_text(&self) -> String {
        self.signatures.iter().fold(SIGNATURE_HEADER.to_owned(), |mut text, signature| {
            // Writing to a string cannot fail.
            _ = text.write_str(&signature.to_line());
            text
        })
    }
}

/// The bytes that a key signs for a manifest.
pub(crate) fn signed_message(manifest: &[u8]) -> Vec<u8> {
    [SIGNATURE_HEADER.as_bytes(), manifest].concat()
}

/// The text of a file of signatures or a statement, whose lines all end in a line feed.
pub(crate) fn plain_text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "bytes that are not text")?;
    if text.contains('\r') {
        return Err("line ends of Windows; transfer it and the manifest as they are, not as text".to_owned());
    }
    if text.ends_with('\n') { Ok(text) } else { Err("a file that is cut off".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_keys() -> [PrivateKey; 2] {
        [PrivateKey::generate().expect("a key"), PrivateKey::generate().expect("a key")]
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let signed = ManifestSignatures::sign_manifest(b"manifest", &two_keys()).expect("signatures");
        assert_eq!(ManifestSignatures::parse_bytes(signed.to_text().as_bytes()).as_ref(), Ok(&signed));
        assert_eq!(signed.signatures.len(), 2);
    }

    #[test]
    fn one_key_signs_once_and_nobody_is_no_signer() {
        let [key, _] = two_keys();
        let keys = [key.clone(), key];
        assert!(
            ManifestSignatures::sign_manifest(b"manifest", &keys).expect_err("one key").contains("twice")
        );
        assert!(ManifestSignatures::sign_manifest(b"manifest", &[]).is_err());
    }

    #[test]
    fn a_flipped_bit_in_any_byte_of_signature_or_manifest_is_noticed() {
        let [key, _] = two_keys();
        let public = key.public_key().expect("a public key");
        let manifest = b"name = 'npu'".to_vec();
        let text =
            ManifestSignatures::sign_manifest(&manifest, &[key]).expect("a signature").to_text().into_bytes();
        let verifies = |text: &[u8], manifest: &[u8]| {
            ManifestSignatures::parse_bytes(text).is_ok_and(|file| {
                file.signatures.iter().any(|one| one.is_valid(&signed_message(manifest), &public))
            })
        };
        assert!(verifies(&text, &manifest));
        for (at, bit) in (0..text.len()).map(|at| (at, at % 8)) {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            assert!(!verifies(&changed, &manifest), "bit {bit} of byte {at} of the signature");
        }
        for (at, bit) in (0..manifest.len()).map(|at| (at, at % 8)) {
            let mut changed = manifest.clone();
            changed[at] ^= 1 << bit;
            assert!(!verifies(&text, &changed), "bit {bit} of byte {at} of the manifest");
        }
        for length in 0..text.len() {
            assert!(!verifies(&text[..length], &manifest), "{length} bytes");
        }
    }

    #[test]
    fn a_file_in_any_other_form_is_an_error_that_says_what_was_found() {
        let good = ManifestSignatures::sign_manifest(b"manifest", &two_keys()).expect("signatures").to_text();
        let first = good.lines().nth(1).expect("a signature");
        for (text, found) in [
            (String::new(), "cut off"),
            (good.replace('\n', "\r\n"), "Windows"),
            (good.trim_end().to_owned(), "cut off"),
            (good.replace("signature 1", "signature 2"), "does not start"),
            (SIGNATURE_HEADER.to_owned(), "no signature"),
            (format!("{good}{first}\n"), "two signatures"),
            (format!("{good}\n"), "a line that is not"),
            (good.replace(" ", "  "), "does not start"),
            (good.to_uppercase(), "does not start"),
            (good.replace("ed25519", "rsa"), "a line that is not"),
            (format!("{good}{}", " ".repeat(9000)), "more than 8192 bytes"),
        ] {
            let error = ManifestSignatures::parse_bytes(text.as_bytes()).expect_err(&text);
            assert!(error.contains(found), "{error}");
        }
        let many: String =
            (0..17).map(|number| first.replacen(&first[8..10], &format!("{number:02x}"), 1) + "\n").collect();
        let error = ManifestSignatures::parse_bytes(format!("{SIGNATURE_HEADER}{many}").as_bytes())
            .expect_err("17 signatures");
        assert!(error.contains("more than 16") || error.contains("two signatures"), "{error}");
        assert!(ManifestSignatures::parse_bytes(&[0xff; 40]).is_err());
    }
}

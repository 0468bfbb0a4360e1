//! Ed25519 keys in PEM files, in the form that OpenSSL reads and writes.
//!
//! ```text
//! openssl genpkey -algorithm ed25519 -out acme.key
//! openssl pkey -in acme.key -pubout -out acme.pem
//! openssl pkey -pubin -in acme.pem -outform DER | sha256sum     # the fingerprint
//! ```

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _, KeypairBytes,
};
use ed25519_dalek::{SECRET_KEY_LENGTH, SIGNATURE_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Serialize;

use crate::files::regular_file::read_start;
use crate::{Digest, InvalidDigest};

/// Limit on the size of a key file.
pub(crate) const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The identity of a key: the SHA-256 of the public key in DER. Its text form is 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct KeyFingerprint(Digest);

/// A key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
    fingerprint: KeyFingerprint,
}

/// A key that makes signatures, for vendors. The host never needs one.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

/// A file with a key, a signature or a statement cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustFileError {
    /// The file at fault.
    pub file: PathBuf,
    /// What was expected and what was found, as part of a sentence.
    pub problem: String,
    /// The advice to the user.
    pub remedy: String,
}

impl TrustFileError {
    /// Builds an error; `remedy` says what to do.
    pub fn new(file: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.to_path_buf(), problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for TrustFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; {}", self.file.display(), self.problem, self.remedy)
    }
}

impl std::error::Error for TrustFileError {}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for KeyFingerprint {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        text.parse().map(Self)
    }
}

impl PublicKey {
    fn new(key: VerifyingKey) -> Result<Self, String> {
        // A weak key would accept one signature for many messages.
        if key.is_weak() {
            return Err(
                "expected an ed25519 public key, found one of low order, which proves nothing".to_owned()
            );
        }
        let der = key.to_public_key_der().map_err(|error| error.to_string())?;
        Ok(Self { fingerprint: KeyFingerprint(Digest::hash_bytes(der.as_bytes())), key })
    }

    /// Reads a public key in PEM. A file that is truncated or not text contains no key.
    pub fn from_pem(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        if text.contains("PRIVATE KEY") {
            return Err("expected a public key, found a private one, which nobody else may see".to_owned());
        }
        let key = VerifyingKey::from_public_key_pem(text.trim());
        // The decoder speaks of preambles and tags, which help nobody who named the wrong file.
        key.map_err(|_| "expected a PEM file with an ed25519 public key, found none in it".to_owned())
            .and_then(Self::new)
    }

    /// Reads the PEM file at `path`.
    pub fn read_file(path: &Path) -> Result<Self, TrustFileError> {
        let remedy = "name a public key, such as the one that `openssl pkey -pubout` writes";
        let bytes = read_start(path, MAX_KEY_BYTES).map_err(|error| error.to_string());
        bytes
            .and_then(|bytes| Self::from_pem(&bytes))
            .map_err(|problem| TrustFileError::new(path, problem, remedy))
    }

    /// The key of these 64 hexadecimal digits.
    pub(crate) fn from_hex(text: &str) -> Result<Self, String> {
        let expected = "expected an ed25519 public key as 64 hexadecimal digits";
        let bytes: [u8; 32] = parse_hex(text).ok_or(expected)?;
        VerifyingKey::from_bytes(&bytes).map_err(|_| expected.to_owned()).and_then(Self::new)
    }

    pub(crate) fn to_hex(&self) -> String {
        format_hex(self.key.as_bytes())
    }

    /// The key as the text of a PEM file.
    pub fn to_pem(&self) -> String {
        // Only an output of endless length could fail.
        self.key.to_public_key_pem(LineEnding::LF).unwrap_or_default()
    }

    /// The identity of the key.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_LENGTH]) -> bool {
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl PrivateKey {
    /// Makes a key of random numbers of the kernel.
    pub fn generate() -> std::io::Result<Self> {
        let mut secret = [0; SECRET_KEY_LENGTH];
        let mut filled = 0;
        while filled < secret.len() {
            filled += rustix::rand::getrandom(&mut secret[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Self(SigningKey::from_bytes(&secret)))
    }

    /// Reads the PEM file at `path`, which nobody else may read.
    pub fn read_file(path: &Path) -> Result<Self, TrustFileError> {
        let unreadable = |problem: String| {
            let remedy = "name a private key, such as the one that `oarlock plugin key new` makes";
            TrustFileError::new(path, problem, remedy)
        };
        let bytes = read_start(path, MAX_KEY_BYTES).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        let Ok(key) = SigningKey::from_pkcs8_pem(text.trim()) else {
            return Err(unreadable(if text.contains("ENCRYPTED") {
                "expected a private key without a password, found an encrypted one".to_owned()
            } else {
                "expected a PEM file with an ed25519 private key, found none in it".to_owned()
            }));
        };
        let mode = path.metadata().map_err(|error| unreadable(error.to_string()))?.mode();
        if mode & 0o077 != 0 {
            let found = mode & 0o777;
            let problem =
                format!("expected a private key that only its owner can read, found mode {found:o}");
            let remedy = format!("run `chmod 600 {}`", path.display());
            return Err(TrustFileError::new(path, problem, remedy));
        }
        Ok(Self(key))
    }

    /// The key as the text of a PEM file.
    pub fn to_pem(&self) -> String {
        // With the public key in it, OpenSSL would not read the file.
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        // Only an output of endless length could fail.
        pair.to_pkcs8_pem(LineEnding::LF).map(|text| text.to_string()).unwrap_or_default()
    }

    /// The key that verifies the signatures of this one.
    pub fn public_key(&self) -> Result<PublicKey, String> {
        PublicKey::new(self.0.verifying_key())
    }

    pub(crate) fn sign_message(&self, message: &[u8]) -> [u8; SIGNATURE_LENGTH] {
        self.0.sign(message).to_bytes()
    }
}

pub(crate) fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses exactly `N` bytes in lowercase digits, so that every value has one text form.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let nibble = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = nibble(high)? << 4 | nibble(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    fn write_with_mode(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).expect("a file");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_key_survives_its_file_and_only_its_own_signature_verifies() {
        let root = tempfile::tempdir().expect("a directory");
        let (key, other) = (PrivateKey::generate().expect("a key"), PrivateKey::generate().expect("a key"));
        let file = root.path().join("acme.key");
        write_with_mode(&file, &key.to_pem(), 0o600);
        let again = PrivateKey::read_file(&file).expect("the key");
        let public = again.public_key().expect("a public key");
        assert_eq!(PublicKey::from_pem(public.to_pem().as_bytes()), key.public_key());
        assert_eq!(PublicKey::from_hex(&public.to_hex()).as_ref(), Ok(&public));
        assert_eq!(public.fingerprint().to_string().parse(), Ok(public.fingerprint()));
        let signature = again.sign_message(b"message");
        assert!(public.has_signed(b"message", &signature) && !public.has_signed(b"massage", &signature));
        assert!(!other.public_key().expect("a public key").has_signed(b"message", &signature));
    }

    #[test]
    fn a_private_key_that_others_can_read_or_that_is_none_is_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("acme.key");
        let key = PrivateKey::generate().expect("a key");
        write_with_mode(&file, &key.to_pem(), 0o640);
        let refused = PrivateKey::read_file(&file).err().expect("a refusal");
        assert!(refused.remedy.contains("chmod 600"), "{refused}");
        write_with_mode(&file, &key.public_key().expect("a public key").to_pem(), 0o600);
        assert!(PrivateKey::read_file(&file).is_err());
        assert!(PublicKey::from_pem(key.to_pem().as_bytes()).expect_err("a private key").contains("private"));
        assert!(PrivateKey::read_file(root.path()).is_err());
    }

    #[test]
    fn keys_of_low_order_and_digits_of_another_form_are_refused() {
        assert!(
            PublicKey::from_hex(&format!("01{}", "0".repeat(62)))
                .expect_err("a weak key")
                .contains("low order")
        );
        for text in ["", "0", &"0".repeat(63), &"G".repeat(64), &"A".repeat(64), &"0".repeat(66)] {
            assert_eq!(parse_hex::<32>(text), None, "{text}");
        }
    }

    #[test]
    fn openssl_reads_our_keys_and_we_read_its_keys_and_both_see_one_fingerprint() {
        let root = tempfile::tempdir().expect("a directory");
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            command
                .args(arguments.split(' '))
                .current_dir(root.path())
                .output()
                .ok()
                .filter(|run| run.status.success())
        };
        if openssl("version").is_none() {
            eprintln!("skipped: `openssl` is not installed");
            return;
        }
        openssl("genpkey -algorithm ed25519 -out theirs.key").expect("a key");
        write_with_mode(
            &root.path().join("ours.key"),
            &PrivateKey::generate().expect("a key").to_pem(),
            0o600,
        );
        for name in ["theirs", "ours"] {
            openssl(&format!("pkey -in {name}.key -pubout -out {name}.pem")).expect("a public key");
            let private =
                PrivateKey::read_file(&root.path().join(format!("{name}.key"))).expect("a private key");
            let public =
                PublicKey::read_file(&root.path().join(format!("{name}.pem"))).expect("a public key");
            assert_eq!(private.public_key().as_ref(), Ok(&public));
            let der = openssl(&format!("pkey -pubin -in {name}.pem -outform DER")).expect("the key as DER");
            assert_eq!(KeyFingerprint(Digest::hash_bytes(&der.stdout)), public.fingerprint());
            fs::write(root.path().join("message"), "hello").expect("a message");
            openssl(&format!("pkeyutl -sign -rawin -inkey {name}.key -in message -out signature"))
                .expect("a signature");
            let signature = fs::read(root.path().join("signature")).expect("a signature");
            assert!(public.has_signed(b"hello", &signature.try_into().expect("64 bytes")));
        }
    }
}

//! Judges the signatures of a manifest by the keys that the user trusts and those that are revoked.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::read_start;
use crate::trust::key::{KeyFingerprint, MAX_KEY_BYTES, PublicKey, TrustFileError};
use crate::trust::key_directory::KeyFiles;
use crate::trust::signature::{KeySignature, MAX_SIGNATURE_BYTES, ManifestSignatures, signed_message};
use crate::trust::statement::KeyStatement;
use crate::{ProcessIdentity, Refusal, RefusalReason};

/// The keys that signatures are verified with, and those whose signatures are refused.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys {
    trusted: Vec<TrustedKey>,
    revoked: BTreeMap<KeyFingerprint, PathBuf>,
}

/// A public key and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// The file of the key.
    pub file: PathBuf,
    /// The key.
    pub key: PublicKey,
}

/// What the user's keys say of one signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureStanding {
    /// The trusted key of this file made it.
    Valid(PathBuf),
    /// It claims to be made by the trusted key of this file, which did not make it for this manifest.
    Invalid(PathBuf),
    /// The revocation in this file ends the key.
    Revoked(PathBuf),
    /// The user does not have the key, so nothing is known.
    Unknown,
}

/// Who signed a manifest, as far as the user trusts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustFinding {
    /// The file of the trusted key that signed.
    pub signed_by: Option<PathBuf>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl TrustedKeys {
    /// Reads keys and revocations. Like plugins, they must not be writable by others.
    pub fn load_keys(files: &KeyFiles, identity: ProcessIdentity) -> Result<Self, TrustFileError> {
        let mut keys = Self::default();
        for file in &files.trusted {
            check_permissions(file, identity)?;
            keys.trusted.push(TrustedKey { file: file.clone(), key: PublicKey::read_file(file)? });
        }
        for file in &files.revocations {
            check_permissions(file, identity)?;
            keys.revoked.insert(read_revocation(file)?.fingerprint(), file.clone());
        }
        Ok(keys)
    }

    /// The same revocations with other trusted keys.
    pub fn with_trusted(self, trusted: Vec<TrustedKey>) -> Self {
        Self { trusted, ..self }
    }

    /// The trusted keys that are not revoked.
    pub fn valid_keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.trusted.iter().filter(|trusted| self.revocation_of(trusted.key.fingerprint()).is_none())
    }

    /// The revoked keys, and the files that revoke them.
    pub fn revoked_keys(&self) -> &BTreeMap<KeyFingerprint, PathBuf> {
        &self.revoked
    }

    /// The file that revokes a key.
    pub fn revocation_of(&self, key: KeyFingerprint) -> Option<&Path> {
        self.revoked.get(&key).map(PathBuf::as_path)
    }

    /// What is known of each signature of a manifest.
    pub fn assess_signatures<'a>(
        &self,
        manifest: &[u8],
        signatures: &'a ManifestSignatures,
    ) -> Vec<(&'a KeySignature, SignatureStanding)> {
        let message = signed_message(manifest);
        let standing = |signature: &KeySignature| {
            if let Some(revocation) = self.revoked.get(&signature.key) {
                return SignatureStanding::Revoked(revocation.clone());
            }
            match self.trusted.iter().find(|trusted| trusted.key.fingerprint() == signature.key) {
                None => SignatureStanding::Unknown,
                Some(TrustedKey { file, key }) if signature.is_valid(&message, key) => {
                    SignatureStanding::Valid(file.clone())
                }
                Some(TrustedKey { file, .. }) => SignatureStanding::Invalid(file.clone()),
            }
        };
        signatures.signatures.iter().map(|signature| (signature, standing(signature))).collect()
    }

    /// Judges the signatures of the plugin at `path` with these bytes in its manifest.
    ///
    /// One valid signature of a trusted key is enough, so that a vendor can sign with an old and a new key. A wrong signature of a
    /// trusted key is refused whatever the others say: something was changed. If none is `required`, a plugin that only unknown
    /// keys signed counts as unsigned, as everybody can make such a signature. Without any keys, signatures are not read.
    pub fn judge_manifest(
        &self,
        path: &Path,
        manifest: Option<&[u8]>,
        required: bool,
    ) -> Result<TrustFinding, Refusal> {
        if required && self.valid_keys().next().is_none() {
            return Err(no_trusted_key(path));
        }
        if self.trusted.is_empty() && self.revoked.is_empty() {
            return Ok(TrustFinding::default());
        }
        let file = ManifestSignatures::path_beside(path);
        let expected = || format!("a signature in `{}` by one of: {}", file.display(), self.key_names());
        let invalid = |found: String| {
            let remedy = "install the plugin again from where it was signed, with its manifest and signature";
            Refusal::new(RefusalReason::SignatureInvalid, path, expected(), found, remedy)
        };
        let bytes = match read_start(&file, MAX_SIGNATURE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {
                return Ok(TrustFinding::default());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let remedy = "install the signature beside it, or set `require_signature = false`";
                return Err(Refusal::new(
                    RefusalReason::SignatureMissing,
                    path,
                    expected(),
                    "no such file",
                    remedy,
                ));
            }
            Err(error) => return Err(unreadable_refusal(&file, &error)),
        };
        let manifest =
            manifest.ok_or_else(|| invalid("one without the manifest that it is of".to_owned()))?;
        let signatures = ManifestSignatures::parse_bytes(&bytes).map_err(&invalid)?;
        self.weigh_standings(path, self.assess_signatures(manifest, &signatures), required, &invalid)
    }

    fn weigh_standings(
        &self,
        path: &Path,
        standings: Vec<(&KeySignature, SignatureStanding)>,
        required: bool,
        invalid: &dyn Fn(String) -> Refusal,
    ) -> Result<TrustFinding, Refusal> {
        let (mut signed_by, mut revoked, mut unknown) = (None, None, Vec::new());
        for (signature, standing) in standings {
            match standing {
                SignatureStanding::Valid(file) => signed_by = signed_by.or(Some(file)),
                SignatureStanding::Invalid(file) => {
                    let found = format!("one that `{}` did not make for this manifest", file.display());
                    return Err(invalid(found));
                }
                SignatureStanding::Revoked(file) => revoked = revoked.or(Some((signature.key, file))),
                SignatureStanding::Unknown => unknown.push(signature.key.to_string()),
            }
        }
        match (signed_by, revoked) {
            (Some(file), _) => Ok(TrustFinding { signed_by: Some(file), notes: Vec::new() }),
            (None, Some((key, file))) => Err(key_revoked(path, key, &file)),
            (None, None) if required => {
                Err(invalid(format!("only signatures by unknown keys: {}", unknown.join(", "))))
            }
            (None, None) => {
                let note = format!(
                    "it counts as unsigned: nobody whom you trust signed it, but the key {}; `oarlock plugin trust` adds a key",
                    unknown.join(", ")
                );
                Ok(TrustFinding { signed_by: None, notes: vec![note] })
            }
        }
    }

    fn key_names(&self) -> String {
        let names: Vec<String> =
            self.valid_keys().map(|trusted| format!("`{}`", trusted.file.display())).collect();
        if names.is_empty() { "nobody, as no key is trusted".to_owned() } else { names.join(", ") }
    }
}

/// The key that the statement in a file revokes.
pub(crate) fn read_revocation(file: &Path) -> Result<PublicKey, TrustFileError> {
    let wrong = |found: String| {
        let problem = format!("expected a revocation, found {found}");
        TrustFileError::new(file, problem, "get the file again from the owner of the key")
    };
    let bytes = read_start(file, MAX_KEY_BYTES).map_err(|error| wrong(error.to_string()))?;
    match KeyStatement::parse_bytes(&bytes).map_err(wrong)? {
        KeyStatement::Revocation { key } => Ok(key),
        KeyStatement::Succession { .. } => Err(wrong("a statement that a key follows another".to_owned())),
    }
}

fn check_permissions(file: &Path, identity: ProcessIdentity) -> Result<(), TrustFileError> {
    identity.check_file(file).map(drop).map_err(|refusal| {
        let problem = format!("expected {}, found {}", refusal.expected, refusal.found);
        TrustFileError::new(file, problem, refusal.remedy)
    })
}

/// Without trusted keys no signature can be valid, so it does not matter whether the plugin has one.
fn no_trusted_key(path: &Path) -> Refusal {
    let expected = "a trusted key, since the configuration has `require_signature = true`";
    let remedy = "add the signer's key with `oarlock plugin trust`, or set `require_signature = false`";
    Refusal::new(RefusalReason::SignatureMissing, path, expected, "none that is valid", remedy)
}

fn key_revoked(path: &Path, key: KeyFingerprint, file: &Path) -> Refusal {
    let expected = "a signature by a key that is not revoked";
    let found = format!("only one by {key}, which `{}` revokes", file.display());
    let remedy = "install a release that its vendor signed with another key";
    Refusal::new(RefusalReason::KeyRevoked, path, expected, found, remedy)
}

#[cfg(test)]
mod tests;

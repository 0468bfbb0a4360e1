//! Detached signatures: `libfoo.so.sig` contains the 64 bytes of an ed25519 signature over the bytes of `libfoo.so`.
//!
//! Keys and signatures have OpenSSL's formats, so vendors need no other tool:
//!
//! ```text
//! openssl genpkey -algorithm ed25519 -out key.pem
//! openssl pkey -in key.pem -pubout -out vendor.pem
//! openssl pkeyutl -sign -rawin -inkey key.pem -in libfoo.so -out libfoo.so.sig
//! ```

use std::io;
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::DecodePublicKey as _;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, VerifyingKey};

use crate::config::ConfigError;
use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::read_start;
use crate::{ProcessIdentity, Refusal, RefusalReason};

/// Limit on the size of a key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The public keys that signatures are verified with.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<(PathBuf, VerifyingKey)>);

impl TrustedKeys {
    /// Reads PEM files. Like plugins, they must not be writable by others.
    pub fn load_keys(files: &[PathBuf], identity: ProcessIdentity) -> Result<Self, ConfigError> {
        files
            .iter()
            .map(|file| Ok((file.clone(), Self::read_key(file, identity)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn read_key(file: &Path, identity: ProcessIdentity) -> Result<VerifyingKey, ConfigError> {
        let expected = "expected a PEM file with an ed25519 public key";
        identity.check_file(file).map_err(|refusal| {
            ConfigError::new(file, format!("expected {}, found {}", refusal.expected, refusal.found))
        })?;
        let bytes = read_start(file, MAX_KEY_BYTES)
            .map_err(|error| ConfigError::new(file, format!("{expected}: {error}")))?;
        // A file that is truncated or not text contains no key.
        let key = VerifyingKey::from_public_key_pem(String::from_utf8_lossy(&bytes).trim());
        key.map_err(|error| ConfigError::new(file, format!("{expected}: {error}")))
    }

    /// Verifies the signature of the plugin at `path`; returns the file of the matching key. `contents` reads the bytes of
    /// the plugin, and is only called if there is a signature.
    ///
    /// Without trusted keys and with none `required`, signatures are ignored. With trusted keys, a signature that exists must
    /// be valid even if none is required.
    pub fn verify_signature(
        &self,
        path: &Path,
        contents: impl FnOnce() -> io::Result<Vec<u8>>,
        required: bool,
    ) -> Result<Option<&Path>, Refusal> {
        if self.0.is_empty() {
            return if required { Err(no_trusted_key(path)) } else { Ok(None) };
        }
        let file = signature_path(path);
        let expected = format!("a signature in `{}` by one of: {}", file.display(), self.key_names());
        let invalid = |found: &str| {
            let remedy =
                "install the file again from where it was signed, or add the signer's key to `trusted_keys`";
            Refusal::new(RefusalReason::SignatureInvalid, path, &expected, found, remedy)
        };
        let signature = match read_start(&file, SIGNATURE_LENGTH as u64) {
            Ok(signature) => signature,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let remedy = "install the signature beside it, or set `require_signature = false`";
                return Err(Refusal::new(
                    RefusalReason::SignatureMissing,
                    path,
                    expected,
                    "no such file",
                    remedy,
                ));
            }
            Err(error) => return Err(unreadable_refusal(&file, &error)),
        };
        let signature =
            Signature::from_slice(&signature).map_err(|_| invalid("a file that is not 64 bytes long"))?;
        let bytes = contents().map_err(|error| unreadable_refusal(path, &error))?;
        let signer = self.0.iter().find(|(_, key)| key.verify_strict(&bytes, &signature).is_ok());
        signer
            .map(|(file, _)| Some(file.as_path()))
            .ok_or_else(|| invalid("one that none of them made for these bytes"))
    }

    fn key_names(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|(file, _)| format!("`{}`", file.display())).collect();
        names.join(", ")
    }
}

/// Without trusted keys no signature can be valid, so it does not matter whether the plugin has one.
fn no_trusted_key(path: &Path) -> Refusal {
    let expected = "a key under `trusted_keys`, since the configuration has `require_signature = true`";
    let remedy = "add the signer's key to `trusted_keys`, or set `require_signature = false`";
    Refusal::new(RefusalReason::SignatureMissing, path, expected, "no trusted key at all", remedy)
}

fn signature_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    const PLUGIN_BYTES: &[u8] = b"the bytes of a plugin";

    fn plugin_bytes() -> io::Result<Vec<u8>> {
        Ok(PLUGIN_BYTES.to_vec())
    }

    /// A directory with a plugin, its signature and two public keys; the second one made the signature.
    fn signed_plugin() -> Option<(tempfile::TempDir, PathBuf)> {
        let root = tempfile::tempdir().unwrap();
        let openssl = |arguments: &str| {
            let run = Command::new("openssl").args(arguments.split(' ')).current_dir(root.path()).output();
            run.is_ok_and(|output| output.status.success())
        };
        if !openssl("version") {
            eprintln!("skipped: `openssl` is not installed");
            return None;
        }
        fs::write(root.path().join("libx.so"), PLUGIN_BYTES).unwrap();
        for name in ["other", "vendor"] {
            assert!(openssl(&format!("genpkey -algorithm ed25519 -out {name}.key")));
            assert!(openssl(&format!("pkey -in {name}.key -pubout -out {name}.pem")));
            fs::set_permissions(root.path().join(format!("{name}.pem")), fs::Permissions::from_mode(0o644))
                .unwrap();
        }
        assert!(openssl("pkeyutl -sign -rawin -inkey vendor.key -in libx.so -out libx.so.sig"));
        let plugin = root.path().join("libx.so");
        Some((root, plugin))
    }

    fn load_key_files(root: &Path, names: &[&str]) -> TrustedKeys {
        let files: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
        TrustedKeys::load_keys(&files, ProcessIdentity::of_process()).unwrap()
    }

    #[test]
    fn a_signature_made_by_openssl_verifies_with_the_key_that_made_it() {
        let Some((root, plugin)) = signed_plugin() else { return };
        let both = load_key_files(root.path(), &["other.pem", "vendor.pem"]);
        assert_eq!(
            both.verify_signature(&plugin, plugin_bytes, true),
            Ok(Some(root.path().join("vendor.pem").as_path()))
        );
        let refusal = load_key_files(root.path(), &["other.pem"])
            .verify_signature(&plugin, plugin_bytes, false)
            .unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::SignatureInvalid);
        assert!(refusal.expected.contains("other.pem"), "{refusal}");
        assert_eq!(
            both.verify_signature(&plugin, || Ok(b"other bytes".to_vec()), false).unwrap_err().reason,
            RefusalReason::SignatureInvalid
        );
    }

    #[test]
    fn a_missing_signature_matters_only_where_one_is_required() {
        let Some((root, plugin)) = signed_plugin() else { return };
        let key = load_key_files(root.path(), &["vendor.pem"]);
        fs::write(signature_path(&plugin), [0; 65]).unwrap();
        assert_eq!(
            key.verify_signature(&plugin, plugin_bytes, false).unwrap_err().reason,
            RefusalReason::SignatureInvalid
        );
        assert_eq!(TrustedKeys::default().verify_signature(&plugin, plugin_bytes, false), Ok(None));
        assert_eq!(
            TrustedKeys::default().verify_signature(&plugin, plugin_bytes, true).unwrap_err().reason,
            RefusalReason::SignatureMissing
        );
        fs::remove_file(signature_path(&plugin)).unwrap();
        assert_eq!(key.verify_signature(&plugin, plugin_bytes, false), Ok(None));
        assert_eq!(
            key.verify_signature(&plugin, plugin_bytes, true).unwrap_err().reason,
            RefusalReason::SignatureMissing
        );
    }

    #[test]
    fn a_pipe_in_place_of_a_signature_is_refused_and_not_waited_for() {
        let Some((root, plugin)) = signed_plugin() else { return };
        fs::remove_file(signature_path(&plugin)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, signature_path(&plugin), rustix::fs::Mode::RUSR).unwrap();
        let refusal = load_key_files(root.path(), &["vendor.pem"])
            .verify_signature(&plugin, plugin_bytes, false)
            .unwrap_err();
        assert_eq!((refusal.reason, refusal.file), (RefusalReason::Unreadable, signature_path(&plugin)));
    }

    #[test]
    fn a_file_that_holds_no_public_key_is_an_error() {
        let Some((root, plugin)) = signed_plugin() else { return };
        for file in [plugin, root.path().join("vendor.key"), root.path().join("none.pem")] {
            assert!(
                TrustedKeys::load_keys(std::slice::from_ref(&file), ProcessIdentity::of_process()).is_err(),
                "{file:?}"
            );
        }
    }
}

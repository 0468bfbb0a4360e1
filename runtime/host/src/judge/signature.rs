//! Detached signatures: `libfoo.so.sig` holds the 64 bytes of an ed25519 signature over the bytes of `libfoo.so`.
//!
//! Keys and signatures are what OpenSSL writes, so that a vendor needs no tool of ours:
//!
//! ```text
//! openssl genpkey -algorithm ed25519 -out key.pem
//! openssl pkey -in key.pem -pubout -out vendor.pem
//! openssl pkeyutl -sign -rawin -inkey key.pem -in libfoo.so -out libfoo.so.sig
//! ```

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::DecodePublicKey as _;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, VerifyingKey};

use crate::config::ConfigError;
use crate::judge::permissions::unreadable;
use crate::{Identity, Reason, Refusal};

/// The public keys whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<(PathBuf, VerifyingKey)>);

impl TrustedKeys {
    /// Reads PEM files; like plugins, they must not be writable by others.
    pub fn load(files: &[PathBuf], identity: Identity) -> Result<Self, ConfigError> {
        files
            .iter()
            .map(|file| Ok((file.clone(), Self::read(file, identity)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn read(file: &Path, identity: Identity) -> Result<VerifyingKey, ConfigError> {
        let expected = "expected a PEM file with an ed25519 public key";
        identity.check_file(file).map_err(|refusal| {
            ConfigError::new(file, format!("expected {}, found {}", refusal.expected, refusal.found))
        })?;
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::new(file, format!("{expected}: {error}")))?;
        let key = VerifyingKey::from_public_key_pem(text.trim());
        key.map_err(|error| ConfigError::new(file, format!("{expected}: {error}")))
    }

    /// Verifies the signature of the plugin at `path` over its `bytes`; gives the file of the key that made it.
    ///
    /// Without keys to trust and with none `required`, signatures are not looked at. With keys, a signature that is
    /// there must be good even if none is required.
    pub fn check(&self, path: &Path, bytes: &[u8], required: bool) -> Result<Option<&Path>, Refusal> {
        if self.0.is_empty() && !required {
            return Ok(None);
        }
        let file = signature_path(path);
        let expected = format!("a signature in `{}` by one of: {}", file.display(), self.names());
        let invalid = |found: &str| {
            let remedy =
                "install the file again from where it was signed, or add the signer's key to `trusted_keys`";
            Refusal::new(Reason::SignatureInvalid, path, &expected, found, remedy)
        };
        let mut signature = Vec::new();
        // One byte more than a signature has is enough to see that a file is none.
        let most = SIGNATURE_LENGTH as u64 + 1;
        match File::open(&file).and_then(|file| file.take(most).read_to_end(&mut signature)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let remedy = "install the signature beside it, or set `require_signature = false`";
                return Err(Refusal::new(Reason::SignatureMissing, path, expected, "no such file", remedy));
            }
            Err(error) => return Err(unreadable(&file, &error)),
        }
        let signature =
            Signature::from_slice(&signature).map_err(|_| invalid("a file that is not 64 bytes long"))?;
        let signer = self.0.iter().find(|(_, key)| key.verify_strict(bytes, &signature).is_ok());
        signer
            .map(|(file, _)| Some(file.as_path()))
            .ok_or_else(|| invalid("one that none of them made for these bytes"))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|(file, _)| format!("`{}`", file.display())).collect();
        if names.is_empty() { "no trusted key at all".to_owned() } else { names.join(", ") }
    }
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

    const BYTES: &[u8] = b"the bytes of a plugin";

    /// A directory with a plugin, its signature and two public keys, the second of which made the signature.
    fn signed() -> Option<(tempfile::TempDir, PathBuf)> {
        let root = tempfile::tempdir().unwrap();
        let openssl = |arguments: &str| {
            let run = Command::new("openssl").args(arguments.split(' ')).current_dir(root.path()).output();
            run.is_ok_and(|output| output.status.success())
        };
        if !openssl("version") {
            eprintln!("skipped: `openssl` is not installed");
            return None;
        }
        fs::write(root.path().join("libx.so"), BYTES).unwrap();
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

    fn keys(root: &Path, names: &[&str]) -> TrustedKeys {
        let files: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
        TrustedKeys::load(&files, Identity::of_process()).unwrap()
    }

    #[test]
    fn a_signature_made_by_openssl_verifies_with_the_key_that_made_it() {
        let Some((root, plugin)) = signed() else { return };
        let both = keys(root.path(), &["other.pem", "vendor.pem"]);
        assert_eq!(both.check(&plugin, BYTES, true), Ok(Some(root.path().join("vendor.pem").as_path())));
        let refusal = keys(root.path(), &["other.pem"]).check(&plugin, BYTES, false).unwrap_err();
        assert_eq!(refusal.reason, Reason::SignatureInvalid);
        assert!(refusal.expected.contains("other.pem"), "{refusal}");
        assert_eq!(both.check(&plugin, b"other bytes", false).unwrap_err().reason, Reason::SignatureInvalid);
    }

    #[test]
    fn a_missing_signature_matters_only_where_one_is_required() {
        let Some((root, plugin)) = signed() else { return };
        let key = keys(root.path(), &["vendor.pem"]);
        fs::write(signature_path(&plugin), [0; 65]).unwrap();
        assert_eq!(key.check(&plugin, BYTES, false).unwrap_err().reason, Reason::SignatureInvalid);
        assert_eq!(TrustedKeys::default().check(&plugin, BYTES, false), Ok(None));
        assert_eq!(
            TrustedKeys::default().check(&plugin, BYTES, true).unwrap_err().reason,
            Reason::SignatureInvalid
        );
        fs::remove_file(signature_path(&plugin)).unwrap();
        assert_eq!(key.check(&plugin, BYTES, false), Ok(None));
        assert_eq!(key.check(&plugin, BYTES, true).unwrap_err().reason, Reason::SignatureMissing);
    }

    #[test]
    fn a_file_that_holds_no_public_key_is_an_error() {
        let Some((root, plugin)) = signed() else { return };
        for file in [plugin, root.path().join("vendor.key"), root.path().join("none.pem")] {
            assert!(
                TrustedKeys::load(std::slice::from_ref(&file), Identity::of_process()).is_err(),
                "{file:?}"
            );
        }
    }
}

//! Signed manifests, and what can be wrong with them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::trust::key::PrivateKey;

const MANIFEST: &[u8] = b"name = 'npu'\n";

/// A directory with a signature file of the plugin `libnpu.so`, and keys.
struct SignedPlugin {
    root: tempfile::TempDir,
    vendor: PrivateKey,
    other: PrivateKey,
}

impl SignedPlugin {
    /// Signed by the vendor; the user trusts nobody.
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let key = || PrivateKey::generate().expect("a key");
        let signed = Self { root, vendor: key(), other: key() };
        signed.sign_with(std::slice::from_ref(&signed.vendor));
        signed
    }

    fn plugin(&self) -> PathBuf {
        self.root.path().join("libnpu.so")
    }

    fn signature_file(&self) -> PathBuf {
        ManifestSignatures::path_beside(&self.plugin())
    }

    fn sign_with(&self, keys: &[PrivateKey]) {
        let text = ManifestSignatures::sign_manifest(MANIFEST, keys).expect("signatures").to_text();
        fs::write(self.signature_file(), text).expect("a file");
    }

    fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.root.path().join(name);
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
        file
    }

    fn trust(&self, trusted: &[&PrivateKey], revoked: &[&PrivateKey]) -> TrustedKeys {
        let mut files = KeyFiles::default();
        for key in trusted {
            let key = key.public_key().expect("a public key");
            files.trusted.push(self.write_file(&format!("{}.pem", key.fingerprint()), &key.to_pem()));
        }
        for key in revoked {
            let statement = KeyStatement::write_revocation(key).expect("a statement");
            let name = format!("{}.revoked", key.public_key().expect("a public key").fingerprint());
            files.revocations.push(self.write_file(&name, &statement));
        }
        TrustedKeys::load_keys(&files, ProcessIdentity::of_process()).expect("keys")
    }

    fn judge(&self, keys: &TrustedKeys, required: bool) -> Result<TrustFinding, Refusal> {
        keys.judge_manifest(&self.plugin(), Some(MANIFEST), required)
    }

    fn reason(&self, keys: &TrustedKeys, required: bool) -> RefusalReason {
        self.judge(keys, required).expect_err("a refusal").reason
    }
}

fn is_signed(finding: &Result<TrustFinding, Refusal>) -> bool {
    finding.as_ref().expect("no refusal").signed_by.is_some()
}

#[test]
fn a_trusted_key_signs_and_an_unknown_key_counts_for_nothing() {
    let signed = SignedPlugin::new();
    assert!(is_signed(&signed.judge(&signed.trust(&[&signed.other, &signed.vendor], &[]), true)));
    let stranger = signed.trust(&[&signed.other], &[]);
    let finding = signed.judge(&stranger, false).expect("no refusal");
    assert_eq!(finding.signed_by, None);
    assert!(finding.notes[0].contains("counts as unsigned"), "{:?}", finding.notes);
    assert_eq!(signed.reason(&stranger, true), RefusalReason::SignatureInvalid);
}

#[test]
fn a_missing_signature_matters_only_where_one_is_required() {
    let signed = SignedPlugin::new();
    let keys = signed.trust(&[&signed.vendor], &[]);
    fs::remove_file(signed.signature_file()).expect("no file");
    assert!(!is_signed(&signed.judge(&keys, false)));
    assert_eq!(signed.reason(&keys, true), RefusalReason::SignatureMissing);
    // Without keys, nothing is read and nothing can be right.
    fs::write(signed.signature_file(), "garbage").expect("a file");
    assert!(!is_signed(&signed.judge(&TrustedKeys::default(), false)));
    assert_eq!(signed.reason(&TrustedKeys::default(), true), RefusalReason::SignatureMissing);
    assert_eq!(signed.reason(&keys, false), RefusalReason::SignatureInvalid);
}

#[test]
fn another_manifest_or_none_makes_the_signature_invalid() {
    let signed = SignedPlugin::new();
    let keys = signed.trust(&[&signed.vendor], &[]);
    for manifest in [Some(&b"name = 'cpu'\n"[..]), Some(b"name = 'npu'\r\n"), Some(b""), None] {
        let refusal = keys.judge_manifest(&signed.plugin(), manifest, false).expect_err("a refusal");
        assert_eq!(refusal.reason, RefusalReason::SignatureInvalid);
    }
}

#[test]
fn a_vendor_who_changes_keys_reaches_users_of_both() {
    let signed = SignedPlugin::new();
    signed.sign_with(&[signed.vendor.clone(), signed.other.clone()]);
    for key in [&signed.vendor, &signed.other] {
        assert!(is_signed(&signed.judge(&signed.trust(&[key], &[]), true)));
    }
    // The old key is revoked, and the new one still counts.
    assert!(is_signed(&signed.judge(&signed.trust(&[&signed.other], &[&signed.vendor]), true)));
}

#[test]
fn a_wrong_signature_of_a_trusted_key_is_refused_beside_a_right_one() {
    let signed = SignedPlugin::new();
    let right = ManifestSignatures::sign_manifest(MANIFEST, std::slice::from_ref(&signed.vendor))
        .expect("a signature");
    let wrong =
        ManifestSignatures::sign_manifest(b"else", std::slice::from_ref(&signed.other)).expect("a signature");
    let both = [right.signatures, wrong.signatures].concat();
    fs::write(signed.signature_file(), ManifestSignatures { signatures: both }.to_text()).expect("a file");
    let both = signed.trust(&[&signed.vendor, &signed.other], &[]);
    assert_eq!(signed.reason(&both, false), RefusalReason::SignatureInvalid);
    // To users who do not know the key, its signature says nothing.
    assert!(is_signed(&signed.judge(&signed.trust(&[&signed.vendor], &[]), true)));
}

#[test]
fn a_revoked_key_is_refused_trusted_or_not() {
    let signed = SignedPlugin::new();
    for trusted in [&[][..], &[&signed.vendor], &[&signed.vendor, &signed.other]] {
        let keys = signed.trust(trusted, &[&signed.vendor]);
        assert_eq!(signed.reason(&keys, false), RefusalReason::KeyRevoked);
    }
    let keys = signed.trust(&[&signed.vendor], &[&signed.vendor]);
    assert_eq!(signed.reason(&keys, true), RefusalReason::SignatureMissing);
    assert!(is_signed(&signed.judge(&signed.trust(&[&signed.vendor], &[&signed.other]), true)));
}

#[test]
fn a_signature_is_a_small_regular_file_or_a_link_to_one() {
    let signed = SignedPlugin::new();
    let keys = signed.trust(&[&signed.vendor], &[]);
    let (file, moved) = (signed.signature_file(), signed.root.path().join("moved"));
    fs::rename(&file, &moved).expect("a move");
    symlink(&moved, &file).expect("a link");
    assert!(is_signed(&signed.judge(&keys, true)));
    fs::OpenOptions::new().write(true).open(&moved).expect("the file").set_len(1 << 40).expect("a size");
    assert_eq!(signed.reason(&keys, false), RefusalReason::SignatureInvalid);
    fs::remove_file(&moved).expect("no file");
    rustix::fs::mkfifoat(rustix::fs::CWD, &moved, rustix::fs::Mode::RUSR).expect("a pipe");
    let refusal = signed.judge(&keys, false).expect_err("a refusal");
    assert_eq!((refusal.reason, &refusal.file), (RefusalReason::Unreadable, &file));
    fs::remove_file(&file).expect("no file");
    symlink(&file, &file).expect("a loop");
    assert_eq!(signed.reason(&keys, false), RefusalReason::SymlinkLoop);
}

#[test]
fn a_broken_key_or_revocation_is_an_error_that_names_it() {
    let signed = SignedPlugin::new();
    let load = |files: KeyFiles| TrustedKeys::load_keys(&files, ProcessIdentity::of_process()).map(drop);
    let private = signed.write_file("vendor.key", &signed.vendor.to_pem());
    let succession = KeyStatement::write_succession(&signed.vendor, &signed.other).expect("a statement");
    let succession = signed.write_file("next.revoked", &succession);
    for file in [private, signed.root.path().join("none.pem"), signed.root.path().to_path_buf()] {
        let error =
            load(KeyFiles { trusted: vec![file.clone()], ..KeyFiles::default() }).expect_err("an error");
        assert_eq!(error.file, file);
    }
    let error = load(KeyFiles { revocations: vec![succession.clone()], ..KeyFiles::default() })
        .expect_err("an error");
    assert_eq!(error.file, succession);
    let good = signed.write_file("vendor.pem", &signed.vendor.public_key().expect("a public key").to_pem());
    assert_eq!(load(KeyFiles { trusted: vec![good.clone()], ..KeyFiles::default() }), Ok(()));
    fs::set_permissions(&good, fs::Permissions::from_mode(0o666)).expect("a mode");
    let error = load(KeyFiles { trusted: vec![good], ..KeyFiles::default() }).expect_err("an error");
    assert!(error.problem.contains("everybody can write to"), "{error}");
}

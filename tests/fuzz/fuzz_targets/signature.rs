//! Signatures of manifests, statements about keys, and keys. What parses must be written as it was read: a value has one text form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_host::{KeyStatement, ManifestSignatures, PublicKey};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(signatures) = ManifestSignatures::parse_bytes(bytes) {
        assert_eq!(signatures.to_text().as_bytes(), bytes);
    }
    let _ = KeyStatement::parse_bytes(bytes);
    if let Ok(key) = PublicKey::from_pem(bytes) {
        assert_eq!(PublicKey::from_pem(key.to_pem().as_bytes()).as_ref(), Ok(&key));
    }
});

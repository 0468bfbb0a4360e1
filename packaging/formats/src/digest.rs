//! Hashes of contents.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes as hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Keys and signatures as OpenPGP writes them, just as much of it as a repository of packages needs: one kind of key, Ed25519, which
//! signs. Decision 25 says why.

mod armor;
mod key;
mod packet;
mod signature;

pub use self::key::Key;
use self::signature::Signed;
use crate::error::Error;

/// What the text of a signature says that it is.
const SIGNATURE: &str = "SIGNATURE";

/// A text with the signatures of keys below it, which were made at a time.
///
/// # Errors
///
/// When the time is none that a signature can say.
pub fn sign_text(text: &str, keys: &[Key], seconds: u64) -> Result<String, Error> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines = || text.split('\n').map(|line| line.trim_end_matches([' ', '\t', '\r']));
    let signed = lines().collect::<Vec<_>>().join("\r\n");
    let mut written = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n".to_owned();
    for line in lines() {
        // No line looks like one of those around the signature.
        let escape = if line.starts_with('-') { "- " } else { "" };
        written += &format!("{escape}{line}\n");
    }
    Ok(written + &signatures(signed.as_bytes(), Signed::Text, keys, seconds)?)
}

/// The signatures of bytes, without those.
///
/// # Errors
///
/// When the time is none that a signature can say.
pub fn sign_bytes(bytes: &[u8], keys: &[Key], seconds: u64) -> Result<String, Error> {
    signatures(bytes, Signed::Bytes, keys, seconds)
}

fn signatures(content: &[u8], signed: Signed, keys: &[Key], seconds: u64) -> Result<String, Error> {
    let mut packets = Vec::new();
    for key in keys {
        signature::write(&mut packets, key, signed, content, key.time(seconds)?);
    }
    Ok(armor::write(SIGNATURE, &packets))
}

#[cfg(test)]
mod tests;

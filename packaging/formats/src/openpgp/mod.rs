//! The subset of OpenPGP that a package repository needs: one kind of key, Ed25519, for signing. See decision 25 for the
//! reasons.

mod armor;
mod key;
mod packet;
mod signature;

pub use self::key::OpenPgpKey;
use self::signature::SignatureTarget;
use crate::error::Error;

const SIGNATURE_BLOCK: &str = "SIGNATURE";

/// Signs a text with keys at a given time, in the cleartext framework.
///
/// # Errors
///
/// When a signature cannot represent the time.
pub fn sign_cleartext(text: &str, keys: &[OpenPgpKey], seconds: u64) -> Result<String, Error> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines = || text.split('\n').map(|line| line.trim_end_matches([' ', '\t', '\r']));
    let signed = lines().collect::<Vec<_>>().join("\r\n");
    let mut written = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n".to_owned();
    for line in lines() {
        // Dash escaping: no line of the text may look like a line of the armor.
        let escape = if line.starts_with('-') { "- " } else { "" };
        written += &format!("{escape}{line}\n");
    }
    Ok(written + &armor_signatures(signed.as_bytes(), SignatureTarget::Text, keys, seconds)?)
}

/// Signs bytes with keys, as armored signatures without the bytes.
///
/// # Errors
///
/// When a signature cannot represent the time.
pub fn sign_detached(bytes: &[u8], keys: &[OpenPgpKey], seconds: u64) -> Result<String, Error> {
    armor_signatures(bytes, SignatureTarget::Bytes, keys, seconds)
}

fn armor_signatures(
    content: &[u8],
    signed: SignatureTarget,
    keys: &[OpenPgpKey],
    seconds: u64,
) -> Result<String, Error> {
    let mut packets = Vec::new();
    for key in keys {
        signature::write_signature(&mut packets, &key.signer(), signed, content, key.signing_time(seconds)?);
    }
    Ok(armor::encode_armor(SIGNATURE_BLOCK, &packets))
}

#[cfg(test)]
mod tests;

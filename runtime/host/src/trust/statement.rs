//! Statements that a vendor makes about keys: a new key follows an old one, or a key is revoked.
//!
//! A statement is a text file that proves itself, so it does not matter where it comes from. It has a line that names the format,
//! the statement, and the signatures of every key that it is about:
//!
//! ```text
//! oarlock-key-statement 1
//! successor OLDKEY NEWKEY
//! ed25519 FINGERPRINT SIGNATURE
//! ed25519 FINGERPRINT SIGNATURE
//! ```
//!
//! The signatures cover the first two lines. The old key says whom to trust next, the new key proves that its owner agrees. A
//! revocation is `revoked KEY` and is signed by that key: whoever holds a key, its owner or a thief, can end it.

use crate::trust::key::{PrivateKey, PublicKey};
use crate::trust::signature::{KeySignature, plain_text};

const STATEMENT_HEADER: &str = "oarlock-key-statement 1";
const SUCCESSOR: &str = "successor";
const REVOKED: &str = "revoked";
/// Limit on the size of a statement.
const MAX_STATEMENT_BYTES: usize = 4 * 1024;

/// A statement with valid signatures of all keys that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a statement is looked at once, and never kept")]
pub enum KeyStatement {
    /// Whoever trusts the old key can trust the new one.
    Succession {
        /// The key that is given up.
        old: PublicKey,
        /// The key that follows it.
        new: PublicKey,
    },
    /// Nothing that this key signed is to be trusted.
    Revocation {
        /// The revoked key.
        key: PublicKey,
    },
}

impl KeyStatement {
    /// True if a file starts as a statement does.
    pub fn is_statement(bytes: &[u8]) -> bool {
        bytes.starts_with(STATEMENT_HEADER.as_bytes())
    }

    /// Writes that `new` follows `old`, as the content of a file.
    pub fn write_succession(old: &PrivateKey, new: &PrivateKey) -> Result<String, String> {
        let (from, to) = (old.public_key()?, new.public_key()?);
        if from == to {
            return Err("expected two keys, found one".to_owned());
        }
        sign_statement(&format!("{SUCCESSOR} {} {}", from.to_hex(), to.to_hex()), &[old, new])
    }

    /// Writes that `key` is revoked, as the content of a file.
    pub fn write_revocation(key: &PrivateKey) -> Result<String, String> {
        sign_statement(&format!("{REVOKED} {}", key.public_key()?.to_hex()), &[key])
    }

    /// Parses the bytes of a file and verifies the signatures; the error says what was found.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_STATEMENT_BYTES {
            return Err(format!("a file of more than {MAX_STATEMENT_BYTES} bytes"));
        }
        let text = plain_text(bytes)?;
        let mut lines = text.splitn(3, '\n');
        let (header, claim, signatures) = (lines.next(), lines.next(), lines.next());
        if header != Some(STATEMENT_HEADER) {
            return Err(format!("a file that does not start with `{STATEMENT_HEADER}`"));
        }
        let claim = claim.unwrap_or_default();
        let words: Vec<&str> = claim.split(' ').collect();
        let statement = match words[..] {
            [SUCCESSOR, old, new] => {
                Self::Succession { old: PublicKey::from_hex(old)?, new: PublicKey::from_hex(new)? }
            }
            [REVOKED, key] => Self::Revocation { key: PublicKey::from_hex(key)? },
            _ => {
                return Err(format!(
                    "a statement that is neither `{SUCCESSOR} OLDKEY NEWKEY` nor `{REVOKED} KEY`"
                ));
            }
        };
        let signers = match &statement {
            Self::Succession { old, new } if old == new => return Err("a key that follows itself".to_owned()),
            Self::Succession { old, new } => vec![old, new],
            Self::Revocation { key } => vec![key],
        };
        let signatures = KeySignature::parse_lines(signatures.unwrap_or_default(), signers.len())?;
        let message = statement_message(claim);
        for signer in signers {
            if !signatures.iter().any(|signature| signature.is_valid(message.as_bytes(), signer)) {
                return Err(format!("no valid signature by the key {}", signer.fingerprint()));
            }
        }
        Ok(statement)
    }
}

fn statement_message(claim: &str) -> String {
    format!("{STATEMENT_HEADER}\n{claim}\n")
}

fn sign_statement(claim: &str, keys: &[&PrivateKey]) -> Result<String, String> {
    let message = statement_message(claim);
    let signatures =
        keys.iter().map(|key| Ok(KeySignature::sign_message(message.as_bytes(), key)?.to_line()));
    signatures.collect::<Result<String, String>>().map(|signatures| message + &signatures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_key() -> PrivateKey {
        PrivateKey::generate().expect("a key")
    }

    fn public_key(key: &PrivateKey) -> PublicKey {
        key.public_key().expect("a public key")
    }

    #[test]
    fn statements_say_what_was_signed() {
        let (old, new) = (make_key(), make_key());
        let text = KeyStatement::write_succession(&old, &new).expect("a statement");
        let statement = KeyStatement::Succession { old: public_key(&old), new: public_key(&new) };
        assert_eq!(KeyStatement::parse_bytes(text.as_bytes()), Ok(statement));
        let text = KeyStatement::write_revocation(&old).expect("a statement");
        assert!(KeyStatement::is_statement(text.as_bytes()));
        let statement = KeyStatement::Revocation { key: public_key(&old) };
        assert_eq!(KeyStatement::parse_bytes(text.as_bytes()), Ok(statement));
        assert!(KeyStatement::write_succession(&old, &old).is_err());
    }

    #[test]
    fn a_changed_or_cut_statement_is_refused() {
        let texts = [
            KeyStatement::write_succession(&make_key(), &make_key()).expect("a statement"),
            KeyStatement::write_revocation(&make_key()).expect("a statement"),
        ];
        for text in texts {
            for (at, bit) in (0..text.len()).map(|at| (at, at % 8)) {
                let mut changed = text.clone().into_bytes();
                changed[at] ^= 1 << bit;
                assert!(KeyStatement::parse_bytes(&changed).is_err(), "bit {bit} of byte {at}");
            }
            for length in 0..text.len() {
                assert!(KeyStatement::parse_bytes(&text.as_bytes()[..length]).is_err(), "{length} bytes");
            }
        }
    }

    #[test]
    fn nobody_else_can_revoke_a_key_or_appoint_its_successor() {
        let (old, new, thief) = (make_key(), make_key(), make_key());
        let forge = |claim: &str, keys: &[&PrivateKey]| {
            KeyStatement::parse_bytes(sign_statement(claim, keys).expect("a text").as_bytes())
                .expect_err("a forgery")
        };
        let hex = |key: &PrivateKey| public_key(key).to_hex();
        assert!(forge(&format!("revoked {}", hex(&old)), &[&thief]).contains("no valid signature"));
        let succession = format!("successor {} {}", hex(&old), hex(&thief));
        assert!(forge(&succession, &[&thief]).contains("no valid signature"));
        assert!(forge(&succession, &[&new, &thief]).contains("no valid signature"));
        assert!(
            forge(&format!("successor {} {}", hex(&old), hex(&new)), &[&old]).contains("no valid signature")
        );
    }
}

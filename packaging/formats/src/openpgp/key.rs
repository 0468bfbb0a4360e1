//! OpenPGP secret keys with their user id.

use super::armor;
use super::packet::{self, EDDSA_ALGORITHM, KEY_VERSION, PacketKind};
use super::signature::{self, KeySigner, SignatureTarget};
use crate::error::Error;
use ed25519_dalek::pkcs8::EncodePublicKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::{Signer as _, SigningKey};
use rustix::rand::{GetRandomFlags, getrandom};
use sha1::{Digest as _, Sha1};

/// The object identifier of Ed25519, with its length.
const CURVE_OID: &[u8] = &[9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];

/// The prefix of a compressed curve point.
const POINT_PREFIX: u8 = 0x40;

const SECRET_KEY_BLOCK: &str = "PRIVATE KEY BLOCK";

/// The expectation that errors about key files state.
const EXPECTED_KEY: &str =
    "expected a secret Ed25519 key without a passphrase, as `oarlock-pack apt-key new` makes it";

/// An Ed25519 key for signing.
#[derive(Clone)]
pub struct OpenPgpKey {
    /// The secret half.
    pub secret: SigningKey,
    /// The time of its creation, in seconds since 1970.
    made: u32,
    /// User ids with their self-signatures, as packets.
    owners: Vec<u8>,
}

impl OpenPgpKey {
    /// Generates a key for an owner such as `Archive <archive@example.org>`.
    ///
    /// # Errors
    ///
    /// When the system has no random numbers, or a key cannot represent the time.
    pub fn new(owner: &str, seconds: u64) -> Result<Self, Error> {
        let mut seed = [0; 32];
        let count = getrandom(&mut seed, GetRandomFlags::empty()).map_err(std::io::Error::from)?;
        if count < seed.len() {
            return Err(Error::new("expected 32 random bytes of the system, found fewer"));
        }
        Self::from_seed(seed, owner, seconds)
    }

    /// Derives a key from a seed.
    pub fn from_seed(seed: [u8; 32], owner: &str, seconds: u64) -> Result<Self, Error> {
        if owner.is_empty() || owner.contains(char::is_control) {
            let found = owner.escape_debug();
            return Err(Error::new(format!(
                "expected an owner such as `Name <name@example.org>`, found `{found}`"
            )));
        }
        let mut key =
            Self { secret: SigningKey::from_bytes(&seed), made: time_to_u32(seconds)?, owners: Vec::new() };
        let mut owners = Vec::new();
        packet::write_packet(&mut owners, PacketKind::OWNER, owner.as_bytes());
        let of_owner = [&[0xb4], (owner.len() as u32).to_be_bytes().as_slice(), owner.as_bytes()].concat();
        let content = [key.hashed_key(), of_owner].concat();
        signature::write_signature(&mut owners, &key.signer(), SignatureTarget::Owner, &content, key.made);
        key.owners = owners;
        Ok(key)
    }

    /// Reads a key from this program, or one from GnuPG without a passphrase.
    ///
    /// # Errors
    ///
    /// When the kind of key is not supported, or it is encrypted or damaged.
    pub fn from_armor(text: &str) -> Result<Self, Error> {
        let wrong = |found: &str| Error::new(format!("{EXPECTED_KEY}; found {found}"));
        let bytes = armor::decode_armor(SECRET_KEY_BLOCK, text)
            .map_err(|error| Error::new(format!("{EXPECTED_KEY}: {error}")))?;
        let packets = packet::read_packets(&bytes)?;
        let Some(((PacketKind::SECRET_KEY, mut body), rest)) =
            packets.split_first().map(|(first, rest)| (*first, rest))
        else {
            return Err(wrong("something else first"));
        };
        let unreadable = || wrong("part of a key");
        let head = body.split_off(..6).ok_or_else(unreadable)?;
        if head[0] != KEY_VERSION || head[5] != EDDSA_ALGORITHM || !body.starts_with(CURVE_OID) {
            return Err(wrong(&format!("one of version {} and of algorithm {}", head[0], head[5])));
        }
        body = &body[CURVE_OID.len()..];
        let public = packet::take_mpi(&mut body).ok_or_else(unreadable)?;
        if body.split_off_first().ok_or_else(unreadable)? != &0 {
            return Err(wrong("one that is encrypted, or kept elsewhere"));
        }
        let number = body;
        let secret = packet::take_mpi(&mut body).filter(|it| it.len() <= 32).ok_or_else(unreadable)?;
        let mut seed = [0; 32];
        seed[32 - secret.len()..].copy_from_slice(secret);
        let secret = SigningKey::from_bytes(&seed);
        let is_sum = body == secret_checksum(&number[..number.len() - body.len()]);
        if !is_sum || public != public_point(&secret) {
            return Err(wrong("a secret part that does not go with the public one"));
        }
        let made = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut key = Self { secret, made, owners: Vec::new() };
        let said: Vec<_> = rest.iter().take_while(|(kind, _)| !PacketKind::SUBKEYS.contains(kind)).collect();
        if ![PacketKind::OWNER, PacketKind::SIGNATURE]
            .iter()
            .all(|kind| said.iter().any(|(there, _)| there == kind))
        {
            return Err(wrong("none with a user id"));
        }
        for (kind, body) in said {
            packet::write_packet(&mut key.owners, *kind, body);
        }
        Ok(key)
    }

    /// The secret key as armored text.
    #[must_use]
    pub fn to_secret_armor(&self) -> String {
        let mut number = Vec::new();
        packet::write_mpi(&mut number, self.secret.as_bytes());
        // Marked as not encrypted.
        let body = [self.public_key_body().as_slice(), &[0], &number, &secret_checksum(&number)].concat();
        armor::encode_armor(SECRET_KEY_BLOCK, &self.key_packets(PacketKind::SECRET_KEY, &body))
    }

    /// The public key as packets, for verification.
    #[must_use]
    pub fn to_public_packets(&self) -> Vec<u8> {
        self.key_packets(PacketKind::PUBLIC_KEY, &self.public_key_body())
    }

    /// The public key as PEM, for programs without OpenPGP.
    ///
    /// # Errors
    ///
    /// When it cannot be encoded.
    pub fn to_public_pem(&self) -> Result<String, Error> {
        let text = self.secret.verifying_key().to_public_key_pem(LineEnding::LF);
        text.map_err(|error| Error::new(format!("the public key: {error}")))
    }

    /// A plain Ed25519 signature, for programs without OpenPGP.
    #[must_use]
    pub fn sign_raw(&self, bytes: &[u8]) -> [u8; 64] {
        self.secret.sign(bytes).to_bytes()
    }

    /// The fingerprint, which identifies the key.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 20] {
        Sha1::digest(self.hashed_key()).into()
    }

    /// The fingerprint as hexadecimal digits.
    #[must_use]
    pub fn fingerprint_hex(&self) -> String {
        self.fingerprint().iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// The time when the key expires, in seconds since 1970; `None` if it never does.
    #[must_use]
    pub fn expiration_time(&self) -> Option<u64> {
        let packets = packet::read_packets(&self.owners).unwrap_or_default();
        let signatures = packets.iter().filter(|(kind, _)| *kind == PacketKind::SIGNATURE);
        let mut ends = signatures.filter_map(|(_, body)| signature::key_validity_seconds(body));
        // The most recent self-signature counts, even if it removes the expiration.
        ends.next_back()
            .filter(|seconds| *seconds > 0)
            .map(|seconds| u64::from(self.made) + u64::from(seconds))
    }

    /// What signatures need of the key.
    pub(super) fn signer(&self) -> KeySigner<'_> {
        KeySigner { secret: &self.secret, fingerprint: self.fingerprint() }
    }

    /// The time to put into a signature: the requested one, or the key's creation time if that is later.
    pub fn signing_time(&self, seconds: u64) -> Result<u32, Error> {
        Ok(time_to_u32(seconds)?.max(self.made))
    }

    fn key_packets(&self, kind: PacketKind, body: &[u8]) -> Vec<u8> {
        let mut packets = Vec::new();
        packet::write_packet(&mut packets, kind, body);
        packets.extend_from_slice(&self.owners);
        packets
    }

    /// The public key in the form that is hashed for fingerprints and signatures.
    fn hashed_key(&self) -> Vec<u8> {
        let body = self.public_key_body();
        [&[0x99], (body.len() as u16).to_be_bytes().as_slice(), &body].concat()
    }

    fn public_key_body(&self) -> Vec<u8> {
        let mut body = vec![KEY_VERSION];
        body.extend(self.made.to_be_bytes());
        body.push(EDDSA_ALGORITHM);
        body.extend_from_slice(CURVE_OID);
        packet::write_mpi(&mut body, &public_point(&self.secret));
        body
    }
}

fn public_point(secret: &SigningKey) -> Vec<u8> {
    [&[POINT_PREFIX], secret.verifying_key().as_bytes().as_slice()].concat()
}

/// The checksum of an unencrypted secret key.
fn secret_checksum(number: &[u8]) -> [u8; 2] {
    number.iter().fold(0_u16, |sum, byte| sum.wrapping_add(u16::from(*byte))).to_be_bytes()
}

fn time_to_u32(seconds: u64) -> Result<u32, Error> {
    u32::try_from(seconds).map_err(|_| Error::new(format!("expected a time before 2106, found {seconds} s")))
}

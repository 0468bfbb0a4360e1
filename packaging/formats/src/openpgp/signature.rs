//! OpenPGP signatures: of text, of bytes, and of a user id.

use super::packet::{self, EDDSA_ALGORITHM, KEY_VERSION, PacketKind};
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha512};

/// The type of a signature.
#[derive(Clone, Copy)]
pub(super) enum SignatureTarget {
    /// Binary data.
    Bytes = 0x00,
    /// Text, independent of line endings.
    Text = 0x01,
    /// The binding of a user id to a key.
    Owner = 0x13,
}

const SHA512_ALGORITHM: u8 = 10;

/// Ids of signature subpackets.
const CREATION_TIME_SUBPACKET: u8 = 2;
const KEY_EXPIRATION_SUBPACKET: u8 = 9;
const ISSUER_SUBPACKET: u8 = 16;
const PREFERRED_HASHES_SUBPACKET: u8 = 21;
const KEY_FLAGS_SUBPACKET: u8 = 27;
const ISSUER_FINGERPRINT_SUBPACKET: u8 = 33;

/// The key may certify other keys and sign data.
const CERTIFY_AND_SIGN_FLAGS: u8 = 0x01 | 0x02;

/// The half of a key that signs, and the fingerprint that identifies it.
pub(super) struct KeySigner<'k> {
    pub(super) secret: &'k SigningKey,
    pub(super) fingerprint: [u8; 20],
}

/// Signs `content` at a given time; the result is a packet.
pub(super) fn write_signature(
    packets: &mut Vec<u8>,
    signer: &KeySigner<'_>,
    signed: SignatureTarget,
    content: &[u8],
    seconds: u32,
) {
    let mut subpackets = Vec::new();
    let mut add_subpacket = |what: u8, value: &[u8]| {
        // All subpackets are short enough for a one-byte length.
        subpackets.extend([value.len() as u8 + 1, what]);
        subpackets.extend_from_slice(value);
    };
    add_subpacket(ISSUER_FINGERPRINT_SUBPACKET, &[&[KEY_VERSION], signer.fingerprint.as_slice()].concat());
    add_subpacket(CREATION_TIME_SUBPACKET, &seconds.to_be_bytes());
    if let SignatureTarget::Owner = signed {
        add_subpacket(KEY_FLAGS_SUBPACKET, &[CERTIFY_AND_SIGN_FLAGS]);
        add_subpacket(PREFERRED_HASHES_SUBPACKET, &[SHA512_ALGORITHM]);
    }
    let mut body = vec![KEY_VERSION, signed as u8, EDDSA_ALGORITHM, SHA512_ALGORITHM];
    body.extend((subpackets.len() as u16).to_be_bytes());
    body.extend(subpackets);
    let mut hash = Sha512::new();
    hash.update(content);
    hash.update(&body);
    hash.update([KEY_VERSION, 0xff]);
    hash.update((body.len() as u32).to_be_bytes());
    let hash = hash.finalize();
    // Unhashed: the short key id, which readers use to look up the key.
    let short = &signer.fingerprint[12..];
    body.extend([0, short.len() as u8 + 2, short.len() as u8 + 1, ISSUER_SUBPACKET]);
    body.extend_from_slice(short);
    body.extend_from_slice(&hash[..2]);
    let signature = signer.secret.sign(&hash);
    packet::write_mpi(&mut body, signature.r_bytes());
    packet::write_mpi(&mut body, signature.s_bytes());
    packet::write_packet(packets, PacketKind::SIGNATURE, &body);
}

/// The validity of a key in seconds, from a self-signature; 0 means forever. `None` for other signatures.
pub(super) fn key_validity_seconds(body: &[u8]) -> Option<u32> {
    let (head, rest) = body.split_at_checked(6)?;
    // The types in this range are all self-signatures, of different confidence.
    if head[0] != KEY_VERSION || !(0x10..=0x13).contains(&head[1]) {
        return None;
    }
    let mut subpackets = rest.get(..u16::from_be_bytes([head[4], head[5]]).into())?;
    while !subpackets.is_empty() {
        let length = packet::take_length(&mut subpackets, 255)?;
        let (what, value) = subpackets.split_off(..length)?.split_first()?;
        // The high bit of the id marks critical subpackets.
        if what & 0x7f == KEY_EXPIRATION_SUBPACKET {
            return Some(u32::from_be_bytes(value.try_into().ok()?));
        }
    }
    Some(0)
}

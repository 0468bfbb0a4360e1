//! Signatures: of a text, of bytes, and of a key's owner.

use ed25519_dalek::Signer as _;
use sha2::{Digest as _, Sha512};

use super::key::{EDDSA_ALGORITHM, KEY_VERSION, OpenPgpKey};
use super::packet::{self, PacketKind};

/// What is signed.
#[derive(Clone, Copy)]
pub(super) enum SignatureTarget {
    /// Bytes as they are.
    Bytes = 0x00,
    /// Lines, however they end.
    Text = 0x01,
    /// That a key is its owner's.
    Owner = 0x13,
}

/// The hash that is signed, by its number.
const SHA512_ALGORITHM: u8 = 10;

/// What is said of a signature, by the numbers that parts of it have.
const CREATION_TIME_SUBPACKET: u8 = 2;
const KEY_EXPIRATION_SUBPACKET: u8 = 9;
const ISSUER_SUBPACKET: u8 = 16;
const PREFERRED_HASHES_SUBPACKET: u8 = 21;
const KEY_FLAGS_SUBPACKET: u8 = 27;
const ISSUER_FINGERPRINT_SUBPACKET: u8 = 33;

/// That a key signs keys and what it is given.
const CERTIFY_AND_SIGN_FLAGS: u8 = 0x01 | 0x02;

/// A signature of `content`, made at a time, as a packet.
pub(super) fn write_signature(
    packets: &mut Vec<u8>,
    key: &OpenPgpKey,
    signed: SignatureTarget,
    content: &[u8],
    seconds: u32,
) {
    let mut said = Vec::new();
    let mut say = |what: u8, value: &[u8]| {
        // One byte says how long it is: none of what is said is long.
        said.extend([value.len() as u8 + 1, what]);
        said.extend_from_slice(value);
    };
    say(ISSUER_FINGERPRINT_SUBPACKET, &[&[KEY_VERSION], key.fingerprint().as_slice()].concat());
    say(CREATION_TIME_SUBPACKET, &seconds.to_be_bytes());
    if let SignatureTarget::Owner = signed {
        say(KEY_FLAGS_SUBPACKET, &[CERTIFY_AND_SIGN_FLAGS]);
        say(PREFERRED_HASHES_SUBPACKET, &[SHA512_ALGORITHM]);
    }
    let mut body = vec![KEY_VERSION, signed as u8, EDDSA_ALGORITHM, SHA512_ALGORITHM];
    body.extend((said.len() as u16).to_be_bytes());
    body.extend(said);
    let mut hash = Sha512::new();
    hash.update(content);
    hash.update(&body);
    hash.update([KEY_VERSION, 0xff]);
    hash.update((body.len() as u32).to_be_bytes());
    let hash = hash.finalize();
    // What is not signed itself: the short name of the key, for who looks for it by that.
    let short = &key.fingerprint()[12..];
    body.extend([0, short.len() as u8 + 2, short.len() as u8 + 1, ISSUER_SUBPACKET]);
    body.extend_from_slice(short);
    body.extend_from_slice(&hash[..2]);
    let signature = key.secret.sign(&hash);
    packet::write_mpi(&mut body, signature.r_bytes());
    packet::write_mpi(&mut body, signature.s_bytes());
    packet::write_packet(packets, PacketKind::SIGNATURE, &body);
}

/// For how many seconds a key is good, as a signature of its owner says; 0 for ever. Nothing where it does not say it of the key.
pub(super) fn key_validity_seconds(body: &[u8]) -> Option<u32> {
    let (head, rest) = body.split_at_checked(6)?;
    // What stands between says that the owner is known in another way.
    if head[0] != KEY_VERSION || !(0x10..=0x13).contains(&head[1]) {
        return None;
    }
    let mut said = rest.get(..u16::from_be_bytes([head[4], head[5]]).into())?;
    while !said.is_empty() {
        let length = packet::take_length(&mut said, 255)?;
        let (what, value) = said.split_off(..length)?.split_first()?;
        // Who has to understand it has a bit for that.
        if what & 0x7f == KEY_EXPIRATION_SUBPACKET {
            return Some(u32::from_be_bytes(value.try_into().ok()?));
        }
    }
    Some(0)
}

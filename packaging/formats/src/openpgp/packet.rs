//! OpenPGP packets and multiprecision integers.

use crate::error::Error;

/// The version of keys and signatures; every version of apt supports it.
pub(super) const KEY_VERSION: u8 = 4;

/// Ed25519 under its legacy id, which every version of apt supports.
pub(super) const EDDSA_ALGORITHM: u8 = 22;

/// A packet tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PacketKind(pub u8);

impl PacketKind {
    pub(super) const SIGNATURE: Self = Self(2);
    pub(super) const SECRET_KEY: Self = Self(5);
    pub(super) const PUBLIC_KEY: Self = Self(6);
    pub(super) const OWNER: Self = Self(13);
    /// Subkeys, which may follow the primary key and come before user ids.
    pub(super) const SUBKEYS: [Self; 2] = [Self(7), Self(14)];
}

/// Appends a packet in the old format, the only one that apt 2 accepts in key files.
pub(super) fn write_packet(packets: &mut Vec<u8>, kind: PacketKind, body: &[u8]) {
    let first = 0x80 | (kind.0 << 2);
    match (u8::try_from(body.len()), u16::try_from(body.len())) {
        (Ok(length), _) => packets.extend([first, length]),
        (_, Ok(length)) => {
            packets.push(first | 1);
            packets.extend(length.to_be_bytes());
        }
        _ => {
            packets.push(first | 2);
            packets.extend((body.len() as u32).to_be_bytes());
        }
    }
    packets.extend_from_slice(body);
}

/// Splits bytes into packets.
pub(super) fn read_packets(mut bytes: &[u8]) -> Result<Vec<(PacketKind, &[u8])>, Error> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let packet = take_packet(&mut bytes);
        packets.push(packet.ok_or_else(|| Error::new("expected a whole OpenPGP packet, found part of one"))?);
    }
    Ok(packets)
}

fn take_packet<'a>(bytes: &mut &'a [u8]) -> Option<(PacketKind, &'a [u8])> {
    let first = *bytes.split_off_first()?;
    let (kind, length) = match first {
        0xc0.. => (first & 0x3f, take_length(bytes, 224)?),
        0x80.. => {
            let size = [1, 2, 4].get(usize::from(first & 3))?;
            let length = bytes.split_off(..*size)?;
            ((first >> 2) & 0x0f, length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
        }
        _ => return None,
    };
    Some((PacketKind(kind), bytes.split_off(..length)?))
}

/// Takes a length of one, two or five bytes. `long` is the first value that does not start a one- or two-byte length.
pub(super) fn take_length(bytes: &mut &[u8], long: u8) -> Option<usize> {
    let first = *bytes.split_off_first()?;
    if first < 192 {
        return Some(first.into());
    }
    if first < long {
        let second = *bytes.split_off_first()?;
        return Some((usize::from(first) - 192) * 256 + usize::from(second) + 192);
    }
    let length = bytes.split_off(..4).filter(|_| first == 255)?;
    Some(u32::from_be_bytes(length.try_into().ok()?) as usize)
}

/// Appends a big-endian integer with its length in bits.
pub(super) fn write_mpi(body: &mut Vec<u8>, number: &[u8]) {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    let number = &number[start..];
    let bits = number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize);
    body.extend((bits as u16).to_be_bytes());
    body.extend_from_slice(number);
}

/// Takes such an integer from the front.
pub(super) fn take_mpi<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bits = body.split_off(..2)?;
    let bits = u16::from_be_bytes(bits.try_into().ok()?);
    body.split_off(..usize::from(bits).div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = Vec::new();
        let bodies = [0, 255, 256, 65_535, 65_536].map(|length| vec![7; length]);
        bodies.iter().for_each(|body| write_packet(&mut bytes, PacketKind::OWNER, body));
        let read = read_packets(&bytes).expect("what was written");
        assert_eq!(read, bodies.each_ref().map(|body| (PacketKind::OWNER, &**body)));
        assert_eq!(bytes[0], 0xb4);
    }

    #[test]
    fn the_newer_way_is_read_too() {
        for (length, head) in [
            (5, [0xcd, 5].as_slice()),
            (192, &[0xcd, 192, 0]),
            (8383, &[0xcd, 223, 255]),
            (9000, &[0xcd, 255, 0, 0, 35, 40]),
        ] {
            let bytes = [head, &vec![1; length]].concat();
            assert_eq!(read_packets(&bytes).expect("a piece"), [(PacketKind::OWNER, &*vec![1; length])]);
        }
    }

    #[test]
    fn part_of_a_piece_is_refused() {
        let mut whole = Vec::new();
        write_packet(&mut whole, PacketKind::SIGNATURE, &[1; 300]);
        assert!((1..whole.len()).all(|length| read_packets(&whole[..length]).is_err()));
        // No tag, no end, one of several parts, and a length beyond the data.
        for wrong in [[0x00, 0].as_slice(), &[0xb7], &[0xcd, 224, 1], &[0xcd, 255, 255, 255, 255, 255]] {
            assert!(read_packets(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        for (number, written) in [
            ([0, 0].as_slice(), [0, 0].as_slice()),
            (&[0, 1], &[0, 1, 1]),
            (&[0x80, 0], &[0, 16, 0x80, 0]),
            (&[0x40; 33], &[&[1, 7], [0x40; 33].as_slice()].concat()),
        ] {
            let mut body = Vec::new();
            write_mpi(&mut body, number);
            assert_eq!(body, written);
            let mut rest = &*body;
            let read = take_mpi(&mut rest).expect("a number");
            assert!(number.ends_with(read) && rest.is_empty());
        }
        assert_eq!(take_mpi(&mut [0, 9, 1].as_slice()), None);
    }
}

//! The hash of recorded bytes. It is part of the format, so it never changes; it finds differences, and resists no attacker.

/// A hash of 64 bits.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = FACTOR ^ bytes.len() as u64;
    let mut mix = |lane: u64| state = (state ^ lane).wrapping_mul(FACTOR).rotate_left(29);
    let (lanes, rest) = bytes.as_chunks::<8>();
    lanes.iter().for_each(|lane| mix(u64::from_le_bytes(*lane)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    state ^ (state >> 32)
}

#[cfg(test)]
mod tests {
    use super::hash_bytes;

    #[test]
    fn each_byte_and_the_length_count_and_the_hash_is_the_same_for_ever() {
        let bytes: Vec<u8> = (0..100).collect();
        let hash = hash_bytes(&bytes);
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert_ne!(hash_bytes(&changed), hash, "byte {index}");
        }
        assert_ne!(hash_bytes(&[0; 8]), hash_bytes(&[0; 16]));
        assert_ne!(hash_bytes(&[]), hash_bytes(&[0]));
        assert_eq!(hash_bytes(b"oarlock"), hash_bytes(b"oarlock"));
    }
}

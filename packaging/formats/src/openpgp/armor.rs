//! ASCII armor: Base64 lines between a header line and a footer line.

use crate::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ARMOR_LINE_LENGTH: usize = 64;

/// Encodes bytes as a block of a kind such as `PUBLIC KEY BLOCK`.
pub(super) fn encode_armor(kind: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN PGP {kind}-----\n\n");
    let encoded = STANDARD.encode(bytes);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(ARMOR_LINE_LENGTH));
        text += &format!("{line}\n");
        rest = more;
    }
    text + &format!("={}\n-----END PGP {kind}-----\n", STANDARD.encode(crc24(bytes)))
}

/// Decodes the first block of a kind.
pub(super) fn decode_armor(kind: &str, text: &str) -> Result<Vec<u8>, Error> {
    let (begin, end) = (format!("-----BEGIN PGP {kind}-----"), format!("-----END PGP {kind}-----"));
    let mut lines = text.lines().map(str::trim_end);
    if !lines.any(|line| line == begin) {
        return Err(Error::new(format!("expected a line `{begin}`, found none")));
    }
    // Armor headers extend to the first empty line.
    let mut encoded = String::new();
    let mut sum_there = None;
    for line in lines.skip_while(|line| !line.is_empty()).skip(1) {
        if line == end {
            let bytes = STANDARD.decode(encoded).ok();
            let is_whole =
                |bytes: &Vec<u8>| sum_there.is_none_or(|there| there == STANDARD.encode(crc24(bytes)));
            return bytes.filter(is_whole).ok_or_else(|| {
                Error::new(format!("expected what was written after `{begin}`, found that it has changed"))
            });
        }
        match line.strip_prefix('=') {
            Some(sum) => sum_there = Some(sum),
            None => encoded += line,
        }
    }
    Err(Error::new(format!("expected a line `{end}`, found none")))
}

/// The checksum that OpenPGP appends to armor.
fn crc24(bytes: &[u8]) -> [u8; 3] {
    let mut sum: u32 = 0x00b7_04ce;
    for byte in bytes {
        sum ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            sum <<= 1;
            if sum & 0x0100_0000 != 0 {
                sum ^= 0x0186_4cfb;
            }
        }
    }
    let [_, high, middle, low] = sum.to_be_bytes();
    [high, middle, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 2, 47, 48, 49, 500] {
            let bytes: Vec<u8> = (0..length).map(|number| number as u8).collect();
            let text = format!("about it\n\n{}more\n", encode_armor("KEY", &bytes));
            assert_eq!(decode_armor("KEY", &text).expect("what was written"), bytes);
            let said = text.replace("KEY-----\n\n", "KEY-----\r\nVersion: x\r\n\r\n");
            assert_eq!(decode_armor("KEY", &said).expect("what others write"), bytes);
        }
    }

    #[test]
    fn what_has_changed_is_refused() {
        let text = encode_armor("KEY", b"abc");
        assert_eq!(text, "-----BEGIN PGP KEY-----\n\nYWJj\n=uhx7\n-----END PGP KEY-----\n");
        let refused = |text: &str| decode_armor("KEY", text).expect_err(text).to_string();
        assert!(refused(&text.replace("YWJj", "YWJk")).contains("found that it has changed"));
        assert!(refused(&text.replace("YWJj", "YW j")).contains("found that it has changed"));
        assert!(refused(&text.replace("END", "")).contains("expected a line `-----END PGP KEY-----`"));
        assert!(refused("").contains("expected a line `-----BEGIN PGP KEY-----`"));
    }
}

//! The `f32` arithmetic among the instructions of 64-bit ARM, all of which have 32 bits.

/// Some bits of an instruction, and what they are in those of a kind.
type Pattern = (u32, u32);

/// Scalar additions, subtractions, multiplications and divisions, also of a negated product, and multiplications with addition.
const SCALAR: [Pattern; 3] =
    [(0xFFE0_CC00, 0x1E20_0800), (0xFFE0_FC00, 0x1E20_8800), (0xFFC0_0000, 0x1F00_0000)];

/// The same of NEON vectors: `FADD`, `FSUB`, `FMUL`, `FDIV`, `FMLA` and `FMLS`, the last three products also with an element.
const PACKED: [Pattern; 9] = [
    (0xBFE0_FC00, 0x0E20_D400),
    (0xBFE0_FC00, 0x0EA0_D400),
    (0xBFE0_FC00, 0x2E20_DC00),
    (0xBFE0_FC00, 0x2E20_FC00),
    (0xBFE0_FC00, 0x0E20_CC00),
    (0xBFE0_FC00, 0x0EA0_CC00),
    (0xBFC0_F400, 0x0F80_9000),
    (0xBFC0_F400, 0x0F80_1000),
    (0xBFC0_F400, 0x0F80_5000),
];

/// The numbers of instructions on NEON vectors and on single numbers.
pub(crate) fn count_arithmetic(code: &[u8]) -> (usize, usize) {
    let is_among = |word: u32, kind: &[Pattern]| kind.iter().any(|(bits, value)| word & bits == *value);
    let words = code.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    words.fold((0, 0), |(packed, scalar), word| {
        (packed + usize::from(is_among(word, &PACKED)), scalar + usize::from(is_among(word, &SCALAR)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(word: u32) -> (usize, usize) {
        count_arithmetic(&word.to_le_bytes())
    }

    #[test]
    fn vectors_and_numbers_are_told_apart() {
        for (name, word) in [
            ("fadd v0.4s, v1.4s, v2.4s", 0x4E22_D420),
            ("fsub v0.4s, v1.4s, v2.4s", 0x4EA2_D420),
            ("fmul v0.4s, v1.4s, v2.4s", 0x6E22_DC20),
            ("fdiv v0.4s, v1.4s, v2.4s", 0x6E22_FC20),
            ("fmla v0.4s, v1.4s, v2.4s", 0x4E22_CC20),
            ("fmla v0.4s, v1.4s, v2.s[3]", 0x4FA2_1820),
        ] {
            assert_eq!(kind(word), (1, 0), "{name}");
        }
        for (name, word) in [
            ("fadd s0, s1, s2", 0x1E22_2820),
            ("fmul s0, s1, s2", 0x1E22_0820),
            ("fnmul s0, s1, s2", 0x1E22_8820),
            ("fmadd s0, s1, s2, s3", 0x1F02_0C20),
        ] {
            assert_eq!(kind(word), (0, 1), "{name}");
        }
        for (name, word) in [
            ("fadd d0, d1, d2", 0x1E62_2820),
            ("fadd v0.2d, v1.2d, v2.2d", 0x4E62_D420),
            ("add v0.4s, v1.4s, v2.4s", 0x4EA2_8420),
            ("ret", 0xD65F_03C0),
        ] {
            assert_eq!(kind(word), (0, 0), "{name}");
        }
    }
}

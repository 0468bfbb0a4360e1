//! Disassembles libraries: a build without AVX must not contain a single AVX instruction from any crate or compiler, and a
//! library with kernels must contain vectorized ones.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::error::Error;
use iced_x86::{Decoder, DecoderOptions, EncodingKind, Instruction, Mnemonic};
use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use serde::Serialize;

/// The instructions of one encoding in a library.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
pub struct EncodingUsage {
    /// The number of instructions.
    pub count: usize,
    /// The location of the first one.
    pub first: InstructionLocation,
}

/// A location in a library.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
pub struct InstructionLocation {
    /// The address, such as `0x1139`.
    pub address: String,
    /// The function around it; `None` without a symbol, as in stripped libraries.
    pub function: Option<String>,
}

impl fmt::Display for InstructionLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", self.address)?;
        self.function.as_ref().map_or(Ok(()), |function| write!(f, " in `{function}`"))
    }
}

/// Counts of `f32` arithmetic instructions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct FloatArithmetic {
    /// Instructions on a whole SIMD vector.
    pub packed: usize,
    /// Instructions on a single number.
    pub scalar: usize,
}

impl FloatArithmetic {
    /// The percentage of SIMD instructions; 100 for no arithmetic at all.
    #[must_use]
    pub fn vectorized_percent(self) -> usize {
        (self.packed * 100).checked_div(self.packed + self.scalar).unwrap_or(100)
    }

    fn count_instructions(&mut self, code: &[u8]) {
        let by_mnemonic: Vec<Option<FloatKind>> = Mnemonic::values().map(FloatKind::from_mnemonic).collect();
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            self.count_kind(by_mnemonic[instruction.mnemonic() as usize]);
        }
    }

    fn count_arm_instructions(&mut self, code: &[u8]) {
        for word in code.chunks_exact(4) {
            self.count_kind(FloatKind::from_arm_word(u32::from_le_bytes([
                word[0], word[1], word[2], word[3],
            ])));
        }
    }

    fn count_kind(&mut self, kind: Option<FloatKind>) {
        match kind {
            Some(FloatKind::Packed) => self.packed += 1,
            Some(FloatKind::Scalar) => self.scalar += 1,
            None => {}
        }
    }
}

/// The width of an `f32` arithmetic instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FloatKind {
    Packed,
    Scalar,
}

impl FloatKind {
    /// Classifies an instruction such as `addps` or `vfmadd213ss`; `None` for one that is not `f32` arithmetic.
    fn from_mnemonic(mnemonic: Mnemonic) -> Option<Self> {
        const FLOAT_OPERATIONS: [&str; 11] =
            ["add", "sub", "mul", "div", "min", "max", "sqrt", "fmadd", "fmsub", "fnmadd", "fnmsub"];
        let name = format!("{mnemonic:?}").to_lowercase();
        let name = name.strip_prefix('v').unwrap_or(&name);
        let (operation, kind) = match name.strip_suffix("ps") {
            Some(operation) => (operation, Self::Packed),
            None => (name.strip_suffix("ss")?, Self::Scalar),
        };
        FLOAT_OPERATIONS.contains(&operation.trim_end_matches(|it: char| it.is_ascii_digit())).then_some(kind)
    }

    /// Classifies a 64-bit ARM instruction with the same operations, of NEON or of a single number.
    fn from_arm_word(word: u32) -> Option<Self> {
        let is_like = |mask: u32, bits: u32| word & mask == bits;
        // The operation of a NEON instruction with three vectors, and of one with an element of the third.
        let (of_vectors, of_element) = (word >> 11 & 0x1f, word >> 12 & 0xf);
        if is_like(0xffe0_0c00, 0x1e20_0800)
            || is_like(0xffc0_0000, 0x1f00_0000)
            || is_like(0xffff_fc00, 0x1e21_c000)
        {
            // `fadd`, `fmul` and the like; `fmadd` and the like; `fsqrt`.
            return Some(Self::Scalar);
        }
        let is_packed = is_like(0x9f60_0400, 0x0e20_0400) && matches!(of_vectors, 0x18..=0x1b | 0x1e | 0x1f)
            || is_like(0x9fc0_0400, 0x0f80_0000) && matches!(of_element, 1 | 5 | 9)
            || is_like(0xbfff_fc00, 0x2ea1_f800);
        is_packed.then_some(Self::Packed)
    }
}

/// Counts the `f32` arithmetic in a library for x86-64 or 64-bit ARM.
///
/// # Errors
///
/// When the bytes are not such a library.
pub fn float_arithmetic(bytes: &[u8]) -> Result<FloatArithmetic, Error> {
    let library = object::File::parse(bytes).map_err(decode_error)?;
    let mut found = FloatArithmetic::default();
    for section in library.sections().filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().map_err(decode_error)?;
        match library.architecture() {
            Architecture::X86_64 => found.count_instructions(code),
            Architecture::Aarch64 => found.count_arm_instructions(code),
            other => {
                return Err(Error::new(format!(
                    "expected a library for x86-64 or ARM, found one for {other:?}"
                )));
            }
        }
    }
    Ok(found)
}

fn decode_error(error: object::Error) -> Error {
    Error::new(format!("expected a library: {error}"))
}

/// Parses a library, which must be for x86-64.
fn parse_library(bytes: &[u8]) -> Result<object::File<'_>, Error> {
    let library = object::File::parse(bytes).map_err(decode_error)?;
    if library.architecture() != Architecture::X86_64 {
        let other = library.architecture();
        return Err(Error::new(format!("expected a library for x86-64, found one for {other:?}")));
    }
    Ok(library)
}

/// Counts the instructions of a library for x86-64 by encoding: `legacy`, and `VEX`, `EVEX` and others, which came with AVX and
/// later extensions.
///
/// # Errors
///
/// When the file cannot be read or is not a library for x86-64.
pub fn encodings_in_file(file: &Path) -> Result<BTreeMap<&'static str, EncodingUsage>, Error> {
    std::fs::read(file)
        .map_err(Error::from)
        .and_then(|bytes| encodings_in_bytes(&bytes))
        .map_err(|error| error.in_file(file.display()))
}

/// True if the encoding requires a CPU with AVX.
#[must_use]
pub fn needs_avx(written: &str) -> bool {
    written != encoding_name(EncodingKind::Legacy)
}

fn encoding_name(kind: EncodingKind) -> &'static str {
    match kind {
        EncodingKind::VEX => "VEX",
        EncodingKind::EVEX => "EVEX",
        EncodingKind::XOP => "XOP",
        EncodingKind::D3NOW => "3DNow!",
        EncodingKind::Legacy => "legacy",
        _ => "other",
    }
}

/// Counts the instructions of a library by encoding.
pub fn encodings_in_bytes(bytes: &[u8]) -> Result<BTreeMap<&'static str, EncodingUsage>, Error> {
    let library = parse_library(bytes)?;
    let mut symbols: Vec<(u64, u64, &str)> = library
        .symbols()
        .chain(library.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
        .collect();
    symbols.sort_unstable();
    let place = |address: u64| InstructionLocation {
        address: format!("{address:#x}"),
        function: function_at(&symbols, address).map(ToOwned::to_owned),
    };
    let mut kinds: BTreeMap<&'static str, EncodingUsage> = BTreeMap::new();
    for section in library.sections().filter(|section| section.kind() == SectionKind::Text) {
        count_encodings(section.data().map_err(decode_error)?, section.address(), &place, &mut kinds);
    }
    Ok(kinds)
}

/// The function at an address, from symbols sorted by start, each with its size. The last function that starts before the address
/// may end before it too: in stripped libraries, functions between two symbols have no names.
fn function_at<'s>(symbols: &[(u64, u64, &'s str)], address: u64) -> Option<&'s str> {
    let before = symbols.partition_point(|(start, ..)| *start <= address);
    let (start, size, name) = symbols.get(before.checked_sub(1)?)?;
    (address - start < *size).then_some(name)
}

/// Counts the instructions of some code by encoding.
fn count_encodings(
    code: &[u8],
    address: u64,
    place: &dyn Fn(u64) -> InstructionLocation,
    kinds: &mut BTreeMap<&'static str, EncodingUsage>,
) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if !instruction.is_invalid() {
            let found = kinds.entry(encoding_name(instruction.encoding())).or_default();
            if found.count == 0 {
                found.first = place(instruction.ip());
            }
            found.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_by_how_they_are_written() {
        // addps xmm0, xmm1; ret.
        let plain: &[u8] = &[0x0f, 0x58, 0xc1, 0xc3];
        // vaddps ymm0, ymm0, ymm1; ret.
        let wide: &[u8] = &[0xc5, 0xfc, 0x58, 0xc1, 0xc3];
        // vaddps zmm0, zmm0, zmm1; ret.
        let wider: &[u8] = &[0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1, 0xc3];
        let mut kinds = BTreeMap::new();
        for (name, code) in [("plain", plain), ("wide", wide), ("wider", wider)] {
            let place =
                |ip| InstructionLocation { address: format!("{ip:#x}"), function: Some(name.to_owned()) };
            count_encodings(code, 0, &place, &mut kinds);
        }
        let of = |name: &str| kinds.get(name).map(|found| (found.count, found.first.to_string()));
        assert_eq!(of("legacy"), Some((4, "at 0x0 in `plain`".to_owned())));
        assert_eq!(of("VEX"), Some((1, "at 0x0 in `wide`".to_owned())));
        assert_eq!(of("EVEX"), Some((1, "at 0x0 in `wider`".to_owned())));
        assert!(kinds.keys().copied().filter(|name| needs_avx(name)).eq(["EVEX", "VEX"]));
    }

    #[test]
    fn float_arithmetic_is_distinguished_from_moves_and_other_types() {
        let kinds = [
            (Mnemonic::Addps, Some(FloatKind::Packed)),
            (Mnemonic::Vfnmadd231ps, Some(FloatKind::Packed)),
            (Mnemonic::Vsqrtss, Some(FloatKind::Scalar)),
            (Mnemonic::Vfmsub213ss, Some(FloatKind::Scalar)),
            (Mnemonic::Movss, None),
            (Mnemonic::Vmovups, None),
            (Mnemonic::Vaddpd, None),
            (Mnemonic::Vpaddb, None),
        ];
        for (mnemonic, kind) in kinds {
            assert_eq!(FloatKind::from_mnemonic(mnemonic), kind, "{mnemonic:?}");
        }
        let mut found = FloatArithmetic::default();
        // addps xmm0, xmm1; vaddps zmm0, zmm0, zmm1; mulss xmm0, xmm1; movaps xmm0, xmm1; ret.
        found.count_instructions(&[
            0x0f, 0x58, 0xc1, 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1, 0xf3, 0x0f, 0x59, 0xc1, 0x0f, 0x28, 0xc1,
            0xc3,
        ]);
        assert_eq!(found, FloatArithmetic { packed: 2, scalar: 1 });
        assert_eq!(found.vectorized_percent(), 66);
        assert_eq!(FloatArithmetic { packed: 0, scalar: 3 }.vectorized_percent(), 0);
        assert_eq!(FloatArithmetic::default().vectorized_percent(), 100);
    }

    #[test]
    fn float_arithmetic_of_arm_is_distinguished_too() {
        let kinds = [
            (0x4e22_d420, Some(FloatKind::Packed), "fadd v0.4s, v1.4s, v2.4s"),
            (0x0ea2_d420, Some(FloatKind::Packed), "fsub v0.2s, v1.2s, v2.2s"),
            (0x4e22_cc20, Some(FloatKind::Packed), "fmla v0.4s, v1.4s, v2.4s"),
            (0x4f82_1020, Some(FloatKind::Packed), "fmla v0.4s, v1.4s, v2.s[0]"),
            (0x6e22_fc20, Some(FloatKind::Packed), "fdiv v0.4s, v1.4s, v2.4s"),
            (0x6ea1_f820, Some(FloatKind::Packed), "fsqrt v0.4s, v1.4s"),
            (0x1e22_2820, Some(FloatKind::Scalar), "fadd s0, s1, s2"),
            (0x1f02_0c20, Some(FloatKind::Scalar), "fmadd s0, s1, s2, s3"),
            (0x1e21_c020, Some(FloatKind::Scalar), "fsqrt s0, s1"),
            (0x4e62_d420, None, "fadd v0.2d, v1.2d, v2.2d"),
            (0x1e62_2820, None, "fadd d0, d1, d2"),
            (0x4ea2_8420, None, "add v0.4s, v1.4s, v2.4s"),
            (0x4e22_e420, None, "fcmeq v0.4s, v1.4s, v2.4s"),
            (0x4ea1_1c20, None, "mov v0.16b, v1.16b"),
            (0x3dc0_0020, None, "ldr q0, [x1]"),
            (0xd65f_03c0, None, "ret"),
        ];
        for (word, kind, text) in kinds {
            assert_eq!(FloatKind::from_arm_word(word), kind, "{text}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn this_program_has_instructions_in_functions_with_names() {
        let kinds = encodings_in_file(&std::env::current_exe().expect("this program")).expect("instructions");
        assert!(kinds["legacy"].count > 10_000, "{kinds:?}");
        // The very first instruction may be in a part without a symbol.
        assert!(kinds.values().any(|found| found.first.function.is_some()), "{kinds:?}");
    }

    #[test]
    fn a_function_ends_where_its_size_says() {
        let symbols = [(0x10, 0x10, "first"), (0x40, 4, "second"), (0x40, 8, "second, longer")];
        let expected = [
            (0xf, None),
            (0x10, Some("first")),
            (0x1f, Some("first")),
            (0x20, None),
            (0x47, Some("second, longer")),
            (0x48, None),
        ];
        for (address, name) in expected {
            assert_eq!(function_at(&symbols, address), name, "{address:#x}");
        }
    }

    #[test]
    fn what_is_no_library_is_refused() {
        assert!(
            encodings_in_bytes(b"text")
                .expect_err("no library")
                .to_string()
                .starts_with("expected a library: ")
        );
    }
}

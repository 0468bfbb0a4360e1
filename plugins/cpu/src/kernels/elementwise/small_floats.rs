//! Floats of 8 and 16 bits as bits, and their values as `f32`, without branches, so that loops over them become vector code.

use super::inner::Map;
use crate::isa::Target;

const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;
const F32_INFINITY: u32 = 0x7F80_0000;

/// A format with a sign, then an exponent, then `MANTISSA` bits.
#[derive(Clone, Copy)]
struct Format {
    mantissa: u32,
    bias: u32,
    /// The code of the largest value.
    largest: u32,
    /// The code of what is larger.
    overflow: u32,
    /// A code of no number.
    nan: u32,
    sign: u32,
}

const F16: Format =
    Format { mantissa: 10, bias: 15, largest: 0x7BFF, overflow: 0x7C00, nan: 0x7E00, sign: 0x8000 };
const BF16: Format =
    Format { mantissa: 7, bias: 127, largest: 0x7F7F, overflow: 0x7F80, nan: 0x7FC0, sign: 0x8000 };
const F8E4M3: Format = Format { mantissa: 3, bias: 7, largest: 0x7E, overflow: 0x7F, nan: 0x7F, sign: 0x80 };
const F8E5M2: Format = Format { mantissa: 2, bias: 15, largest: 0x7B, overflow: 0x7C, nan: 0x7F, sign: 0x80 };

impl Format {
    const fn saturating(self) -> Self {
        Self { overflow: self.largest, ..self }
    }

    /// The code of the nearest value, of two the even one.
    #[inline(always)]
    fn encode(self, value: f32) -> u32 {
        let bits = value.to_bits();
        let size = bits & !(1 << 31);
        let shift = F32_MANTISSA - self.mantissa;
        let rounding = (1 << (shift - 1)) - 1 + (size >> shift & 1);
        let rebiased = size.wrapping_sub((F32_BIAS - self.bias) << F32_MANTISSA);
        let normal = rebiased.wrapping_add(rounding) >> shift;
        // Where this value is added, the last bit of a sum has the worth of the last bit of a subnormal number.
        let shifter = (F32_BIAS + F32_MANTISSA + 1 - self.bias - self.mantissa) << F32_MANTISSA;
        let subnormal = (f32::from_bits(size) + f32::from_bits(shifter)).to_bits().wrapping_sub(shifter);
        let is_subnormal = size < (F32_BIAS - self.bias + 1) << F32_MANTISSA;
        let code = if is_subnormal { subnormal } else { normal };
        let code = if code > self.largest { self.overflow } else { code };
        let code = if size > F32_INFINITY { self.nan } else { code };
        code | if bits >> 31 == 1 { self.sign } else { 0 }
    }

    /// The value of a code.
    #[inline(always)]
    fn decode(self, code: u32) -> f32 {
        let size = code & (self.sign - 1);
        let aligned = size << (F32_MANTISSA - self.mantissa);
        let scale = f32::from_bits((2 * F32_BIAS - self.bias) << F32_MANTISSA);
        let finite = (f32::from_bits(aligned) * scale).to_bits();
        let bits = if size > self.largest { aligned | F32_INFINITY } else { finite };
        f32::from_bits(bits | if code & self.sign == 0 { 0 } else { 1 << 31 })
    }
}

macro_rules! conversions {
    ($($(#[$docs:meta])* $name:ident: $from:ty => $to:ty, $x:ident -> $body:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(super) struct $name;

            impl Map for $name {
                type Input = ($from,);
                type Output = $to;

                #[inline(always)]
                fn apply<T: Target>(self, ($x,): ($from,)) -> $to {
                    $body
                }
            }
        )*
    };
}

conversions! {
    /// `f16` as `f32`.
    DecodeF16: u16 => f32, x -> F16.decode(u32::from(x));
    /// `f32` as `f16`.
    EncodeF16: f32 => u16, x -> F16.encode(x) as u16;
    /// `bf16` as `f32`.
    DecodeBf16: u16 => f32, x -> f32::from_bits(u32::from(x) << 16);
    /// `f32` as `bf16`.
    EncodeBf16: f32 => u16, x -> BF16.encode(x) as u16;
    /// `f8e4m3` as `f32`.
    DecodeF8E4M3: u8 => f32, x -> F8E4M3.decode(u32::from(x));
    /// `f32` as `f8e4m3`, the largest where it is too large.
    EncodeF8E4M3: f32 => u8, x -> F8E4M3.saturating().encode(x) as u8;
    /// `f32` as `f8e4m3`, no number where it is too large.
    EncodeF8E4M3Unbounded: f32 => u8, x -> F8E4M3.encode(x) as u8;
    /// `f8e5m2` as `f32`.
    DecodeF8E5M2: u8 => f32, x -> F8E5M2.decode(u32::from(x));
    /// `f32` as `f8e5m2`, the largest where it is too large.
    EncodeF8E5M2: f32 => u8, x -> F8E5M2.saturating().encode(x) as u8;
    /// `f32` as `f8e5m2`, infinite where it is too large.
    EncodeF8E5M2Unbounded: f32 => u8, x -> F8E5M2.encode(x) as u8;
    /// `f64` as `f32` with an odd last bit where it is not exact, so that rounding once more gives what rounding at once would.
    RoundToOdd: f64 => f32, x -> round_to_odd(x);
}

#[inline(always)]
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let is_exact = f64::from(nearest) == value || value.is_nan();
    let is_above = f64::from(nearest.abs()) > value.abs();
    let bits = nearest.to_bits();
    let truncated = if is_above { bits.wrapping_sub(1) } else { bits };
    f32::from_bits(if is_exact { bits } else { truncated | 1 })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::{bf16, f16};

    use super::*;

    #[test]
    fn every_half_becomes_what_it_is_and_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let values =
                [(F16.decode(bits.into()), half.to_f32()), (BF16.decode(bits.into()), brain.to_f32())];
            for (found, expected) in values {
                assert!(
                    found == expected || found.is_nan() && expected.is_nan(),
                    "{bits:#x}: {found} {expected}"
                );
            }
            let is_nan = half.is_nan();
            assert!(is_nan || F16.encode(half.to_f32()) == u32::from(bits), "{bits:#x}");
            assert!(brain.is_nan() || BF16.encode(brain.to_f32()) == u32::from(bits), "{bits:#x}");
        }
    }

    #[test]
    fn floats_are_rounded_to_the_nearest_half() {
        for step in 0..200_000u32 {
            let value = f32::from_bits(step.wrapping_mul(2_654_435_761));
            let expected = (f16::from_f32(value), bf16::from_f32(value));
            let found =
                (f16::from_bits(F16.encode(value) as u16), bf16::from_bits(BF16.encode(value) as u16));
            assert!(found.0 == expected.0 || value.is_nan() && found.0.is_nan(), "{value}");
            assert!(found.1 == expected.1 || value.is_nan() && found.1.is_nan(), "{value}");
        }
    }

    #[test]
    fn floats_of_8_bits_have_the_codes_of_onnx() {
        let cases = [
            (0.0, 0x00, 0x00),
            (-0.0, 0x80, 0x80),
            (1.0, 0x38, 0x3C),
            (448.0, 0x7E, 0x5F),
            (464.0, 0x7E, 0x5F),
            (57344.0, 0x7E, 0x7B),
            (1e9, 0x7E, 0x7B),
            (f32::INFINITY, 0x7E, 0x7B),
            (f32::NEG_INFINITY, 0xFE, 0xFB),
            (0.001953125, 0x01, 0x18),
            (0.0009765625, 0x00, 0x14),
            (f32::NAN, 0x7F, 0x7F),
        ];
        for (value, e4m3, e5m2) in cases {
            assert_eq!(F8E4M3.saturating().encode(value), e4m3, "{value}");
            assert_eq!(F8E5M2.saturating().encode(value), e5m2, "{value}");
        }
        assert_eq!((F8E4M3.encode(1e9), F8E5M2.encode(1e9)), (0x7F, 0x7C));
        for code in 0..=0xFF_u32 {
            for format in [F8E4M3, F8E5M2] {
                let value = format.decode(code);
                assert!(value.is_nan() || format.encode(value) == code, "{code:#x} {value}");
            }
        }
        assert_eq!((F8E4M3.decode(0x7E), F8E5M2.decode(0xFC)), (448.0, f32::NEG_INFINITY));
    }

    #[test]
    fn rounding_twice_by_way_of_odd_is_rounding_once() {
        // Just above the middle of two neighbours; the nearest float is the middle itself, which would go down.
        let above = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
        assert_eq!(F16.encode(round_to_odd(above)), 0x3C01);
        assert_ne!(F16.encode(above as f32), F16.encode(round_to_odd(above)));
        for value in [0.0, -1.5, f64::INFINITY, 1e300, -1e-300] {
            assert_eq!(F16.encode(round_to_odd(value)), u32::from(f16::from_f64(value).to_bits()), "{value}");
        }
    }
}

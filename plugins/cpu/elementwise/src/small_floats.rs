//! Floats of 4, 8 and 16 bits as bits, and their values as `f32`.

use oarlock_cpu_base::float_bits::{self, F32_MANTISSA, SmallFloatFormat, round_to_odd};
use oarlock_cpu_base::isa::SimdTarget;

use super::element_loop::ElementMap;

// The codes of the largest value, of overflow and of NaN, and the sign bit. A format without infinity overflows to NaN.
const F8E4M3: SmallFloatFormat = SmallFloatFormat::new(3, 7, [0x7E, 0x7F, 0x7F, 0x80]);
const F8E5M2: SmallFloatFormat = SmallFloatFormat::new(2, 15, [0x7B, 0x7C, 0x7F, 0x80]);
const F8E4M3FNUZ: SmallFloatFormat =
    SmallFloatFormat { has_negative_zero: false, ..SmallFloatFormat::new(3, 8, [0x7F, 0x80, 0x80, 0x80]) };
const F8E5M2FNUZ: SmallFloatFormat =
    SmallFloatFormat { has_negative_zero: false, ..SmallFloatFormat::new(2, 16, [0x7F, 0x80, 0x80, 0x80]) };
/// Every code is a number, so NaN becomes a 0, with the sign that NumPy's package `ml_dtypes` gives it.
const F4E2M1: SmallFloatFormat = SmallFloatFormat::new(1, 1, [0x7, 0x7, 0x8, 0x8]);

macro_rules! conversions {
    ($($(#[$docs:meta])* $name:ident: $from:ty => $to:ty, $x:ident -> $body:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(super) struct $name;

            impl ElementMap for $name {
                type Input = ($from,);
                type Output = $to;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($x,): ($from,)) -> $to {
                    $body
                }
            }
        )*
    };
}

conversions! {
    /// `bf16` as `f32`.
    DecodeBf16: u16 => f32, x -> float_bits::bf16_to_f32(x);
    /// `f32` as `bf16`.
    EncodeBf16: f32 => u16, x -> float_bits::f32_to_bf16(x);
    /// `f8e4m3` as `f32`.
    DecodeF8E4M3: u8 => f32, x -> F8E4M3.decode_code(u32::from(x));
    /// `f32` as `f8e4m3`; saturates.
    EncodeF8E4M3: f32 => u8, x -> F8E4M3.saturating().encode_value(x) as u8;
    /// `f32` as `f8e4m3`; overflows to NaN.
    EncodeF8E4M3Unbounded: f32 => u8, x -> F8E4M3.encode_value(x) as u8;
    /// `f8e5m2` as `f32`.
    DecodeF8E5M2: u8 => f32, x -> F8E5M2.decode_code(u32::from(x));
    /// `f32` as `f8e5m2`; saturates.
    EncodeF8E5M2: f32 => u8, x -> F8E5M2.saturating().encode_value(x) as u8;
    /// `f32` as `f8e5m2`; overflows to infinity.
    EncodeF8E5M2Unbounded: f32 => u8, x -> F8E5M2.encode_value(x) as u8;
    /// `f8e4m3fnuz` as `f32`.
    DecodeF8E4M3Fnuz: u8 => f32, x -> F8E4M3FNUZ.decode_code(u32::from(x));
    /// `f32` as `f8e4m3fnuz`; saturates.
    EncodeF8E4M3Fnuz: f32 => u8, x -> F8E4M3FNUZ.saturating().encode_value(x) as u8;
    /// `f32` as `f8e4m3fnuz`; overflows to NaN.
    EncodeF8E4M3FnuzUnbounded: f32 => u8, x -> F8E4M3FNUZ.encode_value(x) as u8;
    /// `f8e5m2fnuz` as `f32`.
    DecodeF8E5M2Fnuz: u8 => f32, x -> F8E5M2FNUZ.decode_code(u32::from(x));
    /// `f32` as `f8e5m2fnuz`; saturates.
    EncodeF8E5M2Fnuz: f32 => u8, x -> F8E5M2FNUZ.saturating().encode_value(x) as u8;
    /// `f32` as `f8e5m2fnuz`; overflows to NaN.
    EncodeF8E5M2FnuzUnbounded: f32 => u8, x -> F8E5M2FNUZ.encode_value(x) as u8;
    /// `f8e8m0` as `f32`.
    DecodeF8E8M0: u8 => f32, x -> exponent_to_power(x);
    /// `f64` as `f32`, rounded to odd: the last bit is 1 if the result is inexact, so that rounding once more gives what rounding
    /// at once would.
    RoundToOdd: f64 => f32, x -> round_to_odd(x);
}

pub(super) fn decode_f4e2m1(code: u8) -> f32 {
    F4E2M1.decode_code(u32::from(code))
}

/// The nearest code; saturates.
pub(super) fn encode_f4e2m1(value: f32) -> u8 {
    F4E2M1.encode_value(value) as u8
}

/// 2 to the power of `exponent` - 127.
#[inline(always)]
fn exponent_to_power(exponent: u8) -> f32 {
    // 2⁻¹²⁷ is a subnormal `f32`.
    let bits = if exponent == 0 { 1 << (F32_MANTISSA - 1) } else { u32::from(exponent) << F32_MANTISSA };
    if exponent == 0xFF { f32::NAN } else { f32::from_bits(bits) }
}

/// The power of 2 that a number between two is rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PowerRounding {
    Up,
    Down,
    Nearest,
}

/// `f32` as `f8e8m0`. The sign is lost; values below all powers are treated as in ONNX's reference.
#[derive(Clone, Copy)]
pub(super) struct EncodeF8E8M0 {
    pub(super) rounding: PowerRounding,
    /// True if what is too large becomes the largest value, false if NaN.
    pub(super) saturate: bool,
}

impl ElementMap for EncodeF8E8M0 {
    type Input = (f32,);
    type Output = u8;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (f32,)) -> u8 {
        let bits = x.to_bits() & !(1 << 31);
        let (exponent, fraction) = (bits >> F32_MANTISSA, bits & ((1 << F32_MANTISSA) - 1));
        let half = 1 << (F32_MANTISSA - 1);
        let rises = match self.rounding {
            PowerRounding::Up => fraction > 0,
            PowerRounding::Down => false,
            PowerRounding::Nearest => fraction > half || fraction == half && exponent > 0,
        };
        // Infinities and NaN have the last exponent from the start, and stay NaN, as in ONNX's reference.
        let last = if self.saturate { 0xFE } else { 0xFF };
        (exponent + u32::from(rises && exponent < last)) as u8
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::{bf16, f16};

    use oarlock_cpu_base::float_bits::{BF16, F16};

    use super::*;

    #[test]
    fn every_half_and_bfloat16_round_trips() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let values = [
                (F16.decode_code(bits.into()), half.to_f32()),
                (BF16.decode_code(bits.into()), brain.to_f32()),
            ];
            for (found, expected) in values {
                assert!(
                    found == expected || found.is_nan() && expected.is_nan(),
                    "{bits:#x}: {found} {expected}"
                );
            }
            let is_nan = half.is_nan();
            assert!(is_nan || F16.encode_value(half.to_f32()) == u32::from(bits), "{bits:#x}");
            assert!(brain.is_nan() || BF16.encode_value(brain.to_f32()) == u32::from(bits), "{bits:#x}");
        }
    }

    #[test]
    fn floats_are_rounded_to_the_nearest_half() {
        for step in 0..200_000u32 {
            let value = f32::from_bits(step.wrapping_mul(2_654_435_761));
            let expected = (f16::from_f32(value), bf16::from_f32(value));
            let found = (
                f16::from_bits(F16.encode_value(value) as u16),
                bf16::from_bits(BF16.encode_value(value) as u16),
            );
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
            assert_eq!(F8E4M3.saturating().encode_value(value), e4m3, "{value}");
            assert_eq!(F8E5M2.saturating().encode_value(value), e5m2, "{value}");
        }
        assert_eq!((F8E4M3.encode_value(1e9), F8E5M2.encode_value(1e9)), (0x7F, 0x7C));
        for code in 0..=0xFF_u32 {
            for format in [F8E4M3, F8E5M2] {
                let value = format.decode_code(code);
                assert!(value.is_nan() || format.encode_value(value) == code, "{code:#x} {value}");
            }
        }
        assert_eq!((F8E4M3.decode_code(0x7E), F8E5M2.decode_code(0xFC)), (448.0, f32::NEG_INFINITY));
    }

    #[test]
    fn formats_without_a_negative_zero_have_the_codes_of_ml_dtypes() {
        let cases = [
            (0.48, 55, 60),
            (0.25, 48, 56),
            (-3.5, 206, 199),
            (9.0, 89, 76),
            (1e-7, 0, 0),
            (-0.0, 0, 0),
            (-0.1, 165, 178),
            (f32::NAN, 128, 128),
            (-f32::NAN, 128, 128),
        ];
        for (value, e4m3, e5m2) in cases {
            assert_eq!(
                (F8E4M3FNUZ.encode_value(value), F8E5M2FNUZ.encode_value(value)),
                (e4m3, e5m2),
                "{value}"
            );
        }
        for (value, bounded, unbounded) in [(1e9, 0x7F, 0x80), (f32::NEG_INFINITY, 0xFF, 0x80)] {
            for format in [F8E4M3FNUZ, F8E5M2FNUZ] {
                assert_eq!(
                    (format.saturating().encode_value(value), format.encode_value(value)),
                    (bounded, unbounded)
                );
            }
        }
        for code in (0..=0xFF_u32).filter(|code| *code != 0x80) {
            for format in [F8E4M3FNUZ, F8E5M2FNUZ] {
                assert_eq!(format.encode_value(format.decode_code(code)), code);
            }
        }
        assert!(F8E4M3FNUZ.decode_code(0x80).is_nan() && F8E5M2FNUZ.decode_code(0x80).is_nan());
        assert_eq!((F8E4M3FNUZ.decode_code(0x7F), F8E5M2FNUZ.decode_code(0xFF)), (240.0, -57344.0));
    }

    #[test]
    fn floats_of_4_bits_are_the_nearest_of_16_values() {
        let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (code, value) in (0..).zip(values) {
            assert_eq!((decode_f4e2m1(code), decode_f4e2m1(code | 8)), (value, -value));
            assert_eq!((encode_f4e2m1(value), encode_f4e2m1(-value)), (code, code | 8));
        }
        let cases = [(0.48, 1), (0.25, 0), (0.75, 2), (1.05, 2), (-3.5, 14), (9.0, 7), (f32::INFINITY, 7)];
        for (value, code) in cases {
            assert_eq!(encode_f4e2m1(value), code, "{value}");
        }
    }

    #[test]
    fn powers_are_rounded_as_they_are_told() {
        use super::PowerRounding::{Down, Nearest, Up};
        let encode = |rounding, saturate, value| {
            EncodeF8E8M0 { rounding, saturate }.apply::<oarlock_cpu_base::isa::BaselineTarget>((value,))
        };
        for (value, up, down, nearest) in [
            (0.0, 0, 0, 0),
            (1.0, 127, 127, 127),
            (1.1, 128, 127, 127),
            (1.5, 128, 127, 128),
            (-1.75, 128, 127, 128),
            (f32::MAX, 0xFE, 0xFE, 0xFE),
            (f32::INFINITY, 0xFF, 0xFF, 0xFF),
        ] {
            let found = [Up, Down, Nearest].map(|rounding| encode(rounding, true, value));
            assert_eq!(found, [up, down, nearest], "{value}");
        }
        assert_eq!(encode(Up, false, f32::MAX), 0xFF);
        assert!((1..0xFF).all(|code| encode(Up, true, exponent_to_power(code)) == code));
        assert!(exponent_to_power(0xFF).is_nan() && exponent_to_power(0) == f32::powi(2.0, -127));
    }

    #[test]
    fn rounding_twice_by_way_of_odd_is_rounding_once() {
        // Just above the middle of two neighbors; the nearest float is the middle itself, which would round down.
        let above = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
        assert_eq!(F16.encode_value(round_to_odd(above)), 0x3C01);
        assert_ne!(F16.encode_value(above as f32), F16.encode_value(round_to_odd(above)));
        for value in [0.0, -1.5, f64::INFINITY, 1e300, -1e-300] {
            assert_eq!(
                F16.encode_value(round_to_odd(value)),
                u32::from(f16::from_f64(value).to_bits()),
                "{value}"
            );
        }
    }
}

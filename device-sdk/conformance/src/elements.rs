//! Elements of each dtype as `f64`, which represents all values that the suite uses exactly.

use oarlock_abi::Dtype;

/// The dtypes that the suite computes with.
pub(crate) const ELEMENT_DTYPES: [Dtype; 13] = [
    Dtype::BOOL,
    Dtype::I8,
    Dtype::U8,
    Dtype::I16,
    Dtype::U16,
    Dtype::I32,
    Dtype::U32,
    Dtype::I64,
    Dtype::U64,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
];

/// The bits of the exponent and of the mantissa of a float.
struct FloatFormat {
    exponent: u32,
    mantissa: u32,
}

fn float_format(dtype: Dtype) -> Option<FloatFormat> {
    let (exponent, mantissa) = match dtype {
        Dtype::F16 => (5, 10),
        Dtype::BF16 => (8, 7),
        Dtype::F32 => (8, 23),
        Dtype::F64 => (11, 52),
        _ => return None,
    };
    Some(FloatFormat { exponent, mantissa })
}

pub(crate) fn is_float(dtype: Dtype) -> bool {
    float_format(dtype).is_some()
}

pub(crate) fn is_unsigned(dtype: Dtype) -> bool {
    [Dtype::BOOL, Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64].contains(&dtype)
}

pub(crate) fn dtype_name(dtype: Dtype) -> &'static str {
    dtype.name().unwrap_or("?")
}

/// The distance from 1 to the next larger float; 0 for integers.
pub(crate) fn epsilon(dtype: Dtype) -> f64 {
    float_format(dtype).map_or(0.0, |format| 2.0f64.powi(-(format.mantissa as i32)))
}

/// The smallest float with all bits of its mantissa; 0 for integers.
pub(crate) fn smallest_normal(dtype: Dtype) -> f64 {
    float_format(dtype).map_or(0.0, |format| 2.0f64.powi(2 - (1 << (format.exponent - 1))))
}

/// The largest finite value, for floats.
pub(crate) fn largest_finite(dtype: Dtype) -> f64 {
    float_format(dtype).map_or(0.0, |format| {
        (2.0 - 2.0f64.powi(-(format.mantissa as i32))) * 2.0f64.powi((1 << (format.exponent - 1)) - 1)
    })
}

pub(crate) fn element_size(dtype: Dtype) -> usize {
    match dtype {
        Dtype::BOOL | Dtype::I8 | Dtype::U8 => 1,
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => 2,
        Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
        _ => 8,
    }
}

/// Rounds a value to the nearest float with few bits, ties to even.
fn narrow_bits(value: f64, format: &FloatFormat) -> u16 {
    let (mantissa, bias) = (format.mantissa as i32, (1 << (format.exponent - 1)) - 1);
    let infinity = ((1u64 << format.exponent) - 1) << mantissa;
    let sign = u64::from(value.is_sign_negative()) << (mantissa as u32 + format.exponent);
    let size = value.abs();
    if size.is_nan() {
        return (infinity | 1 << (mantissa - 1)) as u16;
    }
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).clamp(1 - bias, bias + 1);
    // Both steps are exact, since they only change the exponent.
    let steps = (size / 2.0f64.powi(exponent - mantissa)).round_ties_even();
    // A float without the hidden bit has the smallest exponent and begins at 0.
    let bits = (((exponent + bias) as u64) << mantissa) as f64 + steps - 2.0f64.powi(mantissa);
    (sign | (bits as u64).min(infinity)) as u16
}

fn widen_bits(bits: u16, format: &FloatFormat) -> f64 {
    let (mantissa, bias) = (format.mantissa, (1 << (format.exponent - 1)) - 1);
    let sign = if bits >> (mantissa + format.exponent) & 1 == 1 { -1.0 } else { 1.0 };
    let fraction = f64::from(bits & ((1 << mantissa) - 1));
    let exponent = i32::from(bits >> mantissa & ((1 << format.exponent) - 1));
    let whole = 2.0f64.powi(mantissa as i32);
    sign * if exponent == (1 << format.exponent) - 1 {
        if fraction == 0.0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        fraction * 2.0f64.powi(1 - bias - mantissa as i32)
    } else {
        (whole + fraction) * 2.0f64.powi(exponent - bias - mantissa as i32)
    }
}

/// An integer without the bits that its dtype has no room for, as in arithmetic that wraps.
fn wrap_integer(dtype: Dtype, value: f64) -> u64 {
    let bits = value as i128 as u64;
    bits & u64::MAX >> (64 - 8 * element_size(dtype))
}

/// Encodes values as elements of a dtype, as they are stored in device memory.
pub(crate) fn encode_elements(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let values = values.iter().copied();
    match (dtype, float_format(dtype)) {
        (Dtype::BOOL, _) => values.map(|value| u8::from(value != 0.0)).collect(),
        (Dtype::F32, _) => values.flat_map(|value| (value as f32).to_ne_bytes()).collect(),
        (Dtype::F64, _) => values.flat_map(f64::to_ne_bytes).collect(),
        (_, Some(format)) => values.flat_map(|value| narrow_bits(value, &format).to_ne_bytes()).collect(),
        (_, None) => {
            let bits = values.map(|value| wrap_integer(dtype, value));
            match element_size(dtype) {
                1 => bits.map(|bits| bits as u8).collect(),
                2 => bits.flat_map(|bits| (bits as u16).to_ne_bytes()).collect(),
                4 => bits.flat_map(|bits| (bits as u32).to_ne_bytes()).collect(),
                _ => bits.flat_map(u64::to_ne_bytes).collect(),
            }
        }
    }
}

/// The value of an integer or a narrow float with these bits.
fn value_of_bits(dtype: Dtype, bits: u64) -> f64 {
    match dtype {
        Dtype::I8 => f64::from(bits as i8),
        Dtype::I16 => f64::from(bits as i16),
        Dtype::I32 => f64::from(bits as i32),
        Dtype::I64 => bits as i64 as f64,
        _ => float_format(dtype).map_or(bits as f64, |format| widen_bits(bits as u16, &format)),
    }
}

/// Decodes elements from device memory.
pub(crate) fn decode_elements(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    let (pairs, quads, octets) =
        (bytes.as_chunks::<2>().0, bytes.as_chunks::<4>().0, bytes.as_chunks::<8>().0);
    let value = |bits: u64| value_of_bits(dtype, bits);
    match (dtype, element_size(dtype)) {
        (Dtype::F32, _) => quads.iter().map(|bytes| f32::from_ne_bytes(*bytes).into()).collect(),
        (Dtype::F64, _) => octets.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect(),
        (_, 1) => bytes.iter().map(|byte| value((*byte).into())).collect(),
        (_, 2) => pairs.iter().map(|bytes| value(u16::from_ne_bytes(*bytes).into())).collect(),
        (_, 4) => quads.iter().map(|bytes| value(u32::from_ne_bytes(*bytes).into())).collect(),
        _ => octets.iter().map(|bytes| value(u64::from_ne_bytes(*bytes))).collect(),
    }
}

/// The nearest value that the dtype represents.
pub(crate) fn round_to_dtype(dtype: Dtype, value: f64) -> f64 {
    match (dtype, float_format(dtype)) {
        (Dtype::BOOL, _) => f64::from(u8::from(value != 0.0)),
        (Dtype::F32, _) => (value as f32).into(),
        (Dtype::F64, _) => value,
        (_, Some(format)) => widen_bits(narrow_bits(value, &format), &format),
        (_, None) => value_of_bits(dtype, wrap_integer(dtype, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_each_dtype() {
        for dtype in ELEMENT_DTYPES {
            let values =
                if dtype == Dtype::BOOL { vec![0.0, 1.0] } else { vec![0.0, 1.0, 2.0, 100.0, 127.0] };
            assert_eq!(
                decode_elements(dtype, &encode_elements(dtype, &values)),
                values,
                "{}",
                dtype_name(dtype)
            );
            if !is_unsigned(dtype) {
                assert_eq!(round_to_dtype(dtype, -77.0), -77.0);
            }
        }
    }

    #[test]
    fn narrow_floats_round_to_even_and_end_in_infinity() {
        for (value, rounded) in [
            (1.0 + 2.0f64.powi(-11), 1.0),
            (1.0 + 3.0 * 2.0f64.powi(-11), 1.0 + 2.0 * 2.0f64.powi(-10)),
            (65504.0, 65504.0),
            (65519.0, 65504.0),
            (65520.0, f64::INFINITY),
            (-1e30, f64::NEG_INFINITY),
            (2.0f64.powi(-24), 2.0f64.powi(-24)),
            (2.0f64.powi(-25), 0.0),
            (1.5 * 2.0f64.powi(-24), 2.0f64.powi(-23)),
            (0.9999 * 2.0f64.powi(-14), 2.0f64.powi(-14)),
            (1e-310, 0.0),
        ] {
            assert_eq!(round_to_dtype(Dtype::F16, value), rounded, "{value}");
        }
        assert!(round_to_dtype(Dtype::BF16, f64::NAN).is_nan());
        assert_eq!(round_to_dtype(Dtype::BF16, 3.4e38), f64::INFINITY);
        assert_eq!(
            (largest_finite(Dtype::F16), smallest_normal(Dtype::F32)),
            (65504.0, f32::MIN_POSITIVE.into())
        );
        assert_eq!((largest_finite(Dtype::F64), smallest_normal(Dtype::F64)), (f64::MAX, f64::MIN_POSITIVE));
    }

    #[test]
    fn every_narrow_float_is_read_and_written_alike() {
        for dtype in [Dtype::F16, Dtype::BF16] {
            for bits in 0..=u16::MAX {
                let value = value_of_bits(dtype, bits.into());
                let again = encode_elements(dtype, &[value]);
                assert!(value.is_nan() || again == bits.to_ne_bytes(), "{bits:#x}");
            }
        }
    }

    #[test]
    fn an_integer_that_does_not_fit_wraps() {
        assert_eq!(round_to_dtype(Dtype::U8, -1.0), 255.0);
        assert_eq!(round_to_dtype(Dtype::I8, 128.0), -128.0);
        assert_eq!(round_to_dtype(Dtype::U64, 7.0), 7.0);
    }
}

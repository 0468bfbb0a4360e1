//! Converts between `f32` and the bits of floats of at most 16 bits. The code is branch-free, so loops over it vectorize.

pub const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;
const F32_INFINITY: u32 = 0x7F80_0000;

/// A float format: a sign bit, then the exponent, then `mantissa` bits.
#[derive(Clone, Copy)]
pub struct SmallFloatFormat {
    pub mantissa: u32,
    pub bias: u32,
    /// The code of the largest finite value.
    pub largest: u32,
    /// The code that larger values become.
    pub overflow: u32,
    /// A NaN code.
    pub nan: u32,
    pub sign: u32,
    /// True if the sign alone is -0, false if it is NaN.
    pub has_negative_zero: bool,
}

pub const F16: SmallFloatFormat = SmallFloatFormat::new(10, 15, [0x7BFF, 0x7C00, 0x7E00, 0x8000]);
pub const BF16: SmallFloatFormat = SmallFloatFormat::new(7, 127, [0x7F7F, 0x7F80, 0x7FC0, 0x8000]);

impl SmallFloatFormat {
    pub const fn new(mantissa: u32, bias: u32, [largest, overflow, nan, sign]: [u32; 4]) -> Self {
        Self { mantissa, bias, largest, overflow, nan, sign, has_negative_zero: true }
    }

    pub const fn saturating(self) -> Self {
        Self { overflow: self.largest, ..self }
    }

    /// The code of the nearest value, ties to even.
    #[inline(always)]
    pub fn encode_value(self, value: f32) -> u32 {
        let bits = value.to_bits();
        let size = bits & !(1 << 31);
        let shift = F32_MANTISSA - self.mantissa;
        let rounding = (1 << (shift - 1)) - 1 + (size >> shift & 1);
        let rebiased = size.wrapping_sub((F32_BIAS - self.bias) << F32_MANTISSA);
        let normal = rebiased.wrapping_add(rounding) >> shift;
        // Adding this value aligns the last bit of the sum with the last bit of a subnormal number, so the addition rounds.
        let shifter = (F32_BIAS + F32_MANTISSA + 1 - self.bias - self.mantissa) << F32_MANTISSA;
        let subnormal = (f32::from_bits(size) + f32::from_bits(shifter)).to_bits().wrapping_sub(shifter);
        let is_subnormal = size < (F32_BIAS - self.bias + 1) << F32_MANTISSA;
        let code = if is_subnormal { subnormal } else { normal };
        let code = if code > self.largest { self.overflow } else { code };
        let code = if size > F32_INFINITY { self.nan } else { code };
        let has_sign = bits >> 31 == 1 && (self.has_negative_zero || code != 0);
        code | if has_sign { self.sign } else { 0 }
    }

    #[inline(always)]
    pub fn decode_code(self, code: u32) -> f32 {
        let size = code & (self.sign - 1);
        let aligned = size << (F32_MANTISSA - self.mantissa);
        // Multiplying by a power of two corrects the exponent bias, and normalizes subnormal numbers in the same step.
        let scale = f32::from_bits((2 * F32_BIAS - self.bias) << F32_MANTISSA);
        let finite = (f32::from_bits(aligned) * scale).to_bits();
        let bits = if size > self.largest { aligned | F32_INFINITY } else { finite };
        let is_nan = !self.has_negative_zero && code == self.sign;
        let bits = if is_nan { f32::NAN.to_bits() } else { bits };
        f32::from_bits(bits | if code & self.sign == 0 { 0 } else { 1 << 31 })
    }
}

#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    F16.decode_code(bits.into())
}

#[inline(always)]
pub fn f32_to_f16(value: f32) -> u16 {
    F16.encode_value(value) as u16
}

#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
pub fn f32_to_bf16(value: f32) -> u16 {
    BF16.encode_value(value) as u16
}

/// The bits of a number in bf16. NaN stays NaN.
#[inline(always)]
pub fn bf16_bits(number: f32) -> u32 {
    let bits = number.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // Rounding a NaN could carry into the sign; all other numbers are safe. Setting a mantissa bit keeps the NaN a NaN.
    if number.is_nan() { bits >> 16 | 0x40 } else { rounded }
}

/// Rounds an `f64` to an `f32`, to odd: the last bit is 1 if the result is inexact. A second rounding to a narrower format then
/// gives the same result as rounding once.
#[inline(always)]
pub fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let is_exact = f64::from(nearest) == value || value.is_nan();
    // For either sign, subtracting one from the bits steps towards 0.
    let is_above = f64::from(nearest.abs()) > value.abs();
    let bits = nearest.to_bits();
    let truncated = if is_above { bits.wrapping_sub(1) } else { bits };
    f32::from_bits(if is_exact { bits } else { truncated | 1 })
}

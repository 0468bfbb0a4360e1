//! 8-bit operands with scales and zero points.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_sdk::{Dtype, DtypeSet, Element, Result, TensorView, bf16, dtype_set, f16, unexpected_dtype};

pub const BYTE_DTYPES: DtypeSet = dtype_set(&[Dtype::I8, Dtype::U8]);

/// The elements of an 8-bit operand minus their zero points.
pub fn subtract_zero_points(tensor: &TensorView<'_>, zero: impl Fn(usize) -> i32) -> Result<Vec<i32>> {
    let mut values = read_integers(tensor)?;
    for (index, value) in values.iter_mut().enumerate() {
        *value = value.wrapping_sub(zero(index));
    }
    Ok(values)
}

/// The elements of an operand whose dtype is an integer of at most 32 bits.
pub fn read_integers(tensor: &TensorView<'_>) -> Result<Vec<i32>> {
    match tensor.dtype() {
        Dtype::I8 => read_converted::<i8, i32>(tensor),
        Dtype::U8 => read_converted::<u8, i32>(tensor),
        Dtype::I32 => read_converted::<i32, i32>(tensor),
        other => Err(unexpected_dtype(&["i8", "u8", "i32"], other)),
    }
}

/// The elements of an operand that contains scales.
pub fn read_scales(tensor: &TensorView<'_>) -> Result<Vec<f32>> {
    match tensor.dtype() {
        Dtype::F16 => read_converted::<f16, f32>(tensor),
        Dtype::BF16 => read_converted::<bf16, f32>(tensor),
        Dtype::F32 => read_converted::<f32, f32>(tensor),
        other => Err(unexpected_dtype(&["f16", "bf16", "f32"], other)),
    }
}

fn read_converted<E: Element + Into<T>, T>(tensor: &TensorView<'_>) -> Result<Vec<T>> {
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    Ok(unsafe { tensor.elements::<E>() }?.iter().map(|value| (*value).into()).collect())
}

/// An integer type to which sums are requantized.
pub trait RequantizedInteger: Element {
    /// A sum times a scale, rounded to nearest even, plus a zero point, saturated.
    fn requantize_sum(sum: i32, scale: f32, zero: i32) -> Self;
}

macro_rules! requantized {
    ($($integer:ty)*) => {
        $(impl RequantizedInteger for $integer {
            fn requantize_sum(sum: i32, scale: f32, zero: i32) -> Self {
                ((sum as f32 * scale).round_ties_even() + zero as f32) as Self
            }
        })*
    };
}

requantized!(i8 u8 i16 i32 i64);

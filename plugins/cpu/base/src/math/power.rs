//! Powers.

use super::{exp, log};
use crate::isa::SimdTarget;

/// xʸ, computed in `f64`, where y · log x is accurate enough.
#[inline(always)]
pub fn power<T: SimdTarget>(base: f32, exponent: f32) -> f32 {
    let (x, y) = (f64::from(base), f64::from(exponent));
    let size = exp::<T, f64>(y * log::<T, f64>(x.abs())) as f32;
    // From 2²⁴ on, every `f32` is an even integer.
    let whole = y.abs() < 16_777_216.0;
    let (nearest, count) = super::MathFloat::nearest_integer(if whole { y } else { 0.0 });
    let is_whole = !whole || nearest == y;
    let is_odd = whole && nearest == y && count & 1 == 1;
    let negative = if is_odd { -size } else { size };
    let is_infinite_or_zero = x == 0.0 || x.abs() == f64::INFINITY;
    let undefined = if is_whole || is_infinite_or_zero { negative } else { f32::NAN };
    let signed = if base.is_sign_negative() { undefined } else { size };
    let is_one = base == 1.0 || exponent == 0.0 || (base == -1.0 && exponent.abs() == f32::INFINITY);
    let result = if is_one { 1.0 } else { signed };
    if base.is_nan() && exponent != 0.0 { base } else { result }
}

//! Trigonometric functions. The `f32` versions vectorize for all but huge angles; `f64` uses the platform's.

use std::f32::consts::{FRAC_PI_2, PI};

use super::coefficients::{ASIN_F32, ATAN_F32, COS_F32, SIN_F32};
use super::{MathFloat, polynomial};
use crate::isa::SimdTarget;

pub trait TrigonometricFloat: MathFloat {
    /// True if `sin`, `cos` and `tan` are too inaccurate at this angle, so the platform's functions must be used.
    fn is_huge_angle(self) -> bool;
    fn sin<T: SimdTarget>(self) -> Self;
    fn cos<T: SimdTarget>(self) -> Self;
    fn tan<T: SimdTarget>(self) -> Self;
    fn sin_of_any(self) -> Self;
    fn cos_of_any(self) -> Self;
    fn tan_of_any(self) -> Self;
    fn asin<T: SimdTarget>(self) -> Self;
    fn acos<T: SimdTarget>(self) -> Self;
    fn atan<T: SimdTarget>(self) -> Self;
}

/// π/2 minus its nearest `f32`.
const FRAC_PI_2_REST: f32 = -4.371_139e-8;

/// Sine and cosine of an angle reduced by quarter turns, and the lowest bits of the number of quarter turns.
#[inline(always)]
fn reduce_angle<T: SimdTarget>(angle: f32) -> (f32, f32, i64) {
    /// π/2 in two parts; the product of the first with any number of quarter turns is exact.
    const QUARTER_TURN: (f64, f64) = (1.570_796_326_734_125_6, 6.077_100_506_506_192e-11);
    // In `f64`, so that the difference of nearly equal numbers keeps full `f32` precision.
    let angle = f64::from(angle);
    let (turns, count) = (angle * std::f64::consts::FRAC_2_PI).nearest_integer();
    let rest = ((angle - turns * QUARTER_TURN.0) - turns * QUARTER_TURN.1) as f32;
    let square = rest * rest;
    let sine = (rest * square).multiply_add::<T>(polynomial::<T, f32>(square, &SIN_F32), rest);
    let curve = square * polynomial::<T, f32>(square, &COS_F32);
    let cosine = square.multiply_add::<T>(curve - 0.5, 1.0);
    (sine, cosine, count)
}

/// The sine of the angle plus `quarters` quarter turns.
#[inline(always)]
fn sine_after_quarters<T: SimdTarget>(angle: f32, quarters: i64) -> f32 {
    let (sine, cosine, count) = reduce_angle::<T>(angle);
    let count = count + quarters;
    let value = if count & 1 == 0 { sine } else { cosine };
    if count & 2 == 0 { value } else { -value }
}

/// asin(|x|). Above 1/2 it returns `true` and the distance from a quarter turn instead, which is accurate near 1.
#[inline(always)]
fn arcsine_magnitude<T: SimdTarget>(sine: f32) -> (f32, bool) {
    let size = sine.abs();
    let is_large = size > 0.5;
    let square = if is_large { 0.5 * (1.0 - size) } else { size * size };
    let side = if is_large { square.sqrt() } else { size };
    let arc = (side * square).multiply_add::<T>(polynomial::<T, f32>(square, &ASIN_F32), side);
    (if is_large { 2.0 * arc } else { arc }, is_large)
}

#[inline(always)]
fn quarter_turn_minus(arc: f32) -> f32 {
    FRAC_PI_2 - (arc - FRAC_PI_2_REST)
}

impl TrigonometricFloat for f32 {
    #[inline(always)]
    fn is_huge_angle(self) -> bool {
        // Up to here, the number of quarter turns fits in 20 bits, so its product with the first part of π/2 is exact.
        self.abs() > 1_600_000.0
    }

    #[inline(always)]
    fn sin<T: SimdTarget>(self) -> Self {
        // The addition would lose the sign of 0.
        if self == 0.0 { self } else { sine_after_quarters::<T>(self, 0) }
    }

    #[inline(always)]
    fn cos<T: SimdTarget>(self) -> Self {
        sine_after_quarters::<T>(self, 1)
    }

    #[inline(always)]
    fn tan<T: SimdTarget>(self) -> Self {
        let (sine, cosine, count) = reduce_angle::<T>(self);
        let tangent = if count & 1 == 0 { sine / cosine } else { -cosine / sine };
        if self == 0.0 { self } else { tangent }
    }

    fn sin_of_any(self) -> Self {
        f32::sin(self)
    }

    fn cos_of_any(self) -> Self {
        f32::cos(self)
    }

    fn tan_of_any(self) -> Self {
        f32::tan(self)
    }

    #[inline(always)]
    fn asin<T: SimdTarget>(self) -> Self {
        let (arc, is_from_quarter) = arcsine_magnitude::<T>(self);
        (if is_from_quarter { quarter_turn_minus(arc) } else { arc }).copysign(self)
    }

    #[inline(always)]
    fn acos<T: SimdTarget>(self) -> Self {
        let (arc, is_from_quarter) = arcsine_magnitude::<T>(self);
        let near = quarter_turn_minus(arc.copysign(self));
        let far = if self < 0.0 { PI - (arc - 2.0 * FRAC_PI_2_REST) } else { arc };
        if is_from_quarter { far } else { near }
    }

    #[inline(always)]
    fn atan<T: SimdTarget>(self) -> Self {
        let size = self.abs();
        let is_steep = size > 1.0;
        let slope = if is_steep { 1.0 / size } else { size };
        let square = slope * slope;
        let arc = (slope * square).multiply_add::<T>(polynomial::<T, f32>(square, &ATAN_F32), slope);
        (if is_steep { quarter_turn_minus(arc) } else { arc }).copysign(self)
    }
}

macro_rules! platform {
    ($($name:ident)*) => { $(#[inline(always)] fn $name<T: SimdTarget>(self) -> Self { f64::$name(self) })* };
}

impl TrigonometricFloat for f64 {
    platform! { sin cos tan asin acos atan }

    fn is_huge_angle(self) -> bool {
        false
    }

    fn sin_of_any(self) -> Self {
        f64::sin(self)
    }

    fn cos_of_any(self) -> Self {
        f64::cos(self)
    }

    fn tan_of_any(self) -> Self {
        f64::tan(self)
    }
}

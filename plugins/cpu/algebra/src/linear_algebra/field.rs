//! The scalars of matrices: real and complex numbers, in 64 bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::Complex;

/// A scalar that row operations compute with.
pub(super) trait ScalarField:
    Copy
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    const IS_COMPLEX: bool;

    /// The real and the imaginary part; a real number has one.
    fn components(self) -> [f64; 2];
    fn from_components(parts: [f64; 2]) -> Self;
    fn scaled_by(self, by: f64) -> Self;

    /// `self + left * right`, with the rounding that is fastest on the target.
    fn add_product<T: SimdTarget>(self, left: Self, right: Self) -> Self;

    #[inline(always)]
    fn real_part(self) -> f64 {
        self.components()[0]
    }

    #[inline(always)]
    fn from_real(real: f64) -> Self {
        Self::from_components([real, 0.0])
    }

    #[inline(always)]
    fn conjugate(self) -> Self {
        let [real, imaginary] = self.components();
        Self::from_components([real, -imaginary])
    }

    #[inline(always)]
    fn magnitude(self) -> f64 {
        let [real, imaginary] = self.components();
        // The squares in `hypot` neither overflow nor vanish.
        if Self::IS_COMPLEX { real.hypot(imaginary) } else { real.abs() }
    }

    #[inline(always)]
    fn squared_magnitude(self) -> f64 {
        let [real, imaginary] = self.components();
        real * real + imaginary * imaginary
    }

    /// The larger magnitude of the parts; infinity if one is NaN.
    #[inline(always)]
    fn max_component(self) -> f64 {
        let [real, imaginary] = self.components().map(f64::abs);
        // `f64::max` would skip NaN.
        if real.is_nan() || imaginary.is_nan() { f64::INFINITY } else { real.max(imaginary) }
    }
}

#[inline(always)]
fn add_product_f64<T: SimdTarget>(sum: f64, left: f64, right: f64) -> f64 {
    // Without the instruction, `mul_add` is a slow function that imitates its rounding.
    if T::HAS_FMA { left.mul_add(right, sum) } else { sum + left * right }
}

impl ScalarField for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const IS_COMPLEX: bool = false;

    #[inline(always)]
    fn components(self) -> [f64; 2] {
        [self, 0.0]
    }

    #[inline(always)]
    fn from_components([real, _]: [f64; 2]) -> Self {
        real
    }

    #[inline(always)]
    fn scaled_by(self, by: f64) -> Self {
        self * by
    }

    #[inline(always)]
    fn add_product<T: SimdTarget>(self, left: Self, right: Self) -> Self {
        add_product_f64::<T>(self, left, right)
    }
}

impl ScalarField for Complex<f64> {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };
    const ONE: Self = Self { re: 1.0, im: 0.0 };
    const IS_COMPLEX: bool = true;

    #[inline(always)]
    fn components(self) -> [f64; 2] {
        [self.re, self.im]
    }

    #[inline(always)]
    fn from_components([re, im]: [f64; 2]) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    fn scaled_by(self, by: f64) -> Self {
        self.scale(by)
    }

    #[inline(always)]
    fn add_product<T: SimdTarget>(self, left: Self, right: Self) -> Self {
        Self {
            re: add_product_f64::<T>(add_product_f64::<T>(self.re, left.re, right.re), -left.im, right.im),
            im: add_product_f64::<T>(add_product_f64::<T>(self.im, left.re, right.im), left.im, right.re),
        }
    }
}

//! Functions of floats without branches and calls, so that loops over them become vector code. Each is compiled into its
//! caller, for the instruction set of the caller; `T` says which that is, and must be named: `math::exp::<T, _>(x)`.

mod coefficients;
mod float;
mod power;
mod trigonometry;

pub(crate) use self::float::Float;
pub(crate) use self::power::power;
pub(crate) use self::trigonometry::Trigonometry;
use crate::isa::Target;

/// The value of a polynomial.
#[inline(always)]
fn polynomial<T: Target, F: Float>(x: F, coefficients: &[F]) -> F {
    let Some((last, others)) = coefficients.split_last() else { return F::ZERO };
    others.iter().rev().fold(*last, |sum, coefficient| sum.times_plus::<T>(x, *coefficient))
}

/// A value cut off at bounds. What is no number stays so.
#[inline(always)]
pub(crate) fn bounded<F: Float>(x: F, low: F, high: F) -> F {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// x less a whole number of logarithms of 2.
#[inline(always)]
fn less_whole<T: Target, F: Float>(x: F, whole: F) -> F {
    whole.times_plus::<T>(-F::LN_2.1, whole.times_plus::<T>(-F::LN_2.0, x))
}

/// exp(r) - 1 for |r| up to half the logarithm of 2.
#[inline(always)]
fn small_exp_m1<T: Target, F: Float>(rest: F) -> F {
    (rest * rest).times_plus::<T>(polynomial::<T, F>(rest, F::EXP), rest)
}

/// e to the power of x, for `f32` within 1.5 ULP, subnormal results included.
#[inline(always)]
pub(crate) fn exp<T: Target, F: Float>(x: F) -> F {
    let x = bounded(x, F::EXP_BOUNDS.0, F::EXP_BOUNDS.1);
    let (whole, [first, second]) = x.powers::<T>();
    let rest = small_exp_m1::<T, F>(less_whole::<T, F>(x, whole));
    rest.times_plus::<T>(first, first) * second
}

/// e to the power of x that is not positive, for `f32` within 1.5 ULP; 0 where the result is subnormal.
#[inline(always)]
pub(crate) fn exp_of_negative<T: Target, F: Float>(x: F) -> F {
    let x = if x < F::EXP_VANISHES { F::EXP_VANISHES } else { x };
    let (whole, power) = x.power::<T>();
    let rest = small_exp_m1::<T, F>(less_whole::<T, F>(x, whole));
    rest.times_plus::<T>(power, power)
}

/// e to the power of x, less 1, for `f32` within 2 ULP; exact near 0.
#[inline(always)]
pub(crate) fn exp_m1<T: Target, F: Float>(x: F) -> F {
    let x = bounded(x, F::EXP_M1_BOUND, F::EXP_BOUNDS.1);
    let (whole, exponent) = x.nearest_multiple::<T>(F::LOG2_E);
    let rest = small_exp_m1::<T, F>(less_whole::<T, F>(x, whole));
    // Half of each part, since the whole of the largest power is out of range.
    let power = F::half_power_of_two(exponent);
    power.times_plus::<T>(rest, power - F::HALF) * F::TWO
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log<T: Target, F: Float>(x: F) -> F {
    let (mantissa, exponent) = x.decomposed();
    let above = mantissa - F::ONE;
    let ratio = above / (above + F::TWO);
    let square = ratio * ratio;
    let curve = square * polynomial::<T, F>(square, F::LOG);
    let half = F::HALF * above * above;
    let low = ratio.times_plus::<T>(half + curve, exponent * F::LN_2.1);
    let finite = exponent.times_plus::<T>(F::LN_2.0, above - (half - low));
    let positive = if x < F::INFINITY { finite } else { x };
    let other = if x == F::ZERO { -F::INFINITY } else { F::NAN };
    if x > F::ZERO { positive } else { other }
}

/// The natural logarithm of 1 + x; exact near 0.
#[inline(always)]
pub(crate) fn log_1p<T: Target, F: Float>(x: F) -> F {
    let sum = F::ONE + x;
    let correction = (x - (sum - F::ONE)) / sum;
    let is_finite = sum > F::ZERO && sum < F::INFINITY;
    log::<T, F>(sum) + if is_finite { correction } else { F::ZERO }
}

/// The hyperbolic tangent, for `f32` within 2.5 ULP.
#[inline(always)]
pub(crate) fn tanh<T: Target, F: Float>(x: F) -> F {
    let power = exp_m1::<T, F>(-F::TWO * x.magnitude());
    (-power / (power + F::TWO)).with_sign_of(x)
}

/// The hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh<T: Target, F: Float>(x: F) -> F {
    let size = x.magnitude();
    let power = exp_m1::<T, F>(size);
    let small = F::HALF * (power + power / (power + F::ONE));
    // The power itself would be out of range before the result is.
    let root = exp::<T, F>(F::HALF * size);
    let large = F::HALF * root * root;
    (if size > F::of(40.0) { large } else { small }).with_sign_of(x)
}

/// The hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh<T: Target, F: Float>(x: F) -> F {
    let root = exp::<T, F>(F::HALF * x.magnitude());
    let half = F::HALF * root * root;
    half + F::of(0.25) / half
}

/// Above this, the square of a value is so large that adding 1 to it changes nothing.
const LARGE: f64 = 1e9;

/// The inverse of the hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh<T: Target, F: Float>(x: F) -> F {
    let size = x.magnitude();
    let square = size * size;
    let is_large = size > F::of(LARGE);
    let less_one = size + square / (F::ONE + (F::ONE + square).root());
    let logarithm = log_1p::<T, F>(if is_large { size - F::ONE } else { less_one });
    (logarithm + if is_large { F::of(std::f64::consts::LN_2) } else { F::ZERO }).with_sign_of(x)
}

/// The inverse of the hyperbolic cosine.
#[inline(always)]
pub(crate) fn acosh<T: Target, F: Float>(x: F) -> F {
    let above = x - F::ONE;
    let is_large = x > F::of(LARGE);
    let less_one = above + (above * (above + F::TWO)).root();
    let logarithm = log_1p::<T, F>(if is_large { above } else { less_one });
    let result = logarithm + if is_large { F::of(std::f64::consts::LN_2) } else { F::ZERO };
    if x >= F::ONE { result } else { F::NAN }
}

/// The inverse of the hyperbolic tangent.
#[inline(always)]
pub(crate) fn atanh<T: Target, F: Float>(x: F) -> F {
    let size = x.magnitude();
    (F::HALF * log_1p::<T, F>(F::TWO * size / (F::ONE - size))).with_sign_of(x)
}

/// The complementary error function of a value that is not negative, exact up to where it is subnormal. There it is 0.
#[inline(always)]
pub(crate) fn erfc<T: Target, F: Float>(x: F) -> F {
    let near = if x > F::ERFC_BOUND { F::ERFC_BOUND } else { x };
    let mapped = (near - F::ERFC_MIDDLE) / (near + F::ERFC_MIDDLE);
    let upper = near.upper_half();
    let tail = (near - upper) * (near + upper);
    let square = -upper * upper;
    let (whole, exponent) = (square - tail).nearest_multiple::<T>(F::LOG2_E);
    let rest = small_exp_m1::<T, F>(less_whole::<T, F>(square, whole) - tail);
    let curve = polynomial::<T, F>(mapped, F::ERFC);
    let value = rest.times_plus::<T>(curve, curve).scaled_within_range(exponent);
    if x > F::ERFC_BOUND { F::ZERO } else { value }
}

/// The complementary error function from 1 on, exact enough to be taken from 1: e to the power of a polynomial.
#[inline(always)]
fn rough_erfc<T: Target, F: Float>(x: F) -> F {
    let near = if x > F::ERFC_VANISHES { F::ERFC_VANISHES } else { x };
    exp_of_negative::<T, F>(polynomial::<T, F>(near, F::ERFC_LOG).times_plus::<T>(near, -near))
}

/// The error function, for `f32` within 1.5 ULP.
#[inline(always)]
pub(crate) fn erf<T: Target, F: Float>(x: F) -> F {
    let size = x.magnitude();
    let small = size.times_plus::<T>(polynomial::<T, F>(size * size, F::ERF), size);
    let large = F::ONE - if F::ERFC_LOG.is_empty() { erfc::<T, F>(size) } else { rough_erfc::<T, F>(size) };
    (if size < F::ONE { small } else { large }).with_sign_of(x)
}

/// The logistic function.
#[inline(always)]
pub(crate) fn sigmoid<T: Target, F: Float>(x: F) -> F {
    let power = exp::<T, F>(-x.magnitude());
    (if x < F::ZERO { power } else { F::ONE }) / (F::ONE + power)
}

/// log(1 + exp(x)).
#[inline(always)]
pub(crate) fn softplus<T: Target, F: Float>(x: F) -> F {
    let bent = if x < F::ZERO { F::ZERO } else { x };
    bent + log_1p::<T, F>(exp::<T, F>(-x.magnitude()))
}

/// x · Φ(x) with the distribution function Φ of the normal distribution, exact in its lower tail.
#[inline(always)]
pub(crate) fn gelu<T: Target, F: Float>(x: F) -> F {
    let half = F::HALF * erfc::<T, F>(x.magnitude() * F::of(std::f64::consts::FRAC_1_SQRT_2));
    x * if x > F::ZERO { F::ONE - half } else { half }
}

/// The approximation of [`gelu`] by a hyperbolic tangent.
#[inline(always)]
pub(crate) fn gelu_tanh<T: Target, F: Float>(x: F) -> F {
    let twice_root = F::of(2.0 * (std::f64::consts::FRAC_2_PI).sqrt());
    let cube = x * x * x;
    x * sigmoid::<T, F>(twice_root * cube.times_plus::<T>(F::of(0.044715), x))
}

#[cfg(test)]
mod tests;

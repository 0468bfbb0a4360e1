//! Float functions without branches or calls, so that loops over them vectorize. Each is inlined into its caller and compiled for
//! the caller's instruction set, which `T` names explicitly: `math::exp::<T, _>(x)`.

mod coefficients;
mod float;
mod power;
mod trigonometry;

pub use self::float::MathFloat;
pub use self::power::power;
pub use self::trigonometry::TrigonometricFloat;
use crate::isa::SimdTarget;

/// Horner's rule, which needs the fewest operations. Its chain of FMAs is long, but the iterations of the surrounding loop are
/// independent and hide the latency.
#[inline(always)]
fn polynomial<T: SimdTarget, F: MathFloat>(x: F, coefficients: &[F]) -> F {
    let Some((last, others)) = coefficients.split_last() else { return F::ZERO };
    others.iter().rev().fold(*last, |sum, coefficient| sum.multiply_add::<T>(x, *coefficient))
}

/// Clamps a value. NaN stays NaN, since both comparisons are false.
#[inline(always)]
pub fn clamp_keeping_nan<F: MathFloat>(x: F, low: F, high: F) -> F {
    // Each line compiles to one x86 `max` or `min` instruction, which returns its second operand for NaN.
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// 0 in place of a subnormal number. Processors multiply those in microcode.
#[inline(always)]
pub fn flush_subnormal<F: MathFloat>(x: F) -> F {
    // With this comparison, NaN stays NaN.
    if x.magnitude() < F::MIN_NORMAL { F::ZERO } else { x }
}

/// x - `whole` · ln 2, with ln 2 in two parts: the product with the first is exact, so the subtraction loses no bits.
#[inline(always)]
fn reduce_by_ln2<T: SimdTarget, F: MathFloat>(x: F, whole: F) -> F {
    whole.multiply_add::<T>(-F::LN_2.1, whole.multiply_add::<T>(-F::LN_2.0, x))
}

/// exp(r) - 1 for |r| ≤ ln(2) / 2.
#[inline(always)]
fn small_exp_m1<T: SimdTarget, F: MathFloat>(rest: F) -> F {
    (rest * rest).multiply_add::<T>(polynomial::<T, F>(rest, F::EXP), rest)
}

/// eˣ, for `f32` within 1.5 ULP, subnormal results included.
#[inline(always)]
pub fn exp<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let x = clamp_keeping_nan(x, F::EXP_BOUNDS.0, F::EXP_BOUNDS.1);
    let (whole, [first, second]) = x.split_exp2_factors::<T>();
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(x, whole));
    rest.multiply_add::<T>(first, first) * second
}

/// eˣ for x ≤ 0, for `f32` within 1.5 ULP; 0 if the result is subnormal, so that 2ⁿ needs one factor instead of two.
#[inline(always)]
pub fn exp_of_negative<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let x = if x < F::EXP_VANISHES { F::EXP_VANISHES } else { x };
    let (whole, power) = x.split_exp2::<T>();
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(x, whole));
    rest.multiply_add::<T>(power, power)
}

/// eˣ - 1, for `f32` within 2 ULP; exact near 0.
#[inline(always)]
pub fn exp_m1<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let x = clamp_keeping_nan(x, F::EXP_M1_BOUND, F::EXP_BOUNDS.1);
    let (whole, exponent) = x.nearest_multiple::<T>(F::LOG2_E);
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(x, whole));
    // Computed with halves, since 2ⁿ itself overflows for the largest n.
    let power = F::half_power_of_two(exponent);
    power.multiply_add::<T>(rest, power - F::HALF) * F::TWO
}

#[inline(always)]
pub fn log<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let (mantissa, exponent) = x.decompose();
    let above = mantissa - F::ONE;
    let ratio = above / (above + F::TWO);
    let square = ratio * ratio;
    let curve = square * polynomial::<T, F>(square, F::LOG);
    let half = F::HALF * above * above;
    let low = ratio.multiply_add::<T>(half + curve, exponent * F::LN_2.1);
    let finite = exponent.multiply_add::<T>(F::LN_2.0, above - (half - low));
    let positive = if x < F::INFINITY { finite } else { x };
    let other = if x == F::ZERO { -F::INFINITY } else { F::NAN };
    if x > F::ZERO { positive } else { other }
}

/// log(1 + x), exact near 0.
#[inline(always)]
pub fn log_1p<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let sum = F::ONE + x;
    // A first-order correction for the rounding error of 1 + x: log(s + c) is about log(s) + c / s.
    let correction = (x - (sum - F::ONE)) / sum;
    let is_finite = sum > F::ZERO && sum < F::INFINITY;
    log::<T, F>(sum) + if is_finite { correction } else { F::ZERO }
}

/// The hyperbolic tangent, for `f32` within 2.5 ULP: (e²ˣ - 1) / (e²ˣ + 1).
#[inline(always)]
pub fn tanh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let twice = x.magnitude() + x.magnitude();
    let twice = if twice > F::TANH_BOUND { F::TANH_BOUND } else { twice };
    let (whole, power) = twice.split_exp2::<T>();
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(twice, whole));
    let less_one = power.multiply_add::<T>(rest, power - F::ONE);
    (less_one / (less_one + F::TWO)).copy_sign(x)
}

#[inline(always)]
pub fn sinh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let size = x.magnitude();
    let power = exp_m1::<T, F>(size);
    let small = F::HALF * (power + power / (power + F::ONE));
    // exp(x) would overflow before the result does, but its square root does not.
    let root = exp::<T, F>(F::HALF * size);
    let large = F::HALF * root * root;
    (if size > F::from_f64(40.0) { large } else { small }).copy_sign(x)
}

#[inline(always)]
pub fn cosh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let root = exp::<T, F>(F::HALF * x.magnitude());
    let half = F::HALF * root * root;
    // The second term is e⁻ˣ / 2, without another exponential.
    half + F::from_f64(0.25) / half
}

/// Above this, adding 1 to the square of a value changes nothing.
const SQUARE_DOMINATES: f64 = 1e9;

#[inline(always)]
pub fn asinh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let size = x.magnitude();
    let square = size * size;
    let is_large = size > F::from_f64(SQUARE_DOMINATES);
    let less_one = size + square / (F::ONE + (F::ONE + square).square_root());
    let logarithm = log_1p::<T, F>(if is_large { size - F::ONE } else { less_one });
    (logarithm + if is_large { F::from_f64(std::f64::consts::LN_2) } else { F::ZERO }).copy_sign(x)
}

#[inline(always)]
pub fn acosh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let above = x - F::ONE;
    let is_large = x > F::from_f64(SQUARE_DOMINATES);
    let less_one = above + (above * (above + F::TWO)).square_root();
    let logarithm = log_1p::<T, F>(if is_large { above } else { less_one });
    let result = logarithm + if is_large { F::from_f64(std::f64::consts::LN_2) } else { F::ZERO };
    if x >= F::ONE { result } else { F::NAN }
}

#[inline(always)]
pub fn atanh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let size = x.magnitude();
    (F::HALF * log_1p::<T, F>(F::TWO * size / (F::ONE - size))).copy_sign(x)
}

/// erfc(x) for x ≥ 0, accurate until it becomes subnormal. From there on it is 0.
#[inline(always)]
pub fn erfc<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let near = if x > F::ERFC_BOUND { F::ERFC_BOUND } else { x };
    let mapped = (near - F::ERFC_MIDDLE) / (near + F::ERFC_MIDDLE);
    // The exponential magnifies errors of its argument, so x² is split: the square of `upper` is exact, and `tail` is small.
    let upper = near.truncate_mantissa();
    let tail = (near - upper) * (near + upper);
    let square = -upper * upper;
    let (whole, exponent) = (square - tail).nearest_multiple::<T>(F::LOG2_E);
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(square, whole) - tail);
    let curve = polynomial::<T, F>(mapped, F::ERFC);
    let value = rest.multiply_add::<T>(curve, curve).scale_by_exponent(exponent);
    if x > F::ERFC_BOUND { F::ZERO } else { value }
}

/// erf(x), for `f32` within 6 ULP.
#[inline(always)]
pub fn erf<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let (numerator, denominator) = F::ERF_QUOTIENT;
    if !numerator.is_empty() {
        let near = clamp_keeping_nan(x, -F::ERF_BOUND, F::ERF_BOUND);
        let square = near * near;
        let value = near * polynomial::<T, F>(square, numerator) / polynomial::<T, F>(square, denominator);
        return clamp_keeping_nan(value, -F::ONE, F::ONE);
    }
    let size = x.magnitude();
    let small = size.multiply_add::<T>(polynomial::<T, F>(size * size, F::ERF), size);
    (if size < F::ONE { small } else { F::ONE - erfc::<T, F>(size) }).copy_sign(x)
}

/// The logistic function, for `f32` within 2.5 ULP; 0 from the last few subnormal results on.
#[inline(always)]
pub fn sigmoid<T: SimdTarget, F: MathFloat>(x: F) -> F {
    // From the upper bound on, 2ⁿ is infinite and the result 0.
    let negated = clamp_keeping_nan(-x, F::EXP_VANISHES, F::EXP_BOUNDS.1);
    let (whole, power) = negated.split_exp2::<T>();
    let rest = small_exp_m1::<T, F>(reduce_by_ln2::<T, F>(negated, whole));
    // The product comes last: an infinite power times `rest` could be a NaN.
    F::ONE / (power * (F::ONE + rest) + F::ONE)
}

/// log(1 + exp(x)).
#[inline(always)]
pub fn softplus<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let bent = if x < F::ZERO { F::ZERO } else { x };
    bent + log_1p::<T, F>(exp::<T, F>(-x.magnitude()))
}

/// x · Φ(x), where Φ is the distribution function of the normal distribution; accurate in the lower tail.
#[inline(always)]
pub fn gelu<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let half = F::HALF * erfc::<T, F>(x.magnitude() * F::from_f64(std::f64::consts::FRAC_1_SQRT_2));
    x * if x > F::ZERO { F::ONE - half } else { half }
}

/// The tanh approximation of [`gelu`].
#[inline(always)]
pub fn gelu_tanh<T: SimdTarget, F: MathFloat>(x: F) -> F {
    let twice_root = F::from_f64(2.0 * (std::f64::consts::FRAC_2_PI).sqrt());
    let cube = x * x * x;
    x * sigmoid::<T, F>(twice_root * cube.multiply_add::<T>(F::from_f64(0.044715), x))
}

#[cfg(test)]
mod tests;

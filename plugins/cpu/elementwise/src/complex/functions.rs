//! Functions of complex numbers. Signed zeros, infinities and NaN follow Annex G of the C standard.
//!
//! Parts of 32 bits are computed in 64, so that no intermediate overflows and the result is rounded once.

use oarlock_sdk::Complex;

pub(super) type ComplexF64 = Complex<f64>;

const fn complex(re: f64, im: f64) -> ComplexF64 {
    ComplexF64 { re, im }
}

fn copy_sign(of: f64, sign: f64) -> f64 {
    of.copysign(sign)
}

/// `i z`.
fn times_i(z: ComplexF64) -> ComplexF64 {
    complex(-z.im, z.re)
}

/// `-i z`.
fn times_minus_i(z: ComplexF64) -> ComplexF64 {
    complex(z.im, -z.re)
}

pub(super) fn product(a: ComplexF64, b: ComplexF64) -> ComplexF64 {
    complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

/// Smith's method: the larger part of the divisor is factored out first, so that no square overflows.
pub(super) fn quotient(a: ComplexF64, b: ComplexF64) -> ComplexF64 {
    if b.re == 0.0 && b.im == 0.0 {
        // As in NumPy, the sign of a 0 that divides does not count.
        return complex(a.re / b.re.abs(), a.im / b.re.abs());
    }
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let size = b.re + b.im * ratio;
        complex((a.re + a.im * ratio) / size, (a.im - a.re * ratio) / size)
    } else {
        let ratio = b.re / b.im;
        let size = b.re * ratio + b.im;
        complex((a.re * ratio + a.im) / size, (a.im * ratio - a.re) / size)
    }
}

pub(super) fn magnitude(z: ComplexF64) -> f64 {
    z.re.hypot(z.im)
}

pub(super) fn sign(z: ComplexF64) -> ComplexF64 {
    let size = magnitude(z);
    if size == 0.0 { complex(0.0, 0.0) } else { complex(z.re / size, z.im / size) }
}

pub(super) fn exp(z: ComplexF64) -> ComplexF64 {
    // On the real line the imaginary part stays a 0 of its sign.
    if z.im == 0.0 {
        return complex(z.re.exp(), z.im);
    }
    if z.im.is_finite() {
        if z.re == f64::NEG_INFINITY {
            return complex(copy_sign(0.0, z.im.cos()), copy_sign(0.0, z.im.sin()));
        }
        // The exponential as two factors: alone it may overflow where its product with a small sine does not.
        let (half, (sine, cosine)) = ((z.re / 2.0).exp(), z.im.sin_cos());
        return complex(half * cosine * half, half * sine * half);
    }
    match z.re {
        f64::NEG_INFINITY => complex(0.0, 0.0),
        f64::INFINITY => complex(f64::INFINITY, f64::NAN),
        _ => complex(f64::NAN, f64::NAN),
    }
}

pub(super) fn expm1(z: ComplexF64) -> ComplexF64 {
    if z.im == 0.0 {
        return complex(z.re.exp_m1(), z.im);
    }
    if !(z.re.is_finite() && z.im.is_finite()) {
        let power = exp(z);
        return complex(power.re - 1.0, power.im);
    }
    // exp(x) cos(y) - 1 without this difference, which cancels near 0.
    let half = (z.im / 2.0).sin();
    complex(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
}

pub(super) fn log(z: ComplexF64) -> ComplexF64 {
    complex(magnitude(z).ln(), z.im.atan2(z.re))
}

/// Near 0, |1 + z|² - 1 is computed without adding 1, which would cancel.
pub(super) fn log1p(z: ComplexF64) -> ComplexF64 {
    let angle = z.im.atan2(z.re + 1.0);
    if z.re.abs() < 0.5 && z.im.abs() < 0.5 {
        return complex(0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(), angle);
    }
    complex((z.re + 1.0).hypot(z.im).ln(), angle)
}

pub(super) fn scale(z: ComplexF64, by: f64) -> ComplexF64 {
    complex(z.re * by, z.im * by)
}

pub(super) fn sqrt(z: ComplexF64) -> ComplexF64 {
    // Even if the real part is NaN.
    if z.im.is_infinite() {
        return complex(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        return match (z.re > 0.0, z.im.is_nan()) {
            (true, true) => complex(f64::INFINITY, f64::NAN),
            (true, false) => complex(f64::INFINITY, copy_sign(0.0, z.im)),
            (false, true) => complex(f64::NAN, f64::INFINITY),
            (false, false) => complex(0.0, copy_sign(f64::INFINITY, z.im)),
        };
    }
    if z.re == 0.0 && z.im == 0.0 {
        return complex(0.0, z.im);
    }
    // Very large parts are scaled down first, and very small ones up.
    let size = z.re.abs().max(z.im.abs());
    // Even powers of 2, whose roots are exact.
    let factor = if size > 1e150 {
        0.25
    } else if size < 1e-150 {
        2f64.powi(1000)
    } else {
        1.0
    };
    let (re, im) = (z.re * factor, z.im * factor);
    // The part that does not cancel comes first, and the other one follows from it.
    let root = ((re.abs() + re.hypot(im)) / 2.0).sqrt();
    let other = im.abs() / (2.0 * root);
    let (re, im) = if re >= 0.0 { (root, other) } else { (other, root) };
    let back = factor.sqrt().recip();
    complex(re * back, copy_sign(im * back, z.im))
}

pub(super) fn sinh(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_finite() && y.is_finite() {
        if y == 0.0 {
            return complex(x.sinh(), y);
        }
        // Up to here the hyperbolic functions do not overflow. Beyond, both are half an exponential, which is multiplied in two
        // steps.
        if x.abs() < 700.0 {
            return complex(x.sinh() * y.cos(), x.cosh() * y.sin());
        }
        let half = exp(complex(x.abs(), y));
        return complex(copy_sign(0.5, x) * half.re, 0.5 * half.im);
    }
    if x == 0.0 {
        // The imaginary part is NaN; the sign of the zero stays.
        return complex(x, f64::NAN);
    }
    if x.is_infinite() {
        return if y == 0.0 {
            complex(x, y)
        } else if y.is_finite() {
            complex(x * y.cos(), f64::INFINITY * y.sin())
        } else {
            complex(x, f64::NAN)
        };
    }
    complex(f64::NAN, if y == 0.0 { y } else { f64::NAN })
}

pub(super) fn cosh(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_finite() && y.is_finite() {
        if y == 0.0 {
            return complex(x.cosh(), x * y);
        }
        if x.abs() < 700.0 {
            return complex(x.cosh() * y.cos(), x.sinh() * y.sin());
        }
        let half = exp(complex(x.abs(), y));
        return complex(0.5 * half.re, copy_sign(0.5, x) * half.im);
    }
    if x == 0.0 {
        return complex(f64::NAN, 0.0);
    }
    if x.is_infinite() {
        return if y == 0.0 {
            complex(f64::INFINITY, copy_sign(0.0, x) * y)
        } else if y.is_finite() {
            complex(f64::INFINITY * y.cos(), x * y.sin())
        } else {
            complex(f64::INFINITY, f64::NAN)
        };
    }
    complex(f64::NAN, if y == 0.0 { 0.0 } else { f64::NAN })
}

pub(super) fn tanh(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_nan() {
        return complex(f64::NAN, if y == 0.0 { y } else { f64::NAN });
    }
    if x.is_infinite() {
        let sine = if y.is_finite() { (2.0 * y).sin() } else { 0.0 };
        return complex(copy_sign(1.0, x), copy_sign(0.0, sine));
    }
    if !y.is_finite() {
        return complex(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    // From here on the real part rounds to 1, and further out the squares below would overflow.
    if x.abs() >= 22.0 {
        let small = (-x.abs()).exp();
        return complex(copy_sign(1.0, x), 4.0 * y.sin() * y.cos() * small * small);
    }
    // Kahan's method: everything follows from the tangent and the hyperbolic sine.
    let (tangent, sine) = (y.tan(), x.sinh());
    let beta = 1.0 + tangent * tangent;
    let rho = (1.0 + sine * sine).sqrt();
    let size = 1.0 + beta * sine * sine;
    complex(beta * rho * sine / size, tangent / size)
}

pub(super) fn sin(z: ComplexF64) -> ComplexF64 {
    times_minus_i(sinh(times_i(z)))
}

pub(super) fn cos(z: ComplexF64) -> ComplexF64 {
    cosh(times_i(z))
}

pub(super) fn tan(z: ComplexF64) -> ComplexF64 {
    times_minus_i(tanh(times_i(z)))
}

/// The plain case is by Hull, Fairgrieve and Tang: both roots are products of numbers that do not cancel.
pub(super) fn asinh(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_nan() || y.is_nan() || x.is_infinite() || y.is_infinite() {
        return if x.is_infinite() {
            let angle = if y.is_infinite() {
                copy_sign(std::f64::consts::FRAC_PI_4, y)
            } else if y.is_nan() {
                y
            } else {
                copy_sign(0.0, y)
            };
            complex(x, angle)
        } else if y.is_infinite() {
            let angle = if x.is_nan() { x } else { copy_sign(std::f64::consts::FRAC_PI_2, y) };
            complex(if x.is_nan() { f64::INFINITY } else { copy_sign(f64::INFINITY, x) }, angle)
        } else if y == 0.0 {
            complex(f64::NAN, y)
        } else {
            complex(f64::NAN, f64::NAN)
        };
    }
    // Far out it is the logarithm of 2 z, which takes no products that could overflow.
    if x.abs().max(y.abs()) > 1e150 {
        let far = log(complex(x.abs(), y.abs()));
        return complex(copy_sign(far.re + std::f64::consts::LN_2, x), copy_sign(far.im, y));
    }
    // With w = i z: asinh z = -i asin w, and asin w by its roots.
    let (above, below) = (sqrt(complex(1.0 - y, x)), sqrt(complex(1.0 + y, -x)));
    let re = (above.re * below.im - above.im * below.re).asinh();
    let im = y.atan2((product(above, below)).re);
    complex(copy_sign(re, x), copy_sign(im, y))
}

pub(super) fn asin(z: ComplexF64) -> ComplexF64 {
    times_minus_i(asinh(times_i(z)))
}

pub(super) fn acos(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_nan() || y.is_nan() {
        return if y.is_infinite() {
            complex(f64::NAN, -y)
        } else if x.is_infinite() {
            complex(f64::NAN, f64::INFINITY)
        } else if x == 0.0 {
            complex(std::f64::consts::FRAC_PI_2, f64::NAN)
        } else {
            complex(f64::NAN, f64::NAN)
        };
    }
    if x.is_infinite() || y.is_infinite() || x.abs().max(y.abs()) > 1e150 {
        let far = log(complex(x, y.abs()));
        return complex(far.im, copy_sign(far.re + std::f64::consts::LN_2, -y));
    }
    let (above, below) = (sqrt(complex(1.0 - x, -y)), sqrt(complex(1.0 + x, y)));
    let re = 2.0 * above.re.atan2(below.re);
    let im = (below.re * above.im - below.im * above.re).asinh();
    complex(re, copy_sign(im, -y))
}

pub(super) fn acosh(z: ComplexF64) -> ComplexF64 {
    let angle = acos(z);
    // Of the two rotations by a quarter turn, the one with a real part of at least 0.
    if z.re.is_nan() && z.im == 0.0 || z.re == 0.0 && z.im.is_nan() {
        return complex(f64::NAN, if z.re == 0.0 { std::f64::consts::FRAC_PI_2 } else { f64::NAN });
    }
    let re = angle.im.abs();
    complex(re, copy_sign(angle.re, z.im))
}

pub(super) fn atanh(z: ComplexF64) -> ComplexF64 {
    let ComplexF64 { re: x, im: y } = z;
    if x.is_nan() {
        return if y.is_infinite() {
            complex(copy_sign(0.0, x), copy_sign(std::f64::consts::FRAC_PI_2, y))
        } else {
            complex(x, f64::NAN)
        };
    }
    if y.is_nan() {
        return complex(if x == 0.0 || x.is_infinite() { copy_sign(0.0, x) } else { f64::NAN }, y);
    }
    if x.is_infinite() || y.is_infinite() || x.abs().max(y.abs()) > 1e150 {
        let re = if x.is_infinite() || y.is_infinite() {
            0.0
        } else {
            quotient(complex(1.0, 0.0), complex(x, y)).re.abs()
        };
        return complex(copy_sign(re, x), copy_sign(std::f64::consts::FRAC_PI_2, y));
    }
    if y == 0.0 && x.abs() == 1.0 {
        return complex(copy_sign(f64::INFINITY, x), y);
    }
    let (ax, square) = (x.abs(), y * y);
    // `ln_1p` keeps the digits of small numbers.
    let re = 0.25 * (4.0 * ax / ((1.0 - ax) * (1.0 - ax) + square)).ln_1p();
    let im = 0.5 * (2.0 * y).atan2((1.0 - ax) * (1.0 + ax) - square);
    complex(copy_sign(re, x), copy_sign(im, y))
}

pub(super) fn atan(z: ComplexF64) -> ComplexF64 {
    times_minus_i(atanh(times_i(z)))
}

pub(super) fn power(base: ComplexF64, exponent: ComplexF64) -> ComplexF64 {
    // Of any base, even of NaN, as for real numbers.
    if exponent.re == 0.0 && exponent.im == 0.0 {
        return complex(1.0, 0.0);
    }
    // Other powers of 0 are NaN, as in NumPy.
    if base.re == 0.0 && base.im == 0.0 {
        return if exponent.im == 0.0 && exponent.re > 0.0 {
            complex(0.0, 0.0)
        } else {
            complex(f64::NAN, f64::NAN)
        };
    }
    // Small integer exponents are exact as products.
    if exponent.im == 0.0 && exponent.re.fract() == 0.0 && exponent.re.abs() <= 64.0 {
        let (mut left, mut factor, mut result) = (exponent.re.abs() as u32, base, complex(1.0, 0.0));
        while left > 0 {
            if left & 1 == 1 {
                result = product(result, factor);
            }
            factor = product(factor, factor);
            left >>= 1;
        }
        return if exponent.re < 0.0 { quotient(complex(1.0, 0.0), result) } else { result };
    }
    exp(product(exponent, log(base)))
}

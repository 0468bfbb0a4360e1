//! Compares every function with the platform's `f64` version, over floats of all magnitudes.

use super::*;
use crate::isa::{BaselineTarget, FmaTarget};

/// Floats of both signs and all magnitudes, including infinities and NaN.
fn sample_floats() -> impl Iterator<Item = f32> {
    let special = [0.0, -0.0, 1.0, -1.0, 0.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN];
    let bounds = [88.7, 88.8, 89.3, 89.5, -87.4, -103.9, -104.1, 1e-45, -1e-45, 1e-40, f32::MIN_POSITIVE];
    // An odd step, so that all low bits occur.
    let all = (0..u32::MAX).step_by(40_013).map(f32::from_bits);
    let near = (-40_000..40_000).map(|step| step as f32 * 0.000_731);
    special.into_iter().chain(bounds).chain(all).chain(near)
}

/// The distance between two values, in ULP of the expected one.
fn ulp_distance(found: f32, expected: f64) -> f64 {
    let nearest = expected as f32;
    if found == nearest || found.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    if !nearest.is_finite() || !found.is_finite() {
        return f64::INFINITY;
    }
    let step = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
    (f64::from(found) - expected).abs() / step
}

#[track_caller]
fn check_function(name: &str, bound: f64, expected: impl Fn(f64) -> f64, found: [fn(f32) -> f32; 2]) {
    for function in found {
        let worst = sample_floats()
            .map(|x| (ulp_distance(function(x), expected(f64::from(x))), x))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        let (distance, x) = worst;
        assert!(distance <= bound, "{name}({x:e}) = {} is {distance} steps off", function(x));
    }
}

macro_rules! checks {
    ($($name:ident $bound:literal $expected:expr;)*) => {
        $(check_function(stringify!($name), $bound, $expected, [$name::<BaselineTarget, f32>, $name::<FmaTarget, f32>]);)*
    };
}

macro_rules! angle_checks {
    ($($name:ident $bound:literal;)*) => {
        $(
            check_function(stringify!($name), $bound, f64::$name, [
                <f32 as TrigonometricFloat>::$name::<BaselineTarget>,
                <f32 as TrigonometricFloat>::$name::<FmaTarget>,
            ]);
        )*
    };
}

#[test]
fn functions_of_floats_are_within_a_few_steps_of_the_exact_value() {
    checks! {
        exp 1.5 f64::exp;
        exp_m1 2.0 f64::exp_m1;
        log 1.5 f64::ln;
        log_1p 2.0 f64::ln_1p;
        tanh 2.5 f64::tanh;
        sinh 2.5 f64::sinh;
        cosh 3.0 f64::cosh;
        asinh 3.0 f64::asinh;
        acosh 3.0 f64::acosh;
        atanh 3.0 f64::atanh;
        sigmoid 2.5 |x| if x < -88.3 { 0.0 } else { 1.0 / (1.0 + (-x).exp()) };
        softplus 2.5 |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
        erf 6.0 erf::<BaselineTarget, f64>;
    }
    angle_checks! {
        asin 2.5;
        acos 2.0;
        atan 2.0;
    }
}

#[test]
fn powers_of_what_is_not_positive_end_at_the_least_normal_number() {
    for function in [exp_of_negative::<BaselineTarget, f32>, exp_of_negative::<FmaTarget, f32>] {
        for x in sample_floats().filter(|x| x.is_nan() || *x <= 0.0) {
            let (found, exact) = (function(x), f64::from(x).exp());
            let vanishes = exact < 1.01 * f64::from(f32::MIN_POSITIVE) && found == 0.0;
            assert!(vanishes || ulp_distance(found, exact) <= 1.5, "exp({x:e}) is {exact:e}, not {found:e}");
        }
        assert_eq!(function(f32::NEG_INFINITY), 0.0);
    }
    assert_eq!(exp_of_negative::<FmaTarget, f64>(f64::NEG_INFINITY), 0.0);
    assert_eq!(exp_of_negative::<FmaTarget, f64>(-700.0), exp::<FmaTarget, f64>(-700.0));
}

#[test]
fn far_from_zero_functions_with_a_limit_have_it() {
    for (tanh, erf) in [
        (tanh::<BaselineTarget, f32> as fn(f32) -> f32, erf::<BaselineTarget, f32> as fn(f32) -> f32),
        (tanh::<FmaTarget, f32>, erf::<FmaTarget, f32>),
    ] {
        for x in [9.25, 20.0, 1e30, f32::INFINITY] {
            assert_eq!([tanh(x), tanh(-x), erf(x), erf(-x)], [1.0, -1.0, 1.0, -1.0], "{x}");
        }
        assert!(sample_floats().all(|x| x.is_nan() || tanh(x).abs() <= 1.0 && erf(x).abs() <= 1.0));
    }
}

#[test]
fn gelu_is_exact_in_its_lower_tail_too() {
    // The function flushes a subnormal tail to 0.
    let tail = |x: f64| if x > 9.19 { 0.0 } else { 0.5 * erfc::<BaselineTarget, f64>(x) };
    let exact = |x: f64| x * if x > 0.0 { 1.0 - tail(x * 0.5f64.sqrt()) } else { tail(-x * 0.5f64.sqrt()) };
    // Far from 0, the exponent -x²/2 magnifies the rounding error of the argument.
    check_function("gelu", 300.0, exact, [gelu::<BaselineTarget, f32>, gelu::<FmaTarget, f32>]);
    let near = (-4000..=4000).map(|step| step as f32 * 0.001);
    for x in near {
        let found = ulp_distance(gelu::<FmaTarget, f32>(x), exact(f64::from(x)));
        assert!(found <= 16.0, "{x}: {found}");
    }
    for x in [-3.0, -0.5, 0.0, 0.25, 2.0, 5.0f32] {
        let y = f64::from(x);
        let expected =
            0.5 * y * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (y + 0.044715 * y * y * y)).tanh());
        assert!((f64::from(gelu_tanh::<FmaTarget, f32>(x)) - expected).abs() < 1e-6, "{x}");
    }
}

#[test]
fn angles_up_to_a_million_are_exact_to_the_last_steps() {
    let angles = || (-400_000..400_000).map(|step| step as f32 * 3.97);
    for x in angles() {
        let y = f64::from(x);
        let found = [
            ulp_distance(TrigonometricFloat::sin::<FmaTarget>(x), y.sin()),
            ulp_distance(TrigonometricFloat::cos::<BaselineTarget>(x), y.cos()),
            ulp_distance(TrigonometricFloat::tan::<FmaTarget>(x), y.tan()),
        ];
        assert!(
            !x.is_huge_angle() && found[0] <= 1.5 && found[1] <= 1.5 && found[2] <= 3.0,
            "{x}: {found:?}"
        );
    }
    assert!(1e9f32.is_huge_angle() && f32::INFINITY.is_huge_angle());
    assert_eq!(1e9f32.sin_of_any(), 1e9f32.sin());
}

#[test]
fn powers_have_the_signs_and_the_limits_of_c() {
    let values = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        -2.5,
        // Between integers, and nearer to an odd one.
        1.2,
        2.7,
        -2.8,
        -1.211,
        1e10,
        -1e10,
        16_777_217.0,
        1e-30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    for base in values {
        for exponent in values {
            let (found, expected) =
                (power::<FmaTarget>(base, exponent), f64::from(base).powf(f64::from(exponent)));
            let same_sign = found.is_nan() || found.is_sign_negative() == expected.is_sign_negative();
            let near = ulp_distance(found, expected) <= 0.6;
            assert!(near && same_sign, "{base} to the power of {exponent} is {expected}, not {found}");
        }
    }
}

/// Independently computed values of the error functions.
const ERF_VALUES: [(f64, f64); 14] = [
    (0.001, 0.0011283787909692365),
    (0.1, 0.1124629160182849),
    (0.5, 0.5204998778130465),
    (0.9, 0.7969082124228322),
    (0.999, 0.8422852702064969),
    (1.0, 0.8427007929497149),
    (1.001, 0.8431154854780762),
    (1.5, 0.9661051464753108),
    (2.0, 0.9953222650189527),
    (3.0, 0.9999779095030014),
    (4.0, 0.9999999845827421),
    (5.0, 0.9999999999984626),
    (5.9, 0.9999999999999999),
    (6.5, 1.0),
];
const ERFC_VALUES: [(f64, f64); 11] = [
    (0.001, 0.9988716212090307),
    (0.1, 0.8875370839817152),
    (0.5, 0.4795001221869535),
    (1.0, 0.15729920705028513),
    (1.5, 0.033894853524689274),
    (2.0, 0.004677734981047265),
    (3.0, 2.2090496998585438e-05),
    (5.0, 1.5374597944280351e-12),
    (10.0, 2.088487583762545e-45),
    (20.0, 5.3958656116079005e-176),
    (26.0, 5.663192408856143e-296),
];

#[test]
fn functions_of_doubles_are_within_a_few_steps_too() {
    let near = |found: f64, expected: f64, name: &str, x: f64| {
        let steps = (found - expected).abs() / (expected.abs().next_up() - expected.abs());
        let same = found == expected || found.is_nan() && expected.is_nan();
        assert!(same || steps <= 5.0, "{name}({x:e}): {found:e} is {steps} steps from {expected:e}");
    };
    let special =
        [0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 709.7, 710.5, -745.0, -746.5, 1e-310, 1e300];
    let values = || {
        special
            .into_iter()
            .chain((-20_000..20_000).map(|step| f64::from(step) * 0.001_37))
            .chain((-300..300).map(|e| 10f64.powi(e)))
    };
    for x in values() {
        near(exp::<FmaTarget, f64>(x), x.exp(), "exp", x);
        near(exp_m1::<BaselineTarget, f64>(x), x.exp_m1(), "exp_m1", x);
        near(log::<FmaTarget, f64>(x), x.ln(), "log", x);
        near(log_1p::<BaselineTarget, f64>(x), x.ln_1p(), "log_1p", x);
        near(tanh::<FmaTarget, f64>(x), x.tanh(), "tanh", x);
        // Far below 0 the result is subnormal, or 0 instead.
        if x > -708.0 || x == f64::NEG_INFINITY {
            near(sigmoid::<FmaTarget, f64>(x), 1.0 / (1.0 + (-x).exp()), "sigmoid", x);
        }
        near(sinh::<FmaTarget, f64>(x), x.sinh(), "sinh", x);
        near(cosh::<FmaTarget, f64>(x), x.cosh(), "cosh", x);
    }
    for (x, expected) in ERF_VALUES {
        near(erf::<FmaTarget, f64>(x), expected, "erf", x);
        near(erf::<BaselineTarget, f64>(-x), -expected, "erf", -x);
    }
    for (x, expected) in ERFC_VALUES {
        near(erfc::<FmaTarget, f64>(x), expected, "erfc", x);
    }
}

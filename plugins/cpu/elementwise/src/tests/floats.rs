//! Functions of one element.

use oarlock_cpu_base::isa::BaselineTarget;
use oarlock_cpu_base::math;
use oarlock_sdk::{bf16, f16};

use super::*;

/// Values of all kinds, more than a tile of them, so that whole vectors and remainders occur.
fn sample_values() -> Vec<f64> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5, -0.5, 2.5, -2.5, 1.0, -1.0];
    special.into_iter().chain((-1000..1000).map(|step| f64::from(step) * 0.0087)).collect()
}

#[track_caller]
fn check_unary(
    op: &str,
    version: u32,
    attributes: &[(&str, TestAttribute<'_>)],
    expected: impl Fn(f64) -> f64,
) {
    let near = |x: f64, found: f64, accuracy: f64| {
        let exact = expected(x);
        let same = found == exact || found.is_nan() && exact.is_nan();
        let close = (found - exact).abs() <= accuracy * exact.abs().max(0.1);
        assert!(same || close, "{op}({x}) is {exact}, not {found}");
    };
    for isa in ISAS {
        let dims = [sample_values().len() as i64];
        let run = |array: TestArray| {
            compute_with_isa(isa, op, version, attributes, &[&array], (array.dtype, &dims)).unwrap()
        };
        let halves: Vec<_> = sample_values().into_iter().map(|x| f16::from_f32(x as f32)).collect();
        for (x, y) in halves.iter().zip(run(TestArray::from_values(&dims, &halves)).values::<f16>()) {
            // Half a unit in the last place of `f16` is 2⁻¹¹, or 5e-4.
            near(x.to_f64(), y.to_f64(), 1e-3);
        }
        let brains: Vec<_> = sample_values().into_iter().map(|x| bf16::from_f32(x as f32)).collect();
        for (x, y) in brains.iter().zip(run(TestArray::from_values(&dims, &brains)).values::<bf16>()) {
            // Half a unit in the last place of `bf16` is 2⁻⁸, or 4e-3, near a power of two.
            near(x.to_f64(), y.to_f64(), 8e-3);
        }
        let floats: Vec<_> = sample_values().into_iter().map(|x| x as f32).collect();
        for (x, y) in floats.iter().zip(run(TestArray::from_values(&dims, &floats)).values::<f32>()) {
            near(f64::from(*x), f64::from(y), 1e-6);
        }
        for (x, y) in
            sample_values().iter().zip(run(TestArray::from_values(&dims, &sample_values())).values::<f64>())
        {
            near(*x, y, 1e-14);
        }
    }
}

/// Tested on its own against known values.
fn tested_erf(x: f64) -> f64 {
    math::erf::<BaselineTarget, f64>(x)
}

#[test]
fn functions_have_their_values_in_every_float() {
    check_unary("Ceil", 13, &[], f64::ceil);
    check_unary("Floor", 13, &[], f64::floor);
    check_unary("Round", 22, &[], f64::round_ties_even);
    check_unary("Reciprocal", 13, &[], f64::recip);
    check_unary("Sqrt", 13, &[], f64::sqrt);
    check_unary("Exp", 13, &[], f64::exp);
    check_unary("Log", 13, &[], f64::ln);
    check_unary("Abs", 13, &[], f64::abs);
    check_unary("Neg", 13, &[], |x| -x);
    check_unary("Sign", 13, &[], |x| if x == 0.0 || x.is_nan() { x } else { x.signum() });
    check_unary("Relu", 14, &[], |x| if x.is_nan() { x } else { x.max(0.0) });
}

#[test]
fn functions_of_angles_and_hyperbolas_have_their_values_in_every_float() {
    check_unary("Sin", 22, &[], f64::sin);
    check_unary("Cos", 22, &[], f64::cos);
    check_unary("Tan", 22, &[], f64::tan);
    check_unary("Asin", 22, &[], f64::asin);
    check_unary("Acos", 22, &[], f64::acos);
    check_unary("Atan", 22, &[], f64::atan);
    check_unary("Sinh", 22, &[], f64::sinh);
    check_unary("Cosh", 22, &[], f64::cosh);
    check_unary("Tanh", 13, &[], f64::tanh);
    check_unary("Asinh", 22, &[], f64::asinh);
    check_unary("Acosh", 22, &[], f64::acosh);
    check_unary("Atanh", 22, &[], f64::atanh);
}

/// Checks that zeros keep their sign: in whole vectors, in remainders, and beside other elements.
#[track_caller]
fn check_zeros<T: Element>(op: &str, of: impl Fn(f64) -> T, back: impl Fn(T) -> f64) {
    let version = if op.starts_with("oarlock:") { 1 } else { 22 };
    for isa in ISAS {
        for length in [1, 2, 3, 40] {
            let values: Vec<f64> = (0..length).map(|at| [0.0, -0.0, 0.5, -0.0][(at + length) % 4]).collect();
            let dims = [length as i64];
            let x = TestArray::from_values(&dims, &values.iter().map(|value| of(*value)).collect::<Vec<_>>());
            let found = compute_with_isa(isa, op, version, &[], &[&x], (T::DTYPE, &dims)).unwrap();
            for (x, y) in values.iter().zip(found.values::<T>()).filter(|(x, _)| **x == 0.0) {
                let y = back(y);
                assert_eq!(y.to_bits(), x.to_bits(), "{op}({x:?}) of {length} is {y:?}");
            }
        }
    }
}

#[test]
fn odd_functions_keep_the_sign_of_0_in_every_float() {
    let rounding = ["Ceil", "Floor", "Round", "oarlock:Trunc"];
    let others = ["Sqrt", "oarlock:Expm1", "oarlock:Log1p", "Erf"];
    let of_angles = ["Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh", "Atanh"];
    for op in rounding.into_iter().chain(others).chain(of_angles) {
        check_zeros(op, f16::from_f64, f16::to_f64);
        check_zeros(op, bf16::from_f64, bf16::to_f64);
        check_zeros(op, |x| x as f32, f64::from);
        check_zeros(op, |x| x, |x| x);
    }
}

#[test]
fn activations_have_their_values_in_every_float() {
    let alpha = |alpha| [("alpha", TestAttribute::Float(alpha))];
    check_unary("Sigmoid", 13, &[], |x| 1.0 / (1.0 + (-x).exp()));
    check_unary("Softplus", 22, &[], |x| if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() });
    check_unary("Softsign", 22, &[], |x| x / (1.0 + x.abs()));
    check_unary("LeakyRelu", 16, &alpha(0.25), |x| if x < 0.0 { 0.25 * x } else { x });
    check_unary("Elu", 22, &alpha(1.5), |x| if x < 0.0 { 1.5 * x.exp_m1() } else { x });
    check_unary("Celu", 12, &alpha(2.0), |x| if x < 0.0 { 2.0 * (x / 2.0).exp_m1() } else { x });
    check_unary(
        "Selu",
        22,
        &[("alpha", TestAttribute::Float(1.5)), ("gamma", TestAttribute::Float(2.0))],
        |x| 2.0 * if x < 0.0 { 1.5 * x.exp_m1() } else { x },
    );
    let bounded = |x: f64| if x.is_nan() { x } else { x.clamp(0.0, 1.0) };
    let parameters = [("alpha", TestAttribute::Float(0.25)), ("beta", TestAttribute::Float(0.5))];
    check_unary("HardSigmoid", 22, &parameters, |x| bounded(0.25 * x + 0.5));
    check_unary("HardSwish", 22, &[], |x| x * bounded(x / 6.0 + 0.5));
    check_unary("ThresholdedRelu", 22, &alpha(1.0), |x| if x <= 1.0 { 0.0 } else { x });
    check_unary(
        "Shrink",
        9,
        &[("lambd", TestAttribute::Float(1.5)), ("bias", TestAttribute::Float(0.5))],
        |x| {
            if x < -1.5 {
                x + 0.5
            } else if x > 1.5 {
                x - 0.5
            } else {
                0.0
            }
        },
    );
}

#[test]
fn smooth_activations_have_their_values_in_every_float() {
    check_unary("Erf", 13, &[], tested_erf);
    check_unary("Swish", 24, &[("alpha", TestAttribute::Float(0.5))], |x| x / (1.0 + (-0.5 * x).exp()));
    check_unary("Mish", 22, &[], |x| x * (x.exp().ln_1p()).tanh());
    check_unary("Gelu", 20, &[], |x| x * (0.5 * (1.0 + tested_erf(x * 0.5f64.sqrt()))));
    check_unary("Gelu", 20, &[("approximate", TestAttribute::Text("tanh"))], |x| {
        let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        if y > 40.0 { x } else { x * (2.0 * y).exp() / (1.0 + (2.0 * y).exp()) }
    });
}

#[test]
fn an_unknown_approximation_is_refused() {
    let x = TestArray::from_values(&[1], &[1f32]);
    let wrong = [("approximate", TestAttribute::Text("erf"))];
    let message = compute_with_isa("", "Gelu", 20, &wrong, &[&x], (Dtype::F32, &[1])).unwrap_err();
    assert!(message.contains("`erf`"), "{message}");
}

#[test]
fn huge_angles_are_exact() {
    let x = [1e7f32, -3e20, 1.0, f32::MAX];
    // Angles too large to reduce in the vectorized loop leave it for the function of the platform.
    assert_eq!(compute_unary::<f32, f32>("Sin", 22, &[], &x), x.map(f32::sin));
    assert_eq!(compute_unary::<f32, f32>("Cos", 22, &[], &x), x.map(f32::cos));
}

#[test]
fn integers_have_a_sign_and_a_size() {
    assert_eq!(compute_unary::<i8, i8>("Abs", 13, &[], &[-128, -1, 0, 127]), [-128, 1, 0, 127]);
    assert_eq!(compute_unary::<u16, u16>("Abs", 13, &[], &[65535, 0]), [65535, 0]);
    assert_eq!(compute_unary::<i64, i64>("Neg", 13, &[], &[i64::MIN, 5]), [i64::MIN, -5]);
    assert_eq!(compute_unary::<i32, i32>("Sign", 13, &[], &[-9, 0, 9]), [-1, 0, 1]);
    assert_eq!(compute_unary::<u8, u8>("Sign", 13, &[], &[200, 0]), [1, 0]);
    assert_eq!(compute_unary::<i32, i32>("Relu", 14, &[], &[-9, 0, 9]), [0, 0, 9]);
    assert_eq!(
        compute_unary::<i16, i16>(
            "Shrink",
            9,
            &[("lambd", TestAttribute::Float(1.5)), ("bias", TestAttribute::Float(1.0))],
            &[-3, 1, 2]
        ),
        [-2, 0, 1]
    );
    assert_eq!(compute_unary::<i32, i32>("Erf", 9, &[], &[-9, 0, 9]), [-1, 0, 1]);
}

#[test]
fn what_is_no_number_and_what_is_infinite_is_found() {
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, f32::MAX];
    assert_eq!(compute_unary::<f32, bool>("IsNaN", 20, &[], &x), [true, false, false, false, false]);
    assert_eq!(compute_unary::<f32, bool>("IsInf", 20, &[], &x), [false, true, true, false, false]);
    let positive = [("detect_negative", TestAttribute::Int(0))];
    assert_eq!(compute_unary::<f32, bool>("IsInf", 20, &positive, &x), [false, true, false, false, false]);
    let negative = [("detect_positive", TestAttribute::Int(0))];
    assert_eq!(
        compute_unary::<f16, bool>("IsInf", 20, &negative, &x.map(f16::from_f32)),
        [false, false, true, false, false]
    );
    let codes = TestArray::from_bytes(Dtype::F8E5M2, &[4], &[0x7C, 0x7F, 0xFC, 0x01]);
    let found = compute_on_all_isas("IsInf", 20, &[], &[&codes], (Dtype::BOOL, &[4]));
    assert_eq!(found.values::<bool>(), [true, false, true, false]);
}

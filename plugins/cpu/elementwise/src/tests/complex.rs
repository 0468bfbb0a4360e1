//! Complex numbers.

use oarlock_sdk::Complex;

use super::*;

fn sample_numbers() -> Vec<Complex<f64>> {
    let parts = [0.5, -1.25, 3.0, -0.01, 7.5];
    parts.iter().flat_map(|re| parts.map(|im| Complex::new(*re, im))).collect()
}

#[track_caller]
fn assert_near(found: &[Complex<f64>], expected: &[Complex<f64>]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).norm_sqr().sqrt() <= 1e-13 * (1.0 + expected.norm_sqr().sqrt()),
            "{found} {expected}"
        );
    }
}

fn apply_op(op: &str, z: &[Complex<f64>]) -> Vec<Complex<f64>> {
    compute_unary(&format!("oarlock:{op}"), 1, &[], z)
}

#[test]
fn a_function_and_its_inverse_restore_complex_inputs() {
    let z = sample_numbers();
    for (there, back) in
        [("Log", "Exp"), ("Sqrt", "Square"), ("Asin", "Sin"), ("Acos", "Cos"), ("Atan", "Tan")]
    {
        let result = apply_op(there, &z);
        let found =
            if back == "Square" { result.iter().map(|z| z * z).collect() } else { apply_op(back, &result) };
        assert_near(&found, &z);
    }
    for (there, back) in [("Asinh", "Sinh"), ("Acosh", "Cosh"), ("Atanh", "Tanh"), ("Log1p", "Expm1")] {
        assert_near(&apply_op(back, &apply_op(there, &z)), &z);
    }
}

#[test]
fn quotients_and_products_of_large_numbers_do_not_overflow_on_the_way() {
    let large = [Complex::new(1e300, 1e300), Complex::new(1e-300, 1e-300)];
    let quotients = compute_pairwise::<Complex<f64>, Complex<f64>>("oarlock:Div", 1, &large, &large);
    assert_near(&quotients, &[Complex::new(1.0, 0.0); 2]);
    let lengths = compute_unary::<Complex<f64>, f64>("oarlock:Abs", 1, &[], &large);
    assert!(
        (lengths[0] / 1e300 - 2f64.sqrt()).abs() < 1e-15 && (lengths[1] / 1e-300 - 2f64.sqrt()).abs() < 1e-15
    );
}

#[test]
fn numbers_are_taken_apart_and_put_together() {
    let z = [Complex::new(1.5f32, -2.0), Complex::new(-0.0, f32::INFINITY)];
    let (re, im) = (
        compute_unary::<Complex<f32>, f32>("oarlock:Real", 1, &[], &z),
        compute_unary::<Complex<f32>, f32>("oarlock:Imag", 1, &[], &z),
    );
    assert_eq!((re[0], im[0]), (1.5, -2.0));
    assert_eq!(compute_pairwise::<f32, Complex<f32>>("oarlock:Complex", 1, &re, &im), z);
    assert_eq!(compute_unary::<Complex<f32>, bool>("oarlock:IsFinite", 1, &[], &z), [true, false]);
    assert_eq!(compute_unary::<Complex<f32>, bool>("oarlock:IsInf", 1, &[], &z), [false, true]);
    assert_eq!(compute_pairwise::<Complex<f32>, bool>("oarlock:Equal", 1, &z, &z), [true, true]);
    let back = compute_unary::<Complex<f32>, Complex<f32>>("oarlock:Conj", 1, &[], &z);
    assert_eq!(back[0], Complex::new(1.5, 2.0));
}

#[test]
fn whole_powers_are_products() {
    let (z, by) = (
        [Complex::new(1.0f64, 2.0); 3],
        [Complex::new(3.0, 0.0), Complex::new(-1.0, 0.0), Complex::new(0.0, 0.0)],
    );
    let result = compute_pairwise::<Complex<f64>, Complex<f64>>("oarlock:Pow", 1, &z, &by);
    assert_near(&result, &[Complex::new(-11.0, -2.0), Complex::new(0.2, -0.4), Complex::new(1.0, 0.0)]);
}

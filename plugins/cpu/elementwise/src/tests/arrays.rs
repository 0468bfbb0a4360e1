//! Functions of the array standard that ONNX lacks.

use oarlock_sdk::{bf16, f16};

use super::*;

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

#[track_caller]
fn assert_same(found: &[f64], expected: &[f64]) {
    let bits = |list: &[f64]| {
        list.iter().map(|x| if x.is_nan() { NAN.to_bits() } else { x.to_bits() }).collect::<Vec<_>>()
    };
    assert_eq!(bits(found), bits(expected), "{found:?} {expected:?}");
}

#[test]
fn quotients_of_integers_are_rounded_down() {
    let (a, b) = ([7i32, -7, 7, -7, i32::MIN, 0], [2, 2, -2, -2, -1, 5]);
    assert_eq!(compute_pairwise::<i32, i32>("oarlock:FloorDivide", 1, &a, &b), [3, -4, -4, 3, i32::MIN, 0]);
    assert_eq!(compute_pairwise::<i32, i32>("oarlock:Remainder", 1, &a, &b), [1, 1, -1, -1, 0, 0]);
    assert_eq!(compute_pairwise::<u8, u8>("oarlock:FloorDivide", 1, &[200, 7], &[3, 8]), [66, 0]);
    let (a, b) = (TestArray::from_values(&[2], &[1i64, 2]), TestArray::from_values(&[2], &[1i64, 0]));
    for isa in ISAS {
        let message =
            compute_with_isa(isa, "oarlock:FloorDivide", 1, &[], &[&a, &b], (Dtype::I64, &[2])).unwrap_err();
        assert!(message.contains("found 0"), "{message}");
    }
}

#[test]
fn quotients_of_floats_are_rounded_down_and_leave_what_has_the_sign_of_the_divisor() {
    let a = [7.5, -7.5, 7.5, -7.5, 0.3, -0.0, 1.0, -1.0, INFINITY, 1.0, NAN];
    let b = [2.0, 2.0, -2.0, -2.0, 0.1, 3.0, INFINITY, INFINITY, 2.0, 0.0, 1.0];
    let quotients = compute_pairwise::<f64, f64>("oarlock:FloorDivide", 1, &a, &b);
    assert_same(&quotients, &[3.0, -4.0, -4.0, 3.0, 2.0, -0.0, 0.0, -1.0, INFINITY, INFINITY, NAN]);
    let rests = compute_pairwise::<f64, f64>("oarlock:Remainder", 1, &a, &b);
    assert_same(&rests, &[1.5, 0.5, -0.5, -1.5, 0.3 % 0.1, 0.0, 1.0, INFINITY, NAN, NAN, NAN]);
}

#[test]
fn bits_are_shifted_with_the_sign_and_out_of_the_number() {
    let (a, b) = ([-8i8, 5, -1, 64], [1i8, 2, 100, 1]);
    assert_eq!(compute_pairwise::<i8, i8>("oarlock:ShiftRight", 1, &a, &b), [-4, 1, -1, 32]);
    assert_eq!(compute_pairwise::<i8, i8>("oarlock:ShiftLeft", 1, &a, &b), [-16, 20, 0, -128]);
}

#[test]
fn functions_of_floats_are_exact_where_they_are_near_to_0() {
    let small = [1e-12f64, -0.0, 1.0];
    assert_same(&compute_unary::<f64, f64>("oarlock:Expm1", 1, &[], &small), &small.map(f64::exp_m1));
    assert_same(&compute_unary::<f64, f64>("oarlock:Log1p", 1, &[], &small), &small.map(f64::ln_1p));
    assert_same(&compute_unary::<f64, f64>("oarlock:Log2", 1, &[], &[8.0, 0.0]), &[3.0, -INFINITY]);
    assert_same(&compute_unary::<f64, f64>("oarlock:Log10", 1, &[], &[1000.0]), &[3.0]);
    assert_same(&compute_unary::<f64, f64>("oarlock:Trunc", 1, &[], &[-1.7, 1.7, -0.2]), &[-1.0, 1.0, -0.0]);
}

#[test]
fn functions_of_two_floats_do_not_overflow_on_the_way() {
    let huge = [1e300, -1e300];
    assert_same(&compute_pairwise::<f64, f64>("oarlock:Hypot", 1, &huge, &[0.0, 0.0]), &[1e300, 1e300]);
    assert_same(&compute_pairwise::<f64, f64>("oarlock:LogAddExp", 1, &huge, &[0.0, 0.0]), &[1e300, 0.0]);
    let infinite = [-INFINITY, INFINITY];
    assert_same(&compute_pairwise::<f64, f64>("oarlock:LogAddExp", 1, &infinite, &infinite), &infinite);
    assert_same(
        &compute_pairwise::<f64, f64>("oarlock:Atan2", 1, &[0.0, -0.0], &[-1.0, -1.0]),
        &[std::f64::consts::PI, -std::f64::consts::PI],
    );
    assert_same(
        &compute_pairwise::<f64, f64>("oarlock:NextAfter", 1, &[1.0, 0.0], &[2.0, -1.0]),
        &[1.0f64.next_up(), -5e-324],
    );
}

#[test]
fn signs_and_infinities_are_told_of_every_float() {
    let x = [f16::from_f32(-0.0), f16::INFINITY, f16::NAN, f16::from_f32(2.0)];
    assert_eq!(compute_unary::<f16, bool>("oarlock:SignBit", 1, &[], &x)[0..2], [true, false]);
    assert_eq!(compute_unary::<f16, bool>("oarlock:IsFinite", 1, &[], &x), [true, false, false, true]);
    let signs = [f16::from_f32(-0.0); 4];
    assert_eq!(compute_pairwise::<f16, f16>("oarlock:CopySign", 1, &x, &signs)[3], f16::from_f32(-2.0));
}

#[test]
fn narrow_floats_are_followed_by_narrow_floats() {
    let (smallest, one) = (f16::from_bits(1), f16::from_bits(0x3c00));
    let x = [one, one, f16::ZERO, -f16::ZERO, -smallest, f16::MAX, f16::NAN, one, f16::NEG_INFINITY];
    let to = [f16::MAX, f16::ZERO, -one, f16::ZERO, one, f16::INFINITY, one, f16::NAN, one];
    let found = compute_pairwise::<f16, f16>("oarlock:NextAfter", 1, &x, &to);
    let expected =
        [f16::from_bits(0x3c01), f16::from_bits(0x3bff), -smallest, f16::ZERO, -f16::ZERO, f16::INFINITY];
    assert_eq!(found[..6].iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected.map(f16::to_bits));
    assert!(found[6].is_nan() && found[7].is_nan());
    assert_eq!(found[8], f16::MIN);
    let (x, to) = ([bf16::ONE, bf16::MAX], [bf16::ZERO, bf16::INFINITY]);
    let expected = [bf16::from_bits(0x3f7f), bf16::INFINITY];
    assert_eq!(compute_pairwise::<bf16, bf16>("oarlock:NextAfter", 1, &x, &to), expected);
}

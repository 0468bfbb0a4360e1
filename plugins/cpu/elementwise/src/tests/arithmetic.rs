//! Arithmetic, comparisons and choices.

use oarlock_sdk::{Complex, bf16, f16};

use super::*;

/// Checks an op of integers of all widths against a function of wide ones whose result is truncated.
macro_rules! check_integers {
    ($op:literal, $version:literal, $function:expr) => {
        check_integers!(@ $op, $version, $function, i8 i16 i32 i64 u8 u16 u32 u64);
    };
    (@ $op:literal, $version:literal, $function:expr, $($integer:ident)*) => {
        $({
            let (low, high) = ($integer::MIN, $integer::MAX);
            let a: Vec<$integer> = (0..130u8).map(|x| [low, high, 1, 7, 100][x as usize % 5].wrapping_add((x / 5) as $integer)).collect();
            let b: Vec<$integer> = (0..130u8).map(|x| [3, high, 1, low.max(1), 99][x as usize % 5]).collect();
            let expected: Vec<$integer> = a.iter().zip(&b).map(|(a, b)| $function(*a as i128, *b as i128) as $integer).collect();
            assert_eq!(compute_pairwise::<$integer, $integer>($op, $version, &a, &b), expected, stringify!($integer));
        })*
    };
}

#[test]
fn integers_wrap_around() {
    check_integers!("Add", 14, |a, b| a + b);
    check_integers!("Sub", 14, |a, b| a - b);
    check_integers!("Mul", 14, |a: i128, b| a.wrapping_mul(b));
    check_integers!("Div", 14, |a, b| a / b);
    check_integers!("Mod", 13, |a: i128, b: i128| if b == 0 { 0 } else { (a % b + b) % b });
    check_integers!("Max", 13, |a: i128, b| a.max(b));
    check_integers!("Min", 13, |a: i128, b| a.min(b));
}

#[test]
fn the_smallest_integer_divided_by_minus_one_wraps_around() {
    // The machine's division traps on this quotient, which no integer of the type holds.
    assert_eq!(compute_pairwise::<i32, i32>("Div", 14, &[i32::MIN, 6], &[-1, -4]), [i32::MIN, -1]);
    assert_eq!(compute_pairwise::<i64, i64>("Mod", 13, &[i64::MIN, -7, 7], &[-1, 3, -3]), [0, 2, -2]);
}

#[test]
fn a_division_of_integers_by_zero_is_an_error() {
    let (a, b) = (TestArray::from_values(&[3], &[1i32, 2, 3]), TestArray::from_values(&[3], &[1i32, 0, 3]));
    for op in ["Div", "Mod"] {
        for isa in ISAS {
            let message = compute_with_isa(isa, op, 14, &[], &[&a, &b], (Dtype::I32, &[3])).unwrap_err();
            assert!(message.contains("found 0"), "{message}");
        }
    }
}

#[test]
fn a_rest_has_the_sign_of_the_divisor_or_with_fmod_of_the_dividend() {
    let (a, b) = (
        [-4.3f32, 7.2, 5.0, 4.3, -7.2, 8.0, f32::INFINITY, 3.0],
        [2.1f32, -3.4, 8.0, -2.1, 3.4, 5.0, 1.0, f32::NEG_INFINITY],
    );
    let found = compute_pairwise::<f32, f32>("Mod", 28, &a, &b);
    let expected = [2.0, -3.0, 5.0, -2.0, 3.0, 3.0, f32::NAN, f32::NEG_INFINITY];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5 || *found == expected || found.is_nan() && expected.is_nan());
    }
    let (x, y) = (TestArray::from_values(&[8], &a), TestArray::from_values(&[8], &b));
    let found =
        compute_on_all_isas("Mod", 28, &[("fmod", TestAttribute::Int(1))], &[&x, &y], (Dtype::F32, &[8]))
            .values::<f32>();
    for ((found, a), b) in found.iter().zip(a).zip(b) {
        assert!(*found == a % b || found.is_nan() && (a % b).is_nan());
    }
}

#[test]
fn halves_are_computed_as_floats_and_rounded_once() {
    let a: Vec<f32> = (0..3000).map(|x| x as f32 * 0.37 - 500.0).collect();
    let b: Vec<f32> = (0..3000).map(|x| 3.0 - x as f32 * 0.01).collect();
    let halves = |x: &[f32]| x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
    let brains = |x: &[f32]| x.iter().map(|x| bf16::from_f32(*x)).collect::<Vec<_>>();
    let found = compute_pairwise::<f16, f16>("Mul", 14, &halves(&a), &halves(&b));
    for ((found, a), b) in found.iter().zip(halves(&a)).zip(halves(&b)) {
        assert_eq!(*found, f16::from_f32(a.to_f32() * b.to_f32()));
    }
    let found = compute_pairwise::<bf16, bf16>("Add", 14, &brains(&a), &brains(&b));
    for ((found, a), b) in found.iter().zip(brains(&a)).zip(brains(&b)) {
        assert_eq!(*found, bf16::from_f32(a.to_f32() + b.to_f32()));
    }
}

#[test]
fn what_is_no_number_is_neither_equal_nor_less_and_wins_over_the_largest() {
    // NaN on either side, as the `max` and `min` of x86 treat their operands differently.
    let (a, b) = ([f32::NAN, 1.0, 2.0, -0.0], [1.0, f32::NAN, 2.0, 0.0]);
    assert_eq!(compute_pairwise::<f32, bool>("Equal", 19, &a, &b), [false, false, true, true]);
    assert_eq!(compute_pairwise::<f32, bool>("Less", 13, &a, &b), [false; 4]);
    assert_eq!(compute_pairwise::<f32, bool>("GreaterOrEqual", 16, &a, &b), [false, false, true, true]);
    for op in ["Max", "Min"] {
        let found = compute_pairwise::<f32, f32>(op, 13, &a, &b);
        assert!(found[0].is_nan() && found[1].is_nan() && found[2] == 2.0);
    }
}

#[test]
fn comparisons_know_numbers_with_and_without_a_sign() {
    assert_eq!(compute_pairwise::<u8, bool>("Greater", 13, &[200, 1], &[100, 2]), [true, false]);
    assert_eq!(compute_pairwise::<i8, bool>("Less", 13, &[-56, 1], &[100, 2]), [true, true]);
    assert_eq!(
        compute_pairwise::<i64, bool>("LessOrEqual", 16, &[i64::MIN, 5], &[i64::MAX, 5]),
        [true, true]
    );
    assert_eq!(compute_pairwise::<bool, bool>("Equal", 7, &[true, false], &[true, true]), [true, false]);
    let halves = [1.0, -2.0].map(f16::from_f32);
    assert_eq!(compute_pairwise::<f16, bool>("Greater", 9, &halves, &[f16::ZERO; 2]), [true, false]);
}

#[test]
fn powers_are_of_any_exponents() {
    let power =
        |x: &TestArray, y: &TestArray| compute_on_all_isas("Pow", 15, &[], &[x, y], (x.dtype, &x.dims));
    let x = TestArray::from_values(&[4], &[1f32, -2.0, 3.0, 0.25]);
    assert_eq!(power(&x, &TestArray::from_values(&[], &[2f32])).values::<f32>(), [1.0, 4.0, 9.0, 0.0625]);
    assert_eq!(
        power(&x, &TestArray::from_values(&[1], &[3i64])).values::<f32>(),
        [1.0, -8.0, 27.0, 0.015625]
    );
    assert_eq!(
        power(&x, &TestArray::from_values(&[4], &[0i32, -1, 2, 1])).values::<f32>(),
        [1.0, -0.5, 9.0, 0.25]
    );
    // More elements than a tile holds in their own dtype, though it holds them in the one they are computed in.
    let x = TestArray::from_values(&[3000], &[3f32; 3000]);
    assert_eq!(power(&x, &TestArray::from_values(&[], &[2i64])).values::<f32>(), [9.0; 3000]);
    let x = TestArray::from_values(&[5], &[2i32, -1, 3, 1, -2]);
    assert_eq!(
        power(&x, &TestArray::from_values(&[5], &[-1i64, -3, 40, -9, 31])).values::<i32>(),
        [0, -1, 3i32.wrapping_pow(40), 1, i32::MIN]
    );
    assert_eq!(power(&x, &TestArray::from_values(&[], &[2.0f64])).values::<i32>(), [4, 1, 9, 1, 4]);
    let found =
        power(&TestArray::from_values(&[2], &[2f64, 10.0]), &TestArray::from_values(&[2], &[0.5f32, -3.0]))
            .values::<f64>();
    assert_eq!(found, [2f64.sqrt(), 10f64.powf(-3.0)]);
    let (x, y) = (TestArray::from_values(&[1], &[0i64]), TestArray::from_values(&[1], &[-1i64]));
    // No integer is 0 to a negative power.
    assert!(compute_with_isa("", "Pow", 15, &[], &[&x, &y], (Dtype::I64, &[1])).is_err());
}

#[test]
fn roots_and_quotients_are_powers_of_one_exponent() {
    let (zero, infinity) = (0f32, f32::INFINITY);
    let bases = [zero, -zero, 1.0, -1.0, 2.0, 0.3, -0.3, 1e-40, 1e30, infinity, -infinity, f32::NAN];
    for exponent in [0.5f32, -0.5, -1.0] {
        let found = compute_pairwise::<f32, f32>("Pow", 15, &bases, &[exponent; 12]);
        for (base, found) in bases.into_iter().zip(found) {
            let expected = base.powf(exponent);
            let is_near = (found - expected).abs() <= 2e-7 * expected.abs();
            let is_same = found == expected || found.is_nan() && expected.is_nan() || is_near;
            let has_sign = found.is_nan() || found.is_sign_negative() == expected.is_sign_negative();
            assert!(is_same && has_sign, "{base} to the power of {exponent} is {expected}, not {found}");
        }
    }
}

#[test]
fn any_number_of_inputs_is_summed_up() {
    let inputs: Vec<TestArray> =
        (0..11).map(|x| TestArray::from_values(&[3, 1], &[x as f32, 1.0, -0.5 * x as f32])).collect();
    // A loop takes up to 8 inputs, so 9 and 11 take two loops.
    for count in [1, 2, 3, 8, 9, 11] {
        let some: Vec<&TestArray> = inputs[..count].iter().collect();
        let n = count as f32;
        let sums = [n * (n - 1.0) / 2.0, n, -n * (n - 1.0) / 4.0];
        let found = compute_on_all_isas("Sum", 13, &[], &some, (Dtype::F32, &[3, 1])).values::<f32>();
        assert_eq!(found, sums);
        let found = compute_on_all_isas("Mean", 13, &[], &some, (Dtype::F32, &[3, 1])).values::<f32>();
        assert_eq!(found, sums.map(|sum| sum / n));
        let found = compute_on_all_isas("Max", 13, &[], &some, (Dtype::F32, &[3, 1])).values::<f32>();
        assert_eq!(found, [n - 1.0, 1.0, 0.0]);
    }
    // A column, a row and another column, so that each input broadcasts in its own way.
    let row = TestArray::from_values(&[700], &(0..700).map(|x| x as f32).collect::<Vec<_>>());
    let found = compute_on_all_isas("Sum", 13, &[], &[&inputs[2], &row, &inputs[1]], (Dtype::F32, &[3, 700]))
        .values::<f32>();
    assert!((0..2100).all(|index| found[index] == [3.0, 2.0, -1.5][index / 700] + (index % 700) as f32));
}

#[test]
fn many_narrow_floats_are_rounded_once() {
    let large = TestArray::from_values(&[2], &[f16::from_f32(30000.0), f16::from_f32(1.0)]);
    let mut inputs = vec![&large; 9];
    let found = compute_on_all_isas("Mean", 13, &[], &inputs, (Dtype::F16, &[2])).values::<f16>();
    assert_eq!(found, [30000.0, 1.0].map(f16::from_f32));
    // The first eight are above the largest `f16`, the sum of all is not.
    let negative = TestArray::from_values(&[2], &[f16::from_f32(-60000.0), f16::from_f32(1.0)]);
    inputs.extend([&negative; 4]);
    let found = compute_on_all_isas("Sum", 13, &[], &inputs, (Dtype::F16, &[2])).values::<f16>();
    assert_eq!(found, [30000.0, 13.0].map(f16::from_f32));
}

#[test]
fn a_slope_applies_below_zero() {
    assert_eq!(compute_pairwise::<f32, f32>("PRelu", 16, &[-2.0, 3.0], &[0.5, 0.5]), [-1.0, 3.0]);
    assert_eq!(compute_pairwise::<i32, i32>("PRelu", 16, &[-2, 3], &[4, 4]), [-8, 3]);
    let (x, slope) =
        (TestArray::from_values(&[1, 2, 2], &[-1f32; 4]), TestArray::from_values(&[2], &[2f32, 3.0]));
    let found = |version| {
        compute_on_all_isas("PRelu", version, &[], &[&x, &slope], (Dtype::F32, &[1, 2, 2])).values::<f32>()
    };
    assert_eq!((found(6), found(7)), (vec![-2.0, -2.0, -3.0, -3.0], vec![-2.0, -3.0, -2.0, -3.0]));
}

#[test]
fn where_chooses_elements_of_any_type() {
    let condition = TestArray::from_values(&[3], &[true, false, true]);
    fn check_where<T: Element + PartialEq + std::fmt::Debug>(condition: &TestArray, x: [T; 3], y: T) {
        let found = compute_on_all_isas(
            "Where",
            16,
            &[],
            &[condition, &TestArray::from_values(&[3], &x), &TestArray::from_values(&[1], &[y])],
            (T::DTYPE, &[3]),
        );
        assert_eq!(found.values::<T>(), [x[0], y, x[2]]);
    }
    check_where(&condition, [true, true, false], false);
    check_where(&condition, [1u8, 2, 3], 9);
    check_where(&condition, [f16::ONE; 3], f16::NAN.min(f16::ZERO));
    check_where(&condition, [1.5f32, 2.5, 3.5], -1.0);
    check_where(&condition, [1i64, 2, 3], -1);
    check_where(&condition, [Complex::new(1f32, 2.0); 3], Complex::new(0.0, -1.0));
    check_where(&condition, [Complex::new(1f64, 2.0); 3], Complex::new(0.0, -1.0));
}

#[test]
fn values_are_clipped_at_the_bounds_there_are() {
    let x = TestArray::from_values(&[4], &[-3f32, f32::NAN, 0.5, 9.0]);
    let (low, high) = (TestArray::from_values(&[], &[-1f32]), TestArray::from_values(&[1], &[2f32]));
    let clip = |low: Option<&TestArray>, high: Option<&TestArray>| {
        let inputs = [Some(&x), low, high];
        let found =
            crate::KERNELS.run_with_isa("", "Clip", 13, &[], &inputs, &[Some((Dtype::F32, &[4]))]).unwrap();
        found[0].as_ref().unwrap().values::<f32>()
    };
    let same = |found: Vec<f32>, expected: [f32; 4]| {
        assert!(found.iter().zip(expected).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()), "{found:?}");
    };
    same(clip(Some(&low), Some(&high)), [-1.0, f32::NAN, 0.5, 2.0]);
    same(clip(Some(&low), None), [-1.0, f32::NAN, 0.5, 9.0]);
    same(clip(None, Some(&high)), [-3.0, f32::NAN, 0.5, 2.0]);
    same(clip(None, None), [-3.0, f32::NAN, 0.5, 9.0]);
    // With crossed bounds the upper one wins.
    same(clip(Some(&high), Some(&low)), [-1.0, f32::NAN, -1.0, -1.0]);
    assert_eq!(
        compute_unary::<f32, f32>("Clip", 6, &[("max", TestAttribute::Float(1.0))], &[-3.0, 3.0]),
        [-3.0, 1.0]
    );
}

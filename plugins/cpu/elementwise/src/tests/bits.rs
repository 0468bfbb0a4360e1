//! Bits.

use super::*;

#[test]
fn bools_are_combined() {
    let (a, b) = ([true, true, false, false], [true, false, true, false]);
    assert_eq!(compute_pairwise::<bool, bool>("And", 7, &a, &b), [true, false, false, false]);
    assert_eq!(compute_pairwise::<bool, bool>("Or", 7, &a, &b), [true, true, true, false]);
    assert_eq!(compute_pairwise::<bool, bool>("Xor", 1, &a, &b), [false, true, true, false]);
    assert_eq!(compute_unary::<bool, bool>("Not", 1, &[], &a), [false, false, true, true]);
}

#[test]
fn bits_are_combined() {
    assert_eq!(compute_pairwise::<i16, i16>("BitwiseAnd", 18, &[-1, 12], &[7, 10]), [7, 8]);
    assert_eq!(compute_pairwise::<u64, u64>("BitwiseOr", 18, &[1 << 63, 12], &[7, 10]), [1 << 63 | 7, 14]);
    assert_eq!(compute_pairwise::<u8, u8>("BitwiseXor", 18, &[255, 12], &[7, 10]), [248, 6]);
    assert_eq!(compute_unary::<i32, i32>("BitwiseNot", 18, &[], &[0, -1, 5]), [-1, 0, -6]);
}

#[test]
fn shifts_by_all_bits_or_more_leave_the_sign() {
    fn shift_bits<T: Element>(direction: &str, x: &[T], by: &[T]) -> Vec<T> {
        let dims = [x.len() as i64];
        let inputs = [&TestArray::from_values(&dims, x), &TestArray::from_values(&dims, by)];
        compute_on_all_isas(
            "BitShift",
            28,
            &[("direction", TestAttribute::Text(direction))],
            &inputs,
            (T::DTYPE, &dims),
        )
        .values()
    }
    assert_eq!(shift_bits("LEFT", &[1u8, 1, 1, 255], &[1, 7, 8, 200]), [2, 128, 0, 0]);
    assert_eq!(shift_bits("RIGHT", &[128u8, 128, 128], &[1, 7, 8]), [64, 1, 0]);
    assert_eq!(
        shift_bits("RIGHT", &[-128i8, -128, -128, 127, -5], &[1, 8, -1, 100, 0]),
        [-64, -1, -1, 0, -5]
    );
    assert_eq!(shift_bits("LEFT", &[-1i64, 1, 1], &[63, 64, -1]), [i64::MIN, 0, 0]);
    let (x, y) = (TestArray::from_values(&[1], &[1u8]), TestArray::from_values(&[1], &[1u8]));
    let message = compute_with_isa("", "BitShift", 11, &[], &[&x, &y], (Dtype::U8, &[1])).unwrap_err();
    assert!(message.contains("`LEFT` or `RIGHT`"), "{message}");
}

//! `Cast` and `CastLike`.

use oarlock_sdk::{bf16, f16};

use super::*;

fn cast_values<T: Element, O: Element>(x: &[T]) -> Vec<O> {
    compute_unary("Cast", 19, &[("to", TestAttribute::Int(0))], x)
}

#[test]
fn integers_keep_their_lowest_bits() {
    assert_eq!(cast_values::<i16, i8>(&[200, -200, 5]), [-56, 56, 5]);
    assert_eq!(cast_values::<i64, u32>(&[-1, 1 << 32, 7]), [u32::MAX, 0, 7]);
    assert_eq!(cast_values::<u64, i64>(&[u64::MAX, 7]), [-1, 7]);
    assert_eq!(cast_values::<u8, i32>(&[255]), [255]);
    assert_eq!(cast_values::<i8, u64>(&[-1]), [u64::MAX]);
}

#[test]
fn floats_lose_their_fraction() {
    assert_eq!(cast_values::<f32, i32>(&[-1.9, 1.9, 2_147_483_500.0]), [-1, 1, 2_147_483_520]);
    assert_eq!(cast_values::<f64, u8>(&[-1.0, 254.9]), [255, 254]);
    assert_eq!(cast_values::<f32, u64>(&[1.8e19, -1.0]), [1.8e19f32 as u64, u64::MAX]);
    assert_eq!(cast_values::<f16, i64>(&[f16::from_f32(-65504.0)]), [-65504]);
    assert_eq!(cast_values::<bf16, u16>(&[bf16::from_f32(300.0)]), [300]);
}

#[test]
fn floats_that_no_integer_holds_become_the_nearest_one() {
    let special =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2e9, 3e9, -3e9, 2_147_483_648.0, -2_147_483_648.0, 1e19];
    // Whole vectors of numbers that are small, and some that are not.
    let x: Vec<f32> = (0..600).map(|at| at as f32 * 0.75 - 200.0).chain(special).collect();
    assert_eq!(cast_values::<f32, u8>(&x), x.iter().map(|x| *x as i32 as u8).collect::<Vec<_>>());
    assert_eq!(cast_values::<f32, i16>(&x), x.iter().map(|x| *x as i32 as i16).collect::<Vec<_>>());
    assert_eq!(cast_values::<f32, i64>(&x), x.iter().map(|x| *x as i64).collect::<Vec<_>>());
    let x: Vec<f64> = x.into_iter().map(f64::from).chain([2_147_483_647.5, -2_147_483_648.5]).collect();
    assert_eq!(cast_values::<f64, i8>(&x), x.iter().map(|x| *x as i32 as i8).collect::<Vec<_>>());
}

#[test]
fn everything_but_zero_is_true() {
    assert_eq!(cast_values::<f32, bool>(&[0.0, -0.0, 0.1, f32::NAN]), [false, false, true, true]);
    // The lowest 32 bits of the second are 0, which does not make it false.
    assert_eq!(cast_values::<i64, bool>(&[0, 1 << 40]), [false, true]);
    assert_eq!(cast_values::<f16, bool>(&[f16::ZERO, f16::from_bits(1)]), [false, true]);
    assert_eq!(cast_values::<bool, f64>(&[true, false]), [1.0, 0.0]);
    assert_eq!(cast_values::<bool, bf16>(&[true, false]), [bf16::ONE, bf16::ZERO]);
    assert_eq!(cast_values::<bool, bool>(&[true, false]), [true, false]);
}

#[test]
fn floats_are_rounded_once() {
    // Just above the middle of two `f16`, by a bit that an `f32` has no room for.
    let above = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
    assert_eq!(
        cast_values::<f64, f16>(&[above, 1e300, -1e-300]),
        [f16::from_bits(0x3C01), f16::INFINITY, f16::NEG_ZERO]
    );
    assert_eq!(cast_values::<i32, bf16>(&[(1 << 30) + (1 << 22) + 1]), [bf16::from_bits(0x4E81)]);
    // By way of `f64` the last bit would be lost, and a tie would go down.
    assert_eq!(cast_values::<i64, f32>(&[(1 << 60) + (1 << 36) + 1]), [f32::from_bits((127 + 60) << 23 | 1)]);
    // From the middle of the largest `f16` and the next power of two on, the result is infinity.
    assert_eq!(cast_values::<f32, f16>(&[65519.0, 65520.0]), [f16::MAX, f16::INFINITY]);
    assert_eq!(cast_values::<f16, bf16>(&[f16::from_f32(1.0039)]), [bf16::from_f32(1.0039)]);
    assert_eq!(cast_values::<f64, f32>(&[0.1, 1e39]), [0.1, f32::INFINITY]);
}

#[test]
fn float8_casts_saturate_on_request() {
    let x = TestArray::from_values(&[4], &[1f32, 500.0, 1e6, f32::NAN]);
    let bytes = |to, saturate: i64| {
        compute_on_all_isas("Cast", 19, &[("saturate", TestAttribute::Int(saturate))], &[&x], (to, &[4]))
            .bytes()
            .to_vec()
    };
    assert_eq!(bytes(Dtype::F8E4M3, 1), [0x38, 0x7E, 0x7E, 0x7F]);
    assert_eq!(bytes(Dtype::F8E4M3, 0), [0x38, 0x7F, 0x7F, 0x7F]);
    assert_eq!(bytes(Dtype::F8E5M2, 1), [0x3C, 0x60, 0x7B, 0x7F]);
    assert_eq!(bytes(Dtype::F8E5M2, 0), [0x3C, 0x60, 0x7C, 0x7F]);
    let wide = TestArray::from_values(&[2], &[1f64, 1e300]);
    let found = compute_on_all_isas(
        "Cast",
        19,
        &[("saturate", TestAttribute::Int(0))],
        &[&wide],
        (Dtype::F8E5M2, &[2]),
    );
    assert_eq!(found.bytes(), [0x3C, 0x7C]);
    let codes = TestArray::from_bytes(Dtype::F8E4M3, &[3], &[0x38, 0xFE, 0x01]);
    let back = compute_on_all_isas("Cast", 19, &[], &[&codes], (Dtype::F64, &[3])).values::<f64>();
    assert_eq!(back, [1.0, -448.0, 2f64.powi(-9)]);
    let other = compute_on_all_isas("Cast", 19, &[], &[&codes], (Dtype::F8E5M2, &[3]));
    assert_eq!(other.bytes(), [0x3C, 0xDF, 0x18]);
}

#[test]
fn elements_of_four_bits_lie_two_in_a_byte() {
    // Odd, so that the last byte is only half full.
    let count = 5001;
    let values: Vec<i8> = (0..count).map(|x| (x % 16 - 8) as i8).collect();
    let packed = compute_on_all_isas(
        "Cast",
        21,
        &[],
        &[&TestArray::from_values(&[count], &values)],
        (Dtype::I4, &[count]),
    );
    assert_eq!(&packed.bytes()[..3], [0x98, 0xBA, 0xDC]);
    let back = |array: &TestArray, dtype| compute_on_all_isas("Cast", 21, &[], &[array], (dtype, &[count]));
    assert_eq!(back(&packed, Dtype::I8).values::<i8>(), values);
    let floats = back(&packed, Dtype::F32);
    assert_eq!(floats.values::<f32>(), values.iter().map(|x| f32::from(*x)).collect::<Vec<_>>());
    assert_eq!(back(&floats, Dtype::I4).bytes(), packed.bytes());
    let unsigned = back(&packed, Dtype::U4);
    assert_eq!(unsigned.bytes(), packed.bytes());
    assert_eq!(back(&unsigned, Dtype::I64).values::<i64>()[..3], [8, 9, 10]);
}

#[test]
fn elements_of_two_bits_lie_four_in_a_byte() {
    // No multiple of 4, so that the last byte is not full.
    let count = 5003;
    let values: Vec<i8> = (0..count).map(|x| (x % 4 - 2) as i8).collect();
    let packed = compute_on_all_isas(
        "Cast",
        25,
        &[],
        &[&TestArray::from_values(&[count], &values)],
        (Dtype::I2, &[count]),
    );
    assert_eq!(&packed.bytes()[..2], [0b01_00_11_10; 2]);
    let back = |array: &TestArray, dtype| compute_on_all_isas("Cast", 25, &[], &[array], (dtype, &[count]));
    assert_eq!(back(&packed, Dtype::I8).values::<i8>(), values);
    let floats = back(&packed, Dtype::F32);
    assert_eq!(floats.values::<f32>(), values.iter().map(|x| f32::from(*x)).collect::<Vec<_>>());
    assert_eq!(back(&floats, Dtype::I2).bytes(), packed.bytes());
    assert_eq!(back(&back(&packed, Dtype::U2), Dtype::I64).values::<i64>()[..4], [2, 3, 0, 1]);
}

/// Rows of an odd length begin at every place in a byte, and a tile has only some of them.
#[test]
fn strided_elements_become_parts_of_bytes() {
    let (rows, columns) = (4099, 3);
    let value = |row: i64, column: i64| ((row * 7 + column * 5) % 4) as f32;
    let across: Vec<f32> =
        (0..columns).flat_map(|column| (0..rows).map(move |row| value(row, column))).collect();
    let along: Vec<f32> = (0..rows).flat_map(|row| (0..columns).map(move |at| value(row, at))).collect();
    let turned =
        TestArray::from_values(&[columns, rows], &across).with_strides(&[rows, columns], &[1, rows], 0);
    let plain = TestArray::from_values(&[rows, columns], &along);
    for dtype in [Dtype::U2, Dtype::U4, Dtype::F4E2M1] {
        let cast =
            |array: &TestArray| compute_on_all_isas("Cast", 25, &[], &[array], (dtype, &[rows, columns]));
        assert_eq!(cast(&turned).bytes(), cast(&plain).bytes(), "{:?}", dtype.name());
    }
}

#[test]
fn a_cast_like_another_takes_its_dtype() {
    let (x, like) = (TestArray::from_values(&[2], &[1.5f32, -2.5]), TestArray::from_values(&[], &[0i16]));
    let found = compute_on_all_isas("CastLike", 15, &[], &[&x, &like], (Dtype::I16, &[2])).values::<i16>();
    assert_eq!(found, [1, -2]);
}

#[test]
fn every_dtype_can_be_cast_to_every_other() {
    // Only the dtype of powers is left out, which has no 0.
    const CAST_DTYPES: [Dtype; 22] = [
        Dtype::BOOL,
        Dtype::I2,
        Dtype::U2,
        Dtype::F4E2M1,
        Dtype::F8E4M3FNUZ,
        Dtype::F8E5M2FNUZ,
        Dtype::I4,
        Dtype::U4,
        Dtype::I8,
        Dtype::U8,
        Dtype::I16,
        Dtype::U16,
        Dtype::I32,
        Dtype::U32,
        Dtype::I64,
        Dtype::U64,
        Dtype::F8E4M3,
        Dtype::F8E5M2,
        Dtype::F16,
        Dtype::BF16,
        Dtype::F32,
        Dtype::F64,
    ];
    let ones = |dtype| {
        compute_with_isa(
            "",
            "Cast",
            21,
            &[],
            &[&TestArray::from_values(&[3], &[true, false, true])],
            (dtype, &[3]),
        )
        .unwrap()
    };
    for from in CAST_DTYPES {
        for to in CAST_DTYPES {
            let found = compute_with_isa("", "Cast", 21, &[], &[&ones(from)], (to, &[3])).unwrap();
            assert_eq!(found.bytes(), ones(to).bytes(), "{:?} to {:?}", from.name(), to.name());
        }
    }
}

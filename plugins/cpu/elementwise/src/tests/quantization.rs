//! Quantization.

use oarlock_sdk::f16;

use super::*;

fn run_quantize(attributes: &[(&str, TestAttribute<'_>)], inputs: &[&TestArray], to: Dtype) -> TestArray {
    compute_on_all_isas("QuantizeLinear", 21, attributes, inputs, (to, &inputs[0].dims))
}

fn run_dequantize(attributes: &[(&str, TestAttribute<'_>)], inputs: &[&TestArray]) -> Vec<f32> {
    compute_on_all_isas("DequantizeLinear", 21, attributes, inputs, (Dtype::F32, &inputs[0].dims)).values()
}

#[test]
fn one_scale_is_for_all() {
    let x = TestArray::from_values(&[6], &[0f32, 2.0, 3.0, 1000.0, -254.0, -1000.0]);
    let (scale, zero) = (TestArray::from_values(&[], &[2f32]), TestArray::from_values(&[], &[128u8]));
    let y = run_quantize(&[], &[&x, &scale, &zero], Dtype::U8);
    // 3 / 2 is a tie, which goes to the even 2. The largest and the smallest saturate.
    assert_eq!(y.values::<u8>(), [128, 129, 130, 255, 1, 0]);
    assert_eq!(run_dequantize(&[], &[&y, &scale, &zero]), [0.0, 2.0, 4.0, 254.0, -254.0, -256.0]);
    let y = run_quantize(&[], &[&x, &scale], Dtype::I16);
    assert_eq!(y.values::<i16>(), [0, 1, 2, 500, -127, -500]);
}

#[test]
fn each_index_of_an_axis_has_a_scale() {
    let x =
        TestArray::from_values(&[2, 3, 2], &[2f32, 4.0, 2.0, 4.0, 2.0, 4.0, 8.0, 16.0, 8.0, 16.0, 8.0, 16.0]);
    let (scale, zero) =
        (TestArray::from_values(&[3], &[1f32, 2.0, 4.0]), TestArray::from_values(&[3], &[0i8, 1, -1]));
    let y = run_quantize(&[("axis", TestAttribute::Int(1))], &[&x, &scale, &zero], Dtype::I8);
    assert_eq!(y.values::<i8>(), [2, 4, 2, 3, -1, 0, 8, 16, 5, 9, 1, 3]);
    let back = run_dequantize(&[("axis", TestAttribute::Int(-2))], &[&y, &scale, &zero]);
    assert_eq!(back, [2.0, 4.0, 2.0, 4.0, 0.0, 4.0, 8.0, 16.0, 8.0, 16.0, 8.0, 16.0]);
}

#[test]
fn each_block_has_a_scale_and_the_last_may_be_shorter() {
    for (rows, block, columns) in [(6, 2, 5), (7, 3, 4), (5, 8, 3), (1, 1, 1)] {
        let blocks = (rows as usize).div_ceil(block);
        let count = rows as usize * columns;
        let x = TestArray::from_values(
            &[2, rows, columns as i64],
            &(0..2 * count).map(|x| (x % 100) as i8).collect::<Vec<_>>(),
        );
        let scales: Vec<f32> = (0..2 * blocks * columns).map(|x| x as f32 + 0.5).collect();
        let scale = TestArray::from_values(&[2, blocks as i64, columns as i64], &scales);
        let attributes = [("axis", TestAttribute::Int(1)), ("block_size", TestAttribute::Int(block as i64))];
        let found = run_dequantize(&attributes, &[&x, &scale]);
        for (index, found) in found.iter().enumerate() {
            let (outer, row, column) = (index / count, index % count / columns, index % columns);
            let expected = (index % 100) as f32 * scales[(outer * blocks + row / block) * columns + column];
            assert_eq!(*found, expected, "{rows} rows in blocks of {block}, element {index}");
        }
    }
}

#[test]
fn weights_of_four_bits_have_scales_of_blocks() {
    // Odd columns, so that rows begin in the middle of bytes.
    let (rows, columns, block) = (32, 37, 16);
    let values: Vec<i8> = (0..rows * columns).map(|x| (x * 7 % 16) as i8 - 8).collect();
    let dims = [rows as i64, columns as i64];
    let packed =
        compute_on_all_isas("Cast", 21, &[], &[&TestArray::from_values(&dims, &values)], (Dtype::I4, &dims));
    let scales: Vec<f16> = (0..2 * columns).map(|x| f16::from_f32(x as f32 * 0.125)).collect();
    let scale = TestArray::from_values(&[2, columns as i64], &scales);
    let attributes = [("axis", TestAttribute::Int(0)), ("block_size", TestAttribute::Int(block as i64))];
    let found =
        compute_on_all_isas("DequantizeLinear", 21, &attributes, &[&packed, &scale], (Dtype::F16, &dims))
            .values::<f16>();
    for (index, found) in found.iter().enumerate() {
        let scale = scales[index / columns / block * columns + index % columns];
        assert_eq!(found.to_f32(), f32::from(values[index]) * scale.to_f32(), "element {index}");
    }
    let floats =
        TestArray::from_values(&dims, &values.iter().map(|x| f32::from(*x) * 3.0).collect::<Vec<_>>());
    let threes = TestArray::from_values(&[2, columns as i64], &vec![3f32; 2 * columns]);
    assert_eq!(run_quantize(&attributes, &[&floats, &threes], Dtype::I4).bytes(), packed.bytes());
}

#[test]
fn blocks_along_the_last_dimension_have_scales_and_zero_points() {
    for (dtype, low, columns, block) in [
        (Dtype::U4, 0, 96, 32),
        (Dtype::I4, -8, 70, 32),
        (Dtype::U4, 0, 35, 16),
        (Dtype::I4, -8, 36, 5),
        (Dtype::U8, 100, 50, 16),
        (Dtype::I8, -60, 50, 7),
    ] {
        let (rows, blocks) = (33i64, i64::div_euclid(columns, block) + i64::from(columns % block != 0));
        let integers = |dims: &[i64], factor: i64| {
            let count: i64 = dims.iter().product();
            let values: Vec<i32> = (0..count).map(|x| (x * factor % 16 + low) as i32).collect();
            let packed = compute_on_all_isas(
                "Cast",
                21,
                &[],
                &[&TestArray::from_values(dims, &values)],
                (dtype, dims),
            );
            (values, packed)
        };
        let (values, x) = integers(&[rows, columns], 7);
        let (zeros, zero) = integers(&[rows, blocks], 5);
        let scales: Vec<f32> = (0..rows * blocks).map(|x| x as f32 * 0.37 - 9.0).collect();
        let scale = TestArray::from_values(&[rows, blocks], &scales);
        let attributes = [("axis", TestAttribute::Int(-1)), ("block_size", TestAttribute::Int(block))];
        for with_zero in [true, false] {
            let operands = [&x, &scale, &zero];
            let found = run_dequantize(&attributes, &operands[..if with_zero { 3 } else { 2 }]);
            for (index, found) in found.iter().enumerate() {
                let place = (index as i64 / columns * blocks + index as i64 % columns / block) as usize;
                let zero = if with_zero { zeros[place] } else { 0 };
                let expected = (values[index] - zero) as f32 * scales[place];
                assert_eq!(*found, expected, "{dtype:?} of {columns} in blocks of {block}, element {index}");
            }
        }
    }
}

#[test]
fn quantized_float8_values_are_scaled_and_saturate_on_request() {
    let (x, scale) = (TestArray::from_values(&[3], &[2f32, -4.0, 1e9]), TestArray::from_values(&[], &[2f32]));
    assert_eq!(run_quantize(&[], &[&x, &scale], Dtype::F8E4M3).bytes(), [0x38, 0xC0, 0x7E]);
    let unbounded = [("saturate", TestAttribute::Int(0))];
    assert_eq!(run_quantize(&unbounded, &[&x, &scale], Dtype::F8E5M2).bytes(), [0x3C, 0xC0, 0x7C]);
    let codes = TestArray::from_bytes(Dtype::F8E4M3, &[2], &[0x38, 0xC0]);
    assert_eq!(run_dequantize(&[], &[&codes, &scale]), [2.0, -4.0]);
}

#[test]
fn scales_that_do_not_fit_are_refused() {
    let (x, scale) = (TestArray::from_values(&[2, 3], &[1i8; 6]), TestArray::from_values(&[2], &[1f32; 2]));
    let run = |attributes: &[(&str, TestAttribute<'_>)], scale: &TestArray| {
        compute_with_isa("", "DequantizeLinear", 21, attributes, &[&x, scale], (Dtype::F32, &[2, 3]))
            .unwrap_err()
    };
    assert!(run(&[], &scale).contains("3 scales"));
    assert!(run(&[("axis", TestAttribute::Int(2))], &scale).contains("`axis`"));
    assert!(run(&[("block_size", TestAttribute::Int(2))], &scale).contains("[2, 3]"));
    assert!(run(&[("block_size", TestAttribute::Int(-2))], &scale).contains("`block_size`"));
}

#[test]
fn bytes_are_looked_up_by_their_bits() {
    // Around the numbers of bytes that vectors hold, and enough for several threads.
    for count in [1, 63, 64, 65, 1000, 300_000] {
        let bytes: Vec<u8> = (0..count).map(|at| (at * 151 % 256) as u8).collect();
        let table: Vec<u8> = (0..256).map(|at| (at * 7 % 251) as u8).collect();
        let expected: Vec<u8> = bytes.iter().map(|byte| table[usize::from(*byte)]).collect();
        let as_signed = |bytes: &[u8]| bytes.iter().map(|byte| byte.cast_signed()).collect::<Vec<_>>();
        let dims = [count as i64];
        let arrays = |bytes: &[u8], dims: &[i64]| {
            [TestArray::from_values(dims, bytes), TestArray::from_values(dims, &as_signed(bytes))]
        };
        for x in arrays(&bytes, &dims) {
            for table in arrays(&table, &[256]) {
                let y = compute_on_all_isas("oarlock:ByteMap", 1, &[], &[&x, &table], (table.dtype, &dims));
                let found = if table.dtype == Dtype::U8 {
                    y.values::<u8>()
                } else {
                    y.values::<i8>().into_iter().map(i8::cast_unsigned).collect()
                };
                assert!(found == expected, "{count} of {:?} to {:?}", x.dtype, table.dtype);
            }
        }
    }
}

#[test]
fn a_table_has_an_element_for_each_byte() {
    let (x, table) = (TestArray::from_values(&[2], &[1u8, 2]), TestArray::from_values(&[255], &[0u8; 255]));
    let output = [Some((Dtype::U8, &[2][..]))];
    let message = KERNELS.refusal_message("oarlock:ByteMap", 1, &[], &[Some(&x), Some(&table)], &output);
    assert!(message.contains("a table of 256 values"), "{message}");
}

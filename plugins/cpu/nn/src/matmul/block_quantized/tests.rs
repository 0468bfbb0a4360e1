use oarlock_cpu_base::isa::Isa;
use oarlock_sdk::Dtype;

use crate::KERNELS;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

fn pack_test_weights(dtype: Dtype, dims: &[i64], factor: i64) -> (Vec<f32>, TestArray) {
    let low = if dtype == Dtype::I4 || dtype == Dtype::I8 { -8 } else { 0 };
    let count: i64 = dims.iter().product();
    let values: Vec<i32> = (0..count).map(|x| (x * factor % 16 + low) as i32).collect();
    let result = KERNELS.run_kernel(
        "Cast",
        21,
        &[],
        &[Some(&TestArray::from_values(dims, &values))],
        &[Some((dtype, dims))],
    );
    let array = result.expect("integers").into_iter().next().flatten().expect("an output");
    (values.iter().map(|value| *value as f32).collect(), array)
}

/// Multiplies on an instruction set, or the best one below it that the machine has.
fn multiply(
    isa: &str,
    attributes: &[(&str, TestAttribute<'_>)],
    inputs: &[Option<&TestArray>],
    [rows, columns]: [i64; 2],
) -> Vec<f32> {
    let output = [Some((Dtype::F32, &[rows, columns][..]))];
    let result = KERNELS.run_with_isa(isa, "oarlock:BlockMatMul", 1, attributes, inputs, &output);
    result.expect("a product").into_iter().next().flatten().expect("an output").values()
}

#[test]
fn a_product_matches_the_dequantized_blocks() {
    for (dtype, rows, columns, depth, block) in [
        // Chunks of 4, 2 and 1 blocks, several chunks of a block, and last chunks that are not full.
        (Dtype::U4, 1, 5, 64, 32),
        (Dtype::U4, 9, 3, 288, 32),
        (Dtype::I4, 3, 4, 128, 64),
        (Dtype::I4, 7, 5, 320, 64),
        (Dtype::U4, 4, 3, 384, 128),
        (Dtype::I4, 2, 3, 768, 256),
        (Dtype::U8, 2, 7, 48, 16),
        (Dtype::I8, 4, 33, 32, 32),
        (Dtype::U8, 6, 5, 192, 64),
        (Dtype::I8, 5, 3, 384, 128),
    ] {
        let blocks = depth / block;
        let (weights, w) = pack_test_weights(dtype, &[columns, depth], 7);
        let (zeros, zero) = pack_test_weights(dtype, &[columns, blocks], 5);
        let a: Vec<f32> = (0..rows * depth).map(|x| ((x * 37 % 101) as f32 - 50.0) / 64.0).collect();
        let scales: Vec<f32> = (0..columns * blocks).map(|x| (x % 9) as f32 * 0.25 - 1.0).collect();
        let (left, scale) =
            (TestArray::from_values(&[rows, depth], &a), TestArray::from_values(&[columns, blocks], &scales));
        for with_zero in [true, false] {
            let inputs = [Some(&left), Some(&w), Some(&scale), with_zero.then_some(&zero)];
            let inputs = &inputs[..if with_zero { 4 } else { 3 }];
            let attributes = [("block_size", TestAttribute::Int(block))];
            for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
                let results = multiply(isa, &attributes, inputs, [rows, columns]);
                for (index, found) in results.into_iter().enumerate() {
                    let (row, column) = (index / columns as usize, index % columns as usize);
                    let expected: f64 = (0..depth as usize)
                        .map(|at| {
                            let place = column * blocks as usize + at / block as usize;
                            let zero = if with_zero { zeros[place] } else { 0.0 };
                            let weight = (weights[column * depth as usize + at] - zero) * scales[place];
                            f64::from(a[row * depth as usize + at]) * f64::from(weight)
                        })
                        .sum();
                    let near = 1e-5 * depth as f64 * 16.0;
                    assert!(
                        (f64::from(found) - expected).abs() < near,
                        "{dtype:?} {isa} {index}: {found} for {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn rounded_rows_are_as_near_as_half_a_step() {
    for (dtype, rows, columns, depth, block) in [
        (Dtype::U4, 1, 5, 64, 32),
        (Dtype::I4, 7, 3, 288, 32),
        (Dtype::U4, 4, 3, 320, 64),
        (Dtype::I4, 2, 5, 768, 256),
        // 8 bits times 8 bits would be more than some instructions can add, so this stays exact.
        (Dtype::U8, 3, 3, 192, 64),
        // Panels of columns: full ones and others, several slabs, blocks that are larger than a chunk or a slab, the last rows.
        (Dtype::U4, 4, 16, 128, 32),
        (Dtype::I4, 13, 19, 1120, 32),
        (Dtype::U4, 9, 33, 704, 64),
        (Dtype::I4, 8, 8, 1152, 128),
        (Dtype::U4, 6, 17, 2048, 1024),
        (Dtype::I4, 67, 40, 160, 32),
        (Dtype::U4, 67, 40, 512, 256),
    ] {
        let blocks = depth / block;
        let (weights, w) = pack_test_weights(dtype, &[columns, depth], 7);
        let (zeros, zero) = pack_test_weights(dtype, &[columns, blocks], 5);
        // Blocks of very different sizes, one of them of zeros alone.
        let a: Vec<f32> = (0..rows * depth)
            .map(|x| ((x * 37 % 101) as f32 - 50.0) * [0.0, 1e-6, 1.0, 1e6][(x / block % 4) as usize])
            .collect();
        let scales: Vec<f32> = (0..columns * blocks).map(|x| (x % 9) as f32 * 0.25 - 1.0).collect();
        let left = TestArray::from_values(&[rows, depth], &a);
        let scale = TestArray::from_values(&[columns, blocks], &scales);
        let inputs = [Some(&left), Some(&w), Some(&scale), Some(&zero)];
        let attributes =
            [("block_size", TestAttribute::Int(block)), ("accuracy_level", TestAttribute::Int(4))];
        for isa in isa_levels() {
            // More rows are left to others there.
            if rows > 16 && isa < Isa::Avx2 {
                continue;
            }
            let results = multiply(&isa.to_string(), &attributes, &inputs, [rows, columns]);
            for (index, found) in results.into_iter().enumerate() {
                let (row, column) = (index / columns as usize, index % columns as usize);
                let (mut expected, mut most) = (0.0, 0.0);
                for block_at in 0..blocks as usize {
                    let place = column * blocks as usize + block_at;
                    let range = block_at * block as usize..(block_at + 1) * block as usize;
                    let elements = &a[row * depth as usize..][range.clone()];
                    let largest = elements.iter().fold(0f32, |most, x| most.max(x.abs()));
                    for (at, element) in range.zip(elements) {
                        let weight = f64::from(weights[column * depth as usize + at] - zeros[place])
                            * f64::from(scales[place]);
                        expected += f64::from(*element) * weight;
                        // Half a step of 254 for each element.
                        most += f64::from(largest) / 254.0 * weight.abs();
                    }
                }
                let difference = (f64::from(found) - expected).abs();
                assert!(difference <= most * 1.001, "{dtype:?} {isa} {index}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn a_rounded_row_with_infinities_has_no_result() {
    let (_, w) = pack_test_weights(Dtype::U4, &[2, 128], 7);
    let scale = TestArray::from_values(&[2, 4], &[0.25f32; 8]);
    let attributes = [("block_size", TestAttribute::Int(32)), ("accuracy_level", TestAttribute::Int(4))];
    for bad in [f32::INFINITY, f32::NAN] {
        let mut a = [1f32; 256];
        a[200] = bad;
        let left = TestArray::from_values(&[2, 128], &a);
        let inputs = [Some(&left), Some(&w), Some(&scale)];
        let found = multiply("avx512", &attributes, &inputs, [2, 2]);
        assert!(
            found[..2].iter().all(|x| x.is_finite()) && found[2..].iter().all(|x| !x.is_finite()),
            "{found:?}"
        );
    }
}

#[test]
fn rows_of_subnormal_numbers_become_zero_or_keep_their_signs() {
    let (weights, w) = pack_test_weights(Dtype::U4, &[16, 32], 7);
    let (scale, total) =
        (TestArray::from_values(&[16, 1], &[1e30f32; 16]), f64::from(weights[..32].iter().sum::<f32>()));
    let attributes = [("block_size", TestAttribute::Int(32)), ("accuracy_level", TestAttribute::Int(4))];
    for smallest in [1, 100, 190, 20_000] {
        let element = f32::from_bits(smallest);
        let rows = TestArray::from_values(&[5, 32], &[element; 160]);
        // A row of 32 weights has each integer twice, so all columns are equal.
        let expected = f64::from(element) * total * 1e30;
        for isa in isa_levels() {
            let inputs = [Some(&rows), Some(&w), Some(&scale)];
            for found in multiply(&isa.to_string(), &attributes, &inputs, [5, 16]) {
                let is_near = (f64::from(found) - expected).abs() <= expected.abs() / 100.0;
                assert!(found == 0.0 || is_near, "{isa} {smallest}: {found:e} for {expected:e}");
            }
        }
    }
}

#[test]
fn many_rows_and_odd_blocks_are_left_to_others() {
    let refusal = |rows: i64, block: i64| {
        let (w, scale) = (
            pack_test_weights(Dtype::U4, &[4, 64], 7).1,
            TestArray::from_values(&[4, 64 / block], &vec![1f32; (256 / block) as usize]),
        );
        let a = TestArray::from_values(&[rows, 64], &vec![1f32; (rows * 64) as usize]);
        let inputs = [Some(&a), Some(&w), Some(&scale)];
        let output = [Some((Dtype::F32, &[rows, 4][..]))];
        KERNELS
            .run_kernel(
                "oarlock:BlockMatMul",
                1,
                &[("block_size", TestAttribute::Int(block))],
                &inputs,
                &output,
            )
            .err()
    };
    assert_eq!(refusal(16, 32), None);
    assert!(refusal(17, 32).is_some_and(|message| message.contains("1 to 16 rows")));
    assert!(refusal(1, 16).is_some_and(|message| message.contains("32, 64 or a multiple of 128")));
}

//! Results of the ONNX reference implementation, refused calls, and shapes too large to write down.

use oarlock_cpu_testing::kernel_checks::check_short_lines;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, f16};

use crate::KERNELS;

#[test]
fn the_cases_of_the_file_give_what_it_says() {
    KERNELS.check_cases(include_str!("cases.txt"));
}

#[test]
fn many_lines_side_by_side_are_each_normalized() {
    let values: Vec<f16> = (0..37 * 600).map(|index| f16::from_f32((index % 13) as f32)).collect();
    let mut expected = vec![f16::ZERO; values.len()];
    for column in 0..600 {
        let places: Vec<usize> = (0..37).map(|row| row * 600 + column).collect();
        let sum: f64 = places.iter().map(|place| values[*place].to_f64().exp()).sum();
        places.iter().for_each(|place| expected[*place] = f16::from_f64(values[*place].to_f64().exp() / sum));
    }
    let data = TestArray::from_values(&[37, 600], &values);
    KERNELS.check_kernel(
        "Softmax",
        13,
        &[("axis", TestAttribute::Int(0))],
        &[Some(&data)],
        &[TestArray::from_values(&[37, 600], &expected)],
    );
}

#[test]
fn many_short_lines_are_normalized_as_each_of_them_alone() {
    let number = |index: usize| match index % 61 {
        13 => f32::NAN,
        // As the masks of attention have them: e to this power is 0, and no NaN may come up on the way.
        17 | 19 => f32::NEG_INFINITY,
        _ => ((index * 7919) % 1013) as f32 / 70.0 - 7.3,
    };
    let ops = [("Softmax", 13, None), ("LogSoftmax", 13, None), ("Hardmax", 13, None)];
    for (op, version, norm) in ops.into_iter().chain([1, 2].map(|norm| ("LpNormalization", 22, Some(norm)))) {
        let norm = norm.map(|norm| ("p", TestAttribute::Int(norm)));
        let attributes: Vec<_> = [("axis", TestAttribute::Int(1))].into_iter().chain(norm).collect();
        let run = |isa: &str, data: &TestArray| {
            let outputs = [Some((data.dtype, data.dims.as_slice()))];
            let results = KERNELS.run_with_isa(isa, op, version, &attributes, &[Some(data)], &outputs);
            results.unwrap().into_iter().flatten().collect()
        };
        check_short_lines(number, run);
        check_short_lines(|index| number(index).round(), run);
        check_short_lines(|index| f16::from_f32(number(index)), run);
    }
}

#[test]
fn lines_of_each_length_have_the_softmax_that_a_plain_loop_gives() {
    // Lengths below, at and between multiples of the lanes, each with another remainder.
    for length in (1..=70).chain([100, 127, 300, 1025]) {
        let lines = 19;
        let values: Vec<f32> =
            (0..lines * length).map(|index| ((index * 7919) % 1013) as f32 / 70.0 - 7.3).collect();
        let (mut shares, mut logarithms) = (Vec::new(), Vec::new());
        for line in values.chunks(length) {
            let sum: f64 = line.iter().map(|x| f64::from(*x).exp()).sum();
            shares.extend(line.iter().map(|x| (f64::from(*x).exp() / sum) as f32));
            logarithms.extend(line.iter().map(|x| (f64::from(*x) - sum.ln()) as f32));
        }
        let dims = [lines as i64, length as i64];
        let data = TestArray::from_values(&dims, &values);
        KERNELS.check_kernel("Softmax", 13, &[], &[Some(&data)], &[TestArray::from_values(&dims, &shares)]);
        KERNELS.check_kernel(
            "LogSoftmax",
            13,
            &[],
            &[Some(&data)],
            &[TestArray::from_values(&dims, &logarithms)],
        );
    }
}

#[test]
fn elements_of_minus_infinity_have_no_share_of_a_softmax() {
    let mut values = vec![f32::NEG_INFINITY; 75];
    // Far apart, so that only numbers relative to the maximum have exponentials in range.
    (values[2], values[40], values[74]) = (1e30, 1e30, -1e30);
    let mut expected = vec![0f32; 75];
    (expected[2], expected[40]) = (0.5, 0.5);
    let data = TestArray::from_values(&[1, 75], &values);
    KERNELS.check_kernel("Softmax", 13, &[], &[Some(&data)], &[TestArray::from_values(&[1, 75], &expected)]);
    values[7] = f32::NAN;
    let undefined = TestArray::from_values(&[1, 75], &[f32::NAN; 75]);
    KERNELS.check_kernel(
        "Softmax",
        13,
        &[],
        &[Some(&TestArray::from_values(&[1, 75], &values))],
        &[undefined],
    );
}

#[test]
fn nothing_is_left_of_a_row_of_equal_elements() {
    // If the mean were off by a rounding error, the tiny epsilon would blow the deviations up.
    for (length, value) in [(8i64, 0.1f32), (64, -3.3), (768, 1234.567), (1001, 1e-20)] {
        let x = TestArray::from_values(&[2, length], &vec![value; 2 * length as usize]);
        let (scale, bias) =
            (TestArray::from_values(&[length], &vec![2f32; length as usize]), vec![0.25f32; length as usize]);
        let y = TestArray::from_values(&[2, length], &bias.repeat(2));
        let inputs = [Some(&x), Some(&scale), Some(&TestArray::from_values(&[length], &bias))];
        KERNELS.check_kernel(
            "LayerNormalization",
            17,
            &[("epsilon", TestAttribute::Float(1e-12))],
            &inputs,
            &[y],
        );
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = TestArray::from_values(&[2, 3], &[1f32; 6]);
    let scale = TestArray::from_values(&[2], &[1f32; 2]);
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[2, 3]))];
    let message = KERNELS.refusal_message("LayerNormalization", 17, &[], &[Some(&x), Some(&scale)], &outputs);
    assert!(message.contains("repeated to [3], found [2]"), "{message}");
    let groups = [("num_groups", TestAttribute::Int(0))];
    let message = KERNELS.refusal_message(
        "GroupNormalization",
        21,
        &groups,
        &[Some(&x), Some(&scale), Some(&scale)],
        &outputs,
    );
    assert!(message.contains("divide the 3 channels, found 0"), "{message}");
    let message =
        KERNELS.refusal_message("Softmax", 13, &[("axis", TestAttribute::Int(2))], &[Some(&x)], &outputs);
    assert!(message.contains("found 2"), "{message}");
    let message = KERNELS.refusal_message(
        "LpNormalization",
        22,
        &[("p", TestAttribute::Int(3))],
        &[Some(&x)],
        &outputs,
    );
    assert!(message.contains("`p` to be 1 or 2"), "{message}");
}

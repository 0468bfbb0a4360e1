//! Results that the reference implementation of ONNX gives, what is refused, and shapes too large to write down.

use oarlock_cpu_testing::kernel_checks::check_short_lines;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, Element, f16};

use super::ReduceShape;
use crate::KERNELS;

#[test]
fn the_cases_of_the_file_give_what_it_says() {
    KERNELS.check_cases(include_str!("cases.txt"));
}

/// Small integers, whose sums are exact in any order.
fn whole_numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919) % 23) as f32 - 11.0).collect()
}

#[test]
fn large_sums_are_exact_along_each_axis() {
    let dims = [3usize, 700, 41];
    let values = whole_numbers(dims.iter().product());
    let shape: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
    let data = TestArray::from_values(&shape, &values);
    // Every set of axes: inner, middle and outer ones are walked in different ways.
    for mask in 1..8 {
        let axes: Vec<i64> = (0..3).filter(|axis| mask >> axis & 1 == 1).collect();
        let kept: Vec<i64> = (0..3).map(|axis| if mask >> axis & 1 == 1 { 1 } else { shape[axis] }).collect();
        let mut sums = vec![0f32; kept.iter().product::<i64>() as usize];
        for (index, value) in values.iter().enumerate() {
            let places = [index / (700 * 41), index / 41 % 700, index % 41];
            let place = |axis: usize| if kept[axis] == 1 { 0 } else { places[axis] };
            sums[(place(0) * kept[1] as usize + place(1)) * kept[2] as usize + place(2)] += value;
        }
        let axes = TestArray::from_values(&[axes.len() as i64], &axes);
        KERNELS.check_kernel(
            "ReduceSum",
            13,
            &[],
            &[Some(&data), Some(&axes)],
            &[TestArray::from_values(&kept, &sums)],
        );
    }
}

#[test]
fn long_lines_are_cut_without_losing_elements() {
    let values = whole_numbers(70_001);
    let data = TestArray::from_values(&[1, 70_001], &values);
    KERNELS.check_kernel(
        "ReduceSum",
        13,
        &[],
        &[Some(&data), None],
        &[TestArray::from_values(&[1, 1], &[values.iter().sum::<f32>()])],
    );
    // Added up in `f16`, the sum would stop at 1024, where a half is lost in rounding.
    let halves: Vec<f16> = vec![f16::from_f32(0.5); 40_000];
    let sum = TestArray::from_values(&[1], &[f16::from_f32(20_000.0)]);
    KERNELS.check_kernel(
        "ReduceSum",
        13,
        &[],
        &[Some(&TestArray::from_values(&[40_000], &halves)), None],
        &[sum],
    );
}

/// Lines are evenly spaced only along one axis, and their number along it is no multiple of those joined at a time.
#[test]
fn lines_spread_over_two_axes_are_each_counted_once() {
    for [outer, inner, length] in [[1, 17, 3], [40, 50, 7], [5, 16, 1025], [300, 3, 2], [2, 2, 20_000]] {
        let dims = [outer, 2, inner, 3, length];
        let values = whole_numbers(dims.iter().product());
        let mut sums = vec![0f32; 6];
        for (index, value) in values.iter().enumerate() {
            let (left, right) = (index / (inner * 3 * length) % 2, index / length % 3);
            sums[left * 3 + right] += value;
        }
        let data = TestArray::from_values(&dims.map(|dim| dim as i64), &values);
        let (axes, expected) =
            (TestArray::from_values(&[3], &[0i64, 2, 4]), TestArray::from_values(&[1, 2, 1, 3, 1], &sums));
        KERNELS.check_kernel("ReduceSum", 13, &[], &[Some(&data), Some(&axes)], &[expected]);
    }
}

/// All of them are rounded the same way, so that errors do not cancel.
#[test]
fn rounding_does_not_add_up_in_long_sums() {
    // Beyond 65536 the last bit of a running sum is 1/128, so it would grow by 13/128 for each 0.1.
    let count = 1usize << 20;
    let data = vec![0.1f32; count];
    for (dims, axes) in [
        ([1, 1, count], &[2i64][..]),
        ([1, count, 1], &[1]),
        ([1, count / 64, 64], &[1]),
        ([64, count / 64, 1], &[1]),
        ([count / 96, 48, 2], &[0, 2]),
        ([64, count / 64, 1], &[0, 1, 2]),
    ] {
        let size: usize = dims.iter().product();
        let mut kept = dims.map(|dim| dim as i64);
        axes.iter().for_each(|axis| kept[*axis as usize] = 1);
        let outputs: i64 = kept.iter().product();
        let expected = 0.1f32 as f64 * (size / outputs as usize) as f64;
        let input = TestArray::from_values(&dims.map(|dim| dim as i64), &data[..size]);
        let axes = TestArray::from_values(&[axes.len() as i64], axes);
        for isa in ["scalar", "avx512"] {
            let outputs = [Some((Dtype::F32, &kept[..]))];
            let result = KERNELS
                .run_with_isa(isa, "ReduceSum", 13, &[], &[Some(&input), Some(&axes)], &outputs)
                .unwrap();
            for sum in result[0].as_ref().unwrap().values::<f32>() {
                let off = (f64::from(sum) / expected - 1.0).abs();
                assert!(off < 5e-7, "the sums of {dims:?} to {kept:?} are {off:e} off");
            }
        }
    }
}

/// Neighbors in a sum have opposite signs, so that a lane holds elements of one sign.
#[test]
fn large_numbers_cancel_whichever_lanes_they_meet_in() {
    for (dims, axes) in [
        ([1i64, 1, 300_000], &[2i64][..]),
        ([3, 1, 5000], &[2]),
        ([4, 5000, 3], &[1]),
        ([20, 30, 1], &[1]),
        ([500, 3, 40], &[0, 2]),
        ([50, 60, 7], &[0, 1, 2]),
    ] {
        let mut kept = dims;
        axes.iter().for_each(|axis| kept[*axis as usize] = 1);
        let shape = ReduceShape::new(&dims, &[0, 1, 2].map(|axis| axes.contains(&axis))).unwrap();
        let (outputs, share) = (kept.iter().product::<i64>() as usize, shape.share);
        let mut signs = vec![1f64; outputs * share];
        for item in 0..outputs {
            (1..share).step_by(2).for_each(|index| signs[shape.element_offset(item, index)] = -1.0);
        }
        // Three of one sign overflow, so the sum of a lane does, although the whole sum is 0.
        let wide: Vec<f64> = signs.iter().map(|sign| sign * 1.5 * 2f64.powi(1022)).collect();
        let narrow: Vec<f32> = signs.iter().map(|sign| *sign as f32 * 1.5 * 2f32.powi(126)).collect();
        let axes = TestArray::from_values(&[axes.len() as i64], axes);
        for (op, since, of_zero) in
            [("ReduceSum", 13, 0.0), ("ReduceMean", 18, 0.0), ("ReduceLogSum", 18, f64::NEG_INFINITY)]
        {
            let expected = TestArray::from_values(&kept, &vec![of_zero; outputs]);
            KERNELS.check_kernel(
                op,
                since,
                &[],
                &[Some(&TestArray::from_values(&dims, &wide)), Some(&axes)],
                &[expected],
            );
            let expected = TestArray::from_values(&kept, &vec![of_zero as f32; outputs]);
            KERNELS.check_kernel(
                op,
                since,
                &[],
                &[Some(&TestArray::from_values(&dims, &narrow)), Some(&axes)],
                &[expected],
            );
        }
    }
}

#[test]
fn sums_beyond_the_range_and_of_infinities_are_what_they_are() {
    let sum = |values: &[f64], expected: f64| {
        let expected = TestArray::from_values(&[1], &[expected]);
        KERNELS.check_kernel(
            "ReduceSum",
            13,
            &[],
            &[Some(&TestArray::from_values(&[values.len() as i64], values)), None],
            &[expected],
        );
    };
    let mut values = vec![f64::MAX; 3000];
    sum(&values, f64::INFINITY);
    let mean = TestArray::from_values(&[1], &[1e308]);
    KERNELS.check_kernel(
        "ReduceMean",
        18,
        &[],
        &[Some(&TestArray::from_values(&[2048], &[1e308; 2048])), None],
        &[mean],
    );
    values.iter_mut().skip(1).step_by(2).for_each(|value| *value = f64::MIN);
    // One infinity decides the sum; with both there is none.
    values[7] = f64::NEG_INFINITY;
    sum(&values, f64::NEG_INFINITY);
    values[8] = f64::INFINITY;
    sum(&values, f64::NAN);
}

#[test]
fn what_is_not_a_number_is_the_extreme_wherever_it_lies() {
    let undefined = TestArray::from_values(&[1], &[f32::NAN]);
    // First and last, on both sides of whole lanes, and in the remainder.
    for place in [0, 63, 64, 4095, 5000, 20_000, 20_030] {
        // NaN of either sign: a comparison of bits would take them for the largest and the smallest.
        for found in [f32::NAN, -f32::NAN] {
            let mut values = whole_numbers(20_031);
            values[place] = found;
            let data = TestArray::from_values(&[20_031], &values);
            KERNELS.check_kernel(
                "ReduceMax",
                18,
                &[],
                &[Some(&data), None],
                std::slice::from_ref(&undefined),
            );
            KERNELS.check_kernel(
                "ReduceMin",
                18,
                &[],
                &[Some(&data), None],
                std::slice::from_ref(&undefined),
            );
        }
    }
    let values = whole_numbers(20_031);
    let data = TestArray::from_values(&[20_031], &values);
    KERNELS.check_kernel(
        "ReduceMax",
        18,
        &[],
        &[Some(&data), None],
        &[TestArray::from_values(&[1], &[11f32])],
    );
    KERNELS.check_kernel(
        "ReduceMin",
        18,
        &[],
        &[Some(&data), None],
        &[TestArray::from_values(&[1], &[-11f32])],
    );
}

#[test]
fn infinities_of_both_signs_count_as_extremes() {
    for length in [20, 130, 4100] {
        let mut values = whole_numbers(length);
        (values[3], values[18]) = (f32::INFINITY, f32::NEG_INFINITY);
        let data = TestArray::from_values(&[length as i64], &values);
        KERNELS.check_kernel(
            "ReduceMax",
            18,
            &[],
            &[Some(&data), None],
            &[TestArray::from_values(&[1], &[f32::INFINITY])],
        );
        KERNELS.check_kernel(
            "ReduceMin",
            18,
            &[],
            &[Some(&data), None],
            &[TestArray::from_values(&[1], &[f32::NEG_INFINITY])],
        );
    }
}

#[test]
fn lines_of_each_length_are_reduced_as_by_a_plain_loop() {
    let axes = TestArray::from_values(&[1], &[1i64]);
    for length in (1..=70).chain([100, 127, 300, 1025]) {
        let lines = 19;
        let mut values = whole_numbers(lines * length);
        let plain = |values: &[f32], op: &dyn Fn(f32, f32) -> f32| -> Vec<f32> {
            values.chunks(length).map(|line| line.iter().copied().reduce(op).expect("an element")).collect()
        };
        let sums = plain(&values, &|a, b| a + b);
        let squares = plain(&values.iter().map(|x| x * x).collect::<Vec<_>>(), &|a, b| a + b);
        values[(lines - 1) * length + length * 7 % 11 % length] = f32::NAN;
        let either = |a: f32, b: f32, first: bool| if a.is_nan() || !b.is_nan() && first { a } else { b };
        let greatest = plain(&values, &|a, b| either(a, b, a > b));
        let least = plain(&values, &|a, b| either(a, b, a < b));
        let (dims, reduced) = ([lines as i64, length as i64], [lines as i64, 1]);
        let with_nan = TestArray::from_values(&dims, &values);
        values = whole_numbers(lines * length);
        let data = TestArray::from_values(&dims, &values);
        for (op, data, expected) in [
            ("ReduceSum", &data, sums),
            ("ReduceSumSquare", &data, squares),
            ("ReduceMax", &with_nan, greatest),
            ("ReduceMin", &with_nan, least),
        ] {
            KERNELS.check_kernel(
                op,
                18,
                &[],
                &[Some(data), Some(&axes)],
                &[TestArray::from_values(&reduced, &expected)],
            );
        }
    }
}

#[test]
fn nan_in_a_short_line_stays_out_of_other_lines() {
    let (lines, length) = (37, 83);
    let mut values = whole_numbers(lines * length);
    (0..lines).step_by(5).for_each(|line| values[line * length + line * 2] = f32::NAN);
    let data = TestArray::from_values(&[lines as i64, length as i64], &values);
    let greatest =
        |line: &[f32]| line.iter().copied().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
    let expected: Vec<f32> = values
        .chunks(length)
        .enumerate()
        .map(|(index, line)| if index % 5 == 0 { f32::NAN } else { greatest(line) })
        .collect();
    let axes = TestArray::from_values(&[1], &[1i64]);
    let expected = TestArray::from_values(&[lines as i64, 1], &expected);
    KERNELS.check_kernel("ReduceMax", 18, &[], &[Some(&data), Some(&axes)], &[expected]);
}

/// The position of the largest or smallest of some elements; NaN counts as both.
fn find_extreme(elements: &[f32], is_least: bool, is_last: bool) -> i64 {
    let is_beyond = |a: f32, b: f32| if is_least { a < b } else { a > b };
    let mut best = 0;
    for (place, element) in elements.iter().enumerate().skip(1) {
        let so_far = elements[best];
        let is_same = *element == so_far || element.is_nan() && so_far.is_nan();
        let is_better = !so_far.is_nan() && (element.is_nan() || is_beyond(*element, so_far));
        if is_better || is_last && is_same {
            best = place;
        }
    }
    best as i64
}

#[test]
fn places_of_extremes_are_found_across_any_number_of_lines() {
    let (outer, length) = (2, 9);
    // Around the numbers of lines that are processed together.
    for inner in [1, 7, 8, 64, 65, 150] {
        let mut values = whole_numbers(outer * length * inner);
        (0..values.len()).step_by(13).for_each(|place| values[place] = f32::NAN);
        let dims = [outer as i64, length as i64, inner as i64];
        let line = |line: usize| -> Vec<f32> {
            let start = line / inner * length * inner + line % inner;
            (0..length).map(|place| values[start + place * inner]).collect()
        };
        let data = TestArray::from_values(&dims, &values);
        for (op, is_least) in [("ArgMax", false), ("ArgMin", true)] {
            for is_last in [false, true] {
                let expected: Vec<i64> =
                    (0..outer * inner).map(|index| find_extreme(&line(index), is_least, is_last)).collect();
                let attributes = [
                    ("axis", TestAttribute::Int(1)),
                    ("select_last_index", TestAttribute::Int(is_last.into())),
                ];
                let expected = TestArray::from_values(&[dims[0], 1, dims[2]], &expected);
                KERNELS.check_kernel(op, 13, &attributes, &[Some(&data)], &[expected]);
            }
        }
    }
    let bytes: Vec<u8> = (0..5 * 100).map(|at| (at * 37 % 251) as u8).collect();
    let expected: Vec<i64> = (0..100)
        .map(|line| (0..5).rev().max_by_key(|place| bytes[place * 100 + line]).unwrap() as i64)
        .collect();
    let data = TestArray::from_values(&[5, 100], &bytes);
    KERNELS.check_kernel("ArgMax", 13, &[], &[Some(&data)], &[TestArray::from_values(&[1, 100], &expected)]);
}

#[test]
fn places_of_extremes_are_found_in_long_lines() {
    // Longer than a chunk, and long enough for several threads.
    for length in [2047, 2049, 5000, 200_000] {
        let mut values = whole_numbers(length);
        for with_nan in [false, true] {
            if with_nan {
                [length / 3, length - 2].into_iter().for_each(|place| values[place] = f32::NAN);
            }
            let data = TestArray::from_values(&[length as i64], &values);
            for (op, is_least) in [("ArgMax", false), ("ArgMin", true)] {
                for is_last in [false, true] {
                    let expected = TestArray::from_values(&[1], &[find_extreme(&values, is_least, is_last)]);
                    let attributes = [("select_last_index", TestAttribute::Int(is_last.into()))];
                    KERNELS.check_kernel(op, 13, &attributes, &[Some(&data)], &[expected]);
                }
            }
        }
    }
}

#[test]
fn places_of_extremes_are_found_in_many_lines() {
    // Enough for several threads, whose parts begin and end anywhere among the lines.
    for (lines, length) in [(3001, 100), (1003, 333), (97, 2049)] {
        let values: Vec<u8> = (0..lines * length).map(|at| (at * 7919 % 251) as u8).collect();
        let data = TestArray::from_values(&[lines as i64, length as i64], &values);
        let floats: Vec<f32> = values.iter().map(|value| f32::from(*value)).collect();
        for (op, is_least) in [("ArgMax", false), ("ArgMin", true)] {
            let expected: Vec<i64> =
                floats.chunks(length).map(|line| find_extreme(line, is_least, false)).collect();
            let expected = TestArray::from_values(&[lines as i64, 1], &expected);
            let axis = [("axis", TestAttribute::Int(1))];
            KERNELS.check_kernel(op, 13, &axis, &[Some(&data)], &[expected]);
        }
    }
}

/// Checks a reduction along short lines of some elements.
fn check_reduction<T: Element>(op: &str, element: impl Fn(usize) -> T) {
    let axes = TestArray::from_values(&[1], &[1i64]);
    check_short_lines(element, |isa, data| {
        let outputs = [Some((data.dtype, &[data.dims[0], 1, data.dims[2]][..]))];
        let results = KERNELS.run_with_isa(isa, op, 18, &[], &[Some(data), Some(&axes)], &outputs);
        results.unwrap().into_iter().flatten().collect()
    });
}

/// Numbers of many digits, whose sums depend on the order, with some NaNs and both zeros among them.
fn awkward_number(index: usize) -> f32 {
    match index % 97 {
        13 => f32::NAN,
        29 => -0.0,
        31 => 0.0,
        _ => ((index * 7919) % 1013) as f32 / 7.0 - 71.3,
    }
}

#[test]
fn many_short_lines_are_reduced_as_each_of_them_alone() {
    let sums = ["Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"];
    for op in sums.into_iter().chain(["Max", "Min"]) {
        let op = format!("Reduce{op}");
        check_reduction(&op, awkward_number);
        check_reduction(&op, |index| f16::from_f32(awkward_number(index)));
        check_reduction(&op, |index| index as i64 * 7919 % 1013 - 500);
    }
    check_reduction("ReduceMax", |index| (index * 37 % 251) as u8);
}

#[test]
fn places_of_extremes_of_many_short_lines_are_those_of_each_alone() {
    for op in ["ArgMax", "ArgMin"] {
        for last in [0, 1] {
            let attributes =
                [("axis", TestAttribute::Int(1)), ("select_last_index", TestAttribute::Int(last))];
            let run = |isa: &str, data: &TestArray| {
                let outputs = [Some((Dtype::I64, &[data.dims[0], 1, data.dims[2]][..]))];
                let results = KERNELS.run_with_isa(isa, op, 13, &attributes, &[Some(data)], &outputs);
                results.unwrap().into_iter().flatten().collect()
            };
            check_short_lines(|index| awkward_number(index).round(), run);
            check_short_lines(|index| (index * 7919 % 11) as i64, run);
            check_short_lines(|index| (index * 7919 % 5) as u8, run);
        }
    }
}

#[test]
fn axes_that_do_not_fit_are_refused() {
    let (data, axes) = (TestArray::from_values(&[2, 2], &[1f32; 4]), TestArray::from_values(&[1], &[2i64]));
    let message = KERNELS.refusal_message(
        "ReduceSum",
        13,
        &[],
        &[Some(&data), Some(&axes)],
        &[Some((Dtype::F32, &[2, 1]))],
    );
    assert!(message.contains("2 dimensions, found 2"), "{message}");
    let message =
        KERNELS.refusal_message("ReduceSum", 13, &[], &[Some(&data), None], &[Some((Dtype::F32, &[2, 1]))]);
    assert!(message.contains("expected an output of shape [1, 1]"), "{message}");
    let message = KERNELS.refusal_message(
        "ArgMax",
        13,
        &[("axis", TestAttribute::Int(-3))],
        &[Some(&data)],
        &[Some((Dtype::I64, &[1, 2]))],
    );
    assert!(message.contains("found -3"), "{message}");
    // No position can stand for a line without elements.
    let none = TestArray::from_values(&[2, 0], &[0f32; 0]);
    let message = KERNELS.refusal_message(
        "ArgMax",
        13,
        &[("axis", TestAttribute::Int(1))],
        &[Some(&none)],
        &[Some((Dtype::I64, &[2, 1]))],
    );
    assert!(message.contains("at least one element"), "{message}");
}

//! The order of equal elements, of NaN, and of empty lines.

use oarlock_cpu_testing::kernel_checks::check_short_lines;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, Element};

use crate::KERNELS;

#[test]
fn the_cases_of_the_file_give_what_it_says() {
    KERNELS.check_cases(include_str!("cases.txt"));
}

fn run_suppression(most: i64, overlap: f32, score: f32) -> Vec<i64> {
    let boxes = TestArray::from_values::<f32>(
        &[1, 6, 4],
        &[
            0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, -0.1, 1.0, 0.9, 0.0, 10.0, 1.0, 11.0, 0.0, 10.1,
            1.0, 11.1, 1.0, 101.0, 0.0, 100.0,
        ],
    );
    let scores = TestArray::from_values::<f32>(&[1, 1, 6], &[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]);
    let (most, overlap) = (TestArray::from_values(&[1], &[most]), TestArray::from_values(&[], &[overlap]));
    let inputs = [
        Some(&boxes),
        Some(&scores),
        Some(&most),
        Some(&overlap),
        Some(&TestArray::from_values(&[1], &[score])),
    ];
    let results = KERNELS.run_kernel("NonMaxSuppression", 11, &[], &inputs, &[None]).unwrap();
    let selected = results[0].as_ref().unwrap();
    assert_eq!(selected.dims[1], 3);
    selected.values::<i64>().chunks(3).map(|triple| triple[2]).collect()
}

#[test]
fn boxes_that_overlap_a_better_one_are_left_out() {
    assert_eq!(run_suppression(9, 0.5, 0.0), [3, 0, 5]);
    assert_eq!(run_suppression(2, 0.5, 0.0), [3, 0]);
    assert_eq!(run_suppression(9, 0.5, 0.4), [3, 0]);
    assert_eq!(run_suppression(9, 1.0, 0.0), [3, 0, 1, 2, 4, 5]);
    assert_eq!(run_suppression(0, 0.5, 0.0), []);
}

#[test]
fn zeros_of_either_sign_are_equal_scores() {
    let boxes = TestArray::from_values(&[1, 2, 4], &[0f32, 0., 1., 1., 2., 2., 3., 3.]);
    let scores = TestArray::from_values(&[1, 1, 2], &[-0f32, 0.]);
    let (count, half, least) = (
        TestArray::from_values(&[1], &[2i64]),
        TestArray::from_values(&[1], &[0.5f32]),
        TestArray::from_values(&[1], &[-1f32]),
    );
    let inputs = [Some(&boxes), Some(&scores), Some(&count), Some(&half), Some(&least)];
    let expected = TestArray::from_values(&[2, 3], &[0i64, 0, 0, 0, 0, 1]);
    KERNELS.check_kernel("NonMaxSuppression", 11, &[], &inputs, &[expected]);
}

/// The intersection of two boxes as a share of their union; 0 if one has no area.
fn overlap_ratio(a: &[f32], b: &[f32]) -> f32 {
    let ends = |corners: &[f32], axis: usize| {
        (corners[axis].min(corners[axis + 2]), corners[axis].max(corners[axis + 2]))
    };
    let area = |corners: &[f32]| {
        let ((top, bottom), (left, right)) = (ends(corners, 0), ends(corners, 1));
        (bottom - top) * (right - left)
    };
    let side = |axis: usize| {
        let ((low, high), (other_low, other_high)) = (ends(a, axis), ends(b, axis));
        (high.min(other_high) - low.max(other_low)).max(0.0)
    };
    let shared = side(0) * side(1);
    if area(a) <= 0.0 || area(b) <= 0.0 || shared <= 0.0 {
        return 0.0;
    }
    shared / (area(a) + area(b) - shared)
}

#[test]
fn boxes_of_many_classes_and_images_are_those_that_a_plain_search_selects() {
    let (images, classes, count) = (2, 3, 700);
    let number = |at: usize, below: usize| (at * 7919 % 10_007 % below) as f32;
    let mut boxes: Vec<f32> = (0..images * count * 4).map(|at| number(at, 60) + number(at / 4, 97)).collect();
    let mut scores: Vec<f32> =
        (0..images * classes * count).map(|at| number(at, 211) / 100.0 - 1.0).collect();
    // A NaN coordinate, a box without an area, NaN and both zeros as scores, and a score that is always the best.
    (boxes[400], boxes[805], boxes[807]) = (f32::NAN, 3.0, 3.0);
    (scores[5], scores[11], scores[12], scores[13]) = (f32::NAN, -0.0, 0.0, f32::INFINITY);
    for (most, limit, least) in
        [(1000, 0.5, -0.5), (7, 0.1, 0.0), (1000, 0.0, f32::NEG_INFINITY), (150, 1.0, -2.0)]
    {
        let mut expected = Vec::new();
        for (row, scores) in scores.chunks(count).enumerate() {
            let boxes = &boxes[row / classes * count * 4..][..count * 4];
            let corners = |index: usize| &boxes[index * 4..][..4];
            let mut candidates: Vec<usize> = (0..count).filter(|index| scores[*index] > least).collect();
            candidates.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap());
            let mut chosen: Vec<usize> = Vec::new();
            for candidate in candidates {
                let fits = |better: &usize| overlap_ratio(corners(*better), corners(candidate)) <= limit;
                if chosen.len() < most && chosen.iter().all(fits) {
                    chosen.push(candidate);
                }
            }
            let triple = |index: usize| [(row / classes) as i64, (row % classes) as i64, index as i64];
            expected.extend(chosen.into_iter().flat_map(triple));
        }
        let inputs = [
            Some(&TestArray::from_values(&[images as i64, count as i64, 4], &boxes)),
            Some(&TestArray::from_values(&[images as i64, classes as i64, count as i64], &scores)),
            Some(&TestArray::from_values(&[1], &[most as i64])),
            Some(&TestArray::from_values(&[1], &[limit])),
            Some(&TestArray::from_values(&[1], &[least])),
        ];
        let results = KERNELS.run_kernel("NonMaxSuppression", 11, &[], &inputs, &[None]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i64>(), expected, "{most} {limit} {least}");
    }
}

#[test]
fn a_few_of_many_are_what_sorting_all_of_them_gives() {
    let mut values: Vec<f32> = (0..1500).map(|index| ((index * 7919) % 211) as f32 - 100.0).collect();
    (values[3], values[700], values[1400]) = (f32::NAN, f32::INFINITY, f32::NAN);
    (values[5], values[6], values[9]) = (-0.0, 0.0, -0.0);
    let data = TestArray::from_values(&[1, 1500, 1], &values);
    for largest in [1, 0] {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (values[*a], values[*b]);
            let ordering = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
            if largest == 1 { ordering.reverse() } else { ordering }
        });
        for k in [1, 7, 100, 300, 1500] {
            let best: Vec<f32> = order[..k].iter().map(|place| values[*place]).collect();
            let places: Vec<i64> = order[..k].iter().map(|place| *place as i64).collect();
            let dims = [1, k as i64, 1];
            let attributes = [("axis", TestAttribute::Int(1)), ("largest", TestAttribute::Int(largest))];
            let inputs = [Some(&data), Some(&TestArray::from_values(&[1], &[k as i64]))];
            KERNELS.check_kernel(
                "TopK",
                11,
                &attributes,
                &inputs,
                &[TestArray::from_values(&dims, &best), TestArray::from_values(&dims, &places)],
            );
        }
    }
}

/// Elements sorted by comparison, and their places; equal ones keep their order.
fn sort_naive<T: Copy + PartialOrd>(values: &[T], is_largest_first: bool) -> (Vec<T>, Vec<i64>) {
    let is_nan = |value: &T| value.partial_cmp(value).is_none();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&values[*a], &values[*b]);
        let ordering = a.partial_cmp(b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)));
        if is_largest_first { ordering.reverse() } else { ordering }
    });
    (order.iter().map(|place| values[*place]).collect(), order.iter().map(|place| *place as i64).collect())
}

/// Sorts lines along the middle of three dimensions in all ways, and compares bit by bit.
fn check_sorting<T: Element + Copy + PartialOrd>(dims: [usize; 3], number: impl Fn(usize) -> T) {
    check_best(dims, dims[1], number);
}

/// Finds the `k` best of each line instead.
fn check_best<T: Element + Copy + PartialOrd>(dims: [usize; 3], k: usize, number: impl Fn(usize) -> T) {
    let [outer, length, inner] = dims;
    let values: Vec<T> = (0..outer * length * inner).map(number).collect();
    let data = TestArray::from_values(&dims.map(|size| size as i64), &values);
    let shape = [outer, k, inner].map(|size| size as i64);
    for largest in [0, 1] {
        let (mut elements, mut places) = (vec![values[0]; outer * k * inner], vec![0i64; outer * k * inner]);
        for line in 0..outer * inner {
            let at = |length: usize, index: usize| (line / inner * length + index) * inner + line % inner;
            let own: Vec<T> = (0..length).map(|index| values[at(length, index)]).collect();
            let (own, order) = sort_naive(&own, largest == 1);
            for index in 0..k {
                (elements[at(k, index)], places[at(k, index)]) = (own[index], order[index]);
            }
        }
        let attributes = [("axis", TestAttribute::Int(1)), ("largest", TestAttribute::Int(largest))];
        let inputs = [Some(&data), Some(&TestArray::from_values(&[1], &[k as i64]))];
        let outputs = [Some((T::DTYPE, &shape[..])), Some((Dtype::I64, &shape[..]))];
        let (elements, places) =
            (TestArray::from_values(&shape, &elements), TestArray::from_values(&shape, &places));
        for wanted in [2, 1] {
            let found = KERNELS.run_kernel("TopK", 11, &attributes, &inputs, &outputs[..wanted]).unwrap();
            assert!(found[0].as_ref().unwrap().bytes() == elements.bytes(), "{dims:?} {k} {:?}", T::DTYPE);
            if wanted == 2 {
                assert!(found[1].as_ref().unwrap().bytes() == places.bytes(), "{dims:?} {k} {:?}", T::DTYPE);
            }
        }
    }
}

/// A pseudo-random number.
fn scramble_index(index: usize) -> u64 {
    let bits = (index as u64 ^ 0x9E37_79B9).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (bits ^ bits >> 29).wrapping_mul(0x94D0_49BB_1331_11EB)
}

#[test]
fn lines_are_sorted_as_comparing_would_however_long_they_are() {
    for length in [9, 255, 257, 1500, 4097] {
        let dims = [1, length, 1];
        check_sorting(dims, |index| f32::from_bits(scramble_index(index) as u32));
        check_sorting(dims, |index| match index % 7 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::NAN,
            3 => -f64::NAN,
            4 => f64::INFINITY,
            _ => (scramble_index(index) as i64 as f64) * 1e-19,
        });
        check_sorting(dims, |index| scramble_index(index) as i64);
        check_sorting(dims, scramble_index);
        check_sorting(dims, |index| scramble_index(index) as i32);
        check_sorting(dims, |index| (scramble_index(index) % 1000) as i64 - 500);
        check_sorting(dims, |index| scramble_index(index) as i8);
        check_sorting(dims, |index| scramble_index(index) as u16);
        check_sorting(dims, |_| 7u32);
        check_sorting(dims, |index| index as i64);
        check_sorting(dims, |index| -(index as f64));
    }
    // Most differ in bits that few runs tell apart.
    let dims = [1, 140_000, 1];
    check_sorting(
        dims,
        |index| if index % 1000 == 0 { scramble_index(index) } else { scramble_index(index) >> 40 },
    );
    check_sorting(dims, |index| f32::from_bits(scramble_index(index) as u32));
}

/// Elements of every kind, so that each has equals: NaN with different bits, zeros of both signs, subnormal ones and infinities.
fn special_number(index: usize) -> f32 {
    let bits = scramble_index(index);
    match bits >> 60 {
        0 => f32::from_bits(0x7F80_0001 | (bits as u32 & 0x803F_0000)),
        1 => -0.0,
        2 => 0.0,
        3 => f32::from_bits(bits as u32 & 0x8000_0003),
        4 => f32::INFINITY,
        5 => f32::NEG_INFINITY,
        6 => f32::from_bits(bits as u32),
        _ => (bits % 64) as f32 - 32.0,
    }
}

#[test]
fn lines_of_any_length_are_sorted_alike_on_every_instruction_set() {
    let wide = |index: usize| {
        let number = special_number(index);
        // A conversion would make a NaN quiet.
        if number.is_nan() { f64::from_bits(u64::from(number.to_bits()) << 32) } else { f64::from(number) }
    };
    for length in [9, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 200, 255, 256, 257, 400, 1023, 1025, 3000] {
        check_sorting_on_all(length, special_number);
        check_sorting_on_all(length, wide);
        // Of the elements that share ranks, all have the same bits, or all but one.
        check_sorting_on_all(length, |index| {
            if index % 3 == 0 { -0.0 } else { special_number(index).abs().max(1.0) }
        });
        check_sorting_on_all(length, |index| match index % length {
            7 => 0.0,
            place if place % 3 == 0 => -0f64,
            place if place % 3 == 1 => -f64::NAN,
            _ => scramble_index(index) as f64,
        });
        check_sorting_on_all(length, |index| scramble_index(index) as i32);
        check_sorting_on_all(length, |index| scramble_index(index) as i16);
    }
}

/// Sorts the elements of one line, without places, on each instruction set.
fn check_sorting_on_all<T: Element + Copy + PartialOrd>(length: usize, number: impl Fn(usize) -> T) {
    let values: Vec<T> = (0..length).map(|index| number(index + length)).collect();
    let shape = [length as i64];
    let (data, k) = (TestArray::from_values(&shape, &values), TestArray::from_values(&[1], &shape));
    for largest in [0, 1] {
        let (expected, _) = sort_naive(&values, largest == 1);
        let expected = TestArray::from_values(&shape, &expected);
        for isa in ["scalar", "avx2", "avx512"] {
            let outputs = [Some((T::DTYPE, &shape[..]))];
            let found = KERNELS
                .run_with_isa(
                    isa,
                    "TopK",
                    11,
                    &[("largest", TestAttribute::Int(largest))],
                    &[Some(&data), Some(&k)],
                    &outputs,
                )
                .unwrap();
            assert!(found[0].as_ref().unwrap().bytes() == expected.bytes(), "{length} {:?} {isa}", T::DTYPE);
        }
    }
}

#[test]
fn small_elements_of_long_lines_are_counted() {
    for length in [511, 512, 65_535, 65_536, 70_001] {
        check_sorting([1, length, 1], |index| scramble_index(index) as i8);
        check_sorting([1, length, 1], |index| scramble_index(index) as i16);
        check_sorting([1, length, 1], |_| 200u8);
    }
    // bf16, whose zeros and NaN share ranks: equal ones stay in their order.
    let length = 70_000;
    let bits: Vec<u16> = (0..length).map(|index| (special_number(index).to_bits() >> 16) as u16).collect();
    let numbers: Vec<f32> = bits.iter().map(|bits| f32::from_bits(u32::from(*bits) << 16)).collect();
    let (_, order) = sort_naive(&numbers, false);
    let sorted: Vec<u16> = order.iter().map(|place| bits[*place as usize]).collect();
    let shape = [length as i64];
    let of_bits = |bits: &[u16]| {
        let mut array = TestArray::from_values(&shape, bits);
        array.dtype = Dtype::BF16;
        array
    };
    let (data, k) = (of_bits(&bits), TestArray::from_values(&[1], &shape));
    let inputs = [Some(&data), Some(&k)];
    let outputs = [Some((Dtype::BF16, &shape[..]))];
    let found =
        KERNELS.run_kernel("TopK", 11, &[("largest", TestAttribute::Int(0))], &inputs, &outputs).unwrap();
    assert!(found[0].as_ref().unwrap().bytes() == of_bits(&sorted).bytes());
}

#[test]
fn lines_side_by_side_are_sorted_each_alone() {
    for dims in [[3, 300, 1], [2, 70, 37], [1, 20_000, 3], [2, 9, 1]] {
        check_sorting(
            dims,
            |index| if index % 11 == 0 { f32::NAN } else { (scramble_index(index) % 97) as f32 },
        );
        check_sorting(
            dims,
            |index| if index % 3 == 0 { -0.0 } else { (scramble_index(index) as i16).into() },
        );
        check_sorting(dims, |index| scramble_index(index) as i64);
    }
}

#[test]
fn the_best_of_long_lines_are_the_first_of_the_sorted_ones() {
    for (length, k) in [(512, 1), (700, 10), (1024, 16), (1024, 17), (5000, 16)] {
        let dims = [3, length, 1];
        check_best(dims, k, |index| f32::from_bits(scramble_index(index) as u32));
        check_best(dims, k, |index| scramble_index(index) as i64);
        check_best(dims, k, |index| (scramble_index(index) % 500) as i32);
        // Many equal ones, and more than any bound keeps out.
        check_best(dims, k, |index| (scramble_index(index) % 3) as f32 - 1.0);
        check_best(dims, k, |index| if index % 50 == 7 { f32::NAN } else { -0.0 });
        check_best(dims, k, |index| index as f64);
        check_best(dims, k, |_| 7u8);
    }
    check_best([2, 600, 5], 4, |index| (scramble_index(index) % 999) as f32);
}

#[test]
fn the_best_of_many_short_lines_are_those_of_each_alone() {
    for largest in [0, 1] {
        for most in [1, 2, 7, 8, 9] {
            let attributes = [("axis", TestAttribute::Int(1)), ("largest", TestAttribute::Int(largest))];
            let run = |isa: &str, data: &TestArray| {
                let k = most.min(data.dims[1]);
                let dims = [data.dims[0], k, data.dims[2]];
                let outputs = [Some((data.dtype, &dims[..])), Some((Dtype::I64, &dims[..]))];
                let inputs = [Some(data), Some(&TestArray::from_values(&[1], &[k]))];
                let results = KERNELS.run_with_isa(isa, "TopK", 11, &attributes, &inputs, &outputs);
                results.unwrap().into_iter().flatten().collect()
            };
            let number = |index: usize| if index % 31 == 3 { f32::NAN } else { (index * 7919 % 23) as f32 };
            check_short_lines(number, run);
            check_short_lines(|index| number(index) as u8, run);
        }
    }
}

#[test]
fn more_than_there_is_cannot_be_had() {
    let (x, k) = (TestArray::from_values(&[2], &[1f32, 2.0]), TestArray::from_values(&[1], &[3i64]));
    let outputs: [Option<(Dtype, &[i64])>; 2] = [Some((Dtype::F32, &[3])), Some((Dtype::I64, &[3]))];
    let message = KERNELS.refusal_message("TopK", 11, &[], &[Some(&x), Some(&k)], &outputs);
    assert!(message.contains("2 elements along the axis, found 3"), "{message}");
}

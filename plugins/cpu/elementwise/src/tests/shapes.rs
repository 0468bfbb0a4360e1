//! Shapes, strides and memory.

use oarlock_sdk::f16;

use super::*;

fn counting_array(dims: &[i64]) -> TestArray {
    let count: i64 = dims.iter().product();
    TestArray::from_values(dims, &(0..count).map(|value| value as f32).collect::<Vec<_>>())
}

/// The element at an index of the output's shape, of a view of counted values from `start` on.
fn element_at((array, start): (&TestArray, i64), index: &[i64]) -> f32 {
    let mut contiguous = 1;
    let mut place = 0;
    for (back, dim) in array.dims.iter().rev().enumerate() {
        let own = if *dim == 1 { 0 } else { index[index.len() - 1 - back] };
        place += own * array.strides.get(array.dims.len() - 1 - back).copied().unwrap_or(contiguous);
        contiguous *= dim;
    }
    (start + place) as f32
}

#[track_caller]
fn check_difference(a: &TestArray, b: &TestArray, dims: &[i64]) {
    check_difference_of_views((a, 0), (b, 0), dims);
}

#[track_caller]
fn check_difference_of_views(a: (&TestArray, i64), b: (&TestArray, i64), dims: &[i64]) {
    let found = compute_on_all_isas("Sub", 14, &[], &[a.0, b.0], (Dtype::F32, dims)).values::<f32>();
    for (flat, found) in found.iter().enumerate() {
        let mut rest = flat as i64;
        let mut index: Vec<i64> = dims.iter().rev().map(|dim| (rest % dim, rest /= dim).0).collect();
        index.reverse();
        assert_eq!(*found, element_at(a, &index) - element_at(b, &index), "{dims:?} at {index:?}");
    }
}

#[test]
fn inputs_broadcast_in_all_ways() {
    let cases: [(&[i64], &[i64], &[i64]); 12] = [
        (&[3, 5], &[3, 5], &[3, 5]),
        (&[2, 3, 5], &[5], &[2, 3, 5]),
        (&[2, 3, 5], &[3, 1], &[2, 3, 5]),
        (&[2, 1, 5], &[3, 1], &[2, 3, 5]),
        (&[1], &[4099], &[4099]),
        (&[2053], &[], &[2053]),
        (&[7, 1500], &[1500], &[7, 1500]),
        (&[7, 1500], &[7, 1], &[7, 1500]),
        (&[1400, 3], &[3], &[1400, 3]),
        // More dimensions than are held without a heap allocation, none of which merge.
        (&[2, 1, 2, 1, 2, 1, 2, 1, 2], &[1, 3, 1, 3, 1, 3, 1, 3, 1], &[2, 3, 2, 3, 2, 3, 2, 3, 2]),
        (&[2, 600, 3], &[2, 1, 3], &[2, 600, 3]),
        (&[2, 3, 700, 2], &[3, 1, 2], &[2, 3, 700, 2]),
    ];
    for (a, b, output) in cases {
        check_difference(&counting_array(a), &counting_array(b), output);
    }
}

#[test]
fn inputs_may_have_any_strides() {
    let base = counting_array(&[9000]);
    check_difference(&base.with_strides(&[40, 70], &[1, 40], 0), &counting_array(&[40, 70]), &[40, 70]);
    let (a, b) = (base.with_strides(&[40, 70], &[100, 1], 3), base.with_strides(&[40, 70], &[140, 2], 1));
    check_difference_of_views((&a, 3), (&b, 1), &[40, 70]);
    check_difference(&base.with_strides(&[3, 5, 7], &[0, 2, 10], 0), &counting_array(&[7]), &[3, 5, 7]);
    check_difference_of_views(
        (&base.with_strides(&[2000], &[4], 0), 0),
        (&base.with_strides(&[2000], &[0], 5), 5),
        &[2000],
    );
    check_difference(
        &base.with_strides(&[2, 3, 2, 3, 2, 3, 2, 2], &[1, 2, 6, 12, 36, 72, 216, 432], 0),
        &counting_array(&[2]),
        &[2, 3, 2, 3, 2, 3, 2, 2],
    );
}

#[test]
fn halves_with_strides_are_collected_and_converted() {
    let values: Vec<f16> = (0..6000).map(|value| f16::from_f32((value % 97) as f32)).collect();
    let base = TestArray::from_values(&[6000], &values);
    // Both gathered and widened: the loop takes neither strides nor `f16`.
    let (x, y) = (base.with_strides(&[60, 50], &[1, 60], 0), base.with_strides(&[50], &[2], 0));
    let found = compute_on_all_isas("Mul", 14, &[], &[&x, &y], (Dtype::F16, &[60, 50])).values::<f16>();
    for (index, found) in found.iter().enumerate() {
        let (row, column) = (index / 50, index % 50);
        assert_eq!(*found, f16::from_f32(values[row + 60 * column].to_f32() * values[2 * column].to_f32()));
    }
}

#[test]
fn nothing_and_a_single_element_work() {
    check_difference(&counting_array(&[0, 3]), &counting_array(&[3]), &[0, 3]);
    check_difference(&counting_array(&[0]), &counting_array(&[1]), &[0]);
    check_difference(&counting_array(&[]), &counting_array(&[]), &[]);
    check_difference(&counting_array(&[1, 1]), &counting_array(&[1]), &[1, 1]);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let cases: [(&[i64], &[i64], &[i64]); 5] = [
        (&[3], &[2], &[3]),
        // Both would broadcast to this, but neither has the size.
        (&[1], &[1], &[5]),
        (&[3], &[3], &[1, 3]),
        (&[2, 3], &[3], &[3]),
        (&[4], &[1], &[8]),
    ];
    for (a, b, output) in cases {
        let message = compute_with_isa(
            "",
            "Add",
            14,
            &[],
            &[&counting_array(a), &counting_array(b)],
            (Dtype::F32, output),
        )
        .unwrap_err();
        assert!(message.contains("expected"), "{message}");
    }
}

#[test]
fn memory_that_is_too_small_is_refused() {
    let base = counting_array(&[10]);
    for view in [
        base.with_strides(&[4], &[4], 0),
        base.with_strides(&[3, 4], &[4, 1], 0),
        base.with_strides(&[2], &[-1], 5),
        // As many elements as there are, but from the second on.
        base.with_strides(&[10], &[1], 1),
    ] {
        let output = view.dims.clone();
        let message = compute_with_isa("", "Neg", 13, &[], &[&view], (Dtype::F32, &output)).unwrap_err();
        assert!(message.contains("expected"), "{message}");
    }
}

#[test]
fn the_first_versions_say_where_the_second_input_is_repeated() {
    let (a, b) = (counting_array(&[2, 3, 4]), counting_array(&[3]));
    let attributes = [("broadcast", TestAttribute::Int(1)), ("axis", TestAttribute::Int(1))];
    let found =
        compute_on_all_isas("Add", 6, &attributes, &[&a, &b], (Dtype::F32, &[2, 3, 4])).values::<f32>();
    let expected: Vec<f32> = (0..24).map(|index| index as f32 + (index / 4 % 3) as f32).collect();
    assert_eq!(found, expected);
    let message = compute_with_isa(
        "",
        "Add",
        6,
        &[("broadcast", TestAttribute::Int(1)), ("axis", TestAttribute::Int(3))],
        &[&a, &b],
        (Dtype::F32, &[2, 3, 4]),
    );
    assert!(message.unwrap_err().contains("`axis`"));
}

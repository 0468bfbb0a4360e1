//! The order of equal elements, of what is not a number, and of nothing.

use oarlock_sdk::Dtype;

use crate::kernels::rows::checking::{check_all, refusal};
use crate::testing::{Array, run};

#[test]
fn the_cases_of_the_file_give_what_it_says() {
    check_all(include_str!("cases.txt"));
}

fn suppressed(most: i64, overlap: f32, score: f32) -> Vec<i64> {
    let boxes = Array::of::<f32>(
        &[1, 6, 4],
        &[
            0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, -0.1, 1.0, 0.9, 0.0, 10.0, 1.0, 11.0, 0.0, 10.1,
            1.0, 11.1, 1.0, 101.0, 0.0, 100.0,
        ],
    );
    let scores = Array::of::<f32>(&[1, 1, 6], &[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]);
    let (most, overlap) = (Array::of(&[1], &[most]), Array::of(&[], &[overlap]));
    let inputs = [Some(&boxes), Some(&scores), Some(&most), Some(&overlap), Some(&Array::of(&[1], &[score]))];
    let results = run("NonMaxSuppression", 11, &[], &inputs, &[None]).unwrap();
    let selected = results[0].as_ref().unwrap();
    assert_eq!(selected.dims[1], 3);
    selected.values::<i64>().chunks(3).map(|triple| triple[2]).collect()
}

#[test]
fn boxes_that_overlap_a_better_one_are_left_out() {
    assert_eq!(suppressed(9, 0.5, 0.0), [3, 0, 5]);
    assert_eq!(suppressed(2, 0.5, 0.0), [3, 0]);
    assert_eq!(suppressed(9, 0.5, 0.4), [3, 0]);
    assert_eq!(suppressed(9, 1.0, 0.0), [3, 0, 1, 2, 4, 5]);
    assert_eq!(suppressed(0, 0.5, 0.0), []);
}

#[test]
fn more_than_there_is_cannot_be_had() {
    let (x, k) = (Array::of(&[2], &[1f32, 2.0]), Array::of(&[1], &[3i64]));
    let outputs: [Option<(Dtype, &[i64])>; 2] = [Some((Dtype::F32, &[3])), Some((Dtype::I64, &[3]))];
    let message = refusal("TopK", 11, &[], &[Some(&x), Some(&k)], &outputs);
    assert!(message.contains("2 elements along the axis, found 3"), "{message}");
}

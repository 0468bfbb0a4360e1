//! Results that the reference implementation of ONNX gives, what is refused, and shapes too large to write down.

use oarlock_cpu_testing::runner::TestArray;
use oarlock_sdk::Dtype;

use crate::KERNELS;

#[test]
fn the_cases_of_the_file_give_what_it_says() {
    KERNELS.check_cases(include_str!("cases.txt"));
}

#[test]
fn classes_that_do_not_exist_are_refused() {
    let (input, target) =
        (TestArray::from_values(&[1, 2], &[0f32; 2]), TestArray::from_values(&[1], &[-1i32]));
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[]))];
    let message = KERNELS.refusal_message(
        "NegativeLogLikelihoodLoss",
        13,
        &[],
        &[Some(&input), Some(&target)],
        &outputs,
    );
    assert!(message.contains("from 0 to less than 2, found -1"), "{message}");
}

#[test]
fn lists_of_different_lengths_are_refused() {
    let (one, step) = (TestArray::from_values(&[], &[1f32]), TestArray::from_values(&[], &[1i64]));
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[]))];
    let message = KERNELS.refusal_message(
        "Adagrad",
        1,
        &[],
        &[Some(&one), Some(&step), Some(&one), Some(&one)],
        &outputs,
    );
    assert!(message.contains("expected 3 inputs and 2 outputs for each tensor, found 2 and 1"), "{message}");
}

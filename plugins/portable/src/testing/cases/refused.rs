//! Calls that kernels refuse, and their messages.

use oarlock_sdk::Dtype;

use super::super::{PluginMachine, TestData};

const F32: Dtype = Dtype::F32;

pub(super) fn what_does_not_fit_is_refused_with_a_reason(machine: &PluginMachine) {
    let sample = |dims: &[i64]| TestData::sample_elements(F32, dims, 1);
    let (a, b) = (sample(&[2, 3]), sample(&[4]));
    machine
        .op_trial("Add", 14)
        .with_input(&a)
        .with_input(&b)
        .with_output(F32, &[2, 3])
        .expect_failure("[[2, 3], [4]]");
    machine
        .op_trial("Add", 14)
        .with_input(&a)
        .with_input(&a)
        .with_output(F32, &[3, 2])
        .expect_failure("expected an output of shape [2, 3]");
    machine
        .op_trial("MatMul", 13)
        .with_input(&a)
        .with_input(&a)
        .with_output(F32, &[2, 3])
        .expect_failure("columns on the left");
    machine
        .op_trial("Transpose", 13)
        .with_input(&a)
        .ints("perm", &[0, 0][..])
        .with_output(F32, &[2, 2])
        .expect_failure("once");
    machine
        .op_trial("Transpose", 13)
        .with_input(&a)
        .ints("perm", &[0, 5][..])
        .with_output(F32, &[2, 3])
        .expect_failure("an axis of 2 dimensions");
    machine
        .op_trial("Concat", 13)
        .with_input(&a)
        .with_input(&b)
        .int("axis", 0)
        .with_output(F32, &[3, 3])
        .expect_failure("fill [3, 3]");
    machine
        .op_trial("Reshape", 14)
        .with_input(&a)
        .with_input(&TestData::from_integers(&[7]))
        .with_output(F32, &[7])
        .expect_failure("6 elements");
    machine
        .op_trial("Gather", 13)
        .with_input(&a)
        .with_input(&TestData::from_integers(&[0]))
        .int("axis", 2)
        .with_output(F32, &[1, 3])
        .expect_failure("axis");
    machine
        .op_trial("ReduceSum", 13)
        .with_input(&a)
        .with_input(&TestData::from_integers(&[7]))
        .with_output(F32, &[1, 3])
        .expect_failure("axis");
    let zero = TestData::from_integers(&[0]);
    let slice = machine
        .op_trial("Slice", 13)
        .with_input(&a)
        .with_input(&zero)
        .with_input(&zero)
        .with_input(&zero)
        .with_input(&zero);
    slice.with_output(F32, &[2, 3]).expect_failure("steps other than 0");
    let twice = TestData::from_integers(&[0, 0]);
    let slice = machine
        .op_trial("Slice", 13)
        .with_input(&a)
        .with_input(&twice)
        .with_input(&TestData::from_integers(&[1, 1]))
        .with_input(&twice);
    slice.with_output(F32, &[1, 3]).expect_failure("each axis once");
    machine
        .op_trial("DepthToSpace", 13)
        .with_input(&sample(&[1, 4, 1, 1]))
        .int("blocksize", 1 << 32)
        .with_output(F32, &[1, 1, 2, 2])
        .expect_failure("a `blocksize`");
    let pads = TestData::from_integers(&[-3, 0, 0, 0]);
    machine
        .op_trial("Pad", 13)
        .with_input(&a)
        .with_input(&pads)
        .with_output(F32, &[0, 3])
        .expect_failure("leave a shape");
    let mirrored = machine
        .op_trial("Pad", 13)
        .with_input(&a)
        .with_input(&pads)
        .string("mode", "mirror")
        .with_output(F32, &[2, 3]);
    mirrored.expect_failure("as `mode`, found `mirror`");
    let (image, weights) = (sample(&[1, 2, 3, 3]), sample(&[1, 3, 1, 1]));
    machine
        .op_trial("Conv", 11)
        .with_input(&image)
        .with_input(&weights)
        .with_output(F32, &[1, 1, 3, 3])
        .expect_failure("2 channels");
    machine
        .op_trial("MaxPool", 12)
        .with_input(&image)
        .with_output(F32, &[1, 2, 3, 3])
        .expect_failure("`kernel_shape`");
    let window = machine
        .op_trial("MaxPool", 12)
        .with_input(&image)
        .ints("kernel_shape", &[4, 1][..])
        .with_output(F32, &[1, 2, 3, 3]);
    window.expect_failure("fits into [3, 3]");
    let shift = TestData::new(Dtype::U8, &[1], &[1.0]);
    machine
        .op_trial("BitShift", 11)
        .with_input(&shift)
        .with_input(&shift)
        .with_output(Dtype::U8, &[1])
        .expect_failure("LEFT or RIGHT");
    // Strides that lead out of the memory are refused before anything is read.
    let outside = sample(&[4]).with_strides(&[2, 2], &[4, 1]);
    machine
        .op_trial("Neg", 13)
        .with_input(&outside)
        .with_output(F32, &[2, 2])
        .expect_failure("expected room");
    let backwards = sample(&[4]).with_strides(&[4], &[-1]);
    machine
        .op_trial("Neg", 13)
        .with_input(&backwards)
        .with_output(F32, &[4])
        .expect_refusal("strides of 0 and more");
    let mut many = machine.op_trial("Max", 13);
    // One more than formulas have names for.
    for _ in 0..9 {
        many = many.with_input(&b);
    }
    many.with_output(F32, &[4]).expect_refusal("1 to 8 inputs, found 9");
    let row = sample(&[2]);
    let rows =
        machine.op_trial("LayerNormalization", 17).with_input(&a).with_input(&row).with_output(F32, &[2, 3]);
    rows.expect_refusal("of 3 elements");
    // Just above 2^24 elements.
    let far = machine.op_trial("MaxPool", 12).with_input(&image).ints("kernel_shape", &[4097, 4097][..]);
    far.with_output(F32, &[1, 2, 1, 1]).expect_refusal("a window of at most");
}

//! What kernels refuse, and what they say.

use oarlock_sdk::Dtype;

use super::super::{Data, Machine};

const F32: Dtype = Dtype::F32;

pub(super) fn what_does_not_fit_is_refused_with_a_reason(machine: &Machine) {
    let sample = |dims: &[i64]| Data::sample(F32, dims, 1);
    let (a, b) = (sample(&[2, 3]), sample(&[4]));
    machine.op("Add", 14).input(&a).input(&b).output(F32, &[2, 3]).fails("[[2, 3], [4]]");
    machine
        .op("Add", 14)
        .input(&a)
        .input(&a)
        .output(F32, &[3, 2])
        .fails("expected an output of shape [2, 3]");
    machine.op("MatMul", 13).input(&a).input(&a).output(F32, &[2, 3]).fails("columns on the left");
    machine.op("Transpose", 13).input(&a).ints("perm", &[0, 0][..]).output(F32, &[2, 2]).fails("once");
    machine
        .op("Transpose", 13)
        .input(&a)
        .ints("perm", &[0, 5][..])
        .output(F32, &[2, 3])
        .fails("an axis of 2 dimensions");
    machine.op("Concat", 13).input(&a).input(&b).int("axis", 0).output(F32, &[3, 3]).fails("fill [3, 3]");
    machine.op("Reshape", 14).input(&a).input(&Data::integers(&[7])).output(F32, &[7]).fails("6 elements");
    machine
        .op("Gather", 13)
        .input(&a)
        .input(&Data::integers(&[0]))
        .int("axis", 2)
        .output(F32, &[1, 3])
        .fails("axis");
    machine.op("ReduceSum", 13).input(&a).input(&Data::integers(&[7])).output(F32, &[1, 3]).fails("axis");
    let zero = Data::integers(&[0]);
    let slice = machine.op("Slice", 13).input(&a).input(&zero).input(&zero).input(&zero).input(&zero);
    slice.output(F32, &[2, 3]).fails("steps other than 0");
    let pads = Data::integers(&[-3, 0, 0, 0]);
    machine.op("Pad", 13).input(&a).input(&pads).output(F32, &[0, 3]).fails("leave a shape");
    let mirrored = machine.op("Pad", 13).input(&a).input(&pads).string("mode", "mirror").output(F32, &[2, 3]);
    mirrored.fails("as `mode`, found `mirror`");
    let (image, weights) = (sample(&[1, 2, 3, 3]), sample(&[1, 3, 1, 1]));
    machine.op("Conv", 11).input(&image).input(&weights).output(F32, &[1, 1, 3, 3]).fails("2 channels");
    machine.op("MaxPool", 12).input(&image).output(F32, &[1, 2, 3, 3]).fails("`kernel_shape`");
    let window =
        machine.op("MaxPool", 12).input(&image).ints("kernel_shape", &[4, 1][..]).output(F32, &[1, 2, 3, 3]);
    window.fails("fits into [3, 3]");
    let shift = Data::new(Dtype::U8, &[1], &[1.0]);
    machine.op("BitShift", 11).input(&shift).input(&shift).output(Dtype::U8, &[1]).fails("LEFT or RIGHT");
    // Strides that lead outside of the memory are noticed before anything reads there.
    let outside = sample(&[4]).strided(&[2, 2], &[4, 1]);
    machine.op("Neg", 13).input(&outside).output(F32, &[2, 2]).fails("expected room");
    let backwards = sample(&[4]).strided(&[4], &[-1]);
    machine.op("Neg", 13).input(&backwards).output(F32, &[4]).refused("strides of 0 and more");
    let mut many = machine.op("Max", 13);
    for _ in 0..9 {
        many = many.input(&b);
    }
    many.output(F32, &[4]).refused("1 to 8 inputs, found 9");
    let row = sample(&[2]);
    let rows = machine.op("LayerNormalization", 17).input(&a).input(&row).output(F32, &[2, 3]);
    rows.refused("of 3 elements");
    let far = machine.op("MaxPool", 12).input(&image).ints("kernel_shape", &[4097, 4097][..]);
    far.output(F32, &[1, 2, 1, 1]).refused("a window of at most");
}

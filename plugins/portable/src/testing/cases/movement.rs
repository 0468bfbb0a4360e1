//! Ops that move or create elements.

use oarlock_sdk::Dtype;

use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, INTEGER_DTYPES, all_indices, broadcast_position};

fn all_dtypes() -> impl Iterator<Item = Dtype> {
    FLOAT_DTYPES.into_iter().chain(INTEGER_DTYPES).chain([Dtype::BOOL])
}

/// The expected output, given a map from output index to input index.
fn moved_elements(dims: &[i64], data: &TestData, find: impl Fn(&[i64]) -> Vec<i64>) -> Vec<f64> {
    let values = data.to_values();
    all_indices(dims).iter().map(|index| values[broadcast_position(&data.dims, &find(index))]).collect()
}

pub(super) fn shapes_change_without_the_elements(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        let data = TestData::sample_elements(dtype, &[2, 1, 3, 5], 1);
        let call = |op, version| machine.op_trial(op, version).with_input(&data);
        let shape = TestData::from_integers(&[5, 6]);
        call("Reshape", 14)
            .with_input(&shape)
            .with_output(dtype, &[5, 6])
            .expect_output(0.0, &data.to_values());
        call("Flatten", 13).with_output(dtype, &[2, 15]).expect_output(0.0, &data.to_values());
        call("Squeeze", 11)
            .ints("axes", &[1][..])
            .with_output(dtype, &[2, 3, 5])
            .expect_output(0.0, &data.to_values());
        call("Squeeze", 13)
            .with_input(&TestData::from_integers(&[1]))
            .with_output(dtype, &[2, 3, 5])
            .expect_output(0.0, &data.to_values());
        call("Squeeze", 13).with_output(dtype, &[2, 3, 5]).expect_output(0.0, &data.to_values());
        let unsqueezed = call("Unsqueeze", 13)
            .with_input(&TestData::from_integers(&[0]))
            .with_output(dtype, &[1, 2, 1, 3, 5]);
        unsqueezed.expect_output(0.0, &data.to_values());
    }
    let turned = TestData::sample_elements(Dtype::F32, &[4, 3], 1).with_strides(&[3, 4], &[1, 3]);
    machine
        .op_trial("Reshape", 14)
        .with_input(&turned)
        .with_input(&TestData::from_integers(&[12]))
        .with_output(Dtype::F32, &[12])
        .expect_output(0.0, &turned.to_values());
    machine
        .op_trial("Identity", 16)
        .with_input(&turned)
        .with_output(Dtype::F32, &[3, 4])
        .expect_output(0.0, &turned.to_values());
}

pub(super) fn dimensions_change_places(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        let data = TestData::sample_elements(dtype, &[3, 4, 5], 2);
        let expected = moved_elements(&[5, 3, 4], &data, |index| vec![index[1], index[2], index[0]]);
        let call = machine
            .op_trial("Transpose", 13)
            .with_input(&data)
            .ints("perm", &[2, 0, 1][..])
            .with_output(dtype, &[5, 3, 4]);
        call.expect_output(0.0, &expected);
    }
    let data = TestData::sample_elements(Dtype::F32, &[2, 3, 4, 5, 2], 2);
    let expected = moved_elements(&[2, 5, 4, 3, 2], &data, |index| index.iter().rev().copied().collect());
    machine
        .op_trial("Transpose", 13)
        .with_input(&data)
        .with_output(Dtype::F32, &[2, 5, 4, 3, 2])
        .expect_output(0.0, &expected);
    machine
        .op_trial("Transpose", 13)
        .with_input(&TestData::sample_elements(Dtype::F32, &[], 0))
        .with_output(Dtype::F32, &[])
        .expect_output(0.0, &[-2.75]);
}

pub(super) fn operands_are_joined_and_divided(machine: &PluginMachine) {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::I64, Dtype::U8] {
        for axis in [0, 1, -1] {
            let at = if axis < 0 { 2 } else { axis as usize };
            // A part without elements launches nothing and must not shift the others.
            let sizes = [2, 0, 1, 4];
            let whole_dims: Vec<i64> = (0..3).map(|index| if index == at { 7 } else { 3 }).collect();
            let whole = TestData::sample_elements(dtype, &whole_dims, 3);
            let mut first = 0;
            let parts: Vec<TestData> = sizes
                .iter()
                .map(|size| {
                    let dims: Vec<i64> = (0..3).map(|index| if index == at { *size } else { 3 }).collect();
                    let begin = first;
                    first += size;
                    let values = moved_elements(&dims, &whole, |index| {
                        (0..3).map(|axis| index[axis] + if axis == at { begin } else { 0 }).collect()
                    });
                    TestData::new(dtype, &dims, &values)
                })
                .collect();
            let concat = parts.iter().fold(
                machine.op_trial("Concat", 13).int("axis", axis),
                super::super::op_trial::OpTrial::with_input,
            );
            concat.with_output(dtype, &whole_dims).expect_output(0.0, &whole.to_values());
            let values: Vec<Vec<f64>> = parts.iter().map(TestData::to_values).collect();
            let expected: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
            for version in [2, 13] {
                let split = machine.op_trial("Split", version).with_input(&whole).int("axis", axis);
                let split =
                    if version == 13 { split.with_input(&TestData::from_integers(&sizes)) } else { split };
                parts
                    .iter()
                    .fold(split, |split, part| split.with_output(dtype, &part.dims))
                    .expect_outputs(0.0, &expected);
            }
        }
    }
}

pub(super) fn slices_run_in_both_directions(machine: &PluginMachine) {
    let data = TestData::sample_elements(Dtype::F32, &[6, 7], 1);
    let slice = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64], dims: &[i64]| {
        let [starts, ends, axes, steps] = [starts, ends, axes, steps].map(TestData::from_integers);
        let call = machine
            .op_trial("Slice", 13)
            .with_input(&data)
            .with_input(&starts)
            .with_input(&ends)
            .with_input(&axes)
            .with_input(&steps);
        call.with_output(Dtype::F32, dims)
    };
    slice(&[1, 2], &[5, 7], &[0, 1], &[1, 2], &[4, 3])
        .expect_output(0.0, &moved_elements(&[4, 3], &data, |index| vec![index[0] + 1, 2 * index[1] + 2]));
    slice(&[-1], &[i64::MIN], &[0], &[-2], &[3, 7])
        .expect_output(0.0, &moved_elements(&[3, 7], &data, |index| vec![5 - 2 * index[0], index[1]]));
    slice(&[100, 0], &[-100, 100], &[-1, 0], &[-1, i64::MAX], &[1, 7])
        .expect_output(0.0, &moved_elements(&[1, 7], &data, |index| vec![0, 6 - index[1]]));
    slice(&[3], &[2], &[1], &[1], &[6, 0]).expect_output(0.0, &[]);
    let old = machine.op_trial("Slice", 1).with_input(&data).ints("starts", &[1][..]).ints("ends", &[-1][..]);
    old.with_output(Dtype::F32, &[4, 7])
        .expect_output(0.0, &moved_elements(&[4, 7], &data, |index| vec![index[0] + 1, index[1]]));
}

pub(super) fn edges_are_padded_and_cut(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        let data = TestData::sample_elements(dtype, &[3, 4], 1);
        let (values, value) = (data.to_values(), if dtype == Dtype::BOOL { 1.0 } else { 7.0 });
        let expected: Vec<f64> = all_indices(&[4, 5])
            .iter()
            .map(|index| {
                let (row, column) = (index[0] - 2, index[1] + 1);
                let inside = (0..3).contains(&row) && (0..4).contains(&column);
                if inside { values[(row * 4 + column) as usize] } else { value }
            })
            .collect();
        // Rows: 2 before, crop 1 after. Columns: crop 1 before, 2 after.
        let pads = TestData::from_integers(&[2, -1, -1, 2]);
        let filling = TestData::new(dtype, &[], &[value]);
        let call = machine
            .op_trial("Pad", 13)
            .with_input(&data)
            .with_input(&pads)
            .with_input(&filling)
            .with_output(dtype, &[4, 5]);
        call.expect_output(0.0, &expected);
    }
    let data = TestData::sample_elements(Dtype::F32, &[2, 2], 1);
    let values = data.to_values();
    let expected = [0.0, values[0], values[1], 0.0, values[2], values[3]];
    let named = machine
        .op_trial("Pad", 18)
        .with_input(&data)
        .with_input(&TestData::from_integers(&[1, 0]))
        .without_input()
        .with_input(&TestData::from_integers(&[-1]));
    named.with_output(Dtype::F32, &[2, 3]).expect_output(0.0, &expected);
    let old =
        machine.op_trial("Pad", 2).with_input(&data).ints("pads", &[0, 1, 0, 0][..]).float("value", 0.0);
    old.with_output(Dtype::F32, &[2, 3]).expect_output(0.0, &expected);
}

pub(super) fn what_lies_outside_is_taken_from_inside(machine: &PluginMachine) {
    // The same pads: rows 0 and 1, columns 1 to 3 are left of the input.
    let pads = TestData::from_integers(&[2, -1, -1, 2]);
    for (mode, rows, columns) in [
        ("edge", [0, 0, 0, 1], [1, 2, 3, 3, 3]),
        ("reflect", [0, 1, 0, 1], [1, 2, 3, 2, 1]),
        ("wrap", [0, 1, 0, 1], [1, 2, 3, 1, 2]),
    ] {
        for dtype in all_dtypes() {
            let data = TestData::sample_elements(dtype, &[3, 4], 1);
            let expected = moved_elements(&[4, 5], &data, |index| {
                vec![rows[index[0] as usize], columns[index[1] as usize]]
            });
            let call = machine.op_trial("Pad", 19).with_input(&data).with_input(&pads).string("mode", mode);
            call.with_output(dtype, &[4, 5]).expect_output(0.0, &expected);
        }
        let (empty, pads) =
            (TestData::sample_elements(Dtype::F32, &[0], 1), TestData::from_integers(&[1, 0]));
        let call = machine.op_trial("Pad", 19).with_input(&empty).with_input(&pads).string("mode", mode);
        call.with_output(Dtype::F32, &[1]).expect_failure("elements to pad with");
    }
}

pub(super) fn operands_are_repeated_as_tiles(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        let data = TestData::sample_elements(dtype, &[2, 1, 3], 1);
        let expected = moved_elements(&[4, 3, 6], &data, |index| vec![index[0] % 2, 0, index[2] % 3]);
        let call = machine
            .op_trial("Tile", 13)
            .with_input(&data)
            .with_input(&TestData::from_integers(&[2, 3, 2]))
            .with_output(dtype, &[4, 3, 6]);
        call.expect_output(0.0, &expected);
        let expected = moved_elements(&[4, 2, 5, 3], &data, |index| vec![index[1], 0, index[3]]);
        let call = machine
            .op_trial("Expand", 13)
            .with_input(&data)
            .with_input(&TestData::from_integers(&[4, 2, 5, 3]))
            .with_output(dtype, &[4, 2, 5, 3]);
        call.expect_output(0.0, &expected);
    }
}

pub(super) fn parts_are_gathered_and_indices_outside_are_told(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        for axis in [0, 1, 2] {
            let data = TestData::sample_elements(dtype, &[4, 5, 6], 1);
            let values = data.to_values();
            let wanted = [3, -1, 2, 0, -2, -4];
            let indices_data = TestData::new(Dtype::I32, &[3, 2], &wanted.map(|index| index as f64));
            let mut dims = data.dims.clone();
            dims.splice(axis..=axis, [3, 2]);
            let expected: Vec<f64> = all_indices(&dims)
                .iter()
                .map(|index| {
                    let at = wanted[(index[axis] * 2 + index[axis + 1]) as usize];
                    let at = if at < 0 { at + data.dims[axis] } else { at };
                    let mut source = index.clone();
                    source.splice(axis..axis + 2, [at]);
                    values[broadcast_position(&data.dims, &source)]
                })
                .collect();
            let gather = |wanted: &TestData| {
                let call = machine
                    .op_trial("Gather", 13)
                    .with_input(&data)
                    .with_input(wanted)
                    .int("axis", axis as i64);
                call.with_output(dtype, &dims)
            };
            // One past the end, one before the start, and far outside.
            for outside in [data.dims[axis], -data.dims[axis] - 1, i64::from(i32::MIN)] {
                let wanted = [0, 1, 2, 3, outside, 0].map(|index| index as f64);
                gather(&TestData::new(Dtype::I32, &[3, 2], &wanted))
                    .expect_value_fault("indices that lie inside");
            }
            gather(&indices_data).expect_output(0.0, &expected);
        }
    }
    let scalar = TestData::new(Dtype::I64, &[], &[1.0]);
    let data = TestData::sample_elements(Dtype::F32, &[3], 1);
    machine
        .op_trial("Gather", 13)
        .with_input(&data)
        .with_input(&scalar)
        .with_output(Dtype::F32, &[])
        .expect_output(0.0, &data.to_values()[1..2]);
}

pub(super) fn depth_becomes_space_and_back(machine: &PluginMachine) {
    let depth = TestData::sample_elements(Dtype::F32, &[2, 8, 2, 3], 1);
    let expected = moved_elements(&[2, 2, 4, 6], &depth, |index| {
        vec![index[0], (index[2] % 2 * 2 + index[3] % 2) * 2 + index[1], index[2] / 2, index[3] / 2]
    });
    let call = |op, data: &TestData| machine.op_trial(op, 13).with_input(data).int("blocksize", 2);
    call("DepthToSpace", &depth).with_output(Dtype::F32, &[2, 2, 4, 6]).expect_output(0.0, &expected);
    let space = TestData::new(Dtype::F32, &[2, 2, 4, 6], &expected);
    call("SpaceToDepth", &space)
        .with_output(Dtype::F32, &[2, 8, 2, 3])
        .expect_output(0.0, &depth.to_values());
    let columns = moved_elements(&[2, 2, 4, 6], &depth, |index| {
        vec![index[0], index[1] * 4 + index[2] % 2 * 2 + index[3] % 2, index[2] / 2, index[3] / 2]
    });
    call("DepthToSpace", &depth)
        .string("mode", "CRD")
        .with_output(Dtype::F32, &[2, 2, 4, 6])
        .expect_output(0.0, &columns);
}

pub(super) fn constants_and_ranges_come_from_nothing(machine: &PluginMachine) {
    for dtype in all_dtypes() {
        let value = TestData::new(dtype, &[1], &[1.0]);
        let shape = TestData::from_integers(&[3, 5]);
        let call = || machine.op_trial("ConstantOfShape", 9).with_input(&shape);
        call().tensor("value", value).with_output(dtype, &[3, 5]).expect_output(0.0, &[1.0; 15]);
    }
    machine
        .op_trial("ConstantOfShape", 9)
        .with_input(&TestData::from_integers(&[2]))
        .with_output(Dtype::F32, &[2])
        .expect_output(0.0, &[0.0; 2]);
    // Needs more than 32 bits, and its sign.
    let far = TestData::new(Dtype::I64, &[1], &[-(2f64.powi(62))]);
    let call = machine
        .op_trial("ConstantOfShape", 9)
        .with_input(&TestData::from_integers(&[2]))
        .tensor("value", far);
    call.with_output(Dtype::I64, &[2]).expect_output(0.0, &[-(2f64.powi(62)); 2]);
    for dtype in [Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F32, Dtype::F64] {
        let [start, limit, delta] = [10.0, 4.0, -2.0].map(|value| TestData::new(dtype, &[], &[value]));
        let call = machine
            .op_trial("Range", 11)
            .with_input(&start)
            .with_input(&limit)
            .with_input(&delta)
            .with_output(dtype, &[3]);
        call.expect_output(0.0, &[10.0, 8.0, 6.0]);
    }
}

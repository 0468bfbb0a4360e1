//! Reductions.

use oarlock_sdk::Dtype;

use super::super::test_data::is_float;
use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, INTEGER_DTYPES, all_indices, broadcast_position};

/// Reference implementation over one group of elements.
type ReductionFunction = fn(&[f64]) -> f64;

const REDUCTIONS: [(&str, ReductionFunction); 10] = [
    ("ReduceSum", |list| list.iter().sum()),
    ("ReduceMean", |list| list.iter().sum::<f64>() / list.len() as f64),
    ("ReduceMax", |list| list.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    ("ReduceMin", |list| list.iter().copied().fold(f64::INFINITY, f64::min)),
    ("ReduceProd", |list| list.iter().product()),
    ("ReduceL1", |list| list.iter().map(|x| x.abs()).sum()),
    ("ReduceL2", |list| list.iter().map(|x| x * x).sum::<f64>().sqrt()),
    ("ReduceSumSquare", |list| list.iter().map(|x| x * x).sum()),
    ("ReduceLogSum", |list| list.iter().sum::<f64>().ln()),
    ("ReduceLogSumExp", |list| list.iter().map(|x| x.exp()).sum::<f64>().ln()),
];

/// Groups elements by output element; reduced dimensions are 1 in the output.
fn reduced_groups(data: &TestData, axes: &[usize]) -> Vec<Vec<f64>> {
    let kept: Vec<i64> =
        data.dims.iter().enumerate().map(|(axis, dim)| if axes.contains(&axis) { 1 } else { *dim }).collect();
    let mut rows = vec![Vec::new(); kept.iter().product::<i64>() as usize];
    for (index, value) in all_indices(&data.dims).iter().zip(data.to_values()) {
        rows[broadcast_position(&kept, index)].push(value);
    }
    rows
}

fn reference_reduction(data: &TestData, axes: &[usize], reduction: ReductionFunction) -> Vec<f64> {
    reduced_groups(data, axes).iter().map(|row| reduction(row)).collect()
}

fn reduced_dims(data: &TestData, axes: &[usize], keeps: bool) -> Vec<i64> {
    let dim = |(axis, dim): (usize, &i64)| match (axes.contains(&axis), keeps) {
        (true, true) => Some(1),
        (true, false) => None,
        (false, _) => Some(*dim),
    };
    data.dims.iter().enumerate().filter_map(dim).collect()
}

pub(super) fn every_reduction_over_every_axis_is_right(machine: &PluginMachine) {
    for (op, reduction) in REDUCTIONS {
        for dtype in FLOAT_DTYPES {
            // Axes and dtypes are independent, so one dtype covers every set of axes.
            let every: &[&[usize]] = &[&[0], &[1], &[2], &[0, 2], &[1, 2], &[0, 1, 2]];
            for axes in if dtype == Dtype::F32 { every } else { &every[1..2] } {
                let data = TestData::sample_elements(dtype, &[3, 4, 5], 6);
                // Keep elements small and positive for logarithms of sums and products.
                let values: Vec<f64> = data.to_values().iter().map(|x| 0.75 + x.abs() / 8.0).collect();
                let data = if op.contains("Log") || op.contains("Prod") {
                    TestData::new(dtype, &[3, 4, 5], &values)
                } else {
                    data
                };
                let expected = reference_reduction(&data, axes, reduction);
                let list: Vec<i64> = axes.iter().map(|axis| *axis as i64 - 3).collect();
                let tolerance = if dtype == Dtype::F64 { 1e-12 } else { 5e-6 };
                let new =
                    machine.op_trial(op, 18).with_input(&data).with_input(&TestData::from_integers(&list));
                new.with_output(dtype, &reduced_dims(&data, axes, true)).expect_output(tolerance, &expected);
                let old = machine
                    .op_trial(op, 11)
                    .with_input(&data)
                    .ints("axes", list.as_slice())
                    .int("keepdims", 0);
                old.with_output(dtype, &reduced_dims(&data, axes, false)).expect_output(tolerance, &expected);
            }
        }
        for dtype in INTEGER_DTYPES.into_iter().filter(|_| !op.contains("Log") && !op.contains("Prod")) {
            let data = TestData::new(dtype, &[2, 3], &[1.0, 2.0, 2.0, 0.0, 3.0, 4.0]);
            let expected: Vec<f64> =
                reference_reduction(&data, &[1], reduction).into_iter().map(f64::trunc).collect();
            let call = machine
                .op_trial(op, 18)
                .with_input(&data)
                .with_input(&TestData::from_integers(&[1]))
                .with_output(dtype, &[2, 1]);
            call.expect_output(0.0, &expected);
        }
    }
    let truth = TestData::new(Dtype::BOOL, &[2, 2], &[0.0, 1.0, 0.0, 0.0]);
    let axis = TestData::from_integers(&[1]);
    machine
        .op_trial("ReduceMax", 20)
        .with_input(&truth)
        .with_input(&axis)
        .with_output(Dtype::BOOL, &[2, 1])
        .expect_output(0.0, &[1.0, 0.0]);
}

pub(super) fn long_reductions_go_in_parts(machine: &PluginMachine) {
    // Neither parts nor work-groups divide these sizes evenly. In the first three the rows are split.
    for (shape, axes) in [
        (&[100_003][..], &[0][..]),
        (&[3, 20_011], &[1]),
        (&[20_011, 3], &[0]),
        (&[700, 129], &[1]),
        (&[129, 700], &[0]),
        (&[5, 40, 333], &[0, 2]),
    ] {
        let list = TestData::from_integers(&axes.iter().map(|axis| *axis as i64).collect::<Vec<_>>());
        for dtype in [Dtype::F32, Dtype::F64, Dtype::I64] {
            let data = TestData::sample_elements(dtype, shape, 6);
            let rows = reduced_groups(&data, axes);
            let some = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"];
            let some = if is_float(dtype) { &some[..] } else { &some[..1] };
            for (op, reduction) in REDUCTIONS.into_iter().filter(|(op, _)| some.contains(op)) {
                let expected: Vec<f64> = rows.iter().map(|row| reduction(row)).collect();
                let call = machine.op_trial(op, 18).with_input(&data).with_input(&list);
                call.with_output(dtype, &reduced_dims(&data, axes, true)).expect_output(2e-5, &expected);
            }
        }
    }
}

pub(super) fn nothing_is_reduced_to_the_neutral_element(machine: &PluginMachine) {
    let empty = TestData::new(Dtype::F32, &[2, 0], &[]);
    for (op, neutral) in [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", f64::NEG_INFINITY),
        ("ReduceMin", f64::INFINITY),
        ("ReduceLogSumExp", f64::NEG_INFINITY),
    ] {
        let call = machine
            .op_trial(op, 18)
            .with_input(&empty)
            .with_input(&TestData::from_integers(&[1]))
            .with_output(Dtype::F32, &[2, 1]);
        call.expect_output(0.0, &[neutral; 2]);
    }
    let data = TestData::sample_elements(Dtype::F32, &[2, 3], 1);
    let same = machine
        .op_trial("ReduceSum", 13)
        .with_input(&data)
        .int("noop_with_empty_axes", 1)
        .with_output(Dtype::F32, &[2, 3]);
    same.expect_output(0.0, &data.to_values());
    let all = machine.op_trial("ReduceSum", 13).with_input(&data).with_output(Dtype::F32, &[1, 1]);
    all.expect_output(1e-6, &[data.to_values().iter().sum()]);
}

pub(super) fn reduced_operands_may_be_strided(machine: &PluginMachine) {
    let turned = TestData::sample_elements(Dtype::F32, &[130, 90], 1).with_strides(&[90, 130], &[1, 90]);
    let plain = TestData::new(Dtype::F32, &[90, 130], &turned.to_values());
    for axis in [0, 1] {
        let call = machine
            .op_trial("ReduceSum", 13)
            .with_input(&turned)
            .with_input(&TestData::from_integers(&[axis]));
        let axes = [axis as usize];
        let expected = reference_reduction(&plain, &axes, |list| list.iter().sum());
        call.with_output(Dtype::F32, &reduced_dims(&plain, &axes, true)).expect_output(1e-5, &expected);
    }
}

//! Ops on whole rows.

use oarlock_sdk::Dtype;

use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, INTEGER_DTYPES, all_indices, broadcast_position};

/// Rows along an axis, each element with its flat position.
fn rows_along(data: &TestData, axis: usize) -> Vec<Vec<(usize, f64)>> {
    let kept: Vec<i64> =
        data.dims.iter().enumerate().map(|(at, dim)| if at == axis { 1 } else { *dim }).collect();
    let mut rows = vec![Vec::new(); kept.iter().product::<i64>() as usize];
    for (index, (at, value)) in all_indices(&data.dims).iter().zip(data.to_values().into_iter().enumerate()) {
        rows[broadcast_position(&kept, index)].push((at, value));
    }
    rows
}

pub(super) fn the_greatest_and_smallest_are_found(machine: &PluginMachine) {
    for dtype in FLOAT_DTYPES.into_iter().chain(INTEGER_DTYPES) {
        // Rows below and above the length from which on a work-group shares one, along memory and across it.
        for (shape, axis) in [(&[3, 5, 4][..], 1), (&[7, 300], 1), (&[300, 7], 0), (&[70], 0)] {
            let data = TestData::sample_elements(dtype, shape, 4);
            let best = |is_better: fn(f64, f64) -> bool| -> Vec<f64> {
                let best = |row: &Vec<(usize, f64)>| {
                    (1..row.len())
                        .fold(0, |best, at| if is_better(row[at].1, row[best].1) { at } else { best })
                };
                rows_along(&data, axis).iter().map(|row| best(row) as f64).collect()
            };
            let dims: Vec<i64> =
                shape.iter().enumerate().map(|(at, dim)| if at == axis { 1 } else { *dim }).collect();
            let call = |op| {
                machine
                    .op_trial(op, 13)
                    .with_input(&data)
                    .int("axis", axis as i64)
                    .with_output(Dtype::I64, &dims)
            };
            call("ArgMax").expect_output(0.0, &best(|x, y| x > y));
            call("ArgMin").expect_output(0.0, &best(|x, y| x < y));
            call("ArgMax").int("select_last_index", 1).expect_output(0.0, &best(|x, y| x >= y));
        }
    }
    // The first NaN wins over the greatest number and over the second NaN.
    let data = TestData::new(Dtype::F32, &[4], &[1.0, f64::NAN, 3.0, f64::NAN]);
    machine
        .op_trial("ArgMax", 13)
        .with_input(&data)
        .int("keepdims", 0)
        .with_output(Dtype::I64, &[])
        .expect_output(0.0, &[1.0]);
}

pub(super) fn rows_become_probabilities(machine: &PluginMachine) {
    for dtype in FLOAT_DTYPES {
        for (shape, axis) in [(&[3, 5, 4][..], 1), (&[7, 300], 1), (&[300, 7], 0), (&[9], 0), (&[2, 1], 1)] {
            let data = TestData::sample_elements(dtype, shape, 4);
            let (mut plain, mut log) = (vec![0.0; data.to_values().len()], vec![0.0; data.to_values().len()]);
            for row in rows_along(&data, axis) {
                let sum: f64 = row.iter().map(|(_, x)| x.exp()).sum();
                for (at, x) in row {
                    (plain[at], log[at]) = (x.exp() / sum, x - sum.ln());
                }
            }
            let call = |op| {
                machine.op_trial(op, 13).with_input(&data).int("axis", axis as i64).with_output(dtype, shape)
            };
            call("Softmax").expect_output(5e-6, &plain);
            call("LogSoftmax").expect_output(5e-6, &log);
        }
    }
    let data = TestData::sample_elements(Dtype::F32, &[2, 3, 4], 1);
    let values = data.to_values();
    let sums: Vec<f64> = values.chunks(12).map(|row| row.iter().map(|x| x.exp()).sum()).collect();
    let expected: Vec<f64> = values.iter().enumerate().map(|(at, x)| x.exp() / sums[at / 12]).collect();
    machine
        .op_trial("Softmax", 11)
        .with_input(&data)
        .with_output(Dtype::F32, &[2, 3, 4])
        .expect_output(5e-6, &expected);
    // Large inputs must not overflow the exponential.
    let large = TestData::new(Dtype::F32, &[2], &[1000.0, 1000.0]);
    machine
        .op_trial("Softmax", 13)
        .with_input(&large)
        .with_output(Dtype::F32, &[2])
        .expect_output(1e-6, &[0.5, 0.5]);
}

pub(super) fn rows_are_normalized(machine: &PluginMachine) {
    for dtype in FLOAT_DTYPES {
        for (shape, axis) in [(&[4, 6][..], -1), (&[3, 7, 5], 1), (&[5, 300], 1)] {
            let first = if axis < 0 { shape.len() - 1 } else { axis as usize };
            let data = TestData::sample_elements(dtype, shape, 4);
            let (scale, bias) = (
                TestData::sample_elements(dtype, &shape[first..], 1),
                TestData::sample_elements(dtype, &shape[first..], 2),
            );
            let length = scale.to_values().len();
            let (mut expected, mut means, mut scales) = (Vec::new(), Vec::new(), Vec::new());
            for row in data.to_values().chunks(length) {
                let mean = row.iter().sum::<f64>() / length as f64;
                let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / length as f64;
                let inverse = 1.0 / (variance + 1e-3).sqrt();
                let own = scale.to_values().into_iter().zip(bias.to_values());
                expected.extend(
                    row.iter().zip(own).map(|(x, (scale, bias))| (x - mean) * inverse * scale + bias),
                );
                means.push(mean);
                scales.push(inverse);
            }
            let statistics: Vec<i64> =
                shape.iter().enumerate().map(|(at, dim)| if at < first { *dim } else { 1 }).collect();
            // Statistics of narrow floats are `f32`.
            let statistic = if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
            let call = machine
                .op_trial("LayerNormalization", 17)
                .with_input(&data)
                .with_input(&scale)
                .with_input(&bias)
                .int("axis", axis)
                .float("epsilon", 1e-3)
                .with_output(dtype, shape)
                .with_output(statistic, &statistics)
                .with_output(statistic, &statistics);
            call.expect_outputs(1e-5, &[&expected, &means, &scales]);
        }
    }
}

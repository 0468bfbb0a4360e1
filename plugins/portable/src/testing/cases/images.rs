//! Ops on images.

use oarlock_sdk::Dtype;

use super::super::PluginMachine;
use super::super::test_data::TestData;
use super::reference::{FLOAT_DTYPES, all_indices, broadcast_position};

/// A 2-D window: strides, dilations, pads before and after.
#[derive(Clone, Copy)]
struct TestWindow {
    strides: [i64; 2],
    dilations: [i64; 2],
    before: [i64; 2],
    after: [i64; 2],
}

const UNIT_WINDOW: TestWindow =
    TestWindow { strides: [1, 1], dilations: [1, 1], before: [0, 0], after: [0, 0] };

impl TestWindow {
    fn output_size(&self, image: [i64; 2], size: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|axis| {
            let room = image[axis] + self.before[axis] + self.after[axis]
                - (size[axis] - 1) * self.dilations[axis]
                - 1;
            room / self.strides[axis] + 1
        })
    }

    fn pads_attribute(&self) -> Vec<i64> {
        [self.before, self.after].concat()
    }

    /// For each element of the window: its position in the window and in the image.
    fn sampled_positions(&self, output: [i64; 2], size: [i64; 2]) -> Vec<([i64; 2], [i64; 2])> {
        let place = |cell: &Vec<i64>| {
            let cell = [cell[0], cell[1]];
            let at = [0, 1].map(|axis| {
                output[axis] * self.strides[axis] + cell[axis] * self.dilations[axis] - self.before[axis]
            });
            (cell, at)
        };
        all_indices(&size).iter().map(place).collect()
    }
}

fn is_inside(at: [i64; 2], image: [i64; 2]) -> bool {
    (0..2).all(|axis| (0..image[axis]).contains(&at[axis]))
}

pub(super) fn convolutions_of_awkward_windows_are_right(machine: &PluginMachine) {
    // Height and width differ, so exchanging them shows.
    let image = [7, 6];
    for (window, size, groups) in [
        (UNIT_WINDOW, [1, 1], 1),
        (TestWindow { before: [1, 1], after: [1, 1], ..UNIT_WINDOW }, [3, 3], 1),
        (TestWindow { strides: [2, 3], before: [0, 2], after: [1, 0], ..UNIT_WINDOW }, [2, 3], 2),
        (TestWindow { dilations: [2, 1], ..UNIT_WINDOW }, [3, 2], 4),
    ] {
        for dtype in FLOAT_DTYPES {
            let data = TestData::sample_elements(dtype, &[2, 4, 7, 6], 1);
            let weights = TestData::sample_elements(dtype, &[8, 4 / groups, size[0], size[1]], 4);
            let bias = TestData::sample_elements(dtype, &[8], 2);
            let [height, width] = window.output_size(image, size);
            let dims = [2, 8, height, width];
            let (x, w, b) = (data.to_values(), weights.to_values(), bias.to_values());
            let element = |index: &Vec<i64>| {
                let (out, first) = (index[1], index[1] / (8 / groups) * (4 / groups));
                let mut sum = b[out as usize];
                for channel in 0..4 / groups {
                    for (cell, at) in window.sampled_positions([index[2], index[3]], size) {
                        if is_inside(at, image) {
                            sum += x
                                [broadcast_position(&data.dims, &[index[0], first + channel, at[0], at[1]])]
                                * w[broadcast_position(&weights.dims, &[out, channel, cell[0], cell[1]])];
                        }
                    }
                }
                sum
            };
            let expected: Vec<f64> = all_indices(&dims).iter().map(element).collect();
            let call = machine
                .op_trial("Conv", 11)
                .with_input(&data)
                .with_input(&weights)
                .with_input(&bias)
                .int("group", groups)
                .ints("strides", &window.strides[..])
                .ints("dilations", &window.dilations[..])
                .ints("pads", window.pads_attribute().as_slice())
                .with_output(dtype, &dims);
            call.expect_output(1e-5, &expected);
        }
    }
    // A 1-D image, with padding that keeps the size.
    let (data, weights) = (
        TestData::new(Dtype::F32, &[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]),
        TestData::new(Dtype::F32, &[1, 1, 2], &[1.0, 10.0]),
    );
    let same = |mode| {
        machine
            .op_trial("Conv", 11)
            .with_input(&data)
            .with_input(&weights)
            .string("auto_pad", mode)
            .with_output(Dtype::F32, &[1, 1, 4])
    };
    same("SAME_UPPER").expect_output(1e-6, &[21.0, 32.0, 43.0, 4.0]);
    same("SAME_LOWER").expect_output(1e-6, &[10.0, 21.0, 32.0, 43.0]);
}

pub(super) fn windows_are_pooled(machine: &PluginMachine) {
    let (image, size) = ([5, 6], [3, 2]);
    let window = TestWindow { strides: [2, 1], before: [1, 0], after: [1, 1], ..UNIT_WINDOW };
    for dtype in FLOAT_DTYPES {
        let data = TestData::sample_elements(dtype, &[2, 3, 5, 6], 1);
        let values = data.to_values();
        let [height, width] = window.output_size(image, size);
        let dims = [2, 3, height, width];
        let pooled = |function: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            let element = |index: &Vec<i64>| {
                let places = window.sampled_positions([index[2], index[3]], size).into_iter();
                let seen: Vec<f64> = places
                    .filter(|(_, at)| is_inside(*at, image))
                    .map(|(_, at)| {
                        values[broadcast_position(&data.dims, &[index[0], index[1], at[0], at[1]])]
                    })
                    .collect();
                function(&seen)
            };
            all_indices(&dims).iter().map(element).collect()
        };
        let call = |op| {
            let call = machine.op_trial(op, 12).with_input(&data).ints("kernel_shape", &size[..]);
            call.ints("strides", &window.strides[..])
                .ints("pads", window.pads_attribute().as_slice())
                .with_output(dtype, &dims)
        };
        let greatest = |seen: &[f64]| seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        call("MaxPool").expect_output(0.0, &pooled(&greatest));
        call("AveragePool")
            .expect_output(1e-6, &pooled(&|seen| seen.iter().sum::<f64>() / seen.len() as f64));
        call("AveragePool")
            .int("count_include_pad", 1)
            .expect_output(1e-6, &pooled(&|seen| seen.iter().sum::<f64>() / 6.0));
        let planes = |function: &dyn Fn(&[f64]) -> f64| values.chunks(30).map(function).collect::<Vec<_>>();
        let global = |op| machine.op_trial(op, 1).with_input(&data).with_output(dtype, &[2, 3, 1, 1]);
        global("GlobalAveragePool").expect_output(1e-6, &planes(&|plane| plane.iter().sum::<f64>() / 30.0));
        global("GlobalMaxPool").expect_output(0.0, &planes(&greatest));
    }
    // With rounding up, the last window extends past the image.
    let row = TestData::new(Dtype::F32, &[1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let up = |op| {
        let call = machine
            .op_trial(op, 12)
            .with_input(&row)
            .ints("kernel_shape", &[2][..])
            .ints("strides", &[2][..]);
        call.int("ceil_mode", 1).with_output(Dtype::F32, &[1, 1, 3])
    };
    up("MaxPool").expect_output(0.0, &[2.0, 4.0, 5.0]);
    // A maximum skips NaN, unlike the mean.
    let gaps = TestData::new(Dtype::F32, &[1, 1, 4], &[f64::NAN, 2.0, 3.0, f64::NAN]);
    machine
        .op_trial("MaxPool", 12)
        .with_input(&gaps)
        .ints("kernel_shape", &[2][..])
        .with_output(Dtype::F32, &[1, 1, 3])
        .expect_output(0.0, &[2.0, 3.0, 3.0]);
    up("AveragePool").expect_output(1e-6, &[1.5, 3.5, 5.0]);
}

pub(super) fn channels_are_normalized(machine: &PluginMachine) {
    for dtype in FLOAT_DTYPES {
        let data = TestData::sample_elements(dtype, &[2, 3, 5], 1);
        let [scale, bias, mean] = [2, 3, 4].map(|seed| TestData::sample_elements(dtype, &[3], seed));
        let variance = TestData::new(dtype, &[3], &[0.25, 1.0, 4.0]);
        let at = |operand: &TestData, index: &[i64]| operand.to_values()[index[1] as usize];
        let expected: Vec<f64> = all_indices(&data.dims)
            .iter()
            .zip(data.to_values())
            .map(|(index, x)| {
                (x - at(&mean, index)) / (at(&variance, index) + 1e-3).sqrt() * at(&scale, index)
                    + at(&bias, index)
            })
            .collect();
        let inputs = [&data, &scale, &bias, &mean, &variance];
        let call = inputs
            .into_iter()
            .fold(machine.op_trial("BatchNormalization", 15), super::super::op_trial::OpTrial::with_input);
        call.float("epsilon", 1e-3).with_output(dtype, &[2, 3, 5]).expect_output(1e-5, &expected);
    }
}

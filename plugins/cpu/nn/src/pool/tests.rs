//! Compares pooling with naively computed windows, for many combinations of sizes and attributes.

use oarlock_cpu_base::window::unravel_index;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Element, bf16, f16};

use crate::KERNELS;

/// A deterministic generator of small integers.
struct PoolTestNumbers(u32);

impl PoolTestNumbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % below
    }

    fn random_sizes(&mut self, count: usize, least: usize, most: usize) -> Vec<i64> {
        (0..count).map(|_| (least + self.next(most + 1 - least)) as i64).collect()
    }
}

#[derive(Debug)]
struct PoolCase {
    planes: i64,
    input: Vec<i64>,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

impl PoolCase {
    fn new(numbers: &mut PoolTestNumbers) -> Self {
        let rank = 1 + numbers.next(3);
        let (kernel, dilations) = (numbers.random_sizes(rank, 1, 5), numbers.random_sizes(rank, 1, 2));
        let room = numbers.random_sizes(rank, 0, if rank == 3 { 4 } else { 70 });
        let input = (0..rank).map(|axis| (kernel[axis] - 1) * dilations[axis] + 1 + room[axis]).collect();
        let pads =
            (0..2 * rank).map(|index| numbers.next(kernel[index % rank] as usize + 3) as i64).collect();
        Self { planes: 2, input, strides: numbers.random_sizes(rank, 1, 4), pads, kernel, dilations }
    }

    fn output_dims(&self) -> Vec<i64> {
        let rank = self.input.len();
        let size = |axis: usize| {
            let padded = self.input[axis] + self.pads[axis] + self.pads[rank + axis];
            (padded - (self.kernel[axis] - 1) * self.dilations[axis] - 1) / self.strides[axis] + 1
        };
        (0..rank).map(size).collect()
    }

    fn to_attributes(&self) -> [(&str, TestAttribute<'_>); 4] {
        [
            ("kernel_shape", TestAttribute::Ints(&self.kernel)),
            ("strides", TestAttribute::Ints(&self.strides)),
            ("dilations", TestAttribute::Ints(&self.dilations)),
            ("pads", TestAttribute::Ints(&self.pads)),
        ]
    }

    /// For each window, the indices under it, in its plane.
    fn window_positions(&self) -> Vec<Vec<usize>> {
        let sizes = |dims: &[i64]| dims.iter().map(|dim| *dim as usize).collect::<Vec<_>>();
        let (output, kernel) = (sizes(&self.output_dims()), sizes(&self.kernel));
        let rank = output.len();
        let (mut place, mut step) = (vec![0; rank], vec![0; rank]);
        let under = |window: usize| {
            unravel_index(window, output.iter().copied(), &mut place);
            let mut places = Vec::new();
            for part in 0..kernel.iter().product() {
                unravel_index(part, kernel.iter().copied(), &mut step);
                let at = (0..rank).try_fold(0, |at, axis| {
                    let along = place[axis] as i64 * self.strides[axis]
                        + step[axis] as i64 * self.dilations[axis]
                        - self.pads[axis];
                    (0..self.input[axis]).contains(&along).then(|| at * self.input[axis] + along)
                });
                places.extend(at.map(|at| at as usize));
            }
            places
        };
        (0..output.iter().product()).map(under).collect()
    }

    fn to_array<T: Element>(&self, space: &[i64], values: &[T]) -> TestArray {
        let dims: Vec<i64> = [1, self.planes].iter().chain(space).copied().collect();
        TestArray::from_values(&dims, values)
    }

    /// Applies a function to the elements under each window.
    fn expected_output(&self, values: &[f32], of: impl Fn(&[f32]) -> f32) -> Vec<f32> {
        let windows = self.window_positions();
        let size = values.len() / self.planes as usize;
        let of_plane = |plane: &[f32]| -> Vec<f32> {
            let under = |window: &Vec<usize>| window.iter().map(|place| plane[*place]).collect::<Vec<_>>();
            windows.iter().map(|window| of(&under(window))).collect()
        };
        values.chunks(size).flat_map(of_plane).collect()
    }
}

#[test]
fn poolings_are_what_lies_under_their_windows() {
    let mut numbers = PoolTestNumbers(3);
    for _ in 0..60 {
        let case = PoolCase::new(&mut numbers);
        let count = (case.planes * case.input.iter().product::<i64>()) as usize;
        let values: Vec<f32> = (0..count).map(|_| numbers.next(100) as f32 - 50.0).collect();
        let output = case.output_dims();
        let means =
            case.expected_output(&values, |under| under.iter().sum::<f32>() / under.len().max(1) as f32);
        let (x, y) = (case.to_array(&case.input, &values), case.to_array(&output, &means));
        KERNELS.check_kernel("AveragePool", 19, &case.to_attributes(), &[Some(&x)], &[y]);

        // NaN is ignored.
        let mut values = values;
        values[count / 2] = f32::NAN;
        let greatest = |under: &[f32]| under.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let maxima = case.expected_output(&values, greatest);
        let (x, y) = (case.to_array(&case.input, &values), case.to_array(&output, &maxima));
        KERNELS.check_kernel("MaxPool", 12, &case.to_attributes(), &[Some(&x)], &[y]);
        let halves = |values: &[f32]| values.iter().map(|value| f16::from_f32(*value)).collect::<Vec<_>>();
        let (x, y) = (case.to_array(&case.input, &halves(&values)), case.to_array(&output, &halves(&maxima)));
        KERNELS.check_kernel("MaxPool", 12, &case.to_attributes(), &[Some(&x)], &[y]);
        let brains = |values: &[f32]| values.iter().map(|value| bf16::from_f32(*value)).collect::<Vec<_>>();
        let (x, y) = (case.to_array(&case.input, &brains(&values)), case.to_array(&output, &brains(&maxima)));
        KERNELS.check_kernel("MaxPool", 22, &case.to_attributes(), &[Some(&x)], &[y]);

        values[count / 2] = 0.0;
        let maxima = case.expected_output(&values, |under| under.iter().copied().fold(-128.0, f32::max));
        let bytes = |values: &[f32]| values.iter().map(|value| *value as i8).collect::<Vec<_>>();
        let (x, y) = (case.to_array(&case.input, &bytes(&values)), case.to_array(&output, &bytes(&maxima)));
        KERNELS.check_kernel("MaxPool", 12, &case.to_attributes(), &[Some(&x)], &[y]);
    }
}

#[test]
fn a_plane_of_many_rows_is_pooled_as_one_of_few() {
    let (height, width) = (90i64, 130i64);
    let values: Vec<f32> = (0..height * width).map(|at| (at * 7919 % 1009) as f32).collect();
    let x = TestArray::from_values(&[1, 1, height, width], &values);
    let at = |row: i64, column: i64| values[(row * width + column) as usize];
    let expected: Vec<f32> = (0..height / 2 * (width / 2))
        .map(|window| {
            let (row, column) = (window / (width / 2) * 2, window % (width / 2) * 2);
            at(row, column).max(at(row, column + 1)).max(at(row + 1, column)).max(at(row + 1, column + 1))
        })
        .collect();
    let attributes =
        [("kernel_shape", TestAttribute::Ints(&[2, 2])), ("strides", TestAttribute::Ints(&[2, 2]))];
    let y = TestArray::from_values(&[1, 1, height / 2, width / 2], &expected);
    KERNELS.check_kernel("MaxPool", 12, &attributes, &[Some(&x)], &[y]);
}

#[test]
fn a_window_may_reach_beyond_an_input_that_is_smaller_than_it() {
    let x = TestArray::from_values(&[1, 1, 2, 2], &[1f32, 2.0, 3.0, 4.0]);
    let attributes = [
        ("kernel_shape", TestAttribute::Ints(&[3, 3])),
        ("strides", TestAttribute::Ints(&[2, 2])),
        ("ceil_mode", TestAttribute::Int(1)),
    ];
    KERNELS.check_kernel(
        "MaxPool",
        12,
        &attributes,
        &[Some(&x)],
        &[TestArray::from_values(&[1, 1, 1, 1], &[4f32])],
    );
    KERNELS.check_kernel(
        "AveragePool",
        19,
        &attributes,
        &[Some(&x)],
        &[TestArray::from_values(&[1, 1, 1, 1], &[2.5f32])],
    );
}

//! Compares convolutions with naive sums, for many combinations of sizes and attributes.

use oarlock_cpu_base::window::unravel_index;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, f16};

use crate::KERNELS;

/// A deterministic generator of small integers.
struct ConvTestNumbers(u32);

impl ConvTestNumbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % below
    }

    fn next_values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next(9) as f32 - 4.0).collect()
    }

    fn random_sizes(&mut self, count: usize, least: usize, most: usize) -> Vec<i64> {
        (0..count).map(|_| (least + self.next(most + 1 - least)) as i64).collect()
    }
}

/// One convolution: sizes and attributes.
#[derive(Debug)]
struct NchwConvCase {
    images: usize,
    groups: usize,
    /// Input and output channels of a group.
    channels: usize,
    rows: usize,
    input: Vec<i64>,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

impl NchwConvCase {
    fn new(numbers: &mut ConvTestNumbers) -> Self {
        let rank = 1 + numbers.next(3);
        let (kernel, dilations) = (numbers.random_sizes(rank, 1, 3), numbers.random_sizes(rank, 1, 2));
        let room = numbers.random_sizes(rank, 0, if rank == 3 { 5 } else { 40 });
        let extent = |axis: usize| (kernel[axis] - 1) * dilations[axis] + 1;
        Self {
            images: 1 + numbers.next(2),
            groups: 1 + numbers.next(3),
            channels: 1 + numbers.next(4),
            rows: 1 + numbers.next(20),
            input: (0..rank).map(|axis| extent(axis) + room[axis]).collect(),
            strides: numbers.random_sizes(rank, 1, 3),
            pads: numbers.random_sizes(2 * rank, 0, 2),
            kernel,
            dilations,
        }
    }

    fn window_extent(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1) * self.dilations[axis] + 1
    }

    fn total_padding(&self, axis: usize) -> i64 {
        self.pads[axis] + self.pads[self.input.len() + axis]
    }

    fn output_dims(&self) -> Vec<i64> {
        let size = |axis: usize| {
            (self.input[axis] + self.total_padding(axis) - self.window_extent(axis)) / self.strides[axis] + 1
        };
        (0..self.input.len()).map(size).collect()
    }

    fn to_attributes(&self) -> [(&str, TestAttribute<'_>); 4] {
        [
            ("group", TestAttribute::Int(self.groups as i64)),
            ("strides", TestAttribute::Ints(&self.strides)),
            ("dilations", TestAttribute::Ints(&self.dilations)),
            ("pads", TestAttribute::Ints(&self.pads)),
        ]
    }

    /// Calls `body` for each multiplication, with the indices in image, weights and output.
    fn for_each_product(&self, mut body: impl FnMut(usize, usize, usize)) {
        let sizes = |dims: &[i64]| dims.iter().map(|dim| *dim as usize).collect::<Vec<_>>();
        let (input, kernel, output) = (sizes(&self.input), sizes(&self.kernel), sizes(&self.output_dims()));
        let (inputs, steps, outputs): (usize, usize, usize) =
            (input.iter().product(), kernel.iter().product(), output.iter().product());
        let (mut place, mut step) = (vec![0; output.len()], vec![0; output.len()]);
        for window in 0..outputs {
            unravel_index(window, output.iter().copied(), &mut place);
            for part in 0..steps {
                unravel_index(part, kernel.iter().copied(), &mut step);
                let at = (0..input.len()).try_fold(0, |at, axis| {
                    let place =
                        place[axis] as i64 * self.strides[axis] + step[axis] as i64 * self.dilations[axis];
                    let place =
                        usize::try_from(place - self.pads[axis]).ok().filter(|place| *place < input[axis]);
                    place.map(|place| at * input[axis] + place)
                });
                let Some(at) = at else { continue };
                for output in 0..self.images * self.groups * self.rows {
                    let (item, row) = (output / self.rows, output % (self.groups * self.rows));
                    for channel in 0..self.channels {
                        let x = (item * self.channels + channel) * inputs + at;
                        let w = (row * self.channels + channel) * steps + part;
                        body(x, w, output * outputs + window);
                    }
                }
            }
        }
    }

    fn tensor_dims(&self, channels: usize, space: &[i64]) -> Vec<i64> {
        [self.images as i64, channels as i64].iter().chain(space).copied().collect()
    }

    fn operand_arrays(&self, numbers: &mut ConvTestNumbers) -> [TestArray; 3] {
        let outputs = (self.groups * self.rows) as i64;
        let mut array = |dims: Vec<i64>| {
            let count = dims.iter().product::<i64>() as usize;
            TestArray::from_values(&dims, &numbers.next_values(count))
        };
        let weights = [outputs, self.channels as i64].iter().chain(&self.kernel).copied().collect();
        [
            array(self.tensor_dims(self.groups * self.channels, &self.input)),
            array(weights),
            array(vec![outputs]),
        ]
    }
}

#[test]
fn convolutions_are_the_sums_they_should_be() {
    let mut numbers = ConvTestNumbers(7);
    for index in 0..60 {
        let case = NchwConvCase::new(&mut numbers);
        let [x, w, bias] = case.operand_arrays(&mut numbers);
        let dims = case.tensor_dims(case.groups * case.rows, &case.output_dims());
        let outputs = case.output_dims().iter().product::<i64>() as usize;
        let biases = bias.values::<f32>();
        let (images, weights) = (x.values::<f32>(), w.values::<f32>());
        let mut expected: Vec<f32> = (0..dims.iter().product::<i64>() as usize)
            .map(|index| biases[index / outputs % biases.len()])
            .collect();
        case.for_each_product(|x, w, y| expected[y] += images[x] * weights[w]);
        let isa = ["scalar", "sse4.1", "avx2", "avx512"][index % 4];
        let inputs = [Some(&x), Some(&w), Some(&bias)];
        let results = KERNELS
            .run_with_isa(isa, "Conv", 11, &case.to_attributes(), &inputs, &[Some((Dtype::F32, &dims))])
            .unwrap();
        assert!(results[0].as_ref().unwrap().values::<f32>() == expected, "{case:?} on {isa}");
    }
}

/// With at most two axes and constant weights, narrow floats use the NHWC algorithm.
#[test]
fn convolutions_of_narrow_floats_are_those_of_wide_ones_rounded() {
    let mut numbers = ConvTestNumbers(5);
    for index in 0..60 {
        let case = NchwConvCase::new(&mut numbers);
        let [x, w, bias] = case.operand_arrays(&mut numbers).map(|array| array.values::<f32>());
        let outputs = case.output_dims().iter().product::<i64>() as usize;
        let dims = case.tensor_dims(case.groups * case.rows, &case.output_dims());
        let mut expected: Vec<f32> = (0..dims.iter().product::<i64>() as usize)
            .map(|index| bias[index / outputs % bias.len()])
            .collect();
        case.for_each_product(|at, step, y| expected[y] += x[at] * w[step]);
        let halves = |dims: &[i64], values: &[f32]| {
            TestArray::from_values(
                dims,
                &values.iter().map(|value| f16::from_f32(*value)).collect::<Vec<_>>(),
            )
        };
        let weights: Vec<i64> = [(case.groups * case.rows) as i64, case.channels as i64]
            .iter()
            .chain(&case.kernel)
            .copied()
            .collect();
        let x = halves(&case.tensor_dims(case.groups * case.channels, &case.input), &x);
        let w = halves(&weights, &w);
        let w = if index % 4 == 3 { w } else { w.into_constant() };
        let bias = halves(&[bias.len() as i64], &bias);
        let isa = ["scalar", "sse4.1", "avx2", "avx512"][index / 4 % 4];
        let inputs = [Some(&x), Some(&w), Some(&bias)];
        let results = KERNELS
            .run_with_isa(isa, "Conv", 11, &case.to_attributes(), &inputs, &[Some((Dtype::F16, &dims))])
            .unwrap();
        let found = results[0].as_ref().unwrap().values::<f16>();
        for (found, expected) in found.iter().zip(&expected) {
            let found = found.to_f32();
            assert!((found - expected).abs() < 0.01, "{found} and {expected}: {case:?} on {isa}");
        }
    }
}

#[test]
fn a_transposed_convolution_goes_the_other_way() {
    let mut numbers = ConvTestNumbers(11);
    for index in 0..40 {
        check_transposed(
            NchwConvCase::new(&mut numbers),
            &mut numbers,
            ["scalar", "sse4.1", "avx2", "avx512"][index % 4],
        );
    }
}

#[test]
fn windows_that_are_more_than_are_kept_at_a_time_are_all_added() {
    for (images, groups) in [(1, 1), (2, 3)] {
        let case = NchwConvCase {
            images,
            groups,
            channels: 3,
            rows: 2,
            input: vec![302, 521],
            kernel: vec![3, 2],
            strides: vec![1, 2],
            dilations: vec![1, 3],
            pads: vec![0, 1, 2, 0],
        };
        check_transposed(case, &mut ConvTestNumbers(13), "");
    }
}

/// Checks the transposed convolution of this one, with wide and with narrow floats.
fn check_transposed(case: NchwConvCase, numbers: &mut ConvTestNumbers, isa: &str) {
    // The smallest input with this output, so that the output of the transposed convolution has the same size.
    let exact = |axis: usize| {
        (case.output_dims()[axis] - 1) * case.strides[axis] + case.window_extent(axis)
            - case.total_padding(axis)
    };
    let input: Vec<_> = (0..case.input.len()).map(exact).collect();
    if input.iter().any(|size| *size < 1) {
        return;
    }
    let case = NchwConvCase { input, ..case };
    let outputs = case.groups * case.channels;
    let (y_dims, x_dims) = (case.tensor_dims(outputs, &case.input), case.output_dims());
    let x_dims = case.tensor_dims(case.groups * case.rows, &x_dims);
    let [_, w, _] = case.operand_arrays(numbers);
    let x = TestArray::from_values(&x_dims, &numbers.next_values(x_dims.iter().product::<i64>() as usize));
    let bias = TestArray::from_values(&[outputs as i64], &numbers.next_values(outputs));
    let (images, weights, biases) = (x.values::<f32>(), w.values::<f32>(), bias.values::<f32>());
    let plane = case.input.iter().product::<i64>() as usize;
    let mut expected: Vec<f32> =
        (0..case.images * outputs * plane).map(|at| biases[at / plane % outputs]).collect();
    case.for_each_product(|x, w, y| expected[x] += images[y] * weights[w]);
    let found = |dtype, inputs: [&TestArray; 3]| {
        let outputs = [Some((dtype, &y_dims[..]))];
        KERNELS
            .run_with_isa(isa, "ConvTranspose", 11, &case.to_attributes(), &inputs.map(Some), &outputs)
            .unwrap()
    };
    let wide = found(Dtype::F32, [&x, &w, &bias]);
    assert!(wide[0].as_ref().unwrap().values::<f32>() == expected, "{case:?}");
    let halves = |array: &TestArray| {
        let halves = array.values::<f32>().iter().map(|value| f16::from_f32(*value)).collect::<Vec<_>>();
        TestArray::from_values(&array.dims, &halves)
    };
    let narrow = found(Dtype::F16, [&halves(&x), &halves(&w), &halves(&bias)]);
    let expected: Vec<_> = expected.iter().map(|value| f16::from_f32(*value)).collect();
    assert!(narrow[0].as_ref().unwrap().values::<f16>() == expected, "{case:?}");
}

/// Some exporters include batch and channels, and others write an empty list.
#[test]
fn a_transposed_convolution_accepts_every_form_of_its_output_shape() {
    let x = TestArray::from_values(&[1, 1, 2], &[1f32, 2.0]);
    let w = TestArray::from_values(&[1, 1, 2], &[10f32, 100.0]);
    for shape in [&[4][..], &[1, 1, 4], &[]] {
        let attributes =
            [("strides", TestAttribute::Ints(&[2])), ("output_shape", TestAttribute::Ints(shape))];
        let outputs = [Some((Dtype::F32, &[1, 1, 4][..]))];
        let found =
            KERNELS.run_kernel("ConvTranspose", 11, &attributes, &[Some(&x), Some(&w)], &outputs).unwrap();
        assert_eq!(found[0].as_ref().unwrap().values::<f32>(), [10.0, 100.0, 20.0, 200.0], "{shape:?}");
    }
    let attributes = [("output_shape", TestAttribute::Ints(&[1, 4]))];
    let outputs = [Some((Dtype::F32, &[1, 1, 4][..]))];
    let error = KERNELS.run_kernel("ConvTranspose", 11, &attributes, &[Some(&x), Some(&w)], &outputs).err();
    assert!(error.is_some_and(|error| error.contains("`output_shape` of 1 values")));
}

#[test]
fn a_transposed_convolution_of_an_empty_input_is_the_bias() {
    let (x, w) =
        (TestArray::from_values(&[1, 1, 0], &[0f32; 0]), TestArray::from_values(&[1, 1, 3], &[1f32; 3]));
    let bias = TestArray::from_values(&[1], &[7f32]);
    let outputs = [Some((Dtype::F32, &[1, 1, 2][..]))];
    let found =
        KERNELS.run_kernel("ConvTranspose", 11, &[], &[Some(&x), Some(&w), Some(&bias)], &outputs).unwrap();
    assert_eq!(found[0].as_ref().unwrap().values::<f32>(), [7.0, 7.0]);
}

#[test]
fn zero_points_are_taken_off_and_padding_is_zero() {
    let (x, w) =
        (TestArray::from_values(&[1, 1, 3], &[2u8, 3, 4]), TestArray::from_values(&[1, 1, 2], &[1u8, 2]));
    let one = TestArray::from_values(&[], &[1u8]);
    let inputs = [Some(&x), Some(&w), Some(&one), Some(&one)];
    let pads = [("pads", TestAttribute::Ints(&[0, 1]))];
    let results =
        KERNELS.run_kernel("ConvInteger", 10, &pads, &inputs, &[Some((Dtype::I32, &[1, 1, 3]))]).unwrap();
    assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [2, 3, 0]);
}

#[test]
fn quantized_results_are_scaled_with_their_bias() {
    let (x, w) =
        (TestArray::from_values(&[1, 1, 2], &[130u8, 126]), TestArray::from_values(&[2, 1, 1], &[1i8, -2]));
    let (scale, scales) = (TestArray::from_values(&[], &[0.5f32]), TestArray::from_values(&[2], &[1f32, 2.]));
    let (x_zero, w_zero, y_zero) = (
        TestArray::from_values(&[], &[128u8]),
        TestArray::from_values(&[], &[0i8]),
        TestArray::from_values(&[], &[10u8]),
    );
    let (one, bias) = (TestArray::from_values(&[], &[1f32]), TestArray::from_values(&[2], &[1i32, 0]));
    let inputs = [&x, &scale, &x_zero, &w, &scales, &w_zero, &one, &y_zero, &bias].map(Some);
    let results =
        KERNELS.run_kernel("QLinearConv", 10, &[], &inputs, &[Some((Dtype::U8, &[1, 2, 2]))]).unwrap();
    // (2 + 1) × 0.5 = 1.5 and (-2 + 1) × 0.5 = -0.5 round to even.
    assert_eq!(results[0].as_ref().unwrap().values::<u8>(), [12, 10, 6, 14]);
}

/// Images with three dimensions use another algorithm than those with two.
#[test]
fn sums_of_integers_are_the_same_in_each_way() {
    let bytes = |dtype, dims: &[i64], factor: i64| {
        let count: i64 = dims.iter().product();
        TestArray::from_bytes(
            dtype,
            dims,
            &(0..count).map(|at| (at * factor % 251) as u8).collect::<Vec<_>>(),
        )
    };
    let list = |count: i64| {
        TestArray::from_values(&[count], &(1..=count).map(|at| at as f32 / 4096.0).collect::<Vec<_>>())
    };
    let seen = |array: &TestArray, dims: [i64; 5]| TestArray::from_bytes(array.dtype, &dims, array.bytes());
    for (groups, x_dtype, w_dtype) in [(1, Dtype::U8, Dtype::I8), (2, Dtype::I8, Dtype::U8)] {
        let (x, w) = (bytes(x_dtype, &[2, 6, 7, 5], 37), bytes(w_dtype, &[10, 6 / groups, 3, 2], 59));
        let deep = (seen(&x, [2, 6, 1, 7, 5]), seen(&w, [10, 6 / groups, 1, 3, 2]));
        let (x_zero, w_zero) = (bytes(x_dtype, &[1], 1), bytes(w_dtype, &[10], 31));
        let (one, scales, bias) = (list(1), list(10), TestArray::from_values(&[10], &[70i32; 10]));
        let run = |isa: &str, op: &str, (x, w): (&TestArray, &TestArray), is_deep: bool| {
            let dims: &[i64] = if is_deep { &[2, 10, 1, 5, 5] } else { &[2, 10, 5, 5] };
            let pads: &[i64] = if is_deep { &[0, 0, 1, 0, 0, 0] } else { &[0, 1, 0, 0] };
            let attributes = [("pads", TestAttribute::Ints(pads)), ("group", TestAttribute::Int(groups))];
            let linear = [x, &one, &x_zero, w, &scales, &w_zero, &one, &x_zero, &bias].map(Some);
            let (inputs, dtype) = match op {
                "ConvInteger" => ([x, w, &x_zero, &w_zero].map(Some).to_vec(), Dtype::I32),
                _ => (linear.to_vec(), x_dtype),
            };
            let found =
                KERNELS.run_with_isa(isa, op, 10, &attributes, &inputs, &[Some((dtype, dims))]).unwrap();
            found[0].as_ref().unwrap().bytes().to_vec()
        };
        for op in ["ConvInteger", "QLinearConv"] {
            let expected = run("", op, (&deep.0, &deep.1), true);
            for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
                for w in [w.clone(), w.clone().into_constant()] {
                    assert_eq!(run(isa, op, (&x, &w), false), expected, "{op} on {isa}");
                }
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let x = TestArray::from_values(&[1, 4, 5], &[0f32; 20]);
    let w = TestArray::from_values(&[2, 3, 2], &[0f32; 12]);
    let message = KERNELS
        .run_kernel("Conv", 11, &[], &[Some(&x), Some(&w)], &[Some((Dtype::F32, &[1, 2, 4]))])
        .unwrap_err();
    assert!(message.contains("[1, 4, 5], [2, 3, 2]"), "{message}");
    let w = TestArray::from_values(&[2, 4, 6], &[0f32; 48]);
    let message = KERNELS
        .run_kernel("Conv", 11, &[], &[Some(&x), Some(&w)], &[Some((Dtype::F32, &[1, 2, 4]))])
        .unwrap_err();
    assert!(message.contains("at most 5"), "{message}");
}

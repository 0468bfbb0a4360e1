//! Compares integer sums with naive ones, with every instruction set, with one thread and with two.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_cpu_testing::test_team::TestTeam;
use oarlock_sdk::{Dtype, Element};

use super::{IntegerSumOperands, IntegerSums};
use crate::KERNELS;
use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::tests::reference::{ConvCase, RandomNumbers};

const DTYPES: [Dtype; 2] = [u8::DTYPE, i8::DTYPE];

fn byte_value(byte: u8, dtype: Dtype) -> i32 {
    if dtype == i8::DTYPE { byte.cast_signed().into() } else { byte.into() }
}

/// A convolution with every operand that a call may have.
struct IntegerLayerCase {
    geometry: NhwcGeometry,
    dtypes: [Dtype; 2],
    x: Vec<u8>,
    w: Vec<u8>,
    x_zero: u8,
    w_zeros: Vec<u8>,
    bias: Vec<i32>,
}

impl IntegerLayerCase {
    fn random(numbers: &mut RandomNumbers, geometry: NhwcGeometry) -> Self {
        let NhwcGeometry { images, channels, outputs, vertical, horizontal, .. } = geometry;
        let mut bytes = |count: usize| (0..count).map(|_| numbers.next(256) as u8).collect::<Vec<_>>();
        let x = bytes(images * vertical.input * horizontal.input * channels);
        let w = bytes(outputs * geometry.tap_count() * geometry.channels_per_group());
        let zeros = bytes(outputs);
        // One zero point, none, and one per output have different code paths.
        let w_zeros = match numbers.next(3) {
            0 => vec![zeros.first().copied().unwrap_or(3)],
            1 => vec![0],
            _ => zeros,
        };
        let dtypes = [DTYPES[numbers.next(2)], DTYPES[numbers.next(2)]];
        let bias = (0..outputs).map(|_| numbers.next(80_000) as i32 - 40_000).collect();
        Self { x, w, x_zero: numbers.next(256) as u8, w_zeros, dtypes, bias, geometry }
    }

    fn expected_sums(&self) -> Vec<i32> {
        let NhwcGeometry { channels, outputs, vertical, horizontal, .. } = self.geometry;
        let (depth, own) = (self.geometry.channels_per_group(), self.geometry.outputs_per_group());
        let [x_dtype, w_dtype] = self.dtypes;
        let sum = |place: usize| {
            let (pixel, output) = (place / outputs, place % outputs);
            let (line, column) = (pixel / horizontal.output, pixel % horizontal.output);
            let (image, row) = (line / vertical.output, line % vertical.output);
            let zero = byte_value(self.w_zeros[output % self.w_zeros.len()], w_dtype);
            let mut sum = self.bias[output];
            for tap in 0..self.geometry.tap_count() {
                let at = vertical
                    .input_position(row, tap / horizontal.kernel)
                    .zip(horizontal.input_position(column, tap % horizontal.kernel));
                let Some((y, x)) = at else { continue };
                let first =
                    ((image * vertical.input + y) * horizontal.input + x) * channels + output / own * depth;
                for channel in 0..depth {
                    let weight = self.w[(output * depth + channel) * self.geometry.tap_count() + tap];
                    let input =
                        byte_value(self.x[first + channel], x_dtype) - byte_value(self.x_zero, x_dtype);
                    sum += input * (byte_value(weight, w_dtype) - zero);
                }
            }
            sum
        };
        (0..self.geometry.output_pixels() * outputs).map(sum).collect()
    }

    fn computed_sums(&self, team: &TestTeam) -> Vec<i32> {
        let sums = IntegerSums::for_images(team, self.geometry.clone(), self.dtypes);
        let weights = sums.pack_weights(team, &self.w);
        let zeros: Vec<i32> = self.w_zeros.iter().map(|zero| byte_value(*zero, self.dtypes[1])).collect();
        let operands = IntegerSumOperands {
            images: &self.x,
            image_zeros: &[byte_value(self.x_zero, self.dtypes[0])],
            weights: &weights,
            weight_zeros: &zeros,
            bias: Some(&self.bias),
        };
        // Scratch memory and output are not initialized.
        let mut scratch = vec![0xff; sums.scratch_size()];
        let mut y = vec![77; self.geometry.output_pixels() * self.geometry.outputs];
        sums.compute(team, &operands, &mut y, None, &mut ScratchBuffer::new(&mut scratch));
        y
    }
}

#[test]
fn sums_of_convolutions_are_exact() {
    let mut numbers = RandomNumbers(1);
    for _ in 0..60 {
        let geometry = ConvCase::random(&mut numbers).geometry;
        let layer = IntegerLayerCase::random(&mut numbers, geometry);
        let expected = layer.expected_sums();
        for isa in isa_levels() {
            assert!(
                layer.computed_sums(&TestTeam { isa, count: 1 }) == expected,
                "{:?} on {isa}",
                layer.geometry
            );
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut numbers = RandomNumbers(2);
    for (size, channels, window) in
        [((24, 20), (24, 70), (3, 1, 1)), ((30, 33), (3, 40), (7, 2, 3)), ((4, 5), (2048, 70), (1, 1, 0))]
    {
        let geometry = ConvCase::with_window(&mut numbers, size, channels, window).geometry;
        let layer = IntegerLayerCase::random(&mut numbers, geometry);
        let expected = layer.expected_sums();
        for isa in isa_levels() {
            for count in [1, 2] {
                assert!(
                    layer.computed_sums(&TestTeam { isa, count }) == expected,
                    "{count} threads on {isa}"
                );
            }
        }
    }
}

struct MatmulIntegerCase<'a> {
    dims: [&'a [i64]; 3],
    arrays: [TestArray; 4],
}

fn element_count(dims: &[i64]) -> usize {
    dims.iter().product::<i64>() as usize
}

impl<'a> MatmulIntegerCase<'a> {
    fn random(
        numbers: &mut RandomNumbers,
        dims: [&'a [i64]; 3],
        zeros: [&[i64]; 2],
        dtypes: [Dtype; 2],
    ) -> Self {
        let mut array = |dtype, dims: &[i64]| {
            let bytes: Vec<u8> = (0..element_count(dims)).map(|_| numbers.next(256) as u8).collect();
            TestArray::from_bytes(dtype, dims, &bytes)
        };
        let [a, b] = [0, 1].map(|side| array(dtypes[side], dims[side]));
        let [a_zero, b_zero] = [0, 1].map(|side| array(dtypes[side], zeros[side]));
        Self { dims, arrays: [a, b, a_zero, b_zero] }
    }

    /// Both operands have as many matrices as the output, or the right one has a single matrix.
    fn expected_sums(&self) -> Vec<i32> {
        let [a, b, a_zero, b_zero] = self.arrays.each_ref().map(|array| {
            array.bytes().iter().map(|byte| byte_value(*byte, array.dtype)).collect::<Vec<i32>>()
        });
        let [.., rows, depth] = self.dims[0] else { panic!("matrices") };
        let columns = self.dims[1].last().copied().expect("matrices") as usize;
        let (rows, depth) = (*rows as usize, *depth as usize);
        let sum = |place: usize| {
            let (row, column) = (place / columns, place % columns);
            let item = if self.dims[1].len() == 2 { 0 } else { row / rows };
            let (of_row, of_column) = (row % a_zero.len(), (item * columns + column) % b_zero.len());
            (0..depth).fold(0i32, |sum, step| {
                let input = a[row * depth + step] - a_zero[of_row];
                let weight = b[(item * depth + step) * columns + column] - b_zero[of_column];
                sum.wrapping_add(input * weight)
            })
        };
        (0..element_count(self.dims[2])).map(sum).collect()
    }

    fn check_product(&self) {
        let [a, b, a_zero, b_zero] = &self.arrays;
        let outputs = [Some((Dtype::I32, self.dims[2]))];
        let expected = self.expected_sums();
        for isa in isa_levels() {
            for b in [b.clone(), b.clone().into_constant()] {
                let inputs = [a, &b, a_zero, b_zero].map(Some);
                let found = KERNELS
                    .run_with_isa(&isa.to_string(), "MatMulInteger", 10, &[], &inputs, &outputs)
                    .unwrap();
                assert!(found[0].as_ref().unwrap().values::<i32>() == expected, "{:?} on {isa}", self.dims);
            }
        }
    }
}

/// The shapes of both matrices and their product, and of both zero points.
type MatmulIntegerShapes<'a> = ([&'a [i64]; 3], [&'a [i64]; 2]);

#[test]
fn products_of_integers_are_exact() {
    let mut numbers = RandomNumbers(3);
    let cases: [MatmulIntegerShapes<'_>; 9] = [
        ([&[1, 64], &[64, 40], &[1, 40]], [&[], &[]]),
        ([&[7, 30], &[30, 33], &[7, 33]], [&[1], &[33]]),
        ([&[7, 30], &[30, 33], &[7, 33]], [&[7], &[33]]),
        ([&[35, 5], &[5, 1], &[35, 1]], [&[35], &[]]),
        ([&[3, 0], &[0, 5], &[3, 5]], [&[], &[]]),
        ([&[20, 257], &[257, 96], &[20, 96]], [&[], &[96]]),
        ([&[2, 3, 9], &[9, 17], &[2, 3, 17]], [&[2, 3, 1], &[17]]),
        ([&[2, 3, 9], &[2, 9, 17], &[2, 3, 17]], [&[3], &[2, 1, 17]]),
        ([&[3, 15, 8], &[3, 8, 34], &[3, 15, 34]], [&[], &[]]),
    ];
    for (dims, zeros) in cases {
        for dtypes in DTYPES.iter().flat_map(|a| DTYPES.map(|b| [*a, b])) {
            MatmulIntegerCase::random(&mut numbers, dims, zeros, dtypes).check_product();
        }
    }
}

#[test]
fn sums_of_integers_wrap_around() {
    let (depth, dims) = (40_000, [&[1i64, 40_000][..], &[40_000, 1], &[1, 1]]);
    let bytes = |dims| TestArray::from_bytes(u8::DTYPE, dims, &[255].repeat(element_count(dims)));
    let zero = TestArray::from_values(&[], &[0u8]);
    let product = MatmulIntegerCase { dims, arrays: [bytes(dims[0]), bytes(dims[1]), zero.clone(), zero] };
    assert_eq!(product.expected_sums(), [(i64::from(depth) * 255 * 255) as i32]);
    product.check_product();
}

/// Values are small powers of two, so that floats are exact.
#[test]
fn sums_become_floats_with_all_that_follows_them() {
    let mut numbers = RandomNumbers(4);
    for round in 0..40 {
        let (rows, depth, columns) = (1 + numbers.next(40), 1 + numbers.next(70), 1 + numbers.next(70));
        let mut layer =
            IntegerLayerCase::random(&mut numbers, NhwcGeometry::for_matmul(rows, depth, columns));
        if round % 2 == 0 {
            // In these rounds the operand is absent, which must have the effect of 0.
            layer.bias.fill(0);
        }
        let scales: Vec<f32> = (0..columns).map(|at| 1.0 / (64 << (at % 3)) as f32).collect();
        let [c, z] = [columns, rows * columns].map(|count| numbers.small_integers(count));
        let expected: Vec<f32> = layer
            .expected_sums()
            .into_iter()
            .enumerate()
            .map(|(at, sum)| (sum as f32 * 0.5 * scales[at % columns] + c[at % columns] + z[at]).max(0.0))
            .collect();
        let turned: Vec<u8> =
            (0..depth * columns).map(|at| layer.w[at % columns * depth + at / columns]).collect();
        let [rows, depth, columns] = [rows, depth, columns].map(|size| size as i64);
        let zeros = [layer.w_zeros.len() as i64];
        let w = TestArray::from_bytes(layer.dtypes[1], &[depth, columns], &turned).into_constant();
        let inputs = [
            TestArray::from_bytes(layer.dtypes[0], &[rows, depth], &layer.x),
            w,
            TestArray::from_values(&[], &[0.5f32]),
            TestArray::from_values(&[columns], &scales),
            TestArray::from_bytes(layer.dtypes[0], &[], &[layer.x_zero]),
            TestArray::from_bytes(layer.dtypes[1], &zeros, &layer.w_zeros),
            TestArray::from_values(&[columns], &layer.bias),
            TestArray::from_values(&[columns], &c),
            TestArray::from_values(&[rows, columns], &z),
        ];
        let mut given: Vec<Option<&TestArray>> = inputs.iter().map(Some).collect();
        if round % 2 == 0 {
            given[6] = None;
        }
        for isa in isa_levels() {
            let found = run_op(
                isa,
                "DequantizedMatMul",
                &given,
                &[("activation", TestAttribute::Text("Relu"))],
                &[rows, columns],
            );
            assert!(found == expected, "{rows} by {depth} by {columns} on {isa}");
        }
    }
}

fn run_op(
    isa: Isa,
    op: &str,
    inputs: &[Option<&TestArray>],
    attributes: &[(&str, TestAttribute<'_>)],
    dims: &[i64],
) -> Vec<f32> {
    let outputs = [Some((Dtype::F32, dims))];
    let results =
        KERNELS.run_with_isa(&isa.to_string(), &format!("oarlock:{op}"), 1, attributes, inputs, &outputs);
    results.unwrap()[0].as_ref().unwrap().values::<f32>().to_vec()
}

#[test]
fn convolutions_become_floats() {
    let mut numbers = RandomNumbers(5);
    let geometry = ConvCase::with_window(&mut numbers, (9, 7), (6, 35), (3, 2, 1)).geometry;
    let layer = IntegerLayerCase::random(&mut numbers, geometry);
    let expected: Vec<f32> = layer.expected_sums().into_iter().map(|sum| sum as f32 * 0.125).collect();
    let inputs = [
        TestArray::from_bytes(layer.dtypes[0], &[1, 9, 7, 6], &layer.x),
        TestArray::from_bytes(layer.dtypes[1], &[35, 6, 3, 3], &layer.w).into_constant(),
        TestArray::from_values(&[1], &[0.5f32]),
        TestArray::from_values(&[1], &[0.25f32]),
        TestArray::from_bytes(layer.dtypes[0], &[], &[layer.x_zero]),
        TestArray::from_bytes(layer.dtypes[1], &[layer.w_zeros.len() as i64], &layer.w_zeros),
        TestArray::from_values(&[35], &layer.bias),
    ];
    let given: Vec<Option<&TestArray>> = inputs.iter().map(Some).collect();
    let attributes = [("strides", TestAttribute::Ints(&[2, 2])), ("pads", TestAttribute::Ints(&[1; 4]))];
    for isa in isa_levels() {
        assert!(run_op(isa, "DequantizedConv", &given, &attributes, &[1, 5, 4, 35]) == expected, "{isa}");
    }
}

#[test]
fn operands_that_fit_no_output_are_refused() {
    let (a, w) = (TestArray::from_values(&[2, 4], &[1u8; 8]), TestArray::from_values(&[4, 3], &[1i8; 12]));
    let (one, two) = (TestArray::from_values(&[1], &[1f32]), TestArray::from_values(&[2], &[1f32; 2]));
    let outputs = [Some((Dtype::F32, &[2, 3][..]))];
    let message = |w: &TestArray, scale| {
        let inputs = [Some(&a), Some(w), Some(&one), Some(scale)];
        KERNELS.run_with_isa("", "oarlock:DequantizedMatMul", 1, &[], &inputs, &outputs).unwrap_err()
    };
    assert!(message(&w, &one).contains("`W` to be constant"), "{}", message(&w, &one));
    let w = w.into_constant();
    assert!(message(&w, &two).contains("`w_scale`"), "{}", message(&w, &two));
}

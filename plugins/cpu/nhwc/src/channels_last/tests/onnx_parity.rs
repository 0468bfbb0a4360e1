//! Compares the kernels with the NCHW kernels of the ONNX ops.

use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::Dtype;

use super::reference::RandomNumbers;
use crate::KERNELS;

/// Transposes images to NHWC.
fn to_channels_last(dims: &[i64], values: &[f32]) -> (Vec<i64>, Vec<f32>) {
    let [images, channels, spatial @ ..] = dims else { panic!("images have channels") };
    let pixels = spatial.iter().product::<i64>() as usize;
    let (images_count, channels_count) = (*images as usize, *channels as usize);
    let mut result = Vec::with_capacity(values.len());
    for pixel in 0..images_count * pixels {
        let (image, pixel) = (pixel / pixels, pixel % pixels);
        result.extend(
            (0..channels_count).map(|channel| values[(image * channels_count + channel) * pixels + pixel]),
        );
    }
    let dims = [*images].iter().chain(spatial).chain([channels]).copied().collect();
    (dims, result)
}

/// Runs an ONNX op and its NHWC counterpart. The operands `x` and `z` are images and are transposed; the others are not.
pub(super) fn check_against_onnx(
    isa: &str,
    op: &str,
    attributes: &[(&str, TestAttribute<'_>)],
    x: (&[i64], &[f32]),
    others: &[&TestArray],
    output: &[i64],
) {
    let (x_dims, x_values) = to_channels_last(x.0, x.1);
    let (plain, last) = (TestArray::from_values(x.0, x.1), TestArray::from_values(&x_dims, &x_values));
    let inputs = |x| [Some(x)].into_iter().chain(others.iter().map(|other| Some(*other))).collect::<Vec<_>>();
    let results =
        KERNELS.run_kernel(op, 22, attributes, &inputs(&plain), &[Some((Dtype::F32, output))]).unwrap();
    let (dims, expected) = to_channels_last(output, &results[0].as_ref().unwrap().values::<f32>());
    let op = format!("oarlock:{op}");
    let results =
        KERNELS.run_with_isa(isa, &op, 1, attributes, &inputs(&last), &[Some((Dtype::F32, &dims))]).unwrap();
    let found = results[0].as_ref().unwrap().values::<f32>();
    let same = found.iter().zip(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
    assert!(same, "{op} {x_dims:?} on {isa}: {found:?}, not {expected:?}");
}

pub(super) const ISA_LEVELS: [&str; 4] = ["scalar", "sse4.1", "avx2", "avx512"];

#[test]
fn poolings_are_those_of_onnx() {
    let mut numbers = RandomNumbers(11);
    for index in 0..90 {
        let (kernel, stride, dilation) = (1 + numbers.next(4), 1 + numbers.next(3), 1 + numbers.next(2));
        let pads = [numbers.next(kernel), numbers.next(kernel)];
        let extent = (kernel - 1) * dilation + 1;
        let input = extent + numbers.next(12);
        let ceil = index % 2;
        let room = input + pads[0] + pads[1] - extent;
        let mut output = if ceil == 1 { room.div_ceil(stride) } else { room / stride } + 1;
        // ONNX drops a last window that would begin in the padding at the end.
        if ceil == 1 && (output - 1) * stride >= input + pads[0] {
            output -= 1;
        }
        let rank = 1 + index / 2 % 2;
        let list = |value: usize| vec![value as i64; rank];
        let (kernels, strides, dilations) = (list(kernel), list(stride), list(dilation));
        let pads: Vec<i64> = [pads[0], pads[1]].iter().flat_map(|pad| list(*pad)).collect();
        let attributes = [
            ("kernel_shape", TestAttribute::Ints(&kernels)),
            ("strides", TestAttribute::Ints(&strides)),
            ("dilations", TestAttribute::Ints(&dilations)),
            ("pads", TestAttribute::Ints(&pads)),
            ("ceil_mode", TestAttribute::Int(ceil as i64)),
            ("count_include_pad", TestAttribute::Int((index / 4 % 2) as i64)),
        ];
        let outer = [1 + numbers.next(2) as i64, 1 + numbers.next(90) as i64];
        let x: Vec<i64> = outer.into_iter().chain(list(input)).collect();
        let y: Vec<i64> = outer.into_iter().chain(list(output)).collect();
        let mut values = numbers.small_integers(x.iter().product::<i64>() as usize);
        // Some inputs are NaN or infinite; the ONNX kernels define the expected results.
        if index % 9 == 0 {
            let place = numbers.next(values.len());
            values[place] = [f32::NAN, f32::INFINITY][index / 9 % 2];
        }
        let isa = ISA_LEVELS[numbers.next(ISA_LEVELS.len())];
        check_against_onnx(isa, "AveragePool", &attributes, (&x, &values), &[], &y);
        check_against_onnx(isa, "MaxPool", &attributes[..5], (&x, &values), &[], &y);
    }
}

#[test]
fn all_of_an_image_can_be_one_window() {
    let mut numbers = RandomNumbers(12);
    let values = numbers.small_integers(2 * 70 * 49);
    let kernel = [("kernel_shape", TestAttribute::Ints(&[7, 7]))];
    check_against_onnx("avx512", "AveragePool", &kernel, (&[2, 70, 7, 7], &values), &[], &[2, 70, 1, 1]);
}

#[test]
fn convolutions_are_those_of_onnx() {
    let mut numbers = RandomNumbers(13);
    for isa in ISA_LEVELS {
        for (group, kernel) in [(1, [3, 3]), (2, [1, 1]), (6, [3, 2])] {
            let kernels = kernel.map(|size: i64| size);
            let w = TestArray::from_values(
                &[12, 6 / group, kernel[0], kernel[1]],
                &numbers.small_integers((72 / group * kernel[0] * kernel[1]) as usize),
            );
            let attributes = [
                ("group", TestAttribute::Int(group)),
                ("kernel_shape", TestAttribute::Ints(&kernels)),
                ("strides", TestAttribute::Ints(&[2, 1])),
            ];
            let x = numbers.small_integers(2 * 6 * 9 * 8);
            let bias = TestArray::from_values(&[12], &numbers.small_integers(12));
            let output = [2, 12, (9 - kernel[0]) / 2 + 1, 8 - kernel[1] + 1];
            check_against_onnx(
                isa,
                "Conv",
                &attributes,
                (&[2, 6, 9, 8], &x),
                &[&w.into_constant(), &bias],
                &output,
            );
        }
        let w = TestArray::from_values(&[5, 3, 4], &numbers.small_integers(60)).into_constant();
        let x = numbers.small_integers(3 * 21);
        let attributes = [("pads", TestAttribute::Ints(&[2, 1])), ("dilations", TestAttribute::Ints(&[2]))];
        check_against_onnx(isa, "Conv", &attributes, (&[1, 3, 21], &x), &[&w], &[1, 5, 18]);
    }
}

#[test]
fn a_residual_and_an_activation_follow_a_convolution() {
    let x = TestArray::from_values(&[1, 1, 2, 1], &[1f32, -3.0]);
    let w = TestArray::from_values(&[2, 1, 1, 1], &[1f32, 2.0]).into_constant();
    let z = TestArray::from_values(&[1, 1, 2, 2], &[1f32, 1.0, 1.0, 20.0]);
    let attributes = [
        ("activation", TestAttribute::Text("Clip")),
        ("activation_parameters", TestAttribute::Floats(&[0.0, 6.0])),
    ];
    let inputs = [Some(&x), Some(&w), None, Some(&z)];
    let results = KERNELS
        .run_kernel("oarlock:Conv", 1, &attributes, &inputs, &[Some((Dtype::F32, &[1, 1, 2, 2]))])
        .unwrap();
    assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2.0, 3.0, 0.0, 6.0]);
}

#[test]
fn what_the_rows_do_not_do_is_refused_with_a_reason() {
    let x = TestArray::from_values(&[1, 4, 4, 2], &[0f32; 32]);
    let w = TestArray::from_values(&[3, 2, 1, 1], &[0f32; 6]);
    let output = [Some((Dtype::F32, &[1, 4, 4, 3][..]))];
    let message = |attributes: &[(&str, TestAttribute<'_>)], inputs: &[Option<&TestArray>]| {
        KERNELS.run_kernel("oarlock:Conv", 1, attributes, inputs, &output).unwrap_err()
    };
    assert!(message(&[], &[Some(&x), Some(&w)]).contains("weights that are constant"));
    let w = w.into_constant();
    let bias = TestArray::from_values(&[2], &[0f32; 2]);
    assert!(
        message(&[], &[Some(&x), Some(&w), Some(&bias)]).contains("expected `B` of the shape [3], found [2]")
    );
    assert!(
        message(&[], &[Some(&x), Some(&w), None, Some(&x)])
            .contains("expected `Z` of the shape [1, 4, 4, 3]")
    );
    assert!(message(&[("group", TestAttribute::Int(2))], &[Some(&x), Some(&w)]).contains("for 2 groups"));
    let unknown = [("activation", TestAttribute::Text("Relo"))];
    assert!(message(&unknown, &[Some(&x), Some(&w)]).contains("found `Relo`"));
}

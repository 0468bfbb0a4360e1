//! Compares convolutions and poolings with naive sums, for many sizes, with every instruction set, with one thread and with two.

mod bf16_images;
mod onnx_parity;
pub(crate) mod reference;
mod transposed;

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_testing::isa_levels::{best_isa, isa_levels};
use oarlock_cpu_testing::test_team::TestTeam;

use self::reference::{ConvCase, RandomNumbers};
use super::algorithm::{ConvAlgorithm, NhwcConv};
use super::bf16_images::Bf16Images;
use super::dense::{ConvPrecision, DenseConv};
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::pixel_vectors::PixelVectorConv;
use super::weight_panels::OriginalWeights;
use super::winograd::tile_blocks::TileBlocks;
use super::winograd::{WinogradConv, WinogradTileSize};

const RELU: FusedActivation = FusedActivation::Bounds([0.0, f32::INFINITY]);

/// All algorithms that support a case, and whether each is exact.
fn applicable_algorithms(case: &ConvCase, team: &TestTeam) -> Vec<(NhwcConv, bool)> {
    let geometry = &case.geometry;
    let by = |algorithm| NhwcConv::with_algorithm(algorithm, geometry);
    let mut ways = vec![(by(ConvAlgorithm::Dense(DenseConv::new(team, geometry, ConvPrecision::F32))), true)];
    if geometry.is_depthwise() {
        ways.push((by(ConvAlgorithm::Depthwise), true));
    }
    if PixelVectorConv::is_supported(geometry) {
        ways.push((by(ConvAlgorithm::PixelVectors(PixelVectorConv::new(team, geometry))), true));
    }
    if TileBlocks::is_supported(geometry) {
        ways.push((
            by(ConvAlgorithm::Winograd(WinogradConv::new(team, geometry, WinogradTileSize::Two))),
            false,
        ));
        ways.push((
            by(ConvAlgorithm::Winograd(WinogradConv::new(team, geometry, WinogradTileSize::Four))),
            false,
        ));
    }
    // Small integers are exact in bf16.
    ways.push((by(ConvAlgorithm::Dense(DenseConv::new(team, geometry, ConvPrecision::Bf16))), true));
    ways
}

fn compute_case(
    case: &ConvCase,
    convolution: &NhwcConv,
    team: &TestTeam,
    epilogue: &ConvEpilogue<'_>,
) -> Vec<f32> {
    let packed = convolution.pack_weights(team, &case.w);
    // Output and scratch memory are not initialized: NaN reveals reads of either.
    let mut y = vec![f32::NAN; case.geometry.output_pixels() * case.geometry.outputs];
    if let ResidualSource::InPlace = epilogue.residual {
        y.copy_from_slice(&case.residual);
    }
    let mut scratch = vec![0xff; convolution.scratch_size()];
    let operands = (&case.x[..], &packed, &case.original_weights() as OriginalWeights<'_>);
    convolution.compute(team, operands, epilogue, &mut y, &mut ScratchBuffer::new(&mut scratch));
    y
}

/// Checks a case on each of the instruction sets. The expected output is computed once, for without optimization it takes longer than
/// what it is compared with.
fn check_case(case: &ConvCase, levels: impl IntoIterator<Item = Isa>, epilogue: &ConvEpilogue<'_>) {
    let expected = case.expected_output(epilogue);
    for isa in levels {
        check_output(case, isa, epilogue, &expected);
    }
}

fn check_output(case: &ConvCase, isa: Isa, epilogue: &ConvEpilogue<'_>, expected: &[f64]) {
    let one = TestTeam { isa, count: 1 };
    let two = TestTeam { isa, count: 2 };
    for ((convolution, is_exact), (shared, _)) in
        applicable_algorithms(case, &one).into_iter().zip(applicable_algorithms(case, &two))
    {
        let found = compute_case(case, &convolution, &one, epilogue);
        let worst = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - expected).abs());
        let worst =
            worst.fold(0.0, |worst: f64, error| if error > worst || error.is_nan() { error } else { worst });
        // Sums of integers are exact unless the algorithm transforms them.
        let most = if is_exact && !epilogue.has_remaining() { 0.0 } else { 3e-5 * case.magnitude() };
        assert!(worst <= most, "{:?} on {isa}: wrong by {worst}", case.geometry);
        let shared = compute_case(case, &shared, &two, epilogue);
        if let ResidualSource::Apart(_) = epilogue.residual {
            let in_place = ConvEpilogue { residual: ResidualSource::InPlace, ..*epilogue };
            let in_place = compute_case(case, &convolution, &two, &in_place);
            assert!(in_place == found, "{:?} on {isa}: other results in place", case.geometry);
        }
        let same = found.iter().zip(&shared).all(|(one, two)| one.to_bits() == two.to_bits());
        assert!(same, "{:?} on {isa}: other bits with two threads", case.geometry);
    }
}

#[test]
fn convolutions_are_the_sums_they_should_be() {
    let mut numbers = RandomNumbers(1);
    for index in 0..60 {
        let case = ConvCase::random(&mut numbers);
        let epilogue = ConvEpilogue {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 {
                ResidualSource::Apart(&case.residual)
            } else {
                ResidualSource::None
            },
            activation: [FusedActivation::NONE, RELU, FusedActivation::Bounds([-3.0, 6.0])][index % 3],
        };
        check_case(&case, isa_levels(), &epilogue);
    }
}

#[test]
fn subnormal_weights_are_zero_beside_others() {
    let mut numbers = RandomNumbers(77);
    let cases = [
        ConvCase::with_window(&mut numbers, (7, 9), (5, 35), (3, 1, 1)),
        ConvCase::with_window(&mut numbers, (6, 40), (3, 4), (5, 2, 2)),
        ConvCase::with_channels(&mut numbers, (8, 8), 19, (3, 1, 1)),
    ];
    for mut case in cases {
        let of_output = case.w.len() / case.geometry.outputs;
        case.w[..of_output].fill(1e-40);
        // Each product with these weights would be 1e-10.
        case.x.fill(1e30);
        for isa in isa_levels() {
            let team = TestTeam { isa, count: 1 };
            let epilogue = ConvEpilogue {
                bias: None,
                residual: ResidualSource::None,
                activation: FusedActivation::NONE,
            };
            let mut ways = applicable_algorithms(&case, &team);
            // Instructions for bf16 take subnormal operands for 0 anyway.
            ways.pop();
            // As products, each group has panels of its own, and those with tiny weights alone keep them.
            ways.drain(..usize::from(case.geometry.groups > 1));
            for (convolution, _) in ways {
                let found = compute_case(&case, &convolution, &team, &epilogue);
                let first_channel = found.iter().step_by(case.geometry.outputs);
                assert!(first_channel.into_iter().all(|sum| *sum == 0.0), "{:?} on {isa}", case.geometry);
                assert!(found.iter().any(|sum| *sum != 0.0), "{:?} on {isa}", case.geometry);
            }
        }
    }
}

#[test]
fn windows_of_any_width_slide_over_channels_each_for_itself() {
    let mut numbers = RandomNumbers(6);
    for (kernel, stride, pad) in [(3, 1, 1), (3, 2, 1), (5, 1, 2), (5, 2, 2), (7, 1, 3), (7, 2, 3), (4, 1, 1)]
    {
        for (size, channels) in [((9, 23), 18), ((3, 3), 33), ((12, 8), 16)] {
            let case = ConvCase::with_channels(&mut numbers, size, channels, (kernel, stride, pad));
            let epilogue = ConvEpilogue {
                bias: Some(&case.bias),
                residual: ResidualSource::Apart(&case.residual),
                activation: RELU,
            };
            check_case(&case, isa_levels(), &epilogue);
        }
    }
}

#[test]
fn few_outputs_of_any_number_and_width_are_right() {
    let mut numbers = RandomNumbers(21);
    for outputs in 1..=8 {
        for (channels, size, window) in [
            (1, (1, 300), (7, 2, 3)),
            (3, (9, 70), (3, 1, 1)),
            (5, (7, 41), (4, 3, 2)),
            (33, (6, 150), (2, 1, 0)),
        ] {
            let case = ConvCase::with_window(&mut numbers, size, (channels, outputs), window);
            let epilogue = ConvEpilogue {
                bias: Some(&case.bias),
                residual: ResidualSource::Apart(&case.residual),
                activation: RELU,
            };
            check_case(&case, isa_levels(), &epilogue);
        }
    }
}

#[test]
fn sizes_around_the_edges_of_blocks_are_right() {
    let mut numbers = RandomNumbers(2);
    for size in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15] {
        for (channels, outputs) in [(1, 31), (3, 33), (16, 16), (17, 1), (32, 64), (40, 65)] {
            let case = ConvCase::with_window(&mut numbers, (size, size), (channels, outputs), (3, 1, 1));
            check_case(
                &case,
                [best_isa()],
                &ConvEpilogue { bias: None, residual: ResidualSource::None, activation: RELU },
            );
        }
    }
}

#[test]
fn what_does_not_fit_into_one_task_is_computed_in_several() {
    let mut numbers = RandomNumbers(8);
    for (size, channels, window) in [
        // Several blocks of tiles, one per thread.
        ((40, 36), (24, 33), (3, 1, 1)),
        // Tiles that threads share.
        ((11, 11), (70, 40), (3, 1, 1)),
        // Tiles that exceed the size of a block on their own.
        ((2, 2), (3700, 2), (3, 1, 1)),
        // More weights than fit in a block, and pixels that are a multiple of the page size apart.
        ((4, 5), (2048, 170), (1, 1, 0)),
        ((9, 8), (512, 70), (1, 2, 0)),
        // Few channels, so that a row of a window is one tap; some windows begin in the padding.
        ((30, 33), (3, 40), (5, 2, 3)),
        ((30, 30), (33, 40), (1, 3, 2)),
    ] {
        let case = ConvCase::with_window(&mut numbers, size, channels, window);
        let epilogue = ConvEpilogue {
            bias: Some(&case.bias),
            residual: ResidualSource::Apart(&case.residual),
            activation: RELU,
        };
        check_case(&case, [best_isa()], &epilogue);
    }
}

#[test]
fn rounding_is_refused_where_it_is_not_faster() {
    let mut numbers = RandomNumbers(10);
    let dense = ConvCase::with_window(&mut numbers, (7, 7), (64, 64), (3, 1, 1));
    let depthwise = ConvCase::with_groups(&mut numbers, (9, 9), 32, (1, 1), 1);
    for isa in isa_levels() {
        let team = TestTeam { isa, count: 1 };
        let rounded = |case: &ConvCase| NhwcConv::new_bf16(&team, &case.geometry, Bf16Images::NONE);
        let refusal = |case: &ConvCase| rounded(case).err().map(|error| error.to_string());
        if isa.has_bf16() {
            assert_eq!(refusal(&dense), None);
            assert!(refusal(&depthwise).is_some_and(|text| text.contains("found a depthwise one")));
        } else {
            assert!(refusal(&dense).is_some_and(|text| text.contains("AVX512-BF16")));
        }
    }
}

#[test]
fn weights_take_no_memory_where_there_is_nothing_under_a_window() {
    let team = TestTeam { isa: best_isa(), count: 1 };
    let mut numbers = RandomNumbers(9);
    let mut case = ConvCase::with_window(&mut numbers, (3, 3), (0, 2), (3, 1, 1));
    for axis in [&mut case.geometry.vertical, &mut case.geometry.horizontal] {
        (axis.input, axis.kernel, axis.output, axis.pad) = (1 << 15, 1 << 15, 1, (0, 0));
    }
    case.residual.truncate(2);
    let convolution = NhwcConv::new(&team, &case.geometry);
    assert!(convolution.scratch_size() < 1000);
    let epilogue = ConvEpilogue {
        bias: Some(&case.bias),
        residual: ResidualSource::None,
        activation: FusedActivation::NONE,
    };
    assert_eq!(compute_case(&case, &convolution, &team, &epilogue), case.bias);
}

#[test]
fn every_activation_follows_every_way() {
    let mut numbers = RandomNumbers(3);
    let activations = [
        FusedActivation::LeakyRelu { alpha: 0.1, low: -2.0 },
        FusedActivation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        FusedActivation::HardSwish,
        FusedActivation::Sigmoid,
        FusedActivation::Silu,
        FusedActivation::Tanh,
        FusedActivation::Gelu,
        FusedActivation::GeluTanh,
    ];
    let cases = [
        ConvCase::with_window(&mut numbers, (9, 10), (20, 37), (3, 1, 1)),
        ConvCase::with_groups(&mut numbers, (9, 10), 37, (1, 1), 2),
    ];
    for (case, activation) in cases.iter().flat_map(|case| activations.iter().map(move |a| (case, *a))) {
        let epilogue = ConvEpilogue {
            bias: Some(&case.bias),
            residual: ResidualSource::Apart(&case.residual),
            activation,
        };
        check_case(case, isa_levels(), &epilogue);
    }
}

#[test]
fn nothing_to_compute_is_computed() {
    let mut numbers = RandomNumbers(4);
    let epilogue =
        ConvEpilogue { bias: None, residual: ResidualSource::None, activation: FusedActivation::NONE };
    for (size, channels, window) in
        [((4, 5), (0, 3), (3, 1, 1)), ((4, 5), (3, 0), (3, 1, 1)), ((0, 5), (2, 3), (2, 1, 1))]
    {
        check_case(&ConvCase::with_window(&mut numbers, size, channels, window), isa_levels(), &epilogue);
    }
    let biased = ConvCase::with_window(&mut numbers, (4, 5), (0, 3), (3, 1, 1));
    check_case(&biased, isa_levels(), &ConvEpilogue { bias: Some(&biased.bias), ..epilogue });
}

#[test]
fn a_padded_window_without_inputs_is_the_bias() {
    let mut numbers = RandomNumbers(6);
    for groups in [false, true] {
        let case = if groups {
            ConvCase::with_groups(&mut numbers, (3, 3), 18, (1, 5), 1)
        } else {
            ConvCase::with_window(&mut numbers, (3, 3), (18, 18), (3, 1, 5))
        };
        check_case(
            &case,
            isa_levels(),
            &ConvEpilogue { bias: Some(&case.bias), residual: ResidualSource::None, activation: RELU },
        );
    }
}

#[test]
fn what_is_not_finite_reaches_only_the_outputs_that_read_it() {
    let mut numbers = RandomNumbers(5);
    let of_window = |numbers: &mut RandomNumbers, size, channels, window, share| {
        (ConvCase::with_window(numbers, size, channels, window), share)
    };
    for (mut case, share) in [
        of_window(&mut numbers, (13, 11), (16, 33), (3, 1, 1), 300),
        of_window(&mut numbers, (13, 11), (16, 33), (3, 1, 1), 2),
        of_window(&mut numbers, (9, 4), (5, 20), (3, 1, 2), 60),
        of_window(&mut numbers, (30, 30), (40, 48), (3, 1, 0), 9000),
        of_window(&mut numbers, (2, 3), (7, 3), (3, 1, 1), 20),
        of_window(&mut numbers, (12, 12), (20, 20), (3, 2, 1), 900),
        (ConvCase::with_groups(&mut numbers, (12, 12), 20, (1, 1), 1), 700),
    ] {
        for index in (0..case.x.len()).filter(|index| index % share == share / 2) {
            case.x[index] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN][numbers.next(3)];
        }
        let epilogue = ConvEpilogue {
            bias: Some(&case.bias),
            residual: ResidualSource::Apart(&case.residual),
            activation: FusedActivation::NONE,
        };
        let expected = case.expected_output(&epilogue);
        for isa in isa_levels() {
            let team = TestTeam { isa, count: 2 };
            for (convolution, is_exact) in applicable_algorithms(&case, &team) {
                let most = if is_exact { 0.0 } else { 3e-5 * case.magnitude() };
                for residual in [epilogue.residual, ResidualSource::InPlace] {
                    let found =
                        compute_case(&case, &convolution, &team, &ConvEpilogue { residual, ..epilogue });
                    for (found, expected) in found.iter().map(|found| f64::from(*found)).zip(&expected) {
                        let is_right = found == *expected
                            || found.is_nan() && expected.is_nan()
                            || (found - expected).abs() <= most;
                        let algorithm = convolution.description(&team);
                        assert!(is_right, "{:?}, {algorithm}: {found}, not {expected}", case.geometry);
                    }
                }
            }
        }
    }
}

#[test]
fn huge_weights_give_finite_outputs_where_sums_are_finite() {
    let epilogue =
        ConvEpilogue { bias: None, residual: ResidualSource::None, activation: FusedActivation::NONE };
    let mut numbers = RandomNumbers(12);
    for (size, channels) in [((13, 11), (5, 33)), ((9, 4), (3, 20)), ((30, 30), (1, 48))] {
        let mut case = ConvCase::with_window(&mut numbers, size, channels, (3, 1, 1));
        let [x, w] = [case.x.clone(), case.w.clone()];
        for values in [&mut case.x, &mut case.w] {
            values.iter_mut().for_each(|value| *value = value.abs());
        }
        // Sums must not overflow in any order of the products.
        let largest = case.expected_output(&epilogue).into_iter().fold(0.0, f64::max);
        let small = (0.9 * 2.0f64.powi(128 - 125) / largest) as f32;
        case.w = w.iter().map(|weight| weight * 2.0f32.powi(125)).collect();
        case.x = x.iter().map(|value| value * small).collect();
        let expected = case.expected_output(&epilogue);
        for isa in isa_levels() {
            let team = TestTeam { isa, count: 2 };
            for (convolution, _) in applicable_algorithms(&case, &team) {
                let found = compute_case(&case, &convolution, &team, &epilogue);
                for (found, expected) in found.iter().map(|found| f64::from(*found)).zip(&expected) {
                    let algorithm = convolution.description(&team);
                    let is_right = (found - expected).abs() <= 0.01 * f64::from(f32::MAX);
                    assert!(is_right, "{algorithm}: {found}, not {expected}");
                }
            }
        }
    }
}

/// Checks the error of the ResNet-50 layers that use Winograd, relative to the largest result, against sums in `f64`. The numbers
/// are distributed as in the network.
#[test]
fn transformed_convolutions_lose_few_digits() {
    let mut numbers = RandomNumbers(7);
    for (size, channels) in [(28, 64), (14, 128), (14, 256), (7, 512)] {
        let mut case = ConvCase::with_window(&mut numbers, (size, size), (channels, 16), (3, 1, 1));
        case.make_normal(&mut numbers);
        let epilogue =
            ConvEpilogue { bias: None, residual: ResidualSource::None, activation: FusedActivation::NONE };
        let expected = case.expected_output(&epilogue);
        let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let team = TestTeam { isa: best_isa(), count: 1 };
        for ((convolution, _), (name, most, mean_most)) in applicable_algorithms(&case, &team)
            .into_iter()
            .zip([("dense", 3e-6, 3e-7), ("two", 3e-6, 3e-7), ("four", 4e-6, 4e-7), ("rounded", 5e-3, 8e-4)])
        {
            let found = compute_case(&case, &convolution, &team, &epilogue);
            let errors = found
                .iter()
                .zip(&expected)
                .map(|(found, expected)| (f64::from(*found) - expected).abs() / largest);
            let (worst, sum) =
                errors.fold((0.0f64, 0.0), |(worst, sum), error| (worst.max(error), sum + error));
            let mean = sum / found.len() as f64;
            println!("{size} × {size} × {channels}, {name}: at most {worst:.2e}, {mean:.2e} in the mean");
            assert!(worst < most && mean < mean_most, "{name} of {channels} channels: {worst:e} {mean:e}");
        }
    }
}

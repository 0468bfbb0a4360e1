//! Convolutions whose images are pairs of bf16. Inputs are small integers, which bf16 represents exactly, so the expected result is
//! the exact sum, rounded once if the output is bf16.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::test_team::TestTeam;

use super::super::algorithm::{ConvAlgorithm, NhwcConv};
use super::super::bf16_images::{Bf16Images, word_count};
use super::super::bf16_rounding::{pair_count, round_to_pairs};
use super::super::dense::DenseConv;
use super::super::depthwise;
use super::super::epilogue::{ConvEpilogue, ResidualSource};
use super::super::weight_panels::OriginalWeights;
use super::RELU;
use super::reference::{ConvCase, RandomNumbers};
use oarlock_cpu_base::float_bits::bf16_bits;

fn encode_image(numbers: &[f32], is_paired: bool) -> Vec<f32> {
    if !is_paired {
        return numbers.to_vec();
    }
    let mut pairs = vec![f32::NAN; pair_count(numbers.len())];
    round_to_pairs(oarlock_cpu_testing::isa_levels::best_isa(), numbers, &mut pairs);
    pairs
}

fn has_whole_pairs(case: &ConvCase) -> bool {
    [case.geometry.channels_per_group(), case.geometry.outputs_per_group()]
        .iter()
        .all(|count| count.is_multiple_of(2))
}

/// The bits of results as stored.
fn stored_bits(image: &[f32], is_paired: bool) -> Vec<u32> {
    let bits = image.iter().map(|number| number.to_bits());
    if is_paired { bits.flat_map(|pair| [pair & 0xffff, pair >> 16]).collect() } else { bits.collect() }
}

/// Runs a case with its images encoded as requested, and checks the stored bits.
fn check_bf16_images(
    case: &ConvCase,
    paired: Bf16Images,
    epilogue: &ConvEpilogue<'_>,
    mut compute: impl FnMut(&[f32], &ConvEpilogue<'_>, &mut [f32]),
) {
    let expected: Vec<u32> = case
        .expected_output(epilogue)
        .into_iter()
        .map(|sum| if paired.output { bf16_bits(sum as f32) } else { (sum as f32).to_bits() })
        .collect();
    let (x, residual) = (encode_image(&case.x, paired.input), encode_image(&case.residual, paired.residual));
    let own = match epilogue.residual {
        ResidualSource::Apart(_) => ResidualSource::Apart(&residual),
        other => other,
    };
    let mut y =
        vec![f32::NAN; word_count(case.geometry.output_pixels() * case.geometry.outputs, paired.output)];
    compute(&x, &ConvEpilogue { residual: own, ..*epilogue }, &mut y);
    assert!(stored_bits(&y, paired.output) == expected, "{:?} with {paired:?}", case.geometry);
    if let ResidualSource::Apart(_) = epilogue.residual
        && paired.residual == paired.output
    {
        y.copy_from_slice(&residual);
        compute(&x, &ConvEpilogue { residual: ResidualSource::InPlace, ..*epilogue }, &mut y);
        assert!(stored_bits(&y, paired.output) == expected, "{:?} with {paired:?} in place", case.geometry);
    }
}

/// Checks a case with every combination of bf16 and `f32` images, with one thread and with two.
fn check_dense(case: &ConvCase, isa: Isa, epilogue: &ConvEpilogue<'_>) {
    for choice in 0..8 {
        let paired = Bf16Images { input: choice & 1 > 0, residual: choice & 2 > 0, output: choice & 4 > 0 };
        for count in [1, 2] {
            let team = TestTeam { isa, count };
            let dense = DenseConv::new_bf16(&team, &case.geometry, paired);
            let convolution = NhwcConv::with_algorithm(ConvAlgorithm::Dense(dense), &case.geometry);
            let packed = convolution.pack_weights(&team, &case.w);
            let mut scratch = vec![0xff; convolution.scratch_size()];
            check_bf16_images(case, paired, epilogue, |x, epilogue, y| {
                let operands = (x, &packed, &case.original_weights() as OriginalWeights<'_>);
                convolution.compute(&team, operands, epilogue, y, &mut ScratchBuffer::new(&mut scratch));
            });
        }
    }
}

#[test]
fn images_in_bf16_give_the_sums_they_should() {
    let mut numbers = RandomNumbers(11);
    let cases = std::iter::repeat_with(|| ConvCase::random(&mut numbers)).filter(has_whole_pairs).take(25);
    // Each case runs in sixteen ways, so each instruction set gets only some of the cases.
    let isas: Vec<Isa> = isa_levels().collect();
    for (index, case) in cases.enumerate() {
        let epilogue = ConvEpilogue {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 {
                ResidualSource::None
            } else {
                ResidualSource::Apart(&case.residual)
            },
            activation: RELU,
        };
        check_dense(&case, isas[index / 3 % isas.len()], &epilogue);
    }
}

#[test]
fn images_in_bf16_of_all_sizes_are_read_and_written_to_their_ends() {
    let mut numbers = RandomNumbers(12);
    for (size, channels, window) in [
        ((3, 5), (2, 2), (3, 1, 1)),
        ((7, 6), (34, 30), (1, 1, 0)),
        ((15, 15), (4, 50), (7, 2, 3)),
        // Pixels that are a multiple of the page size apart.
        ((4, 5), (2048, 34), (1, 1, 0)),
        // Whole blocks of pixels that are read in place, and a remainder.
        ((9, 8), (64, 34), (1, 1, 0)),
    ] {
        let case = ConvCase::with_window(&mut numbers, size, channels, window);
        let epilogue = ConvEpilogue {
            bias: Some(&case.bias),
            residual: ResidualSource::Apart(&case.residual),
            activation: RELU,
        };
        check_dense(&case, oarlock_cpu_testing::isa_levels::best_isa(), &epilogue);
    }
}

#[test]
fn images_in_bf16_are_convolved_channel_by_channel() {
    let mut numbers = RandomNumbers(13);
    for channels in [2, 16, 34, 96] {
        for (step, dilation) in [((1, 1), 1), ((2, 1), 1), ((1, 5), 1), ((1, 2), 2)] {
            let case = ConvCase::with_groups(&mut numbers, (9, 10), channels, step, dilation);
            let paired = Bf16Images { input: true, residual: true, output: true };
            let packed = depthwise::pack_depthwise(&case.geometry, &case.w);
            for residual in [ResidualSource::None, ResidualSource::Apart(&case.residual)] {
                let epilogue = ConvEpilogue { bias: Some(&case.bias), residual, activation: RELU };
                for isa in isa_levels() {
                    for count in [1, 2] {
                        check_bf16_images(&case, paired, &epilogue, |x, epilogue, y| {
                            let team = TestTeam { isa, count };
                            depthwise::compute_depthwise(
                                &team,
                                &case.geometry,
                                (x, &packed),
                                epilogue,
                                y,
                                true,
                            );
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn images_in_bf16_are_refused_where_pairs_would_be_torn() {
    let mut numbers = RandomNumbers(14);
    let team = TestTeam { isa: oarlock_cpu_testing::isa_levels::best_isa(), count: 1 };
    if !team.isa.has_bf16() {
        return;
    }
    let mut refusal = |channels, outputs, paired| {
        let case = ConvCase::with_window(&mut numbers, (3, 3), (channels, outputs), (1, 1, 0));
        NhwcConv::new_bf16(&team, &case.geometry, paired).err().map(|error| error.to_string())
    };
    let [input, residual, output] = [(true, false, false), (false, true, false), (false, false, true)]
        .map(|choice| Bf16Images { input: choice.0, residual: choice.1, output: choice.2 });
    for (channels, outputs, paired, is_refused) in [
        (3, 4, input, true),
        (3, 4, output, false),
        (4, 3, output, true),
        (4, 3, residual, true),
        (4, 3, input, false),
    ] {
        let text = refusal(channels, outputs, paired);
        assert_eq!(text.is_some_and(|text| text.contains("even numbers")), is_refused, "{paired:?}");
    }
}

//! Compares Winograd convolutions with naive sums. Results must match exactly.

use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::test_team::TestTeam;

use super::QuantizedWinograd;
use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::tests::reference::{RandomNumbers, conv_axis};
use crate::quantized::tests::QuantizedLayerCase;
use crate::quantized::tile::QuantizedMicroKernels;
use oarlock_cpu_base::simd::SIGN_BIT;

/// Computes a layer without bias and residual, whatever the direct algorithm would cost.
fn compute_winograd(
    layer: &QuantizedLayerCase,
    team: &TestTeam,
    kernels: &'static QuantizedMicroKernels,
) -> Vec<u8> {
    let winograd = QuantizedWinograd::new(team, &layer.geometry, kernels);
    assert!(winograd.is_exact(&layer.w), "{:?}", layer.geometry);
    let weights = winograd.pack_weights(team, &layer.w);
    let zero = layer.zeros[0] as i32 + if layer.is_signed { i32::from(SIGN_BIT) } else { 0 };
    let starts: Vec<i32> = weights.sums.iter().map(|sum| -zero * sum).collect();
    let mut scratch = vec![0xff; winograd.scratch_size()];
    layer.with_operands(|images, finish, y| {
        winograd.compute(team, images, (&weights, &starts), finish, y, &mut ScratchBuffer::new(&mut scratch));
    })
}

fn check_layer(layer: &QuantizedLayerCase) {
    let expected = layer.expected_bytes();
    for isa in isa_levels() {
        let Some(kernels) = QuantizedMicroKernels::of_words(isa) else { continue };
        for count in [1, 3] {
            let found = compute_winograd(layer, &TestTeam { isa, count }, kernels);
            assert!(found == expected, "{:?} on {isa} with {count} threads", layer.geometry);
        }
    }
}

fn square_windows(
    images: usize,
    [height, width]: [usize; 2],
    [channels, outputs]: [usize; 2],
    pad: (usize, usize),
) -> NhwcGeometry {
    let [vertical, horizontal] = [height, width].map(|size| conv_axis(size, 3, 1, 1, pad));
    NhwcGeometry { images, channels, outputs, groups: 1, vertical, horizontal }
}

#[test]
fn sizes_around_the_edges_of_tiles_are_exact() {
    let mut numbers = RandomNumbers(1);
    for size in [[1, 1], [3, 4], [5, 8], [9, 6], [13, 2]] {
        for channels in [[1, 1], [3, 17], [16, 16], [33, 7], [40, 65], [64, 34]] {
            for pad in [(1, 1), (0, 2), (2, 2)] {
                let geometry = square_windows(2, size, channels, pad);
                if geometry.output_pixels() > 0 {
                    check_layer(&QuantizedLayerCase::random(&mut numbers, geometry).without_addends());
                }
            }
        }
    }
}

#[test]
fn several_blocks_are_exact() {
    let mut numbers = RandomNumbers(2);
    let geometry = square_windows(1, [50, 47], [70, 40], (1, 1));
    check_layer(&QuantizedLayerCase::random(&mut numbers, geometry).without_addends());
}

#[test]
fn the_largest_results_are_found_again() {
    let mut numbers = RandomNumbers(3);
    for (byte, weight) in [(255, 127), (255, -128), (0, -128)] {
        for is_signed in [false, true] {
            let geometry = square_windows(1, [6, 6], [114, 18], (1, 1));
            let mut layer = QuantizedLayerCase::random(&mut numbers, geometry).without_addends();
            layer.x.fill(byte);
            layer.w.fill(weight);
            layer.scale = vec![3e-6; 18];
            layer.is_signed = is_signed;
            // Far from the inputs, so that the sums without a zero point are as large as they can be.
            layer.zeros[0] = if is_signed { -128 } else { 0 };
            check_layer(&layer);
        }
    }
}

#[test]
fn results_that_would_be_too_large_are_noticed() {
    let geometry = square_windows(1, [8, 8], [300, 2], (1, 1));
    let team = TestTeam { isa: oarlock_cpu_base::isa::Isa::Scalar, count: 1 };
    let Some(kernels) = QuantizedMicroKernels::of_words(team.isa) else { return };
    let winograd = QuantizedWinograd::new(&team, &geometry, kernels);
    let mut weights = vec![48; 2 * 9 * 300];
    assert!(winograd.is_exact(&weights), "the sum of an output is 255 · 48 · 2,700 < 2²⁵");
    weights[2700..].fill(49);
    assert!(!winograd.is_exact(&weights));
    // Weights of both signs do not add up.
    weights[4000..].fill(-49);
    assert!(winograd.is_exact(&weights));
}

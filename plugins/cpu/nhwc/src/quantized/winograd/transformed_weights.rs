//! Transformed weights, packed for the micro-kernels.

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice};

use super::PAIR;
use super::transform::{FourOutputs, POINTS, transform_rows};
use crate::quantized::tile::QuantizedMicroKernels;

/// The factors of a step of the widest panel: pairs of 32 channels.
const MAX_FACTORS: usize = 64;

/// A matrix for each point, and the sum of each output's weights.
///
/// Outputs are divided into panels of whole vectors; the last may be narrower and is padded with 0. A panel contains, for each pair of
/// inputs, the two weights of each output.
pub(crate) struct TransformedWeights {
    weights: AlignedBuffer<i32>,
    pub(crate) sums: Vec<i32>,
    /// Pairs of a panel, and those of all panels of a point.
    pairs: usize,
    point_size: usize,
}

impl TransformedWeights {
    /// Transforms weights [outputs, channels, 3, 3].
    pub(super) fn new(
        team: &dyn ThreadTeam,
        (channels, outputs): (usize, usize),
        kernels: &QuantizedMicroKernels,
        weights: &[i8],
    ) -> Self {
        let (lanes, width) = (kernels.panel_format.lanes, kernels.max_channels());
        let pairs = channels.div_ceil(PAIR);
        let point_size = pairs * outputs.next_multiple_of(lanes);
        let mut packed = AlignedBuffer::zeroed(POINTS * POINTS * point_size);
        let target = DisjointSlice::new(&mut packed);
        team.parallel_for_each(outputs.div_ceil(width), &|panel| {
            let first = panel * width;
            let count = width.min(outputs - first);
            let row = count.next_multiple_of(lanes);
            for pair in 0..pairs {
                let mut windows = FactorWindows { taps: [[0; MAX_FACTORS]; 9] };
                for output in 0..count {
                    for channel in (pair * PAIR..channels).take(PAIR) {
                        let window = &weights[((first + output) * channels + channel) * 9..][..9];
                        for (tap, weight) in windows.taps.iter_mut().zip(window) {
                            tap[output * PAIR + channel % PAIR] = i16::from(*weight);
                        }
                    }
                }
                let transformed = team.isa().vectorize(windows);
                for (point, factors) in transformed.as_flattened().iter().enumerate() {
                    let place = point * point_size + first * pairs + pair * row;
                    // SAFETY: each panel is filled by one thread.
                    let target = unsafe { target.range_mut(place..place + row) };
                    for (target, [low, high]) in target.iter_mut().zip(factors.as_chunks::<PAIR>().0) {
                        let ([a, b], [c, d]) = (low.to_ne_bytes(), high.to_ne_bytes());
                        *target = i32::from_ne_bytes([a, b, c, d]);
                    }
                }
            }
        });
        let sum = |window: &[i8]| window.iter().map(|weight| i32::from(*weight)).sum();
        let sums = weights.chunks_exact(channels * 9).map(sum).collect();
        Self { weights: packed, sums, pairs, point_size }
    }

    /// The weights of a panel at a point.
    pub(super) fn panel_pointer(&self, point: usize, output: usize) -> *const i8 {
        self.weights[point * self.point_size + output * self.pairs..].as_ptr().cast()
    }
}

/// The windows of a pair of input channels and some outputs: for each of the nine taps, the factors of a step.
struct FactorWindows {
    taps: [[i16; MAX_FACTORS]; 9],
}

impl SimdTask for FactorWindows {
    type Output = [[[i16; MAX_FACTORS]; POINTS]; POINTS];

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> Self::Output {
        let taps = &self.taps;
        let mut rows = [[[0; MAX_FACTORS]; POINTS]; 3];
        for (row, [p0, p1, p2, p3, p4, p5]) in rows.iter_mut().enumerate() {
            transform_rows(
                FourOutputs::transform_weights,
                [&taps[3 * row], &taps[3 * row + 1], &taps[3 * row + 2]],
                [p0, p1, p2, p3, p4, p5],
            );
        }
        let mut transformed = [[[0; MAX_FACTORS]; POINTS]; POINTS];
        let [r0, r1, r2] = &rows;
        let [t0, t1, t2, t3, t4, t5] = &mut transformed;
        for column in 0..POINTS {
            transform_rows(
                FourOutputs::transform_weights,
                [&r0[column], &r1[column], &r2[column]],
                [
                    &mut t0[column],
                    &mut t1[column],
                    &mut t2[column],
                    &mut t3[column],
                    &mut t4[column],
                    &mut t5[column],
                ],
            );
        }
        transformed
    }
}

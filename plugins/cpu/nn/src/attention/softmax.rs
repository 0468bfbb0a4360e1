//! Online softmax: scores arrive block by block, and earlier sums are rescaled when a greater score appears.

use std::ops::Range;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math;
use oarlock_cpu_gemm::{ConvertTo, StoredElement};

use super::lane_reduce;
use super::mask::AttentionBias;

/// The running state of a row.
#[derive(Clone, Copy)]
pub(super) struct SoftmaxState {
    /// The greatest score so far, initially less than any other finite number.
    pub(super) greatest: f32,
    /// The sum of exponentials, relative to that of the greatest score.
    pub(super) sum: f32,
}

impl SoftmaxState {
    pub(super) const EMPTY: Self = Self { greatest: f32::MIN, sum: 0.0 };
}

/// The scores of a row for one block of keys.
pub(super) struct ScoreRow<'a> {
    /// The keys that count. The others become 0.
    pub(super) keys: Range<usize>,
    /// The mask of those keys.
    pub(super) bias: AttentionBias<'a>,
    pub(super) sums: SoftmaxState,
    /// Factor for the results of earlier blocks.
    pub(super) factor: f32,
}

impl ScoreRow<'_> {
    pub(super) const EMPTY: Self =
        Self { keys: 0..0, bias: AttentionBias::None, sums: SoftmaxState::EMPTY, factor: 1.0 };
}

/// Turns the scores of some rows for one block of keys into weights.
pub(super) struct SoftmaxBlock<'t, 'a> {
    pub(super) isa: Isa,
    /// The scores, row by row, each padded to a whole group.
    pub(super) scores: &'t mut [f32],
    pub(super) stride: usize,
    /// Scores of each row that are used, in whole groups.
    pub(super) padded: usize,
    pub(super) rows: &'t mut [ScoreRow<'a>],
    pub(super) softcap: f32,
}

impl SimdTask for SoftmaxBlock<'_, '_> {
    type Output = ();

    /// All rows finish a step before any starts the next, so that the latency of one row's reduction overlaps with other rows.
    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { isa, scores, stride, padded, rows, softcap } = self;
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            prepare_scores::<T>(row, scores, softcap);
            // The maximum ignores NaN, which then spreads through its own exponential.
            let greatest = lane_reduce::reduce_max(isa, scores, row.sums.greatest);
            // Only the exponent here; `exp` follows in the second loop, with those of the scores.
            row.factor = row.sums.greatest - greatest;
            row.sums.greatest = greatest;
        }
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            for score in scores.iter_mut() {
                // Never positive after the subtraction, so a cheaper `exp` without a test for overflow suffices.
                *score = math::exp_of_negative::<T, f32>(*score - row.sums.greatest);
            }
            let sum = lane_reduce::reduce_sum(isa, scores);
            row.factor = math::exp_of_negative::<T, f32>(row.factor);
            row.sums.sum = math::MathFloat::multiply_add::<T>(row.sums.sum, row.factor, sum);
        }
    }
}

/// Scales, caps and masks scores before the softmax.
#[inline(always)]
fn prepare_scores<T: SimdTarget>(row: &ScoreRow<'_>, scores: &mut [f32], softcap: f32) {
    let counted = &mut scores[row.keys.clone()];
    if softcap > 0.0 {
        for score in counted.iter_mut() {
            *score = softcap * math::tanh::<T, f32>(*score / softcap);
        }
    }
    match row.bias {
        AttentionBias::None => {}
        AttentionBias::Flags(flags) => {
            for (score, flag) in counted.iter_mut().zip(flags) {
                *score = if *flag { *score } else { f32::NEG_INFINITY };
            }
        }
        AttentionBias::Numbers(numbers) => {
            for (score, number) in counted.iter_mut().zip(numbers) {
                *score += *number;
            }
        }
    }
    scores[..row.keys.start].fill(f32::NEG_INFINITY);
    scores[row.keys.end..].fill(f32::NEG_INFINITY);
}

/// Converts the elements of a row to another type, times a factor.
pub(super) struct ScaledRow<'a, F, E> {
    pub(super) from: &'a [F],
    pub(super) to: &'a mut [E],
    pub(super) factor: f32,
}

impl<F: ConvertTo<f32>, E: StoredElement<ComputeType = f32>> SimdTask for ScaledRow<'_, F, E> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = E::from_computed(from.convert() * self.factor);
        }
    }
}

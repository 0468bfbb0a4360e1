//! Online softmax: scores are processed block by block, and earlier sums are rescaled when a greater score appears.

use std::ops::Range;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math;
use oarlock_cpu_gemm::{ConvertTo, StoredElement};

use super::lane_reduce;
use super::mask::AttentionBias;

/// The running state of a row.
#[derive(Clone, Copy)]
pub(super) struct SoftmaxState {
    /// The greatest score so far, initially the lowest finite number.
    pub(super) greatest: f32,
    /// The sum of the exponentials of all scores minus `greatest`.
    pub(super) sum: f32,
}

impl SoftmaxState {
    // A finite minimum: with negative infinity, a row of hidden keys would compute infinity minus infinity, which is NaN.
    pub(super) const EMPTY: Self = Self { greatest: f32::MIN, sum: 0.0 };
}

/// The scores of a row for one block of keys.
pub(super) struct ScoreRow<'a> {
    /// The visible keys. The weights of the others become 0.
    pub(super) keys: Range<usize>,
    /// The mask of the visible keys.
    pub(super) bias: AttentionBias<'a>,
    pub(super) sums: SoftmaxState,
    /// The factor by which results of earlier blocks are rescaled.
    pub(super) factor: f32,
}

impl ScoreRow<'_> {
    pub(super) const EMPTY: Self =
        Self { keys: 0..0, bias: AttentionBias::None, sums: SoftmaxState::EMPTY, factor: 1.0 };
}

/// Turns the scores of some rows for one block of keys into weights.
pub(super) struct SoftmaxBlock<'t, 'a> {
    pub(super) isa: Isa,
    /// The scores row by row, each row padded to whole groups of lanes.
    pub(super) scores: &'t mut [f32],
    pub(super) stride: usize,
    /// The number of scores of a row that are processed, in whole groups.
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
            // The maximum ignores NaN, which spreads anyway, since its exponential is NaN.
            let greatest = lane_reduce::reduce_max(isa, scores, row.sums.greatest);
            // This is only the exponent; `exp` is applied in the second loop, with those of the scores.
            row.factor = row.sums.greatest - greatest;
            row.sums.greatest = greatest;
        }
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            for score in scores.iter_mut() {
                // The difference is never positive, so a cheaper `exp` without a test for overflow suffices.
                *score = math::exp_of_negative::<T, f32>(*score - row.sums.greatest);
            }
            let sum = lane_reduce::reduce_sum(isa, scores);
            row.factor = math::exp_of_negative::<T, f32>(row.factor);
            // The earlier sum is relative to the old maximum, so it is rescaled before this block's sum is added.
            row.sums.sum = math::MathFloat::multiply_add::<T>(row.sums.sum, row.factor, sum);
        }
    }
}

/// Caps and masks scores before the softmax. The query is already scaled.
#[inline(always)]
fn prepare_scores<T: SimdTarget>(row: &ScoreRow<'_>, scores: &mut [f32], softcap: f32) {
    // Only visible keys are capped and masked; the others are overwritten below.
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
    // Hidden keys and padding get a weight of exactly 0, so later loops run over whole groups without a mask.
    scores[..row.keys.start].fill(f32::NEG_INFINITY);
    scores[row.keys.end..].fill(f32::NEG_INFINITY);
}

/// Multiplies the elements of a row by a factor and converts them to another type.
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

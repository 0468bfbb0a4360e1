//! The softmax of scores that come block after block: what was summed up before is scaled down when a greater score appears.

use std::ops::Range;

use super::lane_reduce;
use super::mask::AttentionBias;
use crate::gemm::{ConvertTo, StoredElement};
use crate::isa::{Isa, SimdTarget, SimdTask};
use crate::kernels::elementwise::math;

/// What is known of the scores of a row so far.
#[derive(Clone, Copy)]
pub(super) struct SoftmaxState {
    /// The greatest, or less than any other finite number.
    pub(super) greatest: f32,
    /// The sum of their powers of e, scaled by that of the greatest.
    pub(super) sum: f32,
}

impl SoftmaxState {
    pub(super) const EMPTY: Self = Self { greatest: f32::MIN, sum: 0.0 };
}

/// A row of scores for one block of keys.
pub(super) struct ScoreRow<'a> {
    /// Which of them count. The others become 0.
    pub(super) keys: Range<usize>,
    /// The mask of those that count.
    pub(super) bias: AttentionBias<'a>,
    pub(super) sums: SoftmaxState,
    /// By what the results of earlier blocks must be multiplied.
    pub(super) factor: f32,
}

impl ScoreRow<'_> {
    /// Nothing is known of it yet.
    pub(super) const EMPTY: Self =
        Self { keys: 0..0, bias: AttentionBias::None, sums: SoftmaxState::EMPTY, factor: 1.0 };
}

/// Turns the scores of some rows for one block of keys into shares.
pub(super) struct SoftmaxBlock<'t, 'a> {
    pub(super) isa: Isa,
    /// The scores, a row after the other, each with room up to a whole group.
    pub(super) scores: &'t mut [f32],
    pub(super) stride: usize,
    /// How many of each row are used, in whole groups.
    pub(super) padded: usize,
    pub(super) rows: &'t mut [ScoreRow<'a>],
    pub(super) softcap: f32,
}

impl SimdTask for SoftmaxBlock<'_, '_> {
    type Output = ();

    /// All rows take one step before any takes the next, so that the processor need not wait for one row's sum.
    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { isa, scores, stride, padded, rows, softcap } = self;
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            prepare_scores::<T>(row, scores, softcap);
            // What is no number is passed over here, and then spreads through its own power.
            let greatest = lane_reduce::reduce_max(isa, scores, row.sums.greatest);
            row.factor = row.sums.greatest - greatest;
            row.sums.greatest = greatest;
        }
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            for score in scores.iter_mut() {
                *score = math::exp_of_negative::<T, f32>(*score - row.sums.greatest);
            }
            let sum = lane_reduce::reduce_sum(isa, scores);
            row.factor = math::exp_of_negative::<T, f32>(row.factor);
            row.sums.sum = math::MathFloat::multiply_add::<T>(row.sums.sum, row.factor, sum);
        }
    }
}

/// Brings scores into the form whose softmax is taken.
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

/// Elements of one row times a factor, in another type.
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

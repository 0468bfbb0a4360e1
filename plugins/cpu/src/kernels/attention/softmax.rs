//! The softmax of scores that come block after block: what was summed up before is scaled down when a greater score appears.

use std::ops::Range;

use super::fold;
use super::mask::Bias;
use crate::gemm::{Convert, Stored};
use crate::isa::{Isa, Target, Vectorized};
use crate::kernels::elementwise::math;

/// What is known of the scores of a row so far.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    /// The greatest, or less than any other finite number.
    pub(super) greatest: f32,
    /// The sum of their powers of e, scaled by that of the greatest.
    pub(super) sum: f32,
}

impl Sums {
    pub(super) const NONE: Self = Self { greatest: f32::MIN, sum: 0.0 };
}

/// A row of scores for one block of keys.
pub(super) struct Row<'a> {
    /// Which of them count. The others become 0.
    pub(super) keys: Range<usize>,
    /// The mask of those that count.
    pub(super) bias: Bias<'a>,
    pub(super) sums: Sums,
    /// By what the results of earlier blocks must be multiplied.
    pub(super) factor: f32,
}

impl Row<'_> {
    /// Nothing is known of it yet.
    pub(super) const NONE: Self = Self { keys: 0..0, bias: Bias::None, sums: Sums::NONE, factor: 1.0 };
}

/// Turns the scores of some rows for one block of keys into shares.
pub(super) struct Block<'t, 'a> {
    pub(super) isa: Isa,
    /// The scores, a row after the other, each with room up to a whole group.
    pub(super) scores: &'t mut [f32],
    pub(super) stride: usize,
    /// How many of each row are used, in whole groups.
    pub(super) padded: usize,
    pub(super) rows: &'t mut [Row<'a>],
    pub(super) softcap: f32,
}

impl Vectorized for Block<'_, '_> {
    type Output = ();

    /// All rows take one step before any takes the next, so that the processor need not wait for one row's sum.
    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { isa, scores, stride, padded, rows, softcap } = self;
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            prepare::<T>(row, scores, softcap);
            // What is no number is passed over here, and then spreads through its own power.
            let greatest = fold::greatest(isa, scores, row.sums.greatest);
            row.factor = row.sums.greatest - greatest;
            row.sums.greatest = greatest;
        }
        for (row, scores) in rows.iter_mut().zip(scores.chunks_mut(stride)) {
            let scores = &mut scores[..padded];
            for score in scores.iter_mut() {
                *score = math::exp_of_negative::<T, f32>(*score - row.sums.greatest);
            }
            let sum = fold::sum(isa, scores);
            row.factor = math::exp_of_negative::<T, f32>(row.factor);
            row.sums.sum = math::Float::times_plus::<T>(row.sums.sum, row.factor, sum);
        }
    }
}

/// Brings scores into the form whose softmax is taken.
#[inline(always)]
fn prepare<T: Target>(row: &Row<'_>, scores: &mut [f32], softcap: f32) {
    let counted = &mut scores[row.keys.clone()];
    if softcap > 0.0 {
        for score in counted.iter_mut() {
            *score = softcap * math::tanh::<T, f32>(*score / softcap);
        }
    }
    match row.bias {
        Bias::None => {}
        Bias::Flags(flags) => {
            for (score, flag) in counted.iter_mut().zip(flags) {
                *score = if *flag { *score } else { f32::NEG_INFINITY };
            }
        }
        Bias::Numbers(numbers) => {
            for (score, number) in counted.iter_mut().zip(numbers) {
                *score += *number;
            }
        }
    }
    scores[..row.keys.start].fill(f32::NEG_INFINITY);
    scores[row.keys.end..].fill(f32::NEG_INFINITY);
}

/// Elements of one row times a factor, in another type.
pub(super) struct Scaled<'a, F, E> {
    pub(super) from: &'a [F],
    pub(super) to: &'a mut [E],
    pub(super) factor: f32,
}

impl<F: Convert<f32>, E: Stored<Computed = f32>> Vectorized for Scaled<'_, F, E> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = E::store(from.convert() * self.factor);
        }
    }
}

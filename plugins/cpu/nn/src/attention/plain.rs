//! Attention row by row in `f64`, for `f64` elements, for a softmax in `f64`, and for calls that output scores.

#![expect(unsafe_code, reason = "threads write disjoint rows of one output")]

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_gemm::DisjointSlice;

use super::geometry::{AttentionShape, HeadStrides};
use super::mask::{AttentionBias, AttentionMask};

/// Plain attention computes everything in `f64`, whatever the elements are.
fn widen<E: ComputeElement>(element: E) -> f64 {
    element.to_float().to_f64()
}

fn narrow<E: ComputeElement>(value: f64) -> E {
    E::from_float(MathFloat::from_f64(value))
}

pub(super) struct PlainAttentionOperands<'a, E> {
    pub(super) query: &'a [E],
    pub(super) key: &'a [E],
    pub(super) value: &'a [E],
    pub(super) past_key: &'a [E],
    pub(super) past_value: &'a [E],
    pub(super) mask: AttentionMask<'a>,
    pub(super) output: DisjointSlice<'a, E>,
    pub(super) scores: Option<DisjointSlice<'a, E>>,
}

/// Computes the output and the scores. The present keys and values are copied elsewhere.
pub(super) fn compute_plain<E: ComputeElement>(
    cpu: &Cpu,
    geometry: &AttentionShape,
    operands: &PlainAttentionOperands<'_, E>,
) {
    let rows = geometry.batches * geometry.heads * geometry.queries;
    cpu.parallel_for(
        rows,
        grain_for(geometry.total_keys() * (geometry.size + geometry.value_size)),
        |begin, end| {
            // A whole row of scores is kept, since each score mode is stored at a different stage of all scores.
            let (mut scores, mut output) = (vec![0.0; geometry.total_keys()], vec![0.0; geometry.value_size]);
            for number in begin..end {
                let (head, row) = (number / geometry.queries, number % geometry.queries);
                let place = [head / geometry.heads, head % geometry.heads, row];
                operands.score_row(geometry, number, place, &mut scores);
                operands.combine_values(geometry, place, &scores, &mut output);
            }
        },
    );
}

impl<'a, E: ComputeElement> PlainAttentionOperands<'a, E> {
    /// Turns the scores of a row into weights, and stores them in the requested mode.
    fn score_row(&self, geometry: &AttentionShape, number: usize, place: [usize; 3], scores: &mut [f64]) {
        let [batch, head, row] = place;
        let start = geometry.query.row_start(batch, head, row);
        let query = &self.query[start..][..geometry.size];
        for (index, score) in scores.iter_mut().enumerate() {
            let key = keys_or_values(
                geometry,
                [(self.past_key, geometry.past_key), (self.key, geometry.key)],
                [batch, head, index],
                geometry.size,
            );
            let products = query.iter().zip(key).map(|(query, key)| widen(*query) * widen(*key));
            *score = products.sum::<f64>() * geometry.scale;
        }
        self.write_scores(geometry, 0, number, scores);
        if geometry.softcap > 0.0 {
            scores
                .iter_mut()
                .for_each(|score| *score = geometry.softcap * (*score / geometry.softcap).tanh());
        }
        self.write_scores(geometry, 1, number, scores);
        let keys = self.mask.visible_keys(geometry, batch, row);
        // Scores before the mask can be requested as well (mode 1), so bounds are applied after these are written.
        scores[..keys.start].fill(f64::NEG_INFINITY);
        scores[keys.end..].fill(f64::NEG_INFINITY);
        let counted = scores[keys.clone()].iter_mut();
        match self.mask.row_bias(place, keys) {
            AttentionBias::None => {}
            AttentionBias::Flags(flags) => {
                let hidden = counted.zip(flags).filter(|(_, flag)| !**flag);
                hidden.for_each(|(score, _)| *score = f64::NEG_INFINITY);
            }
            AttentionBias::Numbers(numbers) => {
                counted.zip(numbers).for_each(|(score, number)| *score += f64::from(*number));
            }
        }
        self.write_scores(geometry, 2, number, scores);
        // The greatest score is subtracted before `exp`, which then cannot overflow.
        let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if greatest == f64::NEG_INFINITY && !scores.iter().any(|score| score.is_nan())
            || self.mask.hides_all(geometry, place)
        {
            // A row without visible keys has weights of 0, as ONNX specifies, instead of 0/0.
            scores.fill(0.0);
        } else {
            scores.iter_mut().for_each(|score| *score = (*score - greatest).exp());
            let sum: f64 = scores.iter().sum();
            scores.iter_mut().for_each(|score| *score /= sum);
        }
        self.write_scores(geometry, 3, number, scores);
    }

    /// Stores the scores of a row if `mode` is the requested one.
    fn write_scores(&self, geometry: &AttentionShape, mode: i64, number: usize, scores: &[f64]) {
        let Some(target) = self.scores.as_ref().filter(|_| geometry.score_mode == Some(mode)) else { return };
        // SAFETY: each row has its own part.
        let target = unsafe { target.range_mut(number * scores.len()..(number + 1) * scores.len()) };
        for (target, score) in target.iter_mut().zip(scores) {
            *target = narrow(*score);
        }
    }

    /// Computes the weighted sum of the values.
    fn combine_values(
        &self,
        geometry: &AttentionShape,
        place: [usize; 3],
        shares: &[f64],
        output: &mut [f64],
    ) {
        let [batch, head, row] = place;
        output.fill(0.0);
        // A weight of 0 skips its value, so that a NaN in a masked value does not spread.
        for (index, share) in shares.iter().enumerate().filter(|(_, share)| **share != 0.0) {
            let value = keys_or_values(
                geometry,
                [(self.past_value, geometry.past_value), (self.value, geometry.value)],
                [batch, head, index],
                geometry.value_size,
            );
            output.iter_mut().zip(value).for_each(|(output, value)| *output += share * widen(*value));
        }
        let start = geometry.output.row_start(batch, head, row);
        // SAFETY: each row of the output is written once.
        let target = unsafe { self.output.range_mut(start..start + output.len()) };
        for (target, number) in target.iter_mut().zip(output) {
            *target = narrow(*number);
        }
    }
}

/// The row at an index, in the past or in the new elements, for a query head.
fn keys_or_values<'a, E>(
    geometry: &AttentionShape,
    [(past, past_steps), (fresh, steps)]: [(&'a [E], HeadStrides); 2],
    [batch, head, index]: [usize; 3],
    size: usize,
) -> &'a [E] {
    let head = head / geometry.group_size();
    if index < geometry.past {
        &past[past_steps.row_start(batch, head, index)..][..size]
    } else {
        &fresh[steps.row_start(batch, head, index - geometry.past)..][..size]
    }
}

//! Which keys are visible to a query row, and what is added to their scores.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::borrow::Cow;
use std::ops::Range;

use oarlock_cpu_gemm::ConvertTo;
use oarlock_sdk::{Dtype, Element, KernelCall, PluginError, Result, TensorView, bf16, ensure, f16};

use super::geometry::AttentionShape;

/// The mask operand, and the bounds of each row's keys.
pub(super) struct AttentionMask<'a> {
    values: MaskValues<'a>,
    /// The distances in the mask between batches, heads and query rows; 0 along broadcast dimensions.
    steps: [usize; 3],
    /// The number of keys that the mask covers. Further keys are hidden from all rows.
    keys: usize,
    /// The number of keys in each batch before the padding.
    lengths: Option<&'a [i64]>,
}

enum MaskValues<'a> {
    None,
    Flags(&'a [bool]),
    Numbers(Cow<'a, [f32]>),
}

/// The mask of a row, with a value per key.
#[derive(Clone, Copy)]
pub(super) enum AttentionBias<'a> {
    /// All keys are visible, and scores are unchanged.
    None,
    /// True if a key is visible.
    Flags(&'a [bool]),
    /// Added to the score of a key.
    Numbers(&'a [f32]),
}

impl<'a> AttentionMask<'a> {
    pub(super) fn new(call: &KernelCall<'a>, geometry: &AttentionShape) -> Result<Self> {
        let total = geometry.total_keys();
        let lengths = match call.optional_input(6)? {
            Some(lengths) => {
                ensure!(
                    lengths.dims() == [geometry.batches as i64] && call.optional_input(4)?.is_none(),
                    invalid_argument,
                    "expected one length for each of {} batches and no past, found lengths of shape {:?}",
                    geometry.batches,
                    lengths.dims()
                );
                Some(operand_elements::<i64>(&lengths)?)
            }
            None => None,
        };
        let Some(mask) = call.optional_input(3)? else {
            return Ok(Self { lengths, ..Self::without_mask(total) });
        };
        let [outer @ .., keys] = mask.dims() else {
            return Err(PluginError::invalid_argument(
                "expected a mask of 1 to 4 dimensions, found a single element",
            ));
        };
        let expected = [geometry.batches, geometry.heads, geometry.queries];
        let (mut steps, mut step) = ([0; 3], *keys as usize);
        // Dimensions are aligned at the last one, as in every broadcast; missing dimensions broadcast.
        let pairs = outer.iter().rev().zip(expected.iter().zip(&mut steps).rev());
        let mut fits = outer.len() <= 3 && *keys >= 0 && *keys as usize <= total;
        for (found, (expected, target)) in pairs {
            fits &= *found == 1 || *found == *expected as i64;
            *target = if *found == 1 { 0 } else { step };
            step = step.saturating_mul(*found as usize);
        }
        ensure!(
            fits,
            invalid_argument,
            "expected a mask that repeats to {expected:?} for up to {total} keys, found {:?}",
            mask.dims()
        );
        let values = match mask.dtype() {
            Dtype::BOOL => MaskValues::Flags(operand_elements(&mask)?),
            Dtype::F32 => MaskValues::Numbers(Cow::Borrowed(operand_elements(&mask)?)),
            Dtype::F64 => MaskValues::Numbers(
                // Scores are `f32`, so the sum would lose further digits of the mask.
                operand_elements::<f64>(&mask)?.iter().map(|value| *value as f32).collect(),
            ),
            Dtype::F16 => MaskValues::Numbers(converted_elements::<f16>(&mask)?),
            _ => MaskValues::Numbers(converted_elements::<bf16>(&mask)?),
        };
        Ok(Self { values, steps, keys: *keys as usize, lengths })
    }

    pub(super) fn without_mask(keys: usize) -> Self {
        Self { values: MaskValues::None, steps: [0; 3], keys, lengths: None }
    }

    /// The keys visible to query rows, if they are the same for all rows.
    pub(super) fn common_keys(&self, geometry: &AttentionShape) -> Option<Range<usize>> {
        (self.lengths.is_none() && geometry.window.is_open()).then_some(0..self.keys)
    }

    /// True if there is no mask operand, only bounds.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.values, MaskValues::None)
    }

    pub(super) fn visible_keys(&self, geometry: &AttentionShape, batch: usize, row: usize) -> Range<usize> {
        let length = self.lengths.map(|lengths| lengths[batch]);
        // The queries are the last rows of a sequence: with lengths, those before the padding, otherwise those after the past.
        let before = match length {
            Some(length) => length.saturating_sub(geometry.queries as i64),
            None => geometry.past as i64,
        };
        let count = length.map_or(self.keys, |length| self.keys.min(length.max(0) as usize));
        geometry.window.visible_keys(before.saturating_add(row as i64), count)
    }

    /// The mask of a query row for some of its visible keys.
    pub(super) fn row_bias(&self, [batch, head, row]: [usize; 3], keys: Range<usize>) -> AttentionBias<'_> {
        let start = batch * self.steps[0] + head * self.steps[1] + row * self.steps[2];
        let range = start + keys.start..start + keys.end;
        match &self.values {
            MaskValues::None => AttentionBias::None,
            MaskValues::Flags(flags) => AttentionBias::Flags(&flags[range]),
            MaskValues::Numbers(numbers) => AttentionBias::Numbers(&numbers[range]),
        }
    }

    /// True if no key is visible to a query row.
    pub(super) fn hides_all(&self, geometry: &AttentionShape, place: [usize; 3]) -> bool {
        let keys = self.visible_keys(geometry, place[0], place[2]);
        match self.row_bias(place, keys.clone()) {
            AttentionBias::None => keys.is_empty(),
            AttentionBias::Flags(flags) => flags.iter().all(|flag| !flag),
            AttentionBias::Numbers(numbers) => numbers.iter().all(|number| *number == f32::NEG_INFINITY),
        }
    }
}

fn operand_elements<'a, T: Element>(operand: &TensorView<'a>) -> Result<&'a [T]> {
    // SAFETY: device memory is host memory, and the call guarantees that nothing writes its inputs.
    unsafe { operand.elements() }
}

fn converted_elements<'a, T: Element + ConvertTo<f32>>(operand: &TensorView<'a>) -> Result<Cow<'a, [f32]>> {
    Ok(operand_elements::<T>(operand)?.iter().map(|value| value.convert()).collect())
}

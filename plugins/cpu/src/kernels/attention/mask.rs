//! Which keys a row of the query sees, and what is added to its scores.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::borrow::Cow;
use std::ops::Range;

use oarlock_sdk::{Call, Dtype, Element, Error, Result, Tensor, bf16, ensure, f16};

use super::geometry::Geometry;
use crate::gemm::Convert;

/// The bounds of each row's keys, and the mask.
pub(super) struct Mask<'a> {
    values: Values<'a>,
    /// Elements from one batch, head and row of the query to the next; 0 where they share.
    steps: [usize; 3],
    /// How many keys the mask tells of. No row sees more.
    keys: usize,
    /// How many keys of each batch are no padding.
    lengths: Option<&'a [i64]>,
}

enum Values<'a> {
    None,
    Flags(&'a [bool]),
    Numbers(Cow<'a, [f32]>),
}

/// The mask of a row, a value for each key.
#[derive(Clone, Copy)]
pub(super) enum Bias<'a> {
    /// All keys count as they are.
    None,
    /// Whether a key counts.
    Flags(&'a [bool]),
    /// What is added to the score of a key.
    Numbers(&'a [f32]),
}

impl<'a> Mask<'a> {
    pub(super) fn new(call: &Call<'a>, geometry: &Geometry) -> Result<Self> {
        let total = geometry.total();
        let lengths = match call.optional_input(6)? {
            Some(lengths) => {
                ensure!(
                    lengths.dims() == [geometry.batches as i64] && call.optional_input(4)?.is_none(),
                    invalid_argument,
                    "expected one length for each of {} batches and no past, found lengths of shape {:?}",
                    geometry.batches,
                    lengths.dims()
                );
                Some(elements::<i64>(&lengths)?)
            }
            None => None,
        };
        let Some(mask) = call.optional_input(3)? else {
            return Ok(Self { lengths, ..Self::none(total) });
        };
        let [outer @ .., keys] = mask.dims() else {
            return Err(Error::invalid_argument(
                "expected a mask of 1 to 4 dimensions, found a single element",
            ));
        };
        let expected = [geometry.batches, geometry.heads, geometry.queries];
        let (mut steps, mut step) = ([0; 3], *keys as usize);
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
            Dtype::BOOL => Values::Flags(elements(&mask)?),
            Dtype::F32 => Values::Numbers(Cow::Borrowed(elements(&mask)?)),
            Dtype::F64 => {
                Values::Numbers(elements::<f64>(&mask)?.iter().map(|value| *value as f32).collect())
            }
            Dtype::F16 => Values::Numbers(converted::<f16>(&mask)?),
            _ => Values::Numbers(converted::<bf16>(&mask)?),
        };
        Ok(Self { values, steps, keys: *keys as usize, lengths })
    }

    /// No mask for so many keys.
    pub(super) fn none(keys: usize) -> Self {
        Self { values: Values::None, steps: [0; 3], keys, lengths: None }
    }

    /// The keys that all rows of the query may see, where they are the same for all.
    pub(super) fn common_keys(&self, geometry: &Geometry) -> Option<Range<usize>> {
        (self.lengths.is_none() && geometry.window.is_open()).then_some(0..self.keys)
    }

    /// Whether there is nothing but the bounds of each row.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.values, Values::None)
    }

    /// The keys that a row of the query may see.
    pub(super) fn keys(&self, geometry: &Geometry, batch: usize, row: usize) -> Range<usize> {
        let length = self.lengths.map(|lengths| lengths[batch]);
        let before = match length {
            Some(length) => length.saturating_sub(geometry.queries as i64),
            None => geometry.past as i64,
        };
        let count = length.map_or(self.keys, |length| self.keys.min(length.max(0) as usize));
        geometry.window.keys(before.saturating_add(row as i64), count)
    }

    /// The mask of a row of the query for some of the keys that it may see.
    pub(super) fn bias(&self, [batch, head, row]: [usize; 3], keys: Range<usize>) -> Bias<'_> {
        let start = batch * self.steps[0] + head * self.steps[1] + row * self.steps[2];
        let range = start + keys.start..start + keys.end;
        match &self.values {
            Values::None => Bias::None,
            Values::Flags(flags) => Bias::Flags(&flags[range]),
            Values::Numbers(numbers) => Bias::Numbers(&numbers[range]),
        }
    }

    /// Whether a row of the query sees no key at all.
    pub(super) fn hides_all(&self, geometry: &Geometry, place: [usize; 3]) -> bool {
        let keys = self.keys(geometry, place[0], place[2]);
        match self.bias(place, keys.clone()) {
            Bias::None => keys.is_empty(),
            Bias::Flags(flags) => flags.iter().all(|flag| !flag),
            Bias::Numbers(numbers) => numbers.iter().all(|number| *number == f32::NEG_INFINITY),
        }
    }
}

fn elements<'a, T: Element>(operand: &Tensor<'a>) -> Result<&'a [T]> {
    // SAFETY: the device's memory is the host's, and the call vouches that nothing writes its inputs.
    unsafe { operand.elements() }
}

fn converted<'a, T: Element + Convert<f32>>(operand: &Tensor<'a>) -> Result<Cow<'a, [f32]>> {
    Ok(elements::<T>(operand)?.iter().map(|value| value.convert()).collect())
}

//! Attention masks: converts lengths, flags or additive masks of contrib ops to additive masks.

use oarlock_core::Result;

use super::lowering::ContribLowering;
use crate::graph::ValueId;

/// Shape of the scores that a mask is for.
pub(super) struct MaskedScores {
    /// An operand whose first two dimensions are batch and rows.
    pub(super) rows: ValueId,
    /// Number of keys, the past included, as a vector of one element.
    pub(super) keys: ValueId,
    /// Summand for the score of a masked key.
    pub(super) hidden: f64,
}

/// Builds an additive mask that broadcasts to [batch, heads, rows, keys], in the dtype of the rows.
pub(super) fn additive_mask(
    op: &mut ContribLowering<'_>,
    mask: ValueId,
    scores: &MaskedScores,
) -> Result<ValueId> {
    let is_seen = match op.rank(mask) {
        Some(1) => mask_by_lengths(op, mask, scores)?,
        Some(4) => {
            let rows = op.slice_shape(scores.rows, 1, Some(2));
            let (past, none) = (op.add_op("Sub", &[scores.keys, rows]), op.add_ints(&[0]));
            let mask = op.add_slice(mask, [past, scores.keys], 2);
            let mask = op.add_slice(mask, [none, scores.keys], 3);
            nonzero_mask(op, mask)?
        }
        // A flag for each key of a sequence, or for each row and key.
        _ => {
            let (texts, rest) = (op.slice_shape(scores.rows, 0, Some(1)), op.add_ints(&[1, -1]));
            let mask = op.add_reshape_to(mask, &[texts, rest, scores.keys]);
            nonzero_mask(op, mask)?
        }
    };
    let (nothing, hidden) =
        (op.add_scalar_like(0.0, scores.rows)?, op.add_scalar_like(scores.hidden, scores.rows)?);
    Ok(op.add_op("Where", &[is_seen, nothing, hidden]))
}

fn nonzero_mask(op: &mut ContribLowering<'_>, mask: ValueId) -> Result<ValueId> {
    let zero = op.add_scalar_like(0.0, mask)?;
    Ok(op.add_op("Greater", &[mask, zero]))
}

/// Visible keys by lengths: keys before the end of each sequence, and from its start if starts follow the ends.
fn mask_by_lengths(op: &mut ContribLowering<'_>, lengths: ValueId, scores: &MaskedScores) -> Result<ValueId> {
    let (texts, none) = (op.slice_shape(scores.rows, 0, Some(1)), op.add_ints(&[0]));
    let twice = op.add_op("Add", &[texts, texts]);
    let zero = op.add_scalar_like(0.0, lengths)?;
    let first = op.add_op("Expand", &[zero, texts]);
    let both = op.add_concat(&[lengths, first], 0);
    let ends = op.add_slice(both, [none, texts], 0);
    let starts = op.add_slice(both, [texts, twice], 0);
    let [starts, ends] = [starts, ends].map(|list| op.add_unsqueeze(list, &[1]));
    let count = op.add_reshape(scores.keys, &[]);
    let places = op.add_range(count)?;
    let places = op.add_cast_like(places, lengths);
    let (is_early, is_late) =
        (op.add_op("Less", &[places, ends]), op.add_op("GreaterOrEqual", &[places, starts]));
    let is_seen = op.add_op("And", &[is_early, is_late]);
    Ok(op.add_unsqueeze(is_seen, &[1, 2]))
}

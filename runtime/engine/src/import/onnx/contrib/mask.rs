//! Which keys a row may see: what onnxruntime's ops are told as lengths, flags or numbers, as numbers that are added to scores.

use oarlock_core::Result;

use super::lowering::Lowering;
use crate::graph::ValueId;

/// What scores a mask is for.
pub(super) struct Scores {
    /// An operand whose first dimension is that of the texts, and whose second that of their rows.
    pub(super) rows: ValueId,
    /// How many keys there are with those of the past, as a list of one element.
    pub(super) keys: ValueId,
    /// What is added to the score of a key that is not to be seen.
    pub(super) hidden: f64,
}

/// Numbers for the scores of each text, head, row and key, of the dtype of the rows.
pub(super) fn added(op: &mut Lowering<'_>, mask: ValueId, scores: &Scores) -> Result<ValueId> {
    let is_seen = match op.rank(mask) {
        Some(1) => within_lengths(op, mask, scores)?,
        Some(4) => {
            let rows = op.sizes(scores.rows, 1, Some(2));
            let (past, none) = (op.apply("Sub", &[scores.keys, rows]), op.ints(&[0]));
            let mask = op.slice(mask, [past, scores.keys], 2);
            let mask = op.slice(mask, [none, scores.keys], 3);
            is_set(op, mask)?
        }
        // A flag for each key of a text, or for each key of each of its rows.
        _ => {
            let (texts, rest) = (op.sizes(scores.rows, 0, Some(1)), op.ints(&[1, -1]));
            let mask = op.reshape_to(mask, &[texts, rest, scores.keys]);
            is_set(op, mask)?
        }
    };
    let (nothing, hidden) = (op.number(0.0, scores.rows)?, op.number(scores.hidden, scores.rows)?);
    Ok(op.apply("Where", &[is_seen, nothing, hidden]))
}

fn is_set(op: &mut Lowering<'_>, mask: ValueId) -> Result<ValueId> {
    let zero = op.number(0.0, mask)?;
    Ok(op.apply("Greater", &[mask, zero]))
}

/// Keys before the end of each text, and from its beginning on where the ends are followed by beginnings.
fn within_lengths(op: &mut Lowering<'_>, lengths: ValueId, scores: &Scores) -> Result<ValueId> {
    let (texts, none) = (op.sizes(scores.rows, 0, Some(1)), op.ints(&[0]));
    let twice = op.apply("Add", &[texts, texts]);
    let zero = op.number(0.0, lengths)?;
    let first = op.apply("Expand", &[zero, texts]);
    let both = op.join(&[lengths, first], 0);
    let ends = op.slice(both, [none, texts], 0);
    let starts = op.slice(both, [texts, twice], 0);
    let [starts, ends] = [starts, ends].map(|list| op.unsqueeze(list, &[1]));
    let count = op.reshape(scores.keys, &[]);
    let places = op.range(count)?;
    let places = op.cast_like(places, lengths);
    let (is_early, is_late) =
        (op.apply("Less", &[places, ends]), op.apply("GreaterOrEqual", &[places, starts]));
    let is_seen = op.apply("And", &[is_early, is_late]);
    Ok(op.unsqueeze(is_seen, &[1, 2]))
}

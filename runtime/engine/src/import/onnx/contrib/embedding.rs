//! What words become before the first layer.

use oarlock_core::{Attribute, Dtype, Result};

use super::lowering::Lowering;
use super::normal::layer;
use super::row::Row;
use crate::graph::ValueId;
use crate::import::place::wrong;

pub(super) const OPS: &[Row] = &[Row {
    op: "EmbedLayerNormalization",
    inputs: "input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta mask? position_ids?",
    attributes: "epsilon mask_index_type",
    outputs: "output mask_index embedding_sum",
    lower: embed,
}];

fn embed(op: &mut Lowering<'_>) -> Result<()> {
    let ids = op.input(0)?;
    let words = op.apply("Gather", &[op.input(2)?, ids]);
    let places = match op.maybe(8) {
        Some(places) => places,
        None => {
            let count = op.size(ids, 1);
            op.range(count)?
        }
    };
    let places = op.apply("Gather", &[op.input(3)?, places]);
    let mut sum = op.apply("Add", &[words, places]);
    match (op.maybe(1), op.maybe(4)) {
        (Some(segments), Some(table)) => {
            let segments = op.apply("Gather", &[table, segments]);
            sum = op.apply("Add", &[sum, segments]);
        }
        (None, None) => {}
        _ => return Err(wrong("`segment_ids` with `segment_embedding`", "one of them")),
    }
    let made = layer(op, sum, 5, 6)?;
    op.give(0, made);
    op.give(2, sum);
    if op.wants(1) {
        let lengths = lengths(op, ids)?;
        op.give(1, lengths);
        op.note_rank(1, 1);
    }
    Ok(())
}

/// How many words of each text are there, or 0 where nothing is said about that.
fn lengths(op: &mut Lowering<'_>, ids: ValueId) -> Result<ValueId> {
    let Some(mask) = op.maybe(7) else {
        let (batch, zero) = (op.sizes(ids, 0, Some(1)), op.whole(0)?);
        let zero = op.cast(zero, Dtype::I32);
        return Ok(op.apply("Expand", &[zero, batch]));
    };
    let one = op.number(1.0, mask)?;
    let is_there = op.apply("Equal", &[mask, one]);
    let (is_there, axes) = (op.cast(is_there, Dtype::I32), op.ints(&[1]));
    Ok(op.with("ReduceSum", &[is_there, axes], [("keepdims", Attribute::Int(0))]))
}

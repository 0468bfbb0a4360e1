//! Embeddings: from token ids to the input of the first layer.

use oarlock_core::{Attribute, Dtype, Result};

use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use super::normalization::add_layer_norm;
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const EMBEDDING_OPS: &[ContribOp] = &[ContribOp {
    op: "EmbedLayerNormalization",
    inputs: "input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta mask? position_ids?",
    attributes: "epsilon mask_index_type",
    outputs: "output mask_index embedding_sum",
    lower: lower_embedding,
}];

fn lower_embedding(op: &mut ContribLowering<'_>) -> Result<()> {
    let ids = op.input(0)?;
    let words = op.add_op("Gather", &[op.input(2)?, ids]);
    let places = match op.optional_input(8) {
        Some(places) => places,
        None => {
            let count = op.dimension_size(ids, 1);
            op.add_range(count)?
        }
    };
    let places = op.add_op("Gather", &[op.input(3)?, places]);
    let mut sum = op.add_op("Add", &[words, places]);
    match (op.optional_input(1), op.optional_input(4)) {
        (Some(segments), Some(table)) => {
            let segments = op.add_op("Gather", &[table, segments]);
            sum = op.add_op("Add", &[sum, segments]);
        }
        (None, None) => {}
        _ => return Err(invalid_model("`segment_ids` with `segment_embedding`", "one of them")),
    }
    let result = add_layer_norm(op, sum, 5, 6)?;
    op.set_output(0, result);
    op.set_output(2, sum);
    if op.wants_output(1) {
        let lengths = mask_lengths(op, ids)?;
        op.set_output(1, lengths);
        op.set_output_rank(1, 1);
    }
    Ok(())
}

/// The number of valid tokens in each sequence, or 0 without a mask.
fn mask_lengths(op: &mut ContribLowering<'_>, ids: ValueId) -> Result<ValueId> {
    let Some(mask) = op.optional_input(7) else {
        let (batch, zero) = (op.slice_shape(ids, 0, Some(1)), op.add_int_scalar(0)?);
        let zero = op.add_cast(zero, Dtype::I32);
        return Ok(op.add_op("Expand", &[zero, batch]));
    };
    let one = op.add_scalar_like(1.0, mask)?;
    let is_there = op.add_op("Equal", &[mask, one]);
    let (is_there, axes) = (op.add_cast(is_there, Dtype::I32), op.add_ints(&[1]));
    Ok(op.add_op_with("ReduceSum", &[is_there, axes], [("keepdims", Attribute::Int(0))]))
}

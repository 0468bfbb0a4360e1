//! Recurrent networks.

use super::context::{InferenceContext, attribute_error};
use super::fact::PartialDim;
use super::output::InferredOutput;
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("RNN", 1, LATEST, &[], |call| infer_recurrent(call, 1)),
    rule("GRU", 1, LATEST, &[], |call| infer_recurrent(call, 3)),
    rule("LSTM", 1, LATEST, &[], |call| infer_recurrent(call, 4)),
    rule("DynamicQuantizedLSTM", 1, LATEST, &[], infer_quantized_lstm).in_oarlock_domain(),
];

/// The weights are transposed. Scales and zero points are per direction, or per column of the weights.
fn infer_quantized_lstm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    for (weights, lists) in [(1, [8, 9]), (2, [10, 11])] {
        let Some([directions, _, rows]) = call.dims_of_rank::<3>(weights)? else { continue };
        for list in lists {
            let found = call.input_dims(list)?;
            if found.is_some_and(|found| found.len() != 1) {
                call.expect_dims(list, &[directions, rows])?;
            } else {
                call.expect_dims(list, &[directions])?;
            }
        }
    }
    infer_recurrent(call, 4)
}

/// The weights of all gates are concatenated. Only `LSTM` has a cell state and peephole weights.
fn infer_recurrent(call: &InferenceContext<'_>, gates: i64) -> Result<Vec<InferredOutput>> {
    let is_batch_first = call.flag_attribute("layout", false)?;
    let [first, second, features] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 3]);
    let [steps, batches] = if is_batch_first { [second, first] } else { [first, second] };
    let directions = PartialDim::Known(match call.string_attribute("direction", "forward")? {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => {
            return Err(attribute_error(
                "direction",
                "forward, reverse or bidirectional",
                format!("`{other}`"),
            ));
        }
    });
    let is_transposed = call.op() == "DynamicQuantizedLSTM";
    let hidden = hidden_size(call, is_transposed)?;
    let rows = hidden.try_mul(gates)?;
    call.input(1)?;
    let weights = |depth| if is_transposed { [directions, depth, rows] } else { [directions, rows, depth] };
    call.expect_dims(1, &weights(features))?;
    call.expect_dims(2, &weights(hidden))?;
    call.expect_dims(3, &[directions, rows.try_mul(2)?])?;
    call.expect_dims(4, &[batches])?;
    let state = if is_batch_first { [batches, directions, hidden] } else { [directions, batches, hidden] };
    call.expect_dims(5, &state)?;
    call.expect_dims(6, &state)?;
    call.expect_dims(7, &[directions, hidden.try_mul(3)?])?;
    let all = match is_batch_first {
        true => [batches, steps, directions, hidden],
        false => [steps, directions, batches, hidden],
    };
    let mut outputs = vec![all.as_slice().into(), state.as_slice().into()];
    if gates == 4 {
        outputs.push(state.as_slice().into());
    }
    Ok(outputs)
}

fn hidden_size(call: &InferenceContext<'_>, is_transposed: bool) -> Result<PartialDim> {
    let [_, transposed, found] = call.dims_of_rank(2)?.unwrap_or([PartialDim::Unknown; 3]);
    let found = if is_transposed { transposed } else { found };
    match call.int_attribute("hidden_size")? {
        Some(stated) if stated < 1 => Err(attribute_error("hidden_size", "at least 1", stated)),
        Some(stated) if !found.may_equal(PartialDim::Known(stated)) => {
            let what = if is_transposed { "rows" } else { "columns" };
            Err(call.input_error(2, format!("{stated} {what}, as `hidden_size` says"), found))
        }
        Some(stated) => Ok(PartialDim::Known(stated)),
        None => Ok(found),
    }
}

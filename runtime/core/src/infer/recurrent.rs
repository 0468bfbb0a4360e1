//! Networks that step through a sequence.

use super::call::{Call, wrong_attribute};
use super::fact::Dim;
use super::output::Output;
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("RNN", 1, LATEST, &[], |call| recurrent(call, 1)),
    rule("GRU", 1, LATEST, &[], |call| recurrent(call, 3)),
    rule("LSTM", 1, LATEST, &[], |call| recurrent(call, 4)),
    rule("DynamicQuantizedLSTM", 1, LATEST, &[], of_bytes).of_domain("oarlock"),
];

/// The weights are turned, and have scales and zero points for each direction, or for each element that products give.
fn of_bytes(call: &Call<'_>) -> Result<Vec<Output>> {
    for (weights, lists) in [(1, [8, 9]), (2, [10, 11])] {
        let Some([directions, _, rows]) = call.dims_of_rank::<3>(weights)? else { continue };
        for list in lists {
            let found = call.dims(list)?;
            if found.is_some_and(|found| found.len() != 1) {
                call.expect_dims(list, &[directions, rows])?;
            } else {
                call.expect_dims(list, &[directions])?;
            }
        }
    }
    recurrent(call, 4)
}

/// The weights of all gates lie one behind the other. Only `LSTM` has states of cells and weights to peep through.
fn recurrent(call: &Call<'_>, gates: i64) -> Result<Vec<Output>> {
    let is_batch_first = call.flag("layout", false)?;
    let [first, second, features] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 3]);
    let [steps, batches] = if is_batch_first { [second, first] } else { [first, second] };
    let directions = Dim::Known(match call.text("direction", "forward")? {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => {
            return Err(wrong_attribute(
                "direction",
                "forward, reverse or bidirectional",
                format!("`{other}`"),
            ));
        }
    });
    let is_turned = call.op() == "DynamicQuantizedLSTM";
    let hidden = hidden_size(call, is_turned)?;
    let rows = hidden.times(gates)?;
    call.input(1)?;
    let weights = |depth| if is_turned { [directions, depth, rows] } else { [directions, rows, depth] };
    call.expect_dims(1, &weights(features))?;
    call.expect_dims(2, &weights(hidden))?;
    call.expect_dims(3, &[directions, rows.times(2)?])?;
    call.expect_dims(4, &[batches])?;
    let state = if is_batch_first { [batches, directions, hidden] } else { [directions, batches, hidden] };
    call.expect_dims(5, &state)?;
    call.expect_dims(6, &state)?;
    call.expect_dims(7, &[directions, hidden.times(3)?])?;
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

fn hidden_size(call: &Call<'_>, is_turned: bool) -> Result<Dim> {
    let [_, turned, found] = call.dims_of_rank(2)?.unwrap_or([Dim::Unknown; 3]);
    let found = if is_turned { turned } else { found };
    match call.int("hidden_size")? {
        Some(stated) if stated < 1 => Err(wrong_attribute("hidden_size", "at least 1", stated)),
        Some(stated) if !found.agrees(Dim::Known(stated)) => {
            let what = if is_turned { "rows" } else { "columns" };
            Err(call.wrong(2, format!("{stated} {what}, as `hidden_size` says"), found))
        }
        Some(stated) => Ok(Dim::Known(stated)),
        None => Ok(found),
    }
}

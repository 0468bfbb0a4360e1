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
];

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
    let hidden = hidden_size(call)?;
    let rows = hidden.times(gates)?;
    call.input(1)?;
    call.expect_dims(1, &[directions, rows, features])?;
    call.expect_dims(2, &[directions, rows, hidden])?;
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
    if call.op() == "LSTM" {
        outputs.push(state.as_slice().into());
    }
    Ok(outputs)
}

fn hidden_size(call: &Call<'_>) -> Result<Dim> {
    let [_, _, found] = call.dims_of_rank(2)?.unwrap_or([Dim::Unknown; 3]);
    match call.int("hidden_size")? {
        Some(stated) if stated < 1 => Err(wrong_attribute("hidden_size", "at least 1", stated)),
        Some(stated) if !found.agrees(Dim::Known(stated)) => {
            Err(call.wrong(2, format!("{stated} columns, as `hidden_size` says"), found))
        }
        Some(stated) => Ok(Dim::Known(stated)),
        None => Ok(found),
    }
}

//! Optimisers.
//!
//! After the rate and the number of the update, the operands are lists of the same length: all tensors to optimise,
//! then their gradients, then each kind of state. The outputs are the new tensors, then each kind of new state.

use super::call::Call;
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use crate::{Error, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Adagrad Momentum", 1, LATEST, &[], |call| optimize(call, 1)).of_domain("ai.onnx.preview.training"),
    rule("Adam", 1, LATEST, &[], |call| optimize(call, 2)).of_domain("ai.onnx.preview.training"),
    rule("Sgd", 1, LATEST, &[], step).of_domain("oarlock"),
];

fn optimize(call: &Call<'_>, states: usize) -> Result<Vec<Output>> {
    (0..2).try_for_each(|input| call.input(input).and_then(|_| call.expect_one_element(input)))?;
    let lists = 2 + states;
    let operands = call.input_count() - 2;
    if operands == 0 || !operands.is_multiple_of(lists) {
        return Err(Error::invalid_argument(format!(
            "expected tensors, gradients and {states} kinds of states, as many of each, found {operands} operands"
        )));
    }
    let count = operands / lists;
    let output = |at: usize| {
        let tensor = 2 + at % count;
        let known = call.input(tensor)?;
        for list in 1..lists {
            let input = tensor + list * count;
            let found = call.input(input)?;
            known.dims.as_deref().map_or(Ok(()), |expected| call.expect_dims(input, expected))?;
            if found.dtype != known.dtype {
                return Err(call.wrong(input, known.dtype, found.dtype));
            }
        }
        Ok(Output::from(known.dims.clone()).of_dtype(known.dtype))
    };
    (0..count * (1 + states)).map(output).collect()
}

fn step(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(0)?;
    call.expect_one_element(0)?;
    call.input(2)?;
    call.dims(1)?.map_or(Ok(()), |expected| call.expect_dims(2, expected))?;
    one(call.shape(1)?)
}

//! Optimizers.
//!
//! The first operands are the learning rate and the update count. Then come lists of equal length: all tensors to
//! optimize, their gradients, and each kind of state. The outputs are the new tensors, then each kind of new state.

use super::context::InferenceContext;
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Error, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Adagrad Momentum", 1, LATEST, &[], |call| infer_optimizer(call, 1))
        .in_domain("ai.onnx.preview.training"),
    rule("Adam", 1, LATEST, &[], |call| infer_optimizer(call, 2)).in_domain("ai.onnx.preview.training"),
    rule("Sgd", 1, LATEST, &[], infer_sgd).in_oarlock_domain(),
];

fn infer_optimizer(call: &InferenceContext<'_>, states: usize) -> Result<Vec<InferredOutput>> {
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
                return Err(call.input_error(input, known.dtype, found.dtype));
            }
        }
        Ok(InferredOutput::from(known.dims.clone()).with_dtype(known.dtype))
    };
    (0..count * (1 + states)).map(output).collect()
}

fn infer_sgd(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(0)?;
    call.expect_one_element(0)?;
    call.input(2)?;
    call.input_dims(1)?.map_or(Ok(()), |expected| call.expect_dims(2, expected))?;
    single_output(call.input_shape(1)?)
}

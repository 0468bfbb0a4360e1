//! The steps of a fused op, as its attributes list them.

use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// One op and its operands.
#[derive(Clone, Debug)]
pub(super) struct StepCall<'a> {
    pub(super) op: &'a str,
    pub(super) operands: Vec<StepOperand>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum StepOperand {
    /// An input of the fused op, or from their number on the result of a step.
    Value(usize),
    Scalar(f64),
}

/// Reads the steps. Each operand refers to an input, an earlier step, or a scalar.
pub(super) fn step_calls<'a>(call: &KernelCall<'a>) -> Result<Vec<StepCall<'a>>> {
    let ops = call.string_attribute("steps")?.unwrap_or_default();
    let scalars = call.floats_attribute("scalars")?.unwrap_or_default();
    let mut listed = call.ints_attribute("operands")?.unwrap_or_default().iter().copied();
    let mut next = || {
        listed.next().ok_or_else(|| {
            PluginError::invalid_argument("expected `operands` for each of `steps`, found too few")
        })
    };
    let mut steps = Vec::new();
    for op in ops.split(',').filter(|op| !op.is_empty()) {
        let values = call.input_count() + steps.len();
        let operands = (0..next()?).map(|_| {
            let place = next()?;
            let scalar = |place: i64| usize::try_from(!place).ok().and_then(|index| scalars.get(index));
            match usize::try_from(place) {
                Ok(value) if value < values => Ok(StepOperand::Value(value)),
                Err(_) if let Some(scalar) = scalar(place) => Ok(StepOperand::Scalar(*scalar)),
                _ => Err(PluginError::invalid_argument(format!(
                    "expected operands among {values} values and {} scalars, found {place}",
                    scalars.len()
                ))),
            }
        });
        let operands = operands.collect::<Result<Vec<_>>>()?;
        steps.push(StepCall { op, operands });
    }
    ensure!(!steps.is_empty(), invalid_argument, "expected at least one step, found none");
    ensure!(listed.next().is_none(), invalid_argument, "expected `operands` for each of `steps`, found more");
    Ok(steps)
}

impl StepCall<'_> {
    /// The operands that are values.
    pub(super) fn values(&self) -> impl Iterator<Item = usize> {
        self.operands.iter().filter_map(|operand| match operand {
            StepOperand::Value(value) => Some(*value),
            StepOperand::Scalar(_) => None,
        })
    }

    /// The operands, if all of them except for the first are scalars.
    pub(super) fn parameters(&self) -> Option<(usize, Vec<f64>)> {
        let (StepOperand::Value(first), rest) = self.operands.split_first()? else { return None };
        let scalar = |operand: &StepOperand| match operand {
            StepOperand::Scalar(scalar) => Some(*scalar),
            StepOperand::Value(_) => None,
        };
        Some((*first, rest.iter().map(scalar).collect::<Option<_>>()?))
    }
}

//! Cuts steps into segments. Arithmetic steps of which each takes the result of the one before make one segment; every other step is
//! one of its own.

use oarlock_cpu_base::math::TrigonometricFloat;
use oarlock_sdk::{Dtype, PluginError, Result, ensure};

use super::super::element_loop::{ElementLoop, ElementMap};
use super::super::power::PowerMap;
use super::arithmetic_run::{ArithmeticRun, ArithmeticStep};
use super::step_call::{StepCall, StepOperand};
use super::step_loops::{StepLoop, function_step, map_step};

/// The maximum number of operands of a segment.
pub(super) const MAX_SEGMENT_OPERANDS: usize = 8;

/// Steps that one loop runs.
pub(super) struct ChainSegment {
    pub(super) inner: Box<dyn ElementLoop>,
    /// The operands of the loop.
    pub(super) operands: Vec<StepOperand>,
    /// The value that is its result.
    pub(super) result: usize,
}

/// The segments of steps, which have `inputs` values before them.
pub(super) fn cut_into_segments<N: TrigonometricFloat + From<f32>>(
    inputs: usize,
    steps: &[StepCall<'_>],
) -> Result<Vec<ChainSegment>>
where
    PowerMap<N>: ElementMap,
{
    let mut segments = Vec::new();
    let mut masks = vec![false; inputs];
    let mut next = 0;
    while next < steps.len() {
        let run =
            if N::DTYPE == Dtype::F32 { RunBuilder::longest_run(inputs, &steps[next..], next) } else { None };
        let (segment, count) = match run {
            Some((run, count)) => {
                let read = run.operands.iter().filter_map(|operand| match operand {
                    StepOperand::Value(value) => Some(*value),
                    StepOperand::Scalar(_) => None,
                });
                check_masks(&masks, read.map(|value| (value, false)), "arithmetic")?;
                masks.extend(vec![false; count]);
                (run, count)
            }
            None => (single_step::<N>(inputs + next, &steps[next], &mut masks)?, 1),
        };
        segments.push(segment);
        next += count;
    }
    ensure!(
        masks.last() == Some(&false),
        invalid_argument,
        "expected a float from the last step, found a mask"
    );
    Ok(segments)
}

/// The segment of a step that is not arithmetic.
fn single_step<N: TrigonometricFloat + From<f32>>(
    result: usize,
    step: &StepCall<'_>,
    masks: &mut Vec<bool>,
) -> Result<ChainSegment>
where
    PowerMap<N>: ElementMap,
{
    let of_parameters = step.parameters().and_then(|(value, parameters)| {
        Some((function_step::<N>(step.op, &parameters)?, vec![StepOperand::Value(value)]))
    });
    let of_elements = || Some((map_step::<N>(step.op, step.operands.len())?, step.operands.clone()));
    let (StepLoop { inner, masks: kinds }, operands) =
        of_parameters.or_else(of_elements).ok_or_else(|| {
            let (op, count) = (step.op, step.operands.len());
            PluginError::unimplemented(format!(
                "expected an elementwise op, found `{op}` of {count} operands"
            ))
        })?;
    let read = operands.iter().zip(kinds).filter_map(|(operand, is_mask)| match operand {
        StepOperand::Value(value) => Some((*value, *is_mask)),
        StepOperand::Scalar(_) => None,
    });
    check_masks(masks, read, step.op)?;
    masks.push(kinds.last().copied().unwrap_or(false));
    Ok(ChainSegment { inner, operands, result })
}

/// Checks which operands are masks.
fn check_masks(masks: &[bool], read: impl Iterator<Item = (usize, bool)>, op: &str) -> Result<()> {
    for (value, is_mask) in read {
        let kind = |is_mask: bool| if is_mask { "a mask" } else { "a float" };
        ensure!(
            masks[value] == is_mask,
            invalid_argument,
            "{op}: expected {} as an operand, found {}",
            kind(is_mask),
            kind(masks[value])
        );
    }
    Ok(())
}

/// Collects steps of arithmetic.
#[derive(Default)]
struct RunBuilder {
    operands: Vec<usize>,
    steps: Vec<ArithmeticStep>,
}

impl RunBuilder {
    /// The longest run that begins with the first of the remaining steps, and the number of its steps.
    fn longest_run(inputs: usize, steps: &[StepCall<'_>], before: usize) -> Option<(ChainSegment, usize)> {
        let first = steps.first()?.values().next()?;
        let mut run = Self { operands: vec![first], steps: Vec::new() };
        let (mut held, mut count) = (first, 0);
        while let Some(step) = steps.get(count) {
            // What a step behind the next one reads has to be in memory.
            let is_read_later =
                count > 0 && steps[count + 1..].iter().flat_map(StepCall::values).any(|value| value == held);
            if is_read_later || !run.push_step(step, held) {
                break;
            }
            held = inputs + before + count;
            count += 1;
        }
        let operands = run.operands.into_iter().map(StepOperand::Value).collect();
        (count > 0).then(|| {
            (ChainSegment { inner: Box::new(ArithmeticRun(run.steps)), operands, result: held }, count)
        })
    }

    /// Adds a step, if it is arithmetic with the value in registers.
    fn push_step(&mut self, step: &StepCall<'_>, held: usize) -> bool {
        let is_held = |operand: &StepOperand| *operand == StepOperand::Value(held);
        let found = match step.operands[..] {
            [x] if is_held(&x) => unary_steps(step.op),
            [x, y] if is_held(&x) && is_held(&y) => match step.op {
                "Mul" => Some(vec![ArithmeticStep::Square]),
                "Add" => Some(vec![ArithmeticStep::MultiplyScalar(2.0)]),
                _ => None,
            },
            [x, StepOperand::Scalar(scalar)] if is_held(&x) => steps_with_scalar(step.op, scalar as f32),
            [StepOperand::Scalar(scalar), y] if is_held(&y) => steps_behind_scalar(step.op, scalar as f32),
            [x, StepOperand::Value(value)] if is_held(&x) => {
                step_with_input(step.op).and_then(|with_input| self.step_on(with_input, value))
            }
            [StepOperand::Value(value), y] if is_held(&y) => {
                step_behind_input(step.op).and_then(|behind_input| self.step_on(behind_input, value))
            }
            [x, StepOperand::Scalar(low), StepOperand::Scalar(high)] if is_held(&x) && step.op == "Clip" => {
                Some(vec![
                    ArithmeticStep::AtLeastScalar(low as f32),
                    ArithmeticStep::AtMostScalar(high as f32),
                ])
            }
            _ => None,
        };
        let is_arithmetic = found.is_some();
        self.steps.extend(found.into_iter().flatten());
        is_arithmetic
    }

    /// The step on a value, which becomes an operand of the run; `None` if there are too many of these.
    fn step_on(&mut self, step: fn(usize) -> ArithmeticStep, value: usize) -> Option<Vec<ArithmeticStep>> {
        let known = self.operands.iter().position(|operand| *operand == value);
        if known.is_none() {
            if self.operands.len() == MAX_SEGMENT_OPERANDS {
                return None;
            }
            self.operands.push(value);
        }
        Some(vec![step(known.unwrap_or(self.operands.len() - 1))])
    }
}

fn unary_steps(op: &str) -> Option<Vec<ArithmeticStep>> {
    Some(vec![match op {
        "Neg" => ArithmeticStep::MultiplyScalar(-1.0),
        "Abs" => ArithmeticStep::Magnitude,
        "Relu" => ArithmeticStep::AtLeastScalar(0.0),
        "Reciprocal" => ArithmeticStep::DivideIntoScalar(1.0),
        _ => return None,
    }])
}

fn steps_with_scalar(op: &str, scalar: f32) -> Option<Vec<ArithmeticStep>> {
    let bounded = |bound: ArithmeticStep| match scalar {
        // The op turns a -0 into the bound 0, and the step does not.
        0.0 if scalar.is_sign_positive() => Some(vec![bound, ArithmeticStep::AddScalar(0.0)]),
        0.0 => None,
        _ if scalar.is_nan() => None,
        _ => Some(vec![bound]),
    };
    match op {
        "Add" => Some(vec![ArithmeticStep::AddScalar(scalar)]),
        "Sub" => Some(vec![ArithmeticStep::SubtractScalar(scalar)]),
        "Mul" => Some(vec![ArithmeticStep::MultiplyScalar(scalar)]),
        "Div" => Some(vec![ArithmeticStep::DivideScalar(scalar)]),
        "Max" => bounded(ArithmeticStep::AtLeastScalar(scalar)),
        "Min" => bounded(ArithmeticStep::AtMostScalar(scalar)),
        _ => None,
    }
}

/// The steps of an op whose first operand is a scalar.
fn steps_behind_scalar(op: &str, scalar: f32) -> Option<Vec<ArithmeticStep>> {
    Some(vec![match op {
        "Add" => ArithmeticStep::AddScalar(scalar),
        "Sub" => ArithmeticStep::SubtractFromScalar(scalar),
        "Mul" => ArithmeticStep::MultiplyScalar(scalar),
        "Div" => ArithmeticStep::DivideIntoScalar(scalar),
        "Max" if !scalar.is_nan() => ArithmeticStep::AtLeastScalar(scalar),
        "Min" if !scalar.is_nan() => ArithmeticStep::AtMostScalar(scalar),
        _ => return None,
    }])
}

/// The step of an op whose second operand is an input.
fn step_with_input(op: &str) -> Option<fn(usize) -> ArithmeticStep> {
    Some(match op {
        "Add" => ArithmeticStep::AddInput,
        "Sub" => ArithmeticStep::SubtractInput,
        "Mul" => ArithmeticStep::MultiplyInput,
        "Div" => ArithmeticStep::DivideInput,
        _ => return None,
    })
}

/// The step of an op whose first operand is an input.
fn step_behind_input(op: &str) -> Option<fn(usize) -> ArithmeticStep> {
    Some(match op {
        "Add" => ArithmeticStep::AddInput,
        "Sub" => ArithmeticStep::SubtractFromInput,
        "Mul" => ArithmeticStep::MultiplyInput,
        "Div" => ArithmeticStep::DivideIntoInput,
        _ => return None,
    })
}

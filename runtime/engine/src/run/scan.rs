//! `Scan`: a body that runs over slices of its inputs.

use oarlock_core::{Attribute, Error, Result, Tensor};

use super::Run;
use super::control::{Body, given, stack, too_few};
use super::sequence::part_of;
use crate::datum::Datum;
use crate::graph::Node;

/// A `Scan` node.
pub(super) struct Scan {
    body: Body,
    /// How many of the inputs are slices.
    scanned: usize,
    input_axes: Vec<i64>,
    output_axes: Vec<i64>,
    input_directions: Vec<i64>,
    output_directions: Vec<i64>,
    /// Version 8 has the lengths of sequences first, and a batch around everything.
    has_batch: bool,
}

impl Scan {
    /// What it runs.
    pub(super) fn body(&self) -> &Body {
        &self.body
    }

    pub(super) fn new(node: &Node, body: Body) -> Result<Self> {
        let scanned = node.attributes.int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
        let scanned = scanned.filter(|count| (1..=node.inputs.len()).contains(count)).ok_or_else(|| {
            Error::invalid_argument(
                "expected how many inputs are scanned, at least one, found none or too many",
            )
            .of_operand("attribute `num_scan_inputs`")
        })?;
        let list = |name: &str| match node.attributes.get(name) {
            Some(Attribute::Ints(list)) => list.clone(),
            _ => Vec::new(),
        };
        let has_batch = node.opset < 9;
        Ok(Self {
            body,
            scanned,
            input_axes: list("scan_input_axes"),
            output_axes: list("scan_output_axes"),
            input_directions: list(if has_batch { "directions" } else { "scan_input_directions" }),
            output_directions: list("scan_output_directions"),
            has_batch,
        })
    }

    pub(super) fn run(&self, run: Run<'_>, own: &[Option<Datum>], captured: &[Datum]) -> Result<Vec<Datum>> {
        if !self.has_batch {
            let inputs: Vec<Datum> =
                (0..own.len()).map(|at| given(own, at).cloned()).collect::<Result<_>>()?;
            return self.one(run, &inputs, captured);
        }
        if own.first().is_some_and(Option::is_some) {
            return Err(Error::unimplemented("expected no lengths of sequences, found some"));
        }
        let inputs: Vec<&Tensor> =
            (1..own.len()).map(|at| given(own, at)?.tensor()).collect::<Result<_>>()?;
        let batch = inputs.first().and_then(|input| input.dims().first().copied()).unwrap_or(0);
        let mut made: Vec<Vec<Tensor>> = Vec::new();
        for item in 0..batch.unsigned_abs() {
            let part: Vec<Datum> = inputs
                .iter()
                .map(|input| part_of(run.environment, input, 0, item).map(Datum::Tensor))
                .collect::<Result<_>>()?;
            for (index, output) in self.one(run, &part, captured)?.into_iter().enumerate() {
                if made.len() <= index {
                    made.push(Vec::new());
                }
                made[index].push(output.tensor()?.clone());
            }
        }
        made.iter()
            .map(|list| stack(run.environment, list, 0, || self.body.output(0)).map(Datum::Tensor))
            .collect()
    }

    /// Runs over one sequence.
    fn one(&self, run: Run<'_>, inputs: &[Datum], captured: &[Datum]) -> Result<Vec<Datum>> {
        let (states, scanned) = inputs.split_at(inputs.len().saturating_sub(self.scanned));
        let mut slices = Vec::new();
        for (index, input) in scanned.iter().enumerate() {
            let tensor = input.tensor()?;
            let axis = oarlock_core::shape::axis(at(&self.input_axes, index), tensor.dims().len())?;
            slices.push((tensor, axis, at(&self.input_directions, index) == 1));
        }
        let length = slices.first().map_or(0, |(tensor, axis, _)| tensor.dims()[*axis].unsigned_abs());
        let mut states: Vec<Datum> = states.to_vec();
        let count = states.len();
        let outputs = self.body.output_count().saturating_sub(count);
        let mut stacked: Vec<Vec<Tensor>> = vec![Vec::new(); outputs];
        for step in 0..length {
            let mut given = std::mem::take(&mut states);
            for (tensor, axis, is_backward) in &slices {
                let place = if *is_backward { length - 1 - step } else { step };
                given.push(Datum::Tensor(part_of(run.environment, tensor, *axis, place)?));
            }
            let mut made = self.body.run(run, given, captured)?.into_iter();
            states = made.by_ref().take(count).collect();
            for list in &mut stacked {
                list.push(made.next().ok_or_else(|| too_few("an output to stack"))?.tensor()?.clone());
            }
        }
        for (index, mut list) in stacked.into_iter().enumerate() {
            if at(&self.output_directions, index) == 1 {
                list.reverse();
            }
            let rank = list.first().map_or(0, |first| first.dims().len());
            let axis = oarlock_core::shape::axis(at(&self.output_axes, index), rank + 1)?;
            let axis = i64::try_from(axis).unwrap_or(0);
            states.push(Datum::Tensor(stack(run.environment, &list, axis, || {
                self.body.output(count + index)
            })?));
        }
        Ok(states)
    }
}

fn at(list: &[i64], index: usize) -> i64 {
    list.get(index).copied().unwrap_or(0)
}

//! `Scan`: runs a body over slices of its inputs.

use oarlock_core::{Attribute, Error, Result, Tensor};

use super::planned_subgraph::{PlannedSubgraph, stack_tensors, too_few_inputs};
use crate::graph::Node;
use crate::host_ops::{required_input, select_index};
use crate::run::RunScope;
use crate::runtime_value::RuntimeValue;

pub(super) struct ScanLoop {
    body: PlannedSubgraph,
    /// Number of inputs that are sliced; they come last.
    scanned: usize,
    input_axes: Vec<i64>,
    output_axes: Vec<i64>,
    input_directions: Vec<i64>,
    output_directions: Vec<i64>,
    /// True for opset 8, which passes sequence lengths first and has a batch dimension.
    has_batch: bool,
}

impl ScanLoop {
    pub(super) fn body(&self) -> &PlannedSubgraph {
        &self.body
    }

    pub(super) fn new(node: &Node, body: PlannedSubgraph) -> Result<Self> {
        let scanned =
            node.attributes.get_int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
        let scanned = scanned.filter(|count| (1..=node.inputs.len()).contains(count)).ok_or_else(|| {
            Error::invalid_argument(
                "expected how many inputs are scanned, at least one, found none or too many",
            )
            .with_operand("attribute `num_scan_inputs`")
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

    pub(super) fn run(
        &self,
        run: RunScope<'_>,
        own: &[Option<RuntimeValue>],
        captured: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        if !self.has_batch {
            let inputs: Vec<RuntimeValue> =
                (0..own.len()).map(|at| required_input(own, at).cloned()).collect::<Result<_>>()?;
            return self.run_sequence(run, &inputs, captured);
        }
        if own.first().is_some_and(Option::is_some) {
            return Err(Error::unimplemented("expected no lengths of sequences, found some"));
        }
        let inputs: Vec<&Tensor> =
            (1..own.len()).map(|at| required_input(own, at)?.as_tensor()).collect::<Result<_>>()?;
        let batch = inputs.first().and_then(|input| input.dims().first().copied()).unwrap_or(0);
        let mut made: Vec<Vec<Tensor>> = Vec::new();
        for item in 0..batch.unsigned_abs() {
            let part: Vec<RuntimeValue> = inputs
                .iter()
                .map(|input| select_index(run.environment, input, 0, item).map(RuntimeValue::Tensor))
                .collect::<Result<_>>()?;
            for (index, output) in self.run_sequence(run, &part, captured)?.into_iter().enumerate() {
                if made.len() <= index {
                    made.push(Vec::new());
                }
                made[index].push(output.as_tensor()?.clone());
            }
        }
        made.iter()
            .map(|list| {
                stack_tensors(run.environment, list, 0, || self.body.declared_output(0))
                    .map(RuntimeValue::Tensor)
            })
            .collect()
    }

    /// Runs over one sequence, without a batch dimension.
    fn run_sequence(
        &self,
        run: RunScope<'_>,
        inputs: &[RuntimeValue],
        captured: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        let (states, scanned) = inputs.split_at(inputs.len().saturating_sub(self.scanned));
        let mut slices = Vec::new();
        for (index, input) in scanned.iter().enumerate() {
            let tensor = input.as_tensor()?;
            let axis = oarlock_core::shape::resolve_axis(
                list_element(&self.input_axes, index),
                tensor.dims().len(),
            )?;
            slices.push((tensor, axis, list_element(&self.input_directions, index) == 1));
        }
        let length = slices.first().map_or(0, |(tensor, axis, _)| tensor.dims()[*axis].unsigned_abs());
        let mut states: Vec<RuntimeValue> = states.to_vec();
        let count = states.len();
        let outputs = self.body.output_count().saturating_sub(count);
        let mut stacked: Vec<Vec<Tensor>> = vec![Vec::new(); outputs];
        for step in 0..length {
            let mut given = std::mem::take(&mut states);
            for (tensor, axis, is_backward) in &slices {
                let place = if *is_backward { length - 1 - step } else { step };
                given.push(RuntimeValue::Tensor(select_index(run.environment, tensor, *axis, place)?));
            }
            let mut made = self.body.run(run, given, captured)?.into_iter();
            states = made.by_ref().take(count).collect();
            for list in &mut stacked {
                list.push(
                    made.next().ok_or_else(|| too_few_inputs("an output to stack"))?.as_tensor()?.clone(),
                );
            }
        }
        for (index, mut list) in stacked.into_iter().enumerate() {
            if list_element(&self.output_directions, index) == 1 {
                list.reverse();
            }
            let rank = list.first().map_or(0, |first| first.dims().len());
            let axis = oarlock_core::shape::resolve_axis(list_element(&self.output_axes, index), rank + 1)?;
            let axis = i64::try_from(axis).unwrap_or(0);
            states.push(RuntimeValue::Tensor(stack_tensors(run.environment, &list, axis, || {
                self.body.declared_output(count + index)
            })?));
        }
        Ok(states)
    }
}

fn list_element(list: &[i64], index: usize) -> i64 {
    list.get(index).copied().unwrap_or(0)
}

//! Control flow: nodes that run graphs of their own.

use oarlock_core::{Dtype, Error, Result, Tensor};

use super::PlannedGraph;
use super::planned_subgraph::{PlannedSubgraph, stack_tensors, too_few_inputs};
use super::scan::ScanLoop;
use crate::graph::Node;
use crate::host_ops::{host_scalar, required_input, sequence_element};
use crate::plan::{ControlFlowCall, ValueSource};
use crate::run::{RunScope, read_source};
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

/// The graphs that a branch or a loop runs, with their plans.
pub(super) enum ControlFlowBodies {
    /// The else branch and the then branch, indexed by the condition.
    If(Box<[PlannedSubgraph; 2]>),
    Loop(PlannedSubgraph),
    Scan(ScanLoop),
    SequenceMap(PlannedSubgraph),
}

impl ControlFlowBodies {
    pub(super) fn from_node(node: &Node, environment: &SessionEnvironment) -> Result<Self> {
        let body = |attribute: &str| PlannedSubgraph::from_attribute(node, attribute, environment);
        let bodies = match &*node.op {
            "If" => body("else_branch")
                .and_then(|otherwise| Ok(Self::If(Box::new([otherwise, body("then_branch")?])))),
            "Loop" => body("body").map(Self::Loop),
            "Scan" => body("body").and_then(|body| ScanLoop::new(node, body)).map(Self::Scan),
            _ => body("body").map(Self::SequenceMap),
        };
        bodies.map_err(|error| error.with_op(&node.op).with_node(&node.name))
    }

    /// The graphs themselves.
    pub(super) fn graphs(&self) -> impl Iterator<Item = &PlannedGraph> {
        let bodies: &[PlannedSubgraph] = match self {
            Self::If(branches) => &branches[..],
            Self::Loop(body) | Self::SequenceMap(body) => std::slice::from_ref(body),
            Self::Scan(scan) => std::slice::from_ref(scan.body()),
        };
        bodies.iter().map(PlannedSubgraph::planned_graph)
    }

    pub(super) fn run(
        &self,
        call: &ControlFlowCall,
        run: RunScope<'_>,
        slots: &mut [Option<RuntimeValue>],
    ) -> Result<()> {
        let read = |source: &Option<ValueSource>| {
            source.as_ref().map(|source| read_source(slots, source)).transpose()
        };
        let inputs: Vec<Option<RuntimeValue>> = call.inputs.iter().map(read).collect::<Result<_>>()?;
        let (own, captured) = inputs.split_at(call.own_inputs.min(inputs.len()));
        let captured: Vec<RuntimeValue> = captured.iter().flatten().cloned().collect();
        let outputs = call.outputs.len();
        let made = match self {
            Self::If(branches) => {
                let branch = &branches[usize::from(condition_holds(required_input(own, 0)?)?)];
                branch.run(run, Vec::new(), &captured)?
            }
            Self::Loop(body) => run_loop(body, run, own, &captured, outputs)?,
            Self::Scan(scan) => scan.run(run, own, &captured)?,
            Self::SequenceMap(body) => run_sequence_map(body, run, own, &captured, outputs)?,
        };
        if made.len() < outputs {
            return Err(too_few_inputs(&format!("at least {outputs} values")));
        }
        for (slot, value) in call.outputs.iter().zip(made) {
            if let Some(slot) = slot {
                slots[*slot] = Some(value);
            }
        }
        Ok(())
    }
}

fn condition_holds(condition: &RuntimeValue) -> Result<bool> {
    let tensor = condition.as_tensor()?;
    match &*tensor.to_bytes()? {
        [truth] if tensor.dtype() == Dtype::Bool => Ok(*truth != 0),
        _ => Err(Error::invalid_argument(format!(
            "expected a condition, one element of bool, found {} of shape {:?}",
            tensor.dtype(),
            tensor.dims()
        ))),
    }
}

/// The first two inputs of a loop body: iteration number and condition.
fn loop_arguments(
    environment: &SessionEnvironment,
    iteration: i64,
    goes_on: bool,
) -> Result<[RuntimeValue; 2]> {
    Ok([
        host_scalar(&environment.host, Dtype::I64, iteration.to_ne_bytes().to_vec())?,
        host_scalar(&environment.host, Dtype::Bool, vec![u8::from(goes_on)])?,
    ])
}

/// Runs a body while count and condition permit. Outputs of the body beyond the condition and the loop-carried values are
/// stacked over the iterations.
fn run_loop(
    body: &PlannedSubgraph,
    run: RunScope<'_>,
    own: &[Option<RuntimeValue>],
    captured: &[RuntimeValue],
    outputs: usize,
) -> Result<Vec<RuntimeValue>> {
    let most = match own.first() {
        Some(Some(count)) => count.as_tensor()?.to_constant()?.to_ints()?.first().copied().unwrap_or(0),
        _ => i64::MAX,
    };
    let mut goes_on = match own.get(1) {
        Some(Some(condition)) => condition_holds(condition)?,
        _ => true,
    };
    let mut carried: Vec<RuntimeValue> = own.iter().skip(2).flatten().cloned().collect();
    let count = carried.len();
    let mut stacked: Vec<Vec<Tensor>> = vec![Vec::new(); outputs.saturating_sub(count)];
    let mut iteration = 0i64;
    while goes_on && iteration < most {
        let mut inputs = loop_arguments(run.environment, iteration, goes_on)?.to_vec();
        inputs.append(&mut carried);
        let mut made = body.run(run, inputs, captured)?.into_iter();
        goes_on = condition_holds(&made.next().ok_or_else(|| too_few_inputs("a condition"))?)?;
        carried = made.by_ref().take(count).collect();
        for list in &mut stacked {
            list.push(made.next().ok_or_else(|| too_few_inputs("an output to stack"))?.as_tensor()?.clone());
        }
        iteration += 1;
    }
    let first = match iteration {
        0 => loop_arguments(run.environment, 0, true)?.into_iter().chain(carried.iter().cloned()).collect(),
        _ => Vec::new(),
    };
    let mut outputs = carried;
    for (index, list) in stacked.into_iter().enumerate() {
        let empty = || body.infer_empty_output(run, first.clone(), captured, 1 + count + index);
        outputs.push(RuntimeValue::Tensor(stack_tensors(run.environment, &list, 0, empty)?));
    }
    Ok(outputs)
}

/// Runs a body on corresponding elements of sequences.
fn run_sequence_map(
    body: &PlannedSubgraph,
    run: RunScope<'_>,
    own: &[Option<RuntimeValue>],
    captured: &[RuntimeValue],
    outputs: usize,
) -> Result<Vec<RuntimeValue>> {
    let count = required_input(own, 0)?.as_sequence()?.len();
    let mut made: Vec<Vec<RuntimeValue>> = vec![Vec::new(); outputs];
    for at in 0..count {
        let element = |(index, input): (usize, &Option<RuntimeValue>)| match input {
            Some(RuntimeValue::Sequence(elements)) => elements.get(at).cloned().ok_or_else(|| {
                Error::invalid_argument(format!(
                    "expected sequences of {count} elements, found {}",
                    elements.len()
                ))
                .with_operand(format!("input {index}"))
            }),
            Some(other) => Ok(other.clone()),
            None => Err(Error::invalid_argument("expected a value, found none")
                .with_operand(format!("input {index}"))),
        };
        let inputs: Vec<RuntimeValue> = own.iter().enumerate().map(element).collect::<Result<_>>()?;
        let outputs = body.run(run, inputs, captured)?;
        for (list, value) in made.iter_mut().zip(outputs) {
            list.push(sequence_element(&value)?);
        }
    }
    Ok(made.into_iter().map(RuntimeValue::Sequence).collect())
}

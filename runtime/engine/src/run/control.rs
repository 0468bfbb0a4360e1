//! Branches and loops: nodes that run graphs of their own.

use std::ops::Range;
use std::sync::Arc;

use oarlock_core::infer::Fact;
use oarlock_core::{Constant, Device, Dtype, Error, Result, Tensor};

use super::scan::Scan;
use super::sequence::SequenceOp;
use super::text::TextOp;
use super::{Run, datum};
use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::{Dimension, Node, ValueType};
use crate::passes::fact_of;
use crate::plan::Source;
use crate::program::Program;

/// A node that the engine runs itself. Clones share the graphs that it runs, with their plans.
#[derive(Clone)]
pub(crate) struct Control {
    kind: Arc<Kind>,
    /// How many of the inputs are the node's own; what its subgraphs capture follows.
    own_inputs: usize,
    inputs: Vec<Option<Source>>,
    outputs: Vec<Option<usize>>,
}

enum Kind {
    /// The branch where the condition does not hold, and the one where it does.
    If(Box<[Body; 2]>),
    Loop(Body),
    Scan(Scan),
    SequenceMap(Body),
    Sequence(SequenceOp),
    Text(TextOp),
}

/// A subgraph of a node, ready to run.
pub(super) struct Body {
    program: Program,
    /// The place of what it captures among everything that the node's subgraphs do.
    captures: Range<usize>,
}

impl Body {
    fn of(node: &Node, attribute: &str, environment: &Environment) -> Result<Self> {
        let mut first = 0;
        for subgraph in &node.subgraphs {
            let captures = first..first + subgraph.captures.len();
            if &*subgraph.attribute == attribute {
                let mut graph = subgraph.graph.clone();
                // What a model says about the inputs of a body is checked by nobody, and differs from run to run.
                for input in graph.inputs.clone() {
                    graph.value_mut(input).declared = ValueType::Unknown;
                }
                return Ok(Self { program: Program::new(graph, environment)?, captures });
            }
            first = captures.end;
        }
        Err(Error::invalid_argument(format!("expected the graph `{attribute}`, found none")).of_op(&node.op))
    }

    /// Runs it on its formal inputs and what it captures.
    pub(super) fn run(&self, run: Run<'_>, mut inputs: Vec<Datum>, captured: &[Datum]) -> Result<Vec<Datum>> {
        let own = self.program.graph().inputs.len().saturating_sub(self.captures.len());
        if inputs.len() != own {
            let given = inputs.len();
            return Err(Error::invalid_argument(format!(
                "expected a body with {given} inputs, as many as it is given, found one with {own}"
            )));
        }
        inputs.extend_from_slice(captured.get(self.captures.clone()).unwrap_or_default());
        self.program.run_within(run, &inputs)
    }

    /// How many outputs it has.
    pub(super) fn output_count(&self) -> usize {
        self.program.graph().outputs.len()
    }

    /// The dtype and shape that an output would have for inputs of these shapes, for a body that never ran.
    fn would_make(
        &self,
        run: Run<'_>,
        mut inputs: Vec<Datum>,
        captured: &[Datum],
        index: usize,
    ) -> (Dtype, Vec<i64>) {
        inputs.extend_from_slice(captured.get(self.captures.clone()).unwrap_or_default());
        let plan = self.program.plan(run.environment, &inputs).ok();
        let fact = plan.and_then(|plan| fact_of(plan.graph.value(*plan.graph.outputs.get(index)?)));
        match fact {
            Some(Fact { dtype, dims: Some(dims), .. }) => {
                (dtype, dims.iter().map(|dim| dim.known().unwrap_or(0)).collect())
            }
            _ => self.output(index),
        }
    }

    /// The dtype and shape of an output when it never ran: what follows from the body, or else what the model says.
    pub(super) fn output(&self, index: usize) -> (Dtype, Vec<i64>) {
        let graph = self.program.graph();
        let Some(value) = graph.outputs.get(index).map(|output| graph.value(*output)) else {
            return (Dtype::F32, Vec::new());
        };
        match (&value.fact, &value.declared) {
            (Some(Fact { dtype, dims: Some(dims), .. }), _) => {
                (*dtype, dims.iter().map(|dim| dim.known().unwrap_or(0)).collect())
            }
            (fact, ValueType::Tensor { dtype, dims }) => {
                let size = |dim: &Dimension| if let Dimension::Known(size) = dim { *size } else { 0 };
                let dtype = fact.as_ref().map(|fact| fact.dtype).or(*dtype).unwrap_or(Dtype::F32);
                (dtype, dims.iter().flatten().map(size).collect())
            }
            (fact, _) => (fact.as_ref().map_or(Dtype::F32, |fact| fact.dtype), Vec::new()),
        }
    }
}

impl Control {
    /// What the engine does for a node; nothing for a node that kernels run.
    pub(crate) fn of(node: &Node, environment: &Environment) -> Result<Option<Self>> {
        if !node.domain.is_empty() {
            let text = TextOp::of(node)?.map(Kind::Text);
            return Ok(text.map(|kind| Self::new(kind, node)));
        }
        let body = |attribute: &str| Body::of(node, attribute, environment);
        let kind = match &*node.op {
            "If" => Kind::If(Box::new([body("else_branch")?, body("then_branch")?])),
            "Loop" => Kind::Loop(body("body")?),
            "Scan" => Kind::Scan(Scan::new(node, body("body")?)?),
            "SequenceMap" => Kind::SequenceMap(body("body")?),
            _ => match (SequenceOp::of(node)?, TextOp::of(node)?) {
                (Some(op), _) => Kind::Sequence(op),
                (_, Some(op)) => Kind::Text(op),
                (None, None) => return Ok(None),
            },
        };
        Ok(Some(Self::new(kind, node)))
    }

    fn new(kind: Kind, node: &Node) -> Self {
        Self { kind: Arc::new(kind), own_inputs: node.inputs.len(), inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Whether the engine runs a node itself.
    pub(crate) fn is_for(node: &Node) -> bool {
        let runs_graphs = ["If", "Loop", "Scan", "SequenceMap"].contains(&&*node.op);
        let makes_text = || matches!(TextOp::of(node), Ok(Some(_)));
        let runs_itself = || runs_graphs || matches!(SequenceOp::of(node), Ok(Some(_)));
        node.domain.is_empty() && runs_itself() || makes_text()
    }

    /// The programs that it runs: those of branches and bodies.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Program> {
        let bodies: &[Body] = match &*self.kind {
            Kind::If(branches) => &branches[..],
            Kind::Loop(body) | Kind::SequenceMap(body) => std::slice::from_ref(body),
            Kind::Scan(scan) => std::slice::from_ref(scan.body()),
            Kind::Sequence(_) | Kind::Text(_) => &[],
        };
        bodies.iter().map(|body| &body.program)
    }

    /// Says where the inputs come from and the outputs go.
    pub(crate) fn connect(&mut self, inputs: Vec<Option<Source>>, outputs: Vec<Option<usize>>) {
        (self.inputs, self.outputs) = (inputs, outputs);
    }

    pub(crate) fn run(&self, run: Run<'_>, slots: &mut [Option<Datum>]) -> Result<()> {
        let read = |source: &Option<Source>| source.as_ref().map(|source| datum(slots, source)).transpose();
        let inputs: Vec<Option<Datum>> = self.inputs.iter().map(read).collect::<Result<_>>()?;
        let (own, captured) = inputs.split_at(self.own_inputs.min(inputs.len()));
        let captured: Vec<Datum> = captured.iter().flatten().cloned().collect();
        let outputs = self.outputs.len();
        let made = match &*self.kind {
            Kind::If(branches) => {
                let branch = &branches[usize::from(truth(given(own, 0)?)?)];
                branch.run(run, Vec::new(), &captured)?
            }
            Kind::Loop(body) => run_loop(body, run, own, &captured, outputs)?,
            Kind::Scan(scan) => scan.run(run, own, &captured)?,
            Kind::SequenceMap(body) => map_sequence(body, run, own, &captured, outputs)?,
            Kind::Sequence(op) => vec![op.run(run.environment, own)?],
            Kind::Text(op) => vec![op.run(&run.environment.host, own)?],
        };
        if made.len() < outputs {
            return Err(too_few(&format!("at least {outputs} values")));
        }
        for (slot, datum) in self.outputs.iter().zip(made) {
            if let Some(slot) = slot {
                slots[*slot] = Some(datum);
            }
        }
        Ok(())
    }
}

/// An input that must be there.
pub(super) fn given(inputs: &[Option<Datum>], index: usize) -> Result<&Datum> {
    let missing =
        || Error::invalid_argument("expected a value, found none").of_operand(format!("input {index}"));
    inputs.get(index).and_then(Option::as_ref).ok_or_else(missing)
}

/// Whether a condition holds.
fn truth(condition: &Datum) -> Result<bool> {
    let tensor = condition.tensor()?;
    match &*tensor.to_bytes()? {
        [truth] if tensor.dtype() == Dtype::Bool => Ok(*truth != 0),
        _ => Err(Error::invalid_argument(format!(
            "expected a condition, one element of bool, found {} of shape {:?}",
            tensor.dtype(),
            tensor.dims()
        ))),
    }
}

/// A number without dimensions on the host.
pub(super) fn scalar(device: &Device, dtype: Dtype, bytes: Vec<u8>) -> Result<Datum> {
    Tensor::of_constant(device, &Constant::new(dtype, &[], bytes)?).map(Datum::Tensor)
}

/// What a body of a loop is given first: the number of the iteration, and whether it was to go on.
fn numbered(environment: &Environment, iteration: i64, goes_on: bool) -> Result<[Datum; 2]> {
    Ok([
        scalar(&environment.host, Dtype::I64, iteration.to_ne_bytes().to_vec())?,
        scalar(&environment.host, Dtype::Bool, vec![u8::from(goes_on)])?,
    ])
}

/// Runs a body as often as the count and the condition say. What it makes in each iteration beside the condition and the
/// carried values is stacked.
fn run_loop(
    body: &Body,
    run: Run<'_>,
    own: &[Option<Datum>],
    captured: &[Datum],
    outputs: usize,
) -> Result<Vec<Datum>> {
    let most = match own.first() {
        Some(Some(count)) => count.tensor()?.to_constant()?.ints()?.first().copied().unwrap_or(0),
        _ => i64::MAX,
    };
    let mut goes_on = match own.get(1) {
        Some(Some(condition)) => truth(condition)?,
        _ => true,
    };
    let mut carried: Vec<Datum> = own.iter().skip(2).flatten().cloned().collect();
    let count = carried.len();
    let mut stacked: Vec<Vec<Tensor>> = vec![Vec::new(); outputs.saturating_sub(count)];
    let mut iteration = 0i64;
    while goes_on && iteration < most {
        let mut inputs = numbered(run.environment, iteration, goes_on)?.to_vec();
        inputs.append(&mut carried);
        let mut made = body.run(run, inputs, captured)?.into_iter();
        goes_on = truth(&made.next().ok_or_else(|| too_few("a condition"))?)?;
        carried = made.by_ref().take(count).collect();
        for list in &mut stacked {
            list.push(made.next().ok_or_else(|| too_few("an output to stack"))?.tensor()?.clone());
        }
        iteration += 1;
    }
    let first = match iteration {
        0 => numbered(run.environment, 0, true)?.into_iter().chain(carried.iter().cloned()).collect(),
        _ => Vec::new(),
    };
    let mut outputs = carried;
    for (index, list) in stacked.into_iter().enumerate() {
        let empty = || body.would_make(run, first.clone(), captured, 1 + count + index);
        outputs.push(Datum::Tensor(stack(run.environment, &list, 0, empty)?));
    }
    Ok(outputs)
}

#[cold]
pub(super) fn too_few(what: &str) -> Error {
    Error::invalid_argument(format!("expected {what} among the outputs of the body, found none"))
}

/// Puts tensors of one shape beside each other along a new dimension.
pub(super) fn stack(
    environment: &Environment,
    tensors: &[Tensor],
    axis: i64,
    empty: impl FnOnce() -> (Dtype, Vec<i64>),
) -> Result<Tensor> {
    if tensors.is_empty() {
        let (dtype, mut dims) = empty();
        let axis = usize::try_from(axis).unwrap_or(0).min(dims.len());
        dims.insert(axis, 0);
        return Tensor::from_bytes(&environment.host, dtype, &dims, &[]);
    }
    super::sequence::concatenate(environment, tensors, axis, true)
}

/// Runs a body on the elements of sequences, one after the other.
fn map_sequence(
    body: &Body,
    run: Run<'_>,
    own: &[Option<Datum>],
    captured: &[Datum],
    outputs: usize,
) -> Result<Vec<Datum>> {
    let count = given(own, 0)?.sequence()?.len();
    let mut made: Vec<Vec<Datum>> = vec![Vec::new(); outputs];
    for at in 0..count {
        let element =
            |(index, input): (usize, &Option<Datum>)| match input {
                Some(Datum::Sequence(elements)) => elements.get(at).cloned().ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "expected sequences of {count} elements, found {}",
                        elements.len()
                    ))
                    .of_operand(format!("input {index}"))
                }),
                Some(other) => Ok(other.clone()),
                None => Err(Error::invalid_argument("expected a value, found none")
                    .of_operand(format!("input {index}"))),
            };
        let inputs: Vec<Datum> = own.iter().enumerate().map(element).collect::<Result<_>>()?;
        let outputs = body.run(run, inputs, captured)?;
        for (list, datum) in made.iter_mut().zip(outputs) {
            list.push(super::sequence::element(&datum)?);
        }
    }
    Ok(made.into_iter().map(Datum::Sequence).collect())
}

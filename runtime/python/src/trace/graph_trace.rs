//! One graph that is being traced.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_core::infer::TensorFact;
use oarlock_core::schema::{OARLOCK_DOMAIN, latest_opset};
use oarlock_core::{Device, Dtype, Op, OpInvocation, Tensor};
use oarlock_engine::Model;
use oarlock_engine::graph::{
    DeclaredDimension, Graph, GraphValue, Node, Subgraph, ValueId, ValueType, Weight,
};
use oarlock_engine::import::ModelMetadata;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Error, OrRaise as _};

/// A graph with the tensors that its values have in this run.
pub(crate) struct GraphTrace {
    graph: Graph,
    /// The tensor of each value in this run. They are kept, because the identities below stand for them.
    tensors: Vec<Tensor>,
    /// Values that depend on the inputs, by the identity of their tensors.
    traced: HashMap<usize, ValueId>,
    /// The begins and ends of the memory of traced tensors.
    traced_memory: BTreeMap<usize, usize>,
    /// All other values that nodes read.
    constants: HashMap<usize, ValueId>,
    /// Values of the enclosing graph that this one reads.
    captures: Vec<ValueId>,
    /// Tells arrays of this trace from others.
    scope: u64,
    /// Shared with the arrays of Python that depend on the inputs.
    alive: Arc<()>,
    /// The number of nodes of each line of Python.
    nodes_of_line: HashMap<String, usize>,
}

impl Drop for GraphTrace {
    fn drop(&mut self) {
        let mut anywhere = traced_anywhere();
        for identity in self.traced.keys() {
            anywhere.remove(identity);
        }
    }
}

/// The identities of the tensors that any thread traces.
static TRACED_ANYWHERE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

pub(super) fn traced_anywhere() -> MutexGuard<'static, BTreeSet<usize>> {
    TRACED_ANYWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 0 is no trace.
static NEXT_SCOPE: AtomicU64 = AtomicU64::new(1);

/// Larger constants are data, not shapes, so inference need not see their elements.
const MAX_FACT_ELEMENTS: u64 = 1 << 10;

impl GraphTrace {
    pub(crate) fn new(function: &str, alive: Arc<()>) -> Self {
        Self {
            scope: NEXT_SCOPE.fetch_add(1, Ordering::Relaxed),
            alive,
            graph: Graph::new(function),
            tensors: Vec::new(),
            traced: HashMap::new(),
            traced_memory: BTreeMap::new(),
            constants: HashMap::new(),
            captures: Vec::new(),
            nodes_of_line: HashMap::new(),
        }
    }

    pub(crate) fn function(&self) -> &str {
        &self.graph.name
    }

    pub(crate) fn scope(&self) -> u64 {
        self.scope
    }

    pub(crate) fn alive(&self) -> &Arc<()> {
        &self.alive
    }

    pub(crate) fn has_value(&self, tensor: &Tensor) -> bool {
        self.traced.contains_key(&tensor.identity())
    }

    /// Adds an input with the tensor that it has in this run, which must be new.
    pub(crate) fn add_input(&mut self, name: &str, tensor: &Tensor) {
        let input = self.add_traced(name, tensor);
        self.graph.inputs.push(input);
    }

    fn add_traced(&mut self, name: &str, tensor: &Tensor) -> ValueId {
        let dims = tensor.dims().iter().copied().map(DeclaredDimension::Known).collect();
        let declared = ValueType::Tensor { dtype: Some(tensor.dtype()), dims: Some(dims) };
        let value = self.add_value(GraphValue { declared, ..GraphValue::with_name(name) }, tensor);
        self.traced.insert(tensor.identity(), value);
        traced_anywhere().insert(tensor.identity());
        self.traced_memory.extend(address_range(tensor).map(|range| (range.start, range.end)));
        value
    }

    fn add_value(&mut self, value: GraphValue, tensor: &Tensor) -> ValueId {
        self.tensors.push(tensor.clone());
        self.graph.add_value(value)
    }

    /// A name for the next node of a line: onnxruntime wants them to be unique.
    fn unique_name(&mut self, line: String) -> String {
        let count = self.nodes_of_line.entry(line.clone()).or_default();
        *count += 1;
        if *count == 1 { line } else { format!("{line} ({count})") }
    }

    /// Adds the result of a node.
    fn add_result(&mut self, tensor: &Tensor) -> ValueId {
        self.add_traced(&format!("value.{}", self.graph.value_count()), tensor)
    }

    fn constant(&mut self, tensor: &Tensor) -> PyResult<ValueId> {
        if let Some(known) = self.constants.get(&tensor.identity()) {
            return Ok(*known);
        }
        let address = tensor.host_address().or_raise()?.map(|address| address.addr());
        let before = address.and_then(|address| self.traced_memory.range(..=address).next_back());
        if before.is_some_and(|(_, end)| address < Some(*end)) {
            // Better no graph than one that returns the results of its first call.
            return Err(Error::new_err(
                "expected a trace of every view of an array, found one that was not traced",
            ));
        }
        let name = format!("constant.{}", self.graph.value_count());
        let value = self.add_value(GraphValue::with_weight(name, weight_from_tensor(tensor)?), tensor);
        self.constants.insert(tensor.identity(), value);
        Ok(value)
    }

    /// A graph of one node that reads values of this one, and the tensors that its inputs have in this run.
    pub(crate) fn graph_of_node(&self, node: &Node, outputs: usize) -> (Graph, Vec<Tensor>) {
        let mut graph = Graph::new(self.function());
        let (mut node, mut tensors) = (node.clone(), Vec::new());
        let mut known: HashMap<ValueId, ValueId> = HashMap::new();
        for read in node.read_values_mut() {
            *read = *known.entry(*read).or_insert_with(|| {
                let copy = graph.add_value(self.graph.value(*read).clone());
                if self.graph.value(*read).weight.is_none() {
                    graph.inputs.push(copy);
                    tensors.push(self.tensors[read.index()].clone());
                }
                copy
            });
        }
        graph.outputs =
            (0..outputs).map(|at| graph.add_value(GraphValue::with_name(format!("out_{at}")))).collect();
        node.outputs = graph.outputs.iter().copied().map(Some).collect();
        graph.nodes.push(node);
        (graph, tensors)
    }

    /// Ends the graph. An output that no node of this graph makes, or that is one already, is made by a node of its own.
    pub(crate) fn finish(mut self, outputs: &[ValueId], names: &[String]) -> PyResult<FinishedGraph> {
        let opset = latest_opset("").or_raise()?;
        let kind_of = |output: &ValueId| {
            let tensor = &self.tensors[output.index()];
            (tensor.dtype(), tensor.dims().to_vec())
        };
        let kinds = outputs.iter().map(kind_of).collect();
        let mut made: HashSet<ValueId> =
            self.graph.nodes.iter().flat_map(|node| node.written_values()).collect();
        for (output, name) in outputs.iter().zip(names) {
            if made.remove(output) {
                self.graph.value_mut(*output).name = name.as_str().into();
                self.graph.outputs.push(*output);
                continue;
            }
            let declared = self.graph.value(*output).declared.clone();
            let copy = self.graph.add_value(GraphValue { declared, ..GraphValue::with_name(name.as_str()) });
            let node = Node::new("", "Identity", opset, [Some(*output)], [Some(copy)]);
            self.graph.nodes.push(Node { name: name.as_str().into(), ..node });
            self.graph.outputs.push(copy);
        }
        Ok(FinishedGraph { graph: take(&mut self.graph), captures: take(&mut self.captures), kinds })
    }
}

/// A graph that was traced to its end.
#[derive(Clone)]
pub(crate) struct FinishedGraph {
    pub(crate) graph: Graph,
    /// Values of the enclosing graph, in the order of the last inputs.
    pub(crate) captures: Vec<ValueId>,
    /// The dtypes and shapes of the outputs.
    pub(crate) kinds: Vec<(Dtype, Vec<i64>)>,
}

impl FinishedGraph {
    /// The graph as a model.
    pub(crate) fn into_model(self) -> PyResult<Model> {
        traced_model(self.graph)
    }

    pub(crate) fn into_subgraph(self, attribute: &str) -> Subgraph {
        Subgraph { attribute: attribute.into(), graph: self.graph, captures: self.captures }
    }
}

/// The model of a graph that was traced.
pub(crate) fn traced_model(graph: Graph) -> PyResult<Model> {
    let opset = |domain| latest_opset(domain).or_raise();
    let mut opsets = BTreeMap::from([
        ("ai.onnx".to_owned(), opset("")?),
        (OARLOCK_DOMAIN.to_owned(), opset(OARLOCK_DOMAIN)?),
    ]);
    let own = graph.nodes.iter().filter(|node| !node.domain.is_empty() && &*node.domain != OARLOCK_DOMAIN);
    opsets.extend(own.map(|node| (node.domain.to_string(), node.opset)));
    Ok(Model {
        graph,
        format: "a traced function".to_owned(),
        producer: concat!("oarlock ", env!("CARGO_PKG_VERSION")).to_owned(),
        opsets,
        metadata: BTreeMap::new(),
        labels: ModelMetadata::default(),
        maps: BTreeMap::new(),
        weight_files: Vec::new(),
    })
}

/// The value of a traced tensor in the innermost graph, which captures it from the graphs around it if it has to.
fn traced_value(traces: &mut [GraphTrace], tensor: &Tensor) -> Option<ValueId> {
    let (inner, outer) = traces.split_last_mut()?;
    if let Some(known) = inner.traced.get(&tensor.identity()) {
        return Some(*known);
    }
    let outside = traced_value(outer, tensor)?;
    inner.captures.push(outside);
    inner.add_input(&format!("captured.{}", inner.captures.len()), tensor);
    inner.graph.inputs.last().copied()
}

/// The value of any tensor in the innermost graph.
pub(crate) fn operand_value(traces: &mut [GraphTrace], tensor: &Tensor) -> PyResult<ValueId> {
    if let Some(value) = traced_value(traces, tensor) {
        return Ok(value);
    }
    let innermost = traces.last_mut().ok_or_else(|| PyTypeError::new_err("expected a trace, found none"))?;
    innermost.constant(tensor)
}

/// Adds a call of an op to the innermost graph.
pub(crate) fn record_op(
    traces: &mut [GraphTrace],
    op: &Op,
    inputs: &[Option<&Tensor>],
    outputs: &[Tensor],
    line: String,
) -> PyResult<()> {
    infer_results(traces, op, inputs, outputs.len())?;
    add_call(traces, op, inputs, outputs, line)
}

/// Adds a call that does not run, and returns its results with all elements zero. `None` if nobody knows them before the call runs.
pub(super) fn record_zeros(
    traces: &mut [GraphTrace],
    op: &Op,
    call: &OpInvocation<'_>,
    device: &Device,
    line: String,
) -> PyResult<Option<Vec<Tensor>>> {
    let Some(results) = infer_results(traces, op, call.inputs, call.outputs)? else { return Ok(None) };
    let kinds = results.iter().map(|fact| Some((fact.dtype, fact.known_dims()?.to_vec())));
    let Some(zeros) = kinds.collect::<Option<Vec<_>>>().map_or(Ok(None), |kinds| zeros_of(&kinds, device))?
    else {
        return Ok(None);
    };
    add_call(traces, op, call.inputs, &zeros, line)?;
    Ok(Some(zeros))
}

/// Tensors of such dtypes and shapes with all elements zero; `None` if one is of text or of less than bytes.
pub(crate) fn zeros_of(kinds: &[(Dtype, Vec<i64>)], device: &Device) -> PyResult<Option<Vec<Tensor>>> {
    let zeros = kinds.iter().map(|(dtype, dims)| {
        let Some(size) = dtype.byte_size().filter(|_| !dtype.is_packed()) else { return Ok(None) };
        Tensor::filled(device, *dtype, dims, &vec![0; size as usize]).map(Some)
    });
    zeros.collect::<oarlock_core::Result<_>>().or_raise()
}

fn add_call(
    traces: &mut [GraphTrace],
    op: &Op,
    inputs: &[Option<&Tensor>],
    outputs: &[Tensor],
    line: String,
) -> PyResult<()> {
    let given = inputs.iter().map(|input| input.map(|input| operand_value(traces, input)).transpose());
    let given: Vec<Option<ValueId>> = given.collect::<PyResult<_>>()?;
    let node = Node {
        attributes: op.attributes().clone(),
        ..Node::new(op.domain(), op.name(), latest_opset(op.domain()).unwrap_or(op.version()), given, [])
    };
    add_node(traces, node, outputs, line);
    Ok(())
}

/// Adds a node with its results to the innermost graph. It is named after the line of Python that calls it.
pub(crate) fn add_node(traces: &mut [GraphTrace], mut node: Node, outputs: &[Tensor], line: String) {
    if let Some(innermost) = traces.last_mut() {
        node.name = innermost.unique_name(line).into();
        node.outputs = outputs.iter().map(|output| Some(innermost.add_result(output))).collect();
        innermost.graph.nodes.push(node);
    }
}

/// What is known of the results of an op before it runs. Refuses ops whose results would have another shape, or other elements, in the next call.
fn infer_results(
    traces: &[GraphTrace],
    op: &Op,
    inputs: &[Option<&Tensor>],
    outputs: usize,
) -> PyResult<Option<Vec<TensorFact>>> {
    let function = traces.first().map_or("", GraphTrace::function);
    let fact = |tensor: &Tensor| {
        let is_known = !traces.iter().any(|trace| trace.has_value(tensor));
        if is_known && tensor.dtype() != Dtype::String && tensor.element_count() <= MAX_FACT_ELEMENTS {
            return Ok(TensorFact::from_value(tensor.to_constant().or_raise()?));
        }
        Ok(TensorFact::from_shape(tensor.dtype(), tensor.dims()))
    };
    let facts = inputs.iter().map(|input| input.map(fact).transpose()).collect::<PyResult<Vec<_>>>()?;
    let inferred = op.infer_outputs(&facts, outputs).or_raise()?;
    if inferred.iter().flatten().all(|fact| fact.known_dims().is_some()) {
        return Ok(inferred);
    }
    Err(PyTypeError::new_err(format!(
        "expected results whose shapes follow from shapes while `{function}` is traced, found `{}`, whose result has a size that \
         depends on elements\nhint: keep the shape and select with `oarlock.where`, as in `oarlock.where(mask, x, 0).sum()` for \
         `x[mask].sum()`; or compute the sizes outside, and pass them as Python numbers",
        op.name()
    )))
}

/// The addresses of the elements of a tensor in the memory of the host.
fn address_range(tensor: &Tensor) -> Option<Range<usize>> {
    let bytes = tensor.host_bytes().ok()??;
    let start = bytes.as_ptr().addr();
    Some(start..start + bytes.len())
}

/// A copy of the elements of a constant: another library may write to the memory of the tensor.
fn weight_from_tensor(tensor: &Tensor) -> PyResult<Weight> {
    if tensor.dtype() == Dtype::String {
        let texts: Arc<[String]> = tensor.to_strings().or_raise()?.into();
        return Ok(Weight::Texts { dims: tensor.dims().to_vec(), texts });
    }
    Ok(Weight::Numbers(tensor.to_constant().or_raise()?))
}

//! Attention with graphs of its own becomes what it is made of.
//!
//! `FlexAttention` may change scores and weights by graphs. No kernel can run these, so it becomes two products and a softmax
//! with the nodes of the graphs between them. Without graphs it is ONNX's `Attention`.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Attribute, Constant, Dtype, Result};

use super::branch::inline;
use super::common::pass;
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Subgraph, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "flexible attention",
    "writes attention whose scores are changed by graphs as its products and softmax, with the graphs between them",
    run,
);

/// The opset whose ops are written.
const OPSET: u32 = 23;

fn run(graph: &mut Graph, _: &Scene<'_>) -> Result<usize> {
    let (mut count, mut replaced, mut kept) = (0, HashMap::new(), Vec::new());
    for node in std::mem::take(&mut graph.nodes) {
        let is_flexible = &*node.domain == "ai.onnx.preview" && &*node.op == "FlexAttention";
        match if is_flexible { written(graph, &node, &mut replaced)? } else { None } {
            Some(nodes) => {
                kept.extend(nodes);
                count += 1;
            }
            None => kept.push(node),
        }
    }
    graph.nodes = kept;
    graph.replace_uses(&replaced);
    Ok(count)
}

/// The nodes that a node becomes, where enough is known of it.
fn written(
    graph: &mut Graph,
    node: &Node,
    replaced: &mut HashMap<ValueId, ValueId>,
) -> Result<Option<Vec<Node>>> {
    let operands = node.input(0).zip(node.input(1)).zip(node.input(2)).zip(node.output(0));
    let Some((((query, key), value), output)) = operands else { return Ok(None) };
    if node.subgraphs.is_empty() {
        let inputs = [query, key, value].map(Some);
        let mut attention = Node::new("", "Attention", OPSET, inputs, [Some(output)]);
        (attention.name, attention.attributes) = (node.name.clone(), node.attributes.clone());
        return Ok(Some(vec![attention]));
    }
    let Some(dtype) = graph.value(query).dtype() else { return Ok(None) };
    let usual = if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
    let computed = node.attributes.int("softmax_precision")?.unwrap_or(usual.onnx_number());
    let change = |name: &str| node.subgraphs.iter().find(|subgraph| &*subgraph.attribute == name);
    let mut writer = Writer { graph, nodes: Vec::new(), name: node.name.clone() };
    let shapes = writer.shapes(query, key, value);
    let scale = writer.scale(query, node.attributes.float("scale")?, dtype)?;
    let query = writer.op("Mul", &[query, scale], &[]);
    let query = writer.reshape(query, shapes.queries);
    let key = writer.op("Transpose", &[key], &[("perm", Attribute::Ints(vec![0, 1, 3, 2]))]);
    let scores = writer.op("MatMul", &[query, key], &[]);
    let scores = writer.cast(scores, computed);
    let scores = writer.reshape(scores, shapes.scores);
    let scores = writer.changed(scores, change("score_mod"));
    let weights = writer.op("Softmax", &[scores], &[("axis", Attribute::Int(-1))]);
    let weights = writer.changed(weights, change("prob_mod"));
    let weights = writer.reshape(weights, shapes.weights);
    let value = writer.cast(value, computed);
    let made = writer.op("MatMul", &[weights, value], &[]);
    let made = writer.cast(made, dtype.onnx_number());
    replaced.insert(output, writer.reshape(made, shapes.output));
    Ok(Some(writer.nodes))
}

/// Shapes that values are given. Queries that share keys are rows of one product, so that keys need not be repeated.
struct Shapes {
    /// Queries, of all heads that share keys one behind the other.
    queries: ValueId,
    /// Scores, of heads apart.
    scores: ValueId,
    /// Weights, as queries.
    weights: ValueId,
    /// What comes out, of heads apart.
    output: ValueId,
}

/// Nodes that are being written.
struct Writer<'g> {
    graph: &'g mut Graph,
    nodes: Vec<Node>,
    name: Arc<str>,
}

impl Writer<'_> {
    fn op(&mut self, op: &str, inputs: &[ValueId], attributes: &[(&str, Attribute)]) -> ValueId {
        let made = self.graph.add(Value::named(format!("{}/{op} {}", self.name, self.nodes.len())));
        let mut node = Node::new("", op, OPSET, inputs.iter().copied().map(Some), [Some(made)]);
        node.name = self.name.clone();
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        self.nodes.push(node);
        made
    }

    fn cast(&mut self, value: ValueId, to: i64) -> ValueId {
        self.op("Cast", &[value], &[("to", Attribute::Int(to))])
    }

    fn reshape(&mut self, value: ValueId, shape: ValueId) -> ValueId {
        self.op("Reshape", &[value, shape], &[("allowzero", Attribute::Int(1))])
    }

    /// Some of the sizes of a value.
    fn sizes(&mut self, value: ValueId, start: i64, end: i64) -> ValueId {
        self.op("Shape", &[value], &[("start", Attribute::Int(start)), ("end", Attribute::Int(end))])
    }

    fn shapes(&mut self, query: ValueId, key: ValueId, value: ValueId) -> Shapes {
        let (heads, rows) = (self.sizes(query, 1, 2), self.sizes(query, 2, 3));
        let (shared, keys) = (self.sizes(key, 1, 2), self.sizes(key, 2, 3));
        let (batches, apart) = (self.sizes(query, 0, 1), self.sizes(query, 0, 3));
        let (size, value_size) = (self.sizes(query, 3, 4), self.sizes(value, 3, 4));
        let group = self.op("Div", &[heads, shared], &[]);
        let rows = self.op("Mul", &[group, rows], &[]);
        let mut shape = |sizes: &[ValueId]| self.op("Concat", sizes, &[("axis", Attribute::Int(0))]);
        Shapes {
            queries: shape(&[batches, shared, rows, size]),
            scores: shape(&[apart, keys]),
            weights: shape(&[batches, shared, rows, keys]),
            output: shape(&[apart, value_size]),
        }
    }

    /// What queries are multiplied with: what is stated, or one over the root of the size of a head.
    fn scale(&mut self, query: ValueId, stated: Option<f64>, dtype: Dtype) -> Result<ValueId> {
        let scale = match stated {
            Some(scale) => {
                let scale = Constant::new(Dtype::F32, &[], (scale as f32).to_ne_bytes().to_vec())?;
                self.graph.add(Value::constant("a scale", Weight::Numbers(scale)))
            }
            None => {
                let size = self.sizes(query, 3, 4);
                let size = self.cast(size, Dtype::F32.onnx_number());
                let root = self.op("Sqrt", &[size], &[]);
                self.op("Reciprocal", &[root], &[])
            }
        };
        Ok(self.cast(scale, dtype.onnx_number()))
    }

    /// A value after a graph has changed it, if there is one.
    fn changed(&mut self, value: ValueId, by: Option<&Subgraph>) -> ValueId {
        let Some(by) = by else { return value };
        let arguments = std::iter::once(value).chain(by.captures.iter().copied());
        let (nodes, outputs) = inline(self.graph, &by.graph, arguments);
        self.nodes.extend(nodes);
        outputs.first().copied().unwrap_or(value)
    }
}

//! Lowers attention with custom subgraphs to simpler ops.
//!
//! `FlexAttention` may modify scores and weights by subgraphs, which no kernel can run. It becomes two products and a softmax,
//! with the nodes of the subgraphs inlined between them. Without subgraphs it is ONNX's `Attention`.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Attribute, Constant, Dtype, Result};

use super::branch::inline_subgraph;
use super::graph_view::define_pass;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, Subgraph, ValueId, Weight};

pub(super) const LOWER_FLEX_ATTENTION: GraphPass = define_pass(
    "FlexAttention lowering",
    "lowers FlexAttention to its two products and softmax, with its graphs for scores between them",
    lower_flex_attentions,
);

/// The opset of the nodes that replace a `FlexAttention`.
const WRITTEN_OPSET: u32 = 23;

fn lower_flex_attentions(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize> {
    let (mut count, mut replaced, mut kept) = (0, HashMap::new(), Vec::new());
    for node in std::mem::take(&mut graph.nodes) {
        let is_flexible = &*node.domain == "ai.onnx.preview" && &*node.op == "FlexAttention";
        match if is_flexible { lower_node(graph, &node, &mut replaced)? } else { None } {
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

/// Lowers one node; `None` if too little is known about it.
fn lower_node(
    graph: &mut Graph,
    node: &Node,
    replaced: &mut HashMap<ValueId, ValueId>,
) -> Result<Option<Vec<Node>>> {
    let operands = node.input(0).zip(node.input(1)).zip(node.input(2)).zip(node.output(0));
    let Some((((query, key), value), output)) = operands else { return Ok(None) };
    if node.subgraphs.is_empty() {
        let inputs = [query, key, value].map(Some);
        let mut attention = Node::new("", "Attention", WRITTEN_OPSET, inputs, [Some(output)]);
        (attention.name, attention.attributes) = (node.name.clone(), node.attributes.clone());
        return Ok(Some(vec![attention]));
    }
    let Some(dtype) = graph.value(query).dtype() else { return Ok(None) };
    let usual = if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
    let computed = node.attributes.get_int("softmax_precision")?.unwrap_or(usual.onnx_number());
    let change = |name: &str| node.subgraphs.iter().find(|subgraph| &*subgraph.attribute == name);
    let mut writer = FlexAttentionLowering { graph, nodes: Vec::new(), name: node.name.clone() };
    let shapes = writer.add_shapes(query, key, value);
    let scale = writer.add_scale(query, node.attributes.get_float("scale")?, dtype)?;
    let query = writer.add_op("Mul", &[query, scale], &[]);
    let query = writer.add_reshape(query, shapes.queries);
    let key = writer.add_op("Transpose", &[key], &[("perm", Attribute::Ints(vec![0, 1, 3, 2]))]);
    let scores = writer.add_op("MatMul", &[query, key], &[]);
    let scores = writer.add_cast(scores, computed);
    let scores = writer.add_reshape(scores, shapes.scores);
    let scores = writer.apply_modifier(scores, change("score_mod"));
    let weights = writer.add_op("Softmax", &[scores], &[("axis", Attribute::Int(-1))]);
    let weights = writer.apply_modifier(weights, change("prob_mod"));
    let weights = writer.add_reshape(weights, shapes.weights);
    let value = writer.add_cast(value, computed);
    let made = writer.add_op("MatMul", &[weights, value], &[]);
    let made = writer.add_cast(made, dtype.onnx_number());
    replaced.insert(output, writer.add_reshape(made, shapes.output));
    Ok(Some(writer.nodes))
}

/// Shapes for reshapes. Queries that share keys become rows of one product, so the keys need not be repeated.
struct FlexAttentionShapes {
    /// Queries, with all heads that share keys one after another.
    queries: ValueId,
    /// Scores, with separate heads.
    scores: ValueId,
    /// Weights, in the layout of the queries.
    weights: ValueId,
    /// The output, with separate heads.
    output: ValueId,
}

/// Collects the nodes of one lowering.
struct FlexAttentionLowering<'g> {
    graph: &'g mut Graph,
    nodes: Vec<Node>,
    name: Arc<str>,
}

impl FlexAttentionLowering<'_> {
    fn add_op(&mut self, op: &str, inputs: &[ValueId], attributes: &[(&str, Attribute)]) -> ValueId {
        let made =
            self.graph.add_value(GraphValue::with_name(format!("{}/{op} {}", self.name, self.nodes.len())));
        let mut node = Node::new("", op, WRITTEN_OPSET, inputs.iter().copied().map(Some), [Some(made)]);
        node.name = self.name.clone();
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        self.nodes.push(node);
        made
    }

    fn add_cast(&mut self, value: ValueId, to: i64) -> ValueId {
        self.add_op("Cast", &[value], &[("to", Attribute::Int(to))])
    }

    fn add_reshape(&mut self, value: ValueId, shape: ValueId) -> ValueId {
        self.add_op("Reshape", &[value, shape], &[("allowzero", Attribute::Int(1))])
    }

    /// Adds the sizes `start..end` of a value's shape.
    fn slice_shape(&mut self, value: ValueId, start: i64, end: i64) -> ValueId {
        self.add_op("Shape", &[value], &[("start", Attribute::Int(start)), ("end", Attribute::Int(end))])
    }

    fn add_shapes(&mut self, query: ValueId, key: ValueId, value: ValueId) -> FlexAttentionShapes {
        let (heads, rows) = (self.slice_shape(query, 1, 2), self.slice_shape(query, 2, 3));
        let (shared, keys) = (self.slice_shape(key, 1, 2), self.slice_shape(key, 2, 3));
        let (batches, apart) = (self.slice_shape(query, 0, 1), self.slice_shape(query, 0, 3));
        let (size, value_size) = (self.slice_shape(query, 3, 4), self.slice_shape(value, 3, 4));
        let group = self.add_op("Div", &[heads, shared], &[]);
        let rows = self.add_op("Mul", &[group, rows], &[]);
        let mut shape = |sizes: &[ValueId]| self.add_op("Concat", sizes, &[("axis", Attribute::Int(0))]);
        FlexAttentionShapes {
            queries: shape(&[batches, shared, rows, size]),
            scores: shape(&[apart, keys]),
            weights: shape(&[batches, shared, rows, keys]),
            output: shape(&[apart, value_size]),
        }
    }

    /// Adds the factor for queries: the given scale, or one over the root of the head size.
    fn add_scale(&mut self, query: ValueId, stated: Option<f64>, dtype: Dtype) -> Result<ValueId> {
        let scale = match stated {
            Some(scale) => {
                let scale = Constant::new(Dtype::F32, &[], (scale as f32).to_ne_bytes().to_vec())?;
                self.graph.add_value(GraphValue::with_weight("a scale", Weight::Numbers(scale)))
            }
            None => {
                let size = self.slice_shape(query, 3, 4);
                let size = self.add_cast(size, Dtype::F32.onnx_number());
                let root = self.add_op("Sqrt", &[size], &[]);
                self.add_op("Reciprocal", &[root], &[])
            }
        };
        Ok(self.add_cast(scale, dtype.onnx_number()))
    }

    /// Inlines a subgraph that modifies a value, if there is one.
    fn apply_modifier(&mut self, value: ValueId, by: Option<&Subgraph>) -> ValueId {
        let Some(by) = by else { return value };
        let arguments = std::iter::once(value).chain(by.captures.iter().copied());
        let (nodes, outputs) = inline_subgraph(self.graph, &by.graph, arguments);
        self.nodes.extend(nodes);
        outputs.first().copied().unwrap_or(value)
    }
}

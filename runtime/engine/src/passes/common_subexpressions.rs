//! Removes nodes that recompute a value that an earlier node already has.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use oarlock_core::{Attribute, Result};

use super::graph_view::define_pass;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const ELIMINATE_COMMON_SUBEXPRESSIONS: GraphPass = define_pass(
    "common subexpression elimination",
    "computes once what several nodes compute from the same inputs in the same way",
    eliminate_common_subexpressions,
);

fn eliminate_common_subexpressions(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize> {
    let mut known: HashMap<SubexpressionKey, Vec<Node>> = HashMap::new();
    let mut replaced: HashMap<ValueId, ValueId> = HashMap::new();
    let mut kept = Vec::new();
    let outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    for mut node in std::mem::take(&mut graph.nodes) {
        node.inputs.iter_mut().flatten().for_each(|input| *input = *replaced.get(input).unwrap_or(input));
        let captures = node.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
        captures.for_each(|captured| *captured = *replaced.get(captured).unwrap_or(captured));
        // Random ops differ from call to call; subgraphs are not compared.
        let is_comparable = node.subgraphs.is_empty() && !super::fold::is_random(&node);
        let op = format!("{}.{}:{}", node.domain, node.op, node.opset);
        let key = (op, attribute_fingerprint(&node), node.inputs.to_vec());
        let same = known.get(&key).into_iter().flatten().find(|other| {
            other.attributes == node.attributes
                && other.outputs.len() == node.outputs.len()
                && node
                    .outputs
                    .iter()
                    .zip(&other.outputs)
                    .all(|(own, others)| own.is_none() || others.is_some())
        });
        let is_output = node.written_values().any(|value| outputs.contains(&value));
        match same.filter(|_| is_comparable && !is_output) {
            Some(other) => {
                let pairs = node.outputs.iter().zip(&other.outputs);
                replaced.extend(pairs.filter_map(|(own, others)| own.zip(*others)));
            }
            None => {
                known.entry(key).or_default().push(node.clone());
                kept.push(node);
            }
        }
    }
    graph.nodes = kept;
    graph.replace_uses(&replaced);
    Ok(replaced.len())
}

/// Key of a lookup table: op, fingerprint of the attributes, inputs.
type SubexpressionKey = (String, u64, Vec<Option<ValueId>>);

/// A hash of the attributes, equal for equal ones. Without it, a value with thousands of readers that differ only in attributes
/// would cost a quadratic number of comparisons.
fn attribute_fingerprint(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in node.attributes.iter() {
        name.hash(&mut hasher);
        match value {
            Attribute::Int(value) => value.hash(&mut hasher),
            // The two zeros compare equal, so they must hash the same.
            Attribute::Float(value) => (value + 0.0).to_bits().hash(&mut hasher),
            Attribute::String(value) => value.hash(&mut hasher),
            Attribute::Ints(values) => values.hash(&mut hasher),
            Attribute::Strings(values) => values.hash(&mut hasher),
            Attribute::Floats(values) => values.len().hash(&mut hasher),
            Attribute::Tensor(tensor) => {
                tensor.bytes().iter().flatten().take(64).for_each(|byte| byte.hash(&mut hasher));
            }
        }
    }
    hasher.finish()
}

//! Rewrites batch normalization as one factor and one summand for each channel, where no convolution before it takes these.

use std::collections::HashMap;

use oarlock_core::{Constant, Dtype, Result};

use super::channel_affine::{ChannelAffine, float_constant};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, Weight};

pub(super) const LOWER_BATCH_NORM: GraphPass = define_pass(
    "batch normalization lowering",
    "leaves one factor and one summand for each channel where no convolution takes them",
    lower_batch_norms,
);

/// An opset in which `Mul` and `Add` broadcast in both directions.
const ARITHMETIC_OPSET: u32 = 14;

fn lower_batch_norms(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, [Constant; 2])> = {
        let view = GraphView::of_graph(graph, context);
        let norms = graph.nodes.iter().enumerate().filter(|(_, node)| node.is_op("BatchNormalization"));
        norms.filter_map(|(at, node)| Some((at, factor_and_summand(&view, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, [factor, summand]) in found {
        let name = graph.nodes[at].label();
        let mut add = |constant: Constant, kind: &str| {
            let value = GraphValue::with_weight(format!("{kind} of {name}"), Weight::Numbers(constant));
            Some(graph.add_value(value))
        };
        let (factor, summand) = (add(factor, "factor"), add(summand, "summand"));
        let norm = graph.nodes[at].clone();
        let (x, y) = (norm.input(0), norm.output(0));
        let fact = y.and_then(|y| graph.value(y).fact.clone());
        let scaled = graph.add_value(GraphValue { fact, ..GraphValue::with_name(format!("{name}, scaled")) });
        let scale = Node::new("", "Mul", ARITHMETIC_OPSET, [x, factor], [Some(scaled)]);
        let shift = Node::new("", "Add", ARITHMETIC_OPSET, [Some(scaled), summand], [y]);
        let nodes = vec![Node { name: norm.name.clone(), ..scale }, Node { name: norm.name, ..shift }];
        replacements.insert(at, nodes);
    }
    Ok(replace_nodes(graph, replacements))
}

/// The factor and the summand of each channel, in the shape that broadcasts.
fn factor_and_summand(view: &GraphView<'_>, norm: &Node) -> Option<[Constant; 2]> {
    let map = ChannelAffine::from_batch_norm(view, norm)?;
    let x = norm.input(0)?;
    let is_convolved = ["Conv", "ConvTranspose"].iter().any(|op| view.fusable_producer(x, op).is_some());
    let rank = view.rank(x).filter(|rank| *rank >= 2)?;
    // A convolution takes the map itself as soon as its weights are constant.
    if is_convolved || view.dtype(x)? != Dtype::F32 {
        return None;
    }
    let channels = i64::try_from(map.pairs().len()).ok()?;
    let dims: Vec<i64> = std::iter::once(channels).chain(std::iter::repeat_n(1, rank - 2)).collect();
    let (factors, summands) = (map.pairs().map(|pair| pair.0), map.pairs().map(|pair| pair.1));
    Some([float_constant(factors, &dims)?, float_constant(summands, &dims)?])
}

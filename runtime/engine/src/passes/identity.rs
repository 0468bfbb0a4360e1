//! Removes nodes that do nothing.

use oarlock_core::Result;

use super::graph_view::{bypass_nodes, define_pass};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const ELIMINATE_IDENTITIES: GraphPass = define_pass(
    "identity elimination",
    "removes nodes that return their input: Identity, Dropout at inference, casts to the same dtype, \
     transposes that move nothing",
    eliminate_identities,
);

fn eliminate_identities(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    Ok(bypass_nodes(graph, |graph, node| passed_through(graph, node, context)))
}

/// The input that a node passes through unchanged, if it does.
fn passed_through(graph: &Graph, node: &Node, context: &PassContext<'_>) -> Option<ValueId> {
    let input = node.input(0)?;
    if !node.domain.is_empty() || node.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let does_nothing = match &*node.op {
        "Identity" => true,
        "Dropout" => match node.input(2) {
            None => node.opset >= 7,
            Some(mode) => {
                let known = graph.value(mode).known_numbers()?;
                context.record_read(graph, mode);
                known.bytes().is_ok_and(|bytes| *bytes == [0])
            }
        },
        "Cast" => {
            let to = node.attributes.get_int("to").ok().flatten().and_then(oarlock_core::Dtype::from_onnx);
            to.is_some() && to == graph.value(input).dtype()
        }
        "Transpose" => {
            let order = node.attributes.get_ints("perm").ok().flatten();
            order.is_some_and(|order| {
                order.iter().enumerate().all(|(at, axis)| usize::try_from(*axis) == Ok(at))
            })
        }
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" | "Tile" => {
            let result = node.output(0)?;
            context.check_shapes(graph, move |graph| {
                Some(graph.value(result).dims()? == graph.value(input).dims()?)
            })
        }
        _ => false,
    };
    does_nothing.then_some(input)
}

//! Names that nodes of a graph within a node make again.
//!
//! ONNX wants a name made once in a graph and in all that lie in it, and neither its checker nor onnxruntime takes a model in
//! which a body makes a value that is called as one around it. Inputs and weights of a body may have any names.

use std::collections::HashSet;

use oarlock_core::Result;

use super::body::label;
use super::messages::{GraphProto, NodeProto};
use crate::import::place::{Within as _, quoted, wrong};

/// The names that there are in a graph so far, and around it, the outermost first.
type Known<'m> = Vec<HashSet<&'m str>>;

/// Checks the graph of a model.
pub(super) fn check(graph: &GraphProto) -> Result<()> {
    if graph.node.iter().any(|node| graphs(node).next().is_some()) {
        within(graph, &mut Known::new())
    } else {
        Ok(())
    }
}

fn within<'m>(graph: &'m GraphProto, known: &mut Known<'m>) -> Result<()> {
    let place = || format!("graph {}", quoted(graph.name()));
    let inputs = graph.input.iter().map(|input| input.name());
    known.push(inputs.chain(graph.initializer.iter().map(|weight| weight.name())).collect());
    for node in &graph.node {
        check_node(node, known).within(|| label(node)).within(place)?;
    }
    known.pop();
    Ok(())
}

fn check_node<'m>(node: &'m NodeProto, known: &mut Known<'m>) -> Result<()> {
    for graph in graphs(node) {
        within(graph, known)?;
    }
    let Some((own, around)) = known.split_last_mut() else { return Ok(()) };
    for output in node.output.iter().filter(|output| !output.is_empty()) {
        if around.iter().any(|names| names.contains(output.as_str())) {
            let found = format!("{}, which is one around it", quoted(output));
            return Err(wrong(
                "a graph within a node to make values of other names than those around it",
                found,
            ));
        }
        own.insert(output);
    }
    Ok(())
}

fn graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs))
}

//! Names that nodes of a graph within a node make again.
//!
//! ONNX wants a name made once in a graph and in all that lie in it, and neither its checker nor onnxruntime takes a model in
//! which a body makes a value that is called as one around it. Inputs and weights of a body may have any names.

use std::collections::HashSet;

use oarlock_core::Result;

use super::importer::node_label;
use super::messages::{GraphProto, NodeProto};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// The names that there are in a graph so far, and around it, the outermost first.
type KnownNames<'m> = Vec<HashSet<&'m str>>;

/// Checks the graph of a model.
pub(super) fn check_shadowing(graph: &GraphProto) -> Result<()> {
    if graph.node.iter().any(|node| node_graphs(node).next().is_some()) {
        check_graph_within(graph, &mut KnownNames::new())
    } else {
        Ok(())
    }
}

fn check_graph_within<'m>(graph: &'m GraphProto, known: &mut KnownNames<'m>) -> Result<()> {
    let place = || format!("graph {}", quote_name(graph.name()));
    let inputs = graph.input.iter().map(|input| input.name());
    known.push(inputs.chain(graph.initializer.iter().map(|weight| weight.name())).collect());
    for node in &graph.node {
        check_node(node, known).with_location(|| node_label(node)).with_location(place)?;
    }
    known.pop();
    Ok(())
}

fn check_node<'m>(node: &'m NodeProto, known: &mut KnownNames<'m>) -> Result<()> {
    for graph in node_graphs(node) {
        check_graph_within(graph, known)?;
    }
    let Some((own, around)) = known.split_last_mut() else { return Ok(()) };
    for output in node.output.iter().filter(|output| !output.is_empty()) {
        if around.iter().any(|names| names.contains(output.as_str())) {
            let found = format!("{}, which is one around it", quote_name(output));
            return Err(invalid_model(
                "a graph within a node to make values of other names than those around it",
                found,
            ));
        }
        own.insert(output);
    }
    Ok(())
}

fn node_graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs))
}

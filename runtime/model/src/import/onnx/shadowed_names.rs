//! Refuses names that a subgraph's nodes define again.
//!
//! ONNX requires the output names of nodes to be unique in a graph and all its subgraphs, and neither its checker nor
//! onnxruntime accepts a body whose node reuses an outer name. Inputs and weights of a body may have any names.

use std::collections::HashSet;

use oarlock_core::Result;

use super::importer::node_label;
use super::messages::{GraphProto, NodeProto};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// Names defined so far in a graph and the enclosing ones, outermost first.
type KnownNames<'m> = Vec<HashSet<&'m str>>;

/// Checks the model's graph; without subgraphs there is nothing to shadow.
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

//! Checks that a graph is in SSA form: every value is written once, before it is read.

use std::collections::HashSet;

use oarlock_core::{Error, Result};

use super::{Graph, ValueId};

/// Checks that every value a node reads is an input, a constant or an output of an earlier node, that no value is written
/// twice, and that every graph output exists; in subgraphs too.
pub fn check_graph(graph: &Graph) -> Result<()> {
    let mut made: HashSet<ValueId> = graph.inputs.iter().copied().collect();
    if made.len() != graph.inputs.len() {
        return Err(invalid_graph(graph, "every input once", "one that is there twice"));
    }
    made.extend(graph.values().filter(|(_, value)| value.weight.is_some()).map(|(id, _)| id));
    for node in &graph.nodes {
        if let Some(missing) = node.read_values().find(|value| !made.contains(value)) {
            let found = format!("{} that reads `{}`", node.label(), graph.value(missing).name);
            return Err(invalid_graph(graph, "nodes behind those whose outputs they read", &found));
        }
        for output in node.written_values() {
            if !made.insert(output) {
                let found = format!("`{}`, which {} makes again", graph.value(output).name, node.label());
                return Err(invalid_graph(graph, "every value to be made once", &found));
            }
        }
        for subgraph in &node.subgraphs {
            if subgraph.captures.len() > subgraph.graph.inputs.len() {
                return Err(invalid_graph(
                    &subgraph.graph,
                    "an input for everything that is captured",
                    "fewer",
                ));
            }
            check_graph(&subgraph.graph)?;
        }
    }
    match graph.outputs.iter().find(|output| !made.contains(output)) {
        Some(missing) => {
            let found = format!("the output `{}`, which nothing makes", graph.value(*missing).name);
            Err(invalid_graph(graph, "outputs that a node produces", &found))
        }
        None => Ok(()),
    }
}

#[cold]
fn invalid_graph(graph: &Graph, expected: &str, found: &str) -> Error {
    Error::invalid_argument(format!("expected {expected}, found {found}"))
        .with_operand(format!("graph `{}`", graph.name))
}

#[cfg(test)]
mod tests {
    use super::super::{GraphValue, Node};
    use super::*;

    fn build_graph(nodes: &[(&str, &[&'static str], &[&'static str])]) -> Graph {
        let mut graph = Graph::new("test");
        let mut names = std::collections::HashMap::new();
        let input = graph.add_value(GraphValue::with_name("x"));
        names.insert("x", input);
        graph.inputs = vec![input];
        for (op, inputs, outputs) in nodes {
            let mut ids = |list: &[&'static str]| -> Vec<Option<ValueId>> {
                list.iter()
                    .map(|name| {
                        Some(
                            *names
                                .entry(*name)
                                .or_insert_with(|| graph.add_value(GraphValue::with_name(*name))),
                        )
                    })
                    .collect()
            };
            let (inputs, outputs) = (ids(inputs), ids(outputs));
            graph.nodes.push(Node::new("", op, 20, inputs, outputs));
        }
        graph.outputs = graph.nodes.last().map(|node| node.written_values().collect()).unwrap_or_default();
        graph
    }

    #[test]
    fn a_graph_in_order_is_one() {
        check_graph(&build_graph(&[("Relu", &["x"], &["y"]), ("Add", &["x", "y"], &["z"])])).unwrap();
    }

    #[test]
    fn a_value_read_before_its_producer_is_reported_by_name() {
        let error =
            check_graph(&build_graph(&[("Add", &["x", "y"], &["z"]), ("Relu", &["z"], &["y"])])).unwrap_err();
        assert!(error.to_string().contains("`Add` that reads `y`"), "{error}");
    }

    #[test]
    fn a_value_produced_twice_is_reported_by_name() {
        let error =
            check_graph(&build_graph(&[("Relu", &["x"], &["y"]), ("Neg", &["x"], &["y"])])).unwrap_err();
        assert!(error.to_string().contains("`y`, which `Neg` makes again"), "{error}");
    }
}

//! Graphs as text, for people and for test snapshots.

use std::fmt;

use super::{Graph, ValueId};

/// One line for each input, node and output; subgraphs are indented.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_indented(f, 0)
    }
}

impl Graph {
    fn write_indented(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for input in &self.inputs {
            let value = self.value(*input);
            writeln!(f, "{indent}input {}: {}", value.name, value.declared)?;
        }
        for node in &self.nodes {
            let names = |ids: &[Option<ValueId>]| {
                let name = |id: &Option<ValueId>| id.map_or("_".to_owned(), |id| self.describe_value(id));
                ids.iter().map(name).collect::<Vec<_>>().join(", ")
            };
            let domain = if node.domain.is_empty() { String::new() } else { format!("{}.", node.domain) };
            write!(f, "{indent}{} = {domain}{}({})", names(&node.outputs), node.op, names(&node.inputs))?;
            for (name, value) in node.attributes.iter() {
                write!(f, " {name}={value:?}")?;
            }
            writeln!(f)?;
            for subgraph in &node.subgraphs {
                let captured: Vec<String> =
                    subgraph.captures.iter().map(|id| self.describe_value(*id)).collect();
                writeln!(f, "{indent}  {} with [{}]", subgraph.attribute, captured.join(", "))?;
                subgraph.graph.write_indented(f, depth + 2)?;
            }
        }
        for output in &self.outputs {
            writeln!(f, "{indent}output {}", self.describe_value(*output))?;
        }
        Ok(())
    }

    /// The name of a value, or the elements of a small constant.
    fn describe_value(&self, id: ValueId) -> String {
        let value = self.value(id);
        let numbers = value.weight.as_ref().and_then(|weight| weight.as_numbers());
        match numbers
            .filter(|numbers| numbers.size_in_bytes() <= 64)
            .and_then(|numbers| numbers.to_floats().ok())
        {
            Some(elements) => format!("{elements:?}"),
            None => value.name.to_string(),
        }
    }
}

//! Imports a Paddle program as a graph.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_core::{Error, Result, shape};

use super::graph_frame::tensor_desc;
use super::importer::PaddleImporter;
use super::messages::BlockDesc;
use super::ops;
use crate::graph::{Graph, GraphValue, Weight};
use crate::import::error_location::{invalid_model, quote_name};

/// Unsupported ops that an error lists.
const MAX_NAMED_OPS: usize = 10;

/// Imports the block that a run starts with.
pub(super) fn import_graph<'m>(
    blocks: &'m [BlockDesc],
    version: i64,
    weights: BTreeMap<&'m str, Weight>,
) -> Result<Graph> {
    let ops = blocks.iter().flat_map(|block| &block.ops);
    let unsupported: BTreeSet<&str> =
        ops.map(|op| op.r#type()).filter(|name| ops::find_translator(name).is_none()).collect();
    if !unsupported.is_empty() {
        let names: Vec<String> =
            unsupported.iter().take(MAX_NAMED_OPS).map(|name| quote_name(name)).collect();
        return Err(Error::unimplemented(format!(
            "expected ops that are supported, found {}",
            names.join(", ")
        )));
    }
    for variable in blocks.iter().flat_map(|block| &block.vars) {
        let rank = tensor_desc(variable).map_or(0, |tensor| tensor.dims.len());
        if rank > shape::MAX_RANK {
            let expected = format!("at most {} dimensions", shape::MAX_RANK);
            return Err(invalid_model(expected, format!("{rank} of {}", quote_name(variable.name()))));
        }
    }
    let mut program = PaddleImporter::new(blocks, version, ops::find_translator);
    let main = program.open_frame(Some(0))?;
    for (name, weight) in weights {
        let id = program.current_graph().add_value(GraphValue::with_weight(name, weight));
        program.bind_name(name, id);
    }
    program.lower_ops(main)?;
    let outputs = program.fetched.values().copied().collect();
    let (mut graph, _) = program.close_frame(outputs);
    graph.inputs = program.fed.into_values().collect();
    Ok(graph)
}

//! Has products with block-quantized weights of few bits read the weights as they are stored.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node};
use oarlock_core::schema::{ACCURACY_LEVEL, OARLOCK_DOMAIN};

pub(super) const FUSE_BLOCK_PRODUCTS: GraphPass = define_pass(
    "block quantization fusion",
    "multiplies by weights of 4 or 8 bits in blocks as they are stored, instead of by dequantized \
     floats",
    fuse_block_products,
);

fn fuse_block_products(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if !context.has_kernel_for("BlockMatMul") {
        return Ok(0);
    }
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let product =
            match_block_product(&view, node).filter(|product| context.supports_node(graph, product));
        found.extend(product.map(|product| (at, vec![product])));
    }
    Ok(replace_nodes(graph, found))
}

/// True if a product may still become one that reads its weights as they are stored: that depends on the number of rows, which is not
/// known yet. Until then it has to stay as it is, since that op has no epilogue.
pub(super) fn waits_for_row_count(view: &GraphView<'_>, node: &Node) -> bool {
    let rows = node.input(0).and_then(|rows| view.graph.value(rows).dims());
    let is_known = rows.is_some_and(|dims| dims.iter().all(|size| *size >= 0));
    !is_known && match_block_product(view, node).is_some()
}

/// Matches a product with a transposed matrix that is dequantized in blocks along its rows.
fn match_block_product(view: &GraphView<'_>, node: &Node) -> Option<Node> {
    let is_product = &*node.domain == OARLOCK_DOMAIN && &*node.op == "MatMul" && node.inputs.len() == 2;
    let is_set = |name| node.attributes.get_int(name).ok().flatten().unwrap_or(0) != 0;
    // The op for blocks has no epilogue.
    let has_activation = node.attributes.get_string("activation").ok()?.is_some_and(|name| !name.is_empty());
    let alpha = node.attributes.get_float("alpha").ok()?.unwrap_or(1.0);
    if !is_product || is_set("transA") || !is_set("transB") || alpha != 1.0 || has_activation {
        return None;
    }
    // Others may read the floats too, such as the transpose that has just become part of the product.
    let weights = view.producer_with_op(node.input(1)?, "DequantizeLinear")?;
    let block = weights.attributes.get_int("block_size").ok()?.filter(|block| *block > 0)?;
    let axis = weights.attributes.get_int("axis").ok()?.unwrap_or(1);
    let is_constant =
        |input: usize| weights.input(input).is_none_or(|id| view.graph.value(id).weight.is_some());
    if view.rank(weights.input(0)?)? != 2 || !matches!(axis, 1 | -1) || !(0..3).all(is_constant) {
        return None;
    }
    let inputs = [node.input(0), weights.input(0), weights.input(1), weights.input(2)];
    let mut product = Node::new(OARLOCK_DOMAIN, "BlockMatMul", 1, inputs, node.outputs.iter().copied());
    while product.inputs.last() == Some(&None) {
        product.inputs.pop();
    }
    product.attributes.set("block_size", Attribute::Int(block));
    if let Some(level) = node.attributes.get_int(ACCURACY_LEVEL).ok()? {
        product.attributes.set(ACCURACY_LEVEL, Attribute::Int(level));
    }
    product.name = node.name.clone();
    Some(product)
}

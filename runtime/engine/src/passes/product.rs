//! Turns products of matrices into the op that can apply an epilogue while its results are in cache.

use std::collections::HashMap;

use oarlock_core::{Attribute, Dtype, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::{ACCURACY_LEVEL, OARLOCK_DOMAIN};

pub(super) const FUSE_PRODUCTS: GraphPass = define_pass(
    "matrix product fusion",
    "turns MatMul and Gemm into Oarlock's own product, which adds bias and residual and applies the \
     activation",
    fuse_products,
);

fn fuse_products(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if !context.has_kernel_for("MatMul") {
        return Ok(0);
    }
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let product = match &*node.op {
            "MatMul" if node.domain.is_empty() => from_matmul(&view, node),
            "Gemm" if node.domain.is_empty() => from_gemm(node),
            _ => None,
        };
        if let Some(product) = product.filter(|product| context.supports_node(graph, product)) {
            found.insert(at, vec![product]);
        }
    }
    Ok(replace_nodes(graph, found))
}

fn fused_matmul(node: &Node, inputs: [Option<ValueId>; 3]) -> Node {
    let mut product = Node::new(OARLOCK_DOMAIN, "MatMul", 1, inputs, node.outputs.iter().copied());
    while product.inputs.last() == Some(&None) {
        product.inputs.pop();
    }
    product.name = node.name.clone();
    product
}

/// Fuses transposes of the last two dimensions into the product.
fn from_matmul(view: &GraphView<'_>, node: &Node) -> Option<Node> {
    let (a, b) = node.input(0).zip(node.input(1))?;
    if view.rank(a)? < 2 || view.rank(b)? < 2 || view.dtype(a)? != Dtype::F32 {
        return None;
    }
    let (a, turns_a) = match_matrix_transpose(view, a);
    let (b, turns_b) = match_matrix_transpose(view, b);
    let mut product = fused_matmul(node, [Some(a), Some(b), None]);
    product.attributes.set("transA", Attribute::Int(turns_a.into()));
    product.attributes.set("transB", Attribute::Int(turns_b.into()));
    if let Some(level) = node.attributes.get_int(ACCURACY_LEVEL).ok()? {
        product.attributes.set(ACCURACY_LEVEL, Attribute::Int(level));
    }
    Some(product)
}

/// Looks through a transpose of the last two dimensions; returns the value before it and whether there was one.
fn match_matrix_transpose(view: &GraphView<'_>, value: ValueId) -> (ValueId, bool) {
    let find = || {
        let node = view.fusable_producer(value, "Transpose")?;
        let order = node.attributes.get_ints("perm").ok()??;
        let rank = i64::try_from(order.len()).ok()?;
        let expected = (0..rank - 2).chain([rank - 1, rank - 2]);
        order.iter().copied().eq(expected).then(|| node.input(0)).flatten()
    };
    find().map_or((value, false), |input| (input, true))
}

fn from_gemm(node: &Node) -> Option<Node> {
    let beta = node.attributes.get_float("beta").ok()?.unwrap_or(1.0);
    if beta != 1.0 && node.input(2).is_some() {
        return None;
    }
    let mut product = fused_matmul(node, [node.input(0), node.input(1), node.input(2)]);
    for name in ["transA", "transB"] {
        let turns = node.attributes.get_int(name).ok()?.unwrap_or(0);
        product.attributes.set(name, Attribute::Int(turns));
    }
    let alpha = node.attributes.get_float("alpha").ok()?.unwrap_or(1.0);
    product.attributes.set("alpha", Attribute::Float(alpha));
    Some(product)
}

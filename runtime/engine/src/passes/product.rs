//! Products of matrices become the op that can finish its results while they are in the cache.

use std::collections::HashMap;

use oarlock_core::{Attribute, Dtype, Result};

use super::common::{Look, OARLOCK, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, ValueId};

pub(super) const PASS: Pass = pass(
    "products",
    "turns MatMul and Gemm into the product of this program's own that takes bias, residual and activation with it",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    if !scene.has("MatMul") {
        return Ok(0);
    }
    let look = Look::at(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let product = match &*node.op {
            "MatMul" if node.domain.is_empty() => of_matmul(&look, node),
            "Gemm" if node.domain.is_empty() => of_gemm(node),
            _ => None,
        };
        if let Some(product) = product.filter(|product| scene.takes(graph, product)) {
            found.insert(at, vec![product]);
        }
    }
    Ok(replace(graph, found))
}

fn product(node: &Node, inputs: [Option<ValueId>; 3]) -> Node {
    let mut product = Node::new(OARLOCK, "MatMul", 1, inputs, node.outputs.iter().copied());
    while product.inputs.last() == Some(&None) {
        product.inputs.pop();
    }
    product.name = node.name.clone();
    product
}

/// Transposes of the last two dimensions before a product are part of it.
fn of_matmul(look: &Look<'_>, node: &Node) -> Option<Node> {
    let (a, b) = node.input(0).zip(node.input(1))?;
    if look.rank(a)? < 2 || look.rank(b)? < 2 || look.dtype(a)? != Dtype::F32 {
        return None;
    }
    let (a, turns_a) = turned(look, a);
    let (b, turns_b) = turned(look, b);
    let mut product = product(node, [Some(a), Some(b), None]);
    product.attributes.set("transA", Attribute::Int(turns_a.into()));
    product.attributes.set("transB", Attribute::Int(turns_b.into()));
    Some(product)
}

/// What a value is with its last two dimensions exchanged, if it is made so.
fn turned(look: &Look<'_>, value: ValueId) -> (ValueId, bool) {
    let find = || {
        let node = look.made_only_for(value, "Transpose")?;
        let order = node.attributes.ints("perm").ok()??;
        let rank = i64::try_from(order.len()).ok()?;
        let expected = (0..rank - 2).chain([rank - 1, rank - 2]);
        order.iter().copied().eq(expected).then(|| node.input(0)).flatten()
    };
    find().map_or((value, false), |input| (input, true))
}

fn of_gemm(node: &Node) -> Option<Node> {
    let beta = node.attributes.float("beta").ok()?.unwrap_or(1.0);
    if beta != 1.0 && node.input(2).is_some() {
        return None;
    }
    let mut product = product(node, [node.input(0), node.input(1), node.input(2)]);
    for name in ["transA", "transB"] {
        let turns = node.attributes.int(name).ok()?.unwrap_or(0);
        product.attributes.set(name, Attribute::Int(turns));
    }
    let alpha = node.attributes.float("alpha").ok()?.unwrap_or(1.0);
    product.attributes.set("alpha", Attribute::Float(alpha));
    Some(product)
}

//! Ops of Oarlock's own as ops of ONNX, so that other runtimes can run an exported graph.
//!
//! Only elementwise ops of real numbers are replaced. All others stay as they are: they compute with complex numbers, which ONNX
//! has no ops for, or are algorithms such as singular values.

mod decomposition;
mod formulas;

use std::mem::take;

use oarlock_core::schema::{OARLOCK_DOMAIN, latest_opset};
use oarlock_core::{Dtype, Result};

use self::decomposition::NodeDecomposition;
use self::formulas::decompose_node;
use crate::graph::{Graph, GraphValue, Node, ValueType};

/// Replaces the nodes of a graph, its branches and loop bodies that ONNX can express.
pub fn decompose_own_ops(graph: &mut Graph) -> Result<()> {
    let opset = latest_opset("")?;
    for mut node in take(&mut graph.nodes) {
        for subgraph in &mut node.subgraphs {
            decompose_own_ops(&mut subgraph.graph)?;
        }
        let dtype = node.input(0).and_then(|first| declared_dtype(graph.value(first)));
        let Some(dtype) = dtype.filter(|_| is_replaced(&node)) else {
            graph.nodes.push(node);
            continue;
        };
        let mut parts = NodeDecomposition::new(graph, &node, opset, dtype);
        match decompose_node(&mut parts, &node)? {
            Some(result) => parts.finish(result, node.outputs[0]),
            None => graph.nodes.push(node),
        }
    }
    Ok(())
}

/// True if other runtimes may lack the op: Oarlock's own, and `Swish`, which ONNX has only since opset 24.
fn is_replaced(node: &Node) -> bool {
    *node.domain == *OARLOCK_DOMAIN || node.is_op("Swish")
}

fn declared_dtype(value: &GraphValue) -> Option<Dtype> {
    value.dtype().or(match &value.declared {
        ValueType::Tensor { dtype, .. } => *dtype,
        _ => None,
    })
}

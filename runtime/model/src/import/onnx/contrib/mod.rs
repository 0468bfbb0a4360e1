//! Lowers the ops that onnxruntime adds to ONNX.
//!
//! Its tools fuse and quantize models and save the result, so published models contain ops of the domain `com.microsoft`, and in
//! ONNX's own `SimplifiedLayerNormalization` and, before opset 17, `LayerNormalization`. Each is lowered to equivalent ONNX ops
//! independently of shapes; passes later fuse again what a device has kernels for.

mod activation;
mod attention;
mod block_quantized;
mod contrib_op;
mod crop_and_unfold;
mod embedding;
mod grouped_attention;
mod integer_matmul;
mod lowering;
mod mask;
mod normalization;
mod operand_facts;
mod product;
mod quantized_linear;
mod recurrent;
mod renamed_ops;
mod tokenizer;

use oarlock_core::{Dtype, Error, Result};

use self::contrib_op::ContribOp;
use self::lowering::ContribLowering;
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::ONNXRUNTIME_DOMAIN;

const OP_FAMILIES: [&[ContribOp]; 13] = [
    activation::ACTIVATION_OPS,
    attention::ATTENTION_OPS,
    block_quantized::BLOCK_QUANTIZED_OPS,
    embedding::EMBEDDING_OPS,
    grouped_attention::GROUPED_ATTENTION_OPS,
    integer_matmul::INTEGER_MATMUL_OPS,
    quantized_linear::QUANTIZED_LINEAR_OPS,
    normalization::NORMALIZATION_OPS,
    renamed_ops::RENAMED_OPS,
    crop_and_unfold::CROP_AND_UNFOLD_OPS,
    product::PRODUCT_OPS,
    recurrent::RECURRENT_OPS,
    tokenizer::TOKENIZER_OPS,
];

/// Ops that run a whole model repeatedly to generate text.
const SEARCH_OPS: [&str; 4] = ["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"];

/// Domains that onnxruntime writes for one particular machine.
const LAYOUT_DOMAINS: [&str; 2] = ["com.microsoft.nchwc", "com.ms.internal.nhwc"];

/// Lowers a contrib node into the graph; returns any other node unchanged.
pub(super) fn lower_contrib_node(node: Node, graph: &mut Graph) -> Result<Option<Node>> {
    let Some(row) = find_contrib_op(&node) else {
        return unsupported_op_error(&node).map_or(Ok(Some(node)), Err);
    };
    row.check_node(&node)?;
    let mut lowering = ContribLowering::new(&node, graph);
    (row.lower)(&mut lowering)?;
    lowering.finish();
    Ok(None)
}

/// The dtype of an operand, as far as the model implies it.
pub(super) fn operand_dtype(node: &Node, operand: ValueId, graph: &mut Graph) -> Option<Dtype> {
    ContribLowering::new(node, graph).dtype(operand)
}

fn contrib_ops() -> impl Iterator<Item = &'static ContribOp> {
    OP_FAMILIES.iter().flat_map(|family| family.iter())
}

fn find_contrib_op(node: &Node) -> Option<&'static ContribOp> {
    let is_own = match &*node.domain {
        ONNXRUNTIME_DOMAIN => true,
        "" => normalization::is_defined_in_onnx_domain(&node.op, node.opset),
        _ => false,
    };
    contrib_ops().find(|row| is_own && row.op == &*node.op)
}

/// A specific error for an unsupported op; `None` if there is nothing more to say than that it is unknown.
fn unsupported_op_error(node: &Node) -> Option<Error> {
    if &*node.domain == ONNXRUNTIME_DOMAIN && SEARCH_OPS.contains(&&*node.op) {
        let message =
            "expected a model of which a run is one step, found an op that runs one until a text is there";
        let hint = "export the model without its search, and search in the program that runs it";
        return Some(Error::unimplemented(message).with_advice(hint));
    }
    if LAYOUT_DOMAINS.contains(&&*node.domain) {
        let domain = &node.domain;
        let message =
            format!("expected a model for any machine, found an op of `{domain}`, which is for one kind");
        let hint = "save the optimized model with at most the extended optimizations of onnxruntime";
        return Some(Error::unimplemented(message).with_advice(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use oarlock_core::{Attribute, Constant, shape};

    use super::*;
    use crate::graph::{DeclaredDimension, GraphValue, ValueType, Weight};

    #[test]
    fn no_op_is_written_in_two_ways() {
        let mut names: Vec<&str> = contrib_ops().map(|row| row.op).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_book_names_every_op_that_is_understood() {
        let page = include_str!("../../../../../../docs/src/user/models.md");
        for row in contrib_ops() {
            assert!(page.contains(&format!("`{}`", row.op)), "{}", row.op);
        }
    }

    #[test]
    fn whatever_a_node_says_it_is_refused_or_written_as_others() {
        let constant = |dtype, dims: &[i64]| {
            let bytes = vec![7; usize::try_from(shape::size_in_bytes(dtype, dims).unwrap()).unwrap()];
            GraphValue::with_weight("w", Weight::Numbers(Constant::new(dtype, dims, bytes).unwrap()))
        };
        let ranked = |rank| {
            let dims = Some(vec![DeclaredDimension::Unknown; rank]);
            GraphValue { declared: ValueType::Tensor { dtype: None, dims }, ..GraphValue::with_name("x") }
        };
        let values = [
            GraphValue::with_name("x"),
            ranked(1),
            ranked(4),
            constant(Dtype::U8, &[2, 1, 8]),
            constant(Dtype::F32, &[1]),
            constant(Dtype::I64, &[]),
        ];
        for row in contrib_ops() {
            for (value, number) in values.iter().flat_map(|value| {
                [0, 1, 2, 4, 16, -1, i64::MAX, i64::MIN].map(|number| (value.clone(), number))
            }) {
                let mut graph = Graph::new("test");
                let mut operands = |words: &str, value: &GraphValue| -> Vec<Option<ValueId>> {
                    let words = words.split_whitespace();
                    words
                        .map(|word| (!word.starts_with('!')).then(|| graph.add_value(value.clone())))
                        .collect()
                };
                let inputs = operands(row.inputs, &value);
                let outputs = operands(row.outputs, &GraphValue::with_name("y"));
                let mut node = Node::new(ONNXRUNTIME_DOMAIN, row.op, 1, inputs, outputs.iter().copied());
                let texts = ["activation", "auto_pad", "direction", "mode"];
                let is_free = |word: &&str| !word.contains('=') && !texts.contains(word);
                for word in row.attributes.split_whitespace().filter(is_free) {
                    node.attributes.set(word, Attribute::Int(number));
                }
                if lower_contrib_node(node, &mut graph).is_ok() {
                    let made: Vec<ValueId> =
                        graph.nodes.iter().flat_map(|node| node.written_values()).collect();
                    let is_made =
                        |output: &ValueId| made.iter().filter(|other| *other == output).count() == 1;
                    assert!(outputs.iter().flatten().all(is_made), "{}\n{graph}", row.op);
                }
            }
        }
    }

    #[test]
    fn a_search_for_texts_is_refused_with_advice_and_other_ops_are_left_alone() {
        let node = |domain: &str, op: &str| Node::new(domain, op, 1, [], []);
        let lower = |node| lower_contrib_node(node, &mut Graph::new("test"));
        let error = lower(node(ONNXRUNTIME_DOMAIN, "BeamSearch")).unwrap_err();
        assert!(error.advice().is_some_and(|hint| hint.contains("without its search")), "{error}");
        assert!(lower(node("com.microsoft.nchwc", "Conv")).unwrap_err().message().contains("any machine"));
        assert!(lower(node("", "Gelu")).unwrap().is_some());
        assert!(lower(Node::new("", "LayerNormalization", 17, [], [])).unwrap().is_some());
        assert!(lower(node("com.example", "Gelu")).unwrap().is_some());
    }
}

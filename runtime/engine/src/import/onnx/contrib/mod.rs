//! Ops that onnxruntime adds to ONNX, written as ops that everybody knows.
//!
//! Its tools join and quantise what models compute, and write down the result: models that are published have ops of the
//! domain `com.microsoft`, and `SimplifiedLayerNormalization` in ONNX's own. Each becomes the ops that it stands for, in a
//! way that does not depend on shapes; the passes find again what a device can do at once.

mod activation;
mod attention;
mod blocks;
mod embedding;
mod grouped;
mod integers;
mod known;
mod linear;
mod lowering;
mod mask;
mod normal;
mod other;
mod pieces;
mod product;
mod recurrent;
mod row;

use oarlock_core::{Dtype, Error, Result};

use self::lowering::Lowering;
use self::row::Row;
use crate::graph::{Graph, Node, ONNXRUNTIME, ValueId};

const FAMILIES: [&[Row]; 12] = [
    activation::OPS,
    attention::OPS,
    blocks::OPS,
    embedding::OPS,
    grouped::OPS,
    integers::OPS,
    linear::OPS,
    normal::OPS,
    other::OPS,
    pieces::OPS,
    product::OPS,
    recurrent::OPS,
];

/// Ops that run a whole model many times, to search for texts.
const SEARCHES: [&str; 4] = ["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"];

/// Domains of what onnxruntime writes for one machine.
const LAYOUTS: [&str; 2] = ["com.microsoft.nchwc", "com.ms.internal.nhwc"];

/// Adds a node of onnxruntime's own as the nodes that it stands for; gives any other back.
pub(super) fn lower(node: Node, graph: &mut Graph) -> Result<Option<Node>> {
    let Some(row) = find(&node) else {
        return refused(&node).map_or(Ok(Some(node)), Err);
    };
    row.check(&node)?;
    let mut lowering = Lowering::new(&node, graph);
    (row.lower)(&mut lowering)?;
    lowering.finish();
    Ok(None)
}

/// The type of the elements of an operand of a node, where it follows from what the model says.
pub(super) fn dtype_of(node: &Node, operand: ValueId, graph: &mut Graph) -> Option<Dtype> {
    Lowering::new(node, graph).dtype(operand)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// How a node is written as others.
fn find(node: &Node) -> Option<&'static Row> {
    let is_own = match &*node.domain {
        ONNXRUNTIME => true,
        "" => &*node.op == normal::SIMPLIFIED,
        _ => false,
    };
    rows().find(|row| is_own && row.op == &*node.op)
}

/// Why a node cannot be had, where more can be said than that nobody knows it.
fn refused(node: &Node) -> Option<Error> {
    if &*node.domain == ONNXRUNTIME && SEARCHES.contains(&&*node.op) {
        let message =
            "expected a model of which a run is one step, found an op that runs one until a text is there";
        let hint = "export the model without its search, and search in the program that runs it";
        return Some(Error::unimplemented(message).hint(hint));
    }
    if LAYOUTS.contains(&&*node.domain) {
        let domain = &node.domain;
        let message =
            format!("expected a model for any machine, found an op of `{domain}`, which is for one kind");
        let hint = "save the optimised model with at most the extended optimisations of onnxruntime";
        return Some(Error::unimplemented(message).hint(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use oarlock_core::{Attribute, Constant, shape};

    use super::*;
    use crate::graph::{Dimension, Value, ValueType, Weight};

    #[test]
    fn no_op_is_written_in_two_ways() {
        let mut names: Vec<&str> = rows().map(|row| row.op).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_book_names_every_op_that_is_understood() {
        let page = include_str!("../../../../../../docs/src/user/models.md");
        for row in rows() {
            assert!(page.contains(&format!("`{}`", row.op)), "{}", row.op);
        }
    }

    #[test]
    fn whatever_a_node_says_it_is_refused_or_written_as_others() {
        let constant = |dtype, dims: &[i64]| {
            let bytes = vec![7; usize::try_from(shape::size_in_bytes(dtype, dims).unwrap()).unwrap()];
            Value::constant("w", Weight::Numbers(Constant::new(dtype, dims, bytes).unwrap()))
        };
        let ranked = |rank| {
            let dims = Some(vec![Dimension::Unknown; rank]);
            Value { declared: ValueType::Tensor { dtype: None, dims }, ..Value::named("x") }
        };
        let values = [
            Value::named("x"),
            ranked(1),
            ranked(4),
            constant(Dtype::U8, &[2, 1, 8]),
            constant(Dtype::F32, &[1]),
            constant(Dtype::I64, &[]),
        ];
        for row in rows() {
            for (value, number) in values.iter().flat_map(|value| {
                [0, 1, 2, 4, 16, -1, i64::MAX, i64::MIN].map(|number| (value.clone(), number))
            }) {
                let mut graph = Graph::new("test");
                let mut operands = |words: &str, value: &Value| -> Vec<Option<ValueId>> {
                    let words = words.split_whitespace();
                    words.map(|word| (!word.starts_with('!')).then(|| graph.add(value.clone()))).collect()
                };
                let inputs = operands(row.inputs, &value);
                let outputs = operands(row.outputs, &Value::named("y"));
                let mut node = Node::new(ONNXRUNTIME, row.op, 1, inputs, outputs.iter().copied());
                let texts = ["activation", "auto_pad", "direction", "mode"];
                let is_free = |word: &&str| !word.contains('=') && !texts.contains(word);
                for word in row.attributes.split_whitespace().filter(is_free) {
                    node.attributes.set(word, Attribute::Int(number));
                }
                if lower(node, &mut graph).is_ok() {
                    let made: Vec<ValueId> = graph.nodes.iter().flat_map(|node| node.makes()).collect();
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
        let lower = |node| lower(node, &mut Graph::new("test"));
        let error = lower(node(ONNXRUNTIME, "BeamSearch")).unwrap_err();
        assert!(error.advice().is_some_and(|hint| hint.contains("without its search")), "{error}");
        assert!(lower(node("com.microsoft.nchwc", "Conv")).unwrap_err().message().contains("any machine"));
        assert!(lower(node("", "Gelu")).unwrap().is_some());
        assert!(lower(node("com.example", "Gelu")).unwrap().is_some());
    }
}

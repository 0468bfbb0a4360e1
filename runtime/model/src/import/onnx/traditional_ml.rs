//! Lowers nodes of the domain `ai.onnx.ml` with non-numeric results.
//!
//! Classifiers with text labels become classifiers with integer labels, followed by a `LabelEncoder`. `ZipMap`, which pairs
//! each score with the name of its class, becomes the plain scores: there are no maps here, and the order of the columns gives
//! the names. `CategoryMapper` and the first version of `LabelEncoder` map in the direction that the input implies; they become
//! a `LabelEncoder` of version 2.

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::contrib;
use crate::graph::{Graph, GraphValue, Node, ValueType};
use crate::import::error_location::invalid_model;
use oarlock_core::schema::ONNX_ML_DOMAIN;

/// Opsets of the nodes that are written.
const IDENTITY_OPSET: u32 = 14;
const LABEL_ENCODER_OPSET: u32 = 2;

/// Classifiers, with the attribute for integer labels.
const CLASSIFIERS: [(&str, &str); 3] = [
    ("LinearClassifier", "classlabels_ints"),
    ("SVMClassifier", "classlabels_ints"),
    ("TreeEnsembleClassifier", "classlabels_int64s"),
];

/// Lowers a node of the domain: adds all but the last of its nodes to the graph and returns that one. Other nodes are returned
/// unchanged.
pub(super) fn lower_ml_node(mut node: Node, graph: &mut Graph) -> Result<Node> {
    if &*node.domain != ONNX_ML_DOMAIN {
        return Ok(node);
    }
    if &*node.op == "CategoryMapper" {
        let (Some(Attribute::Strings(texts)), Some(Attribute::Ints(numbers))) =
            (node.attributes.get("cats_strings"), node.attributes.get("cats_int64s"))
        else {
            let expected = "the categories in `cats_strings` and `cats_int64s`";
            return Err(invalid_model(expected, "none in one of them"));
        };
        let pairs = (texts.clone(), numbers.clone());
        return lower_category_mapper(node, pairs, graph);
    }
    if let ("LabelEncoder", Some(Attribute::Strings(classes))) =
        (&*node.op, node.attributes.get("classes_strings"))
    {
        let pairs = (classes.clone(), (0..).take(classes.len()).collect());
        return lower_category_mapper(node, pairs, graph);
    }
    if &*node.op == "ZipMap" {
        if let Some(output) = node.output(0) {
            graph.value_mut(output).declared = ValueType::Unknown;
        }
        let name = node.name.clone();
        let mut scores = Node::new("", "Identity", IDENTITY_OPSET, node.inputs, node.outputs);
        scores.name = name;
        return Ok(scores);
    }
    let classifier = CLASSIFIERS.into_iter().find(|(op, _)| *op == &*node.op);
    let (Some((_, numbers)), Some(Attribute::Strings(texts))) =
        (classifier, node.attributes.get("classlabels_strings"))
    else {
        return Ok(node);
    };
    let texts = texts.clone();
    let labels: Vec<i64> = (0..).take(texts.len()).collect();
    let kept = node.attributes.iter().filter(|(name, _)| *name != "classlabels_strings");
    node.attributes = kept.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    node.attributes.set(numbers, Attribute::Ints(labels.clone()));
    let Some(named) = node.output(0) else { return Ok(node) };
    let numbered = graph.add_value(GraphValue::with_name(format!("{} as numbers", graph.value(named).name)));
    node.outputs[0] = Some(numbered);
    let opset = node.opset.max(LABEL_ENCODER_OPSET);
    graph.nodes.push(node);
    let mut names = Node::new(ONNX_ML_DOMAIN, "LabelEncoder", opset, [Some(numbered)], [Some(named)]);
    names.attributes = Attributes::new()
        .with_attribute("keys_int64s", Attribute::Ints(labels))
        .with_attribute("values_strings", Attribute::Strings(texts));
    Ok(names)
}

/// Lowers a mapper from text to integers or back, depending on its input.
fn lower_category_mapper(
    mut node: Node,
    (mut texts, mut numbers): (Vec<String>, Vec<i64>),
    graph: &mut Graph,
) -> Result<Node> {
    // Of equal categories the last wins here, but the first in a `LabelEncoder` of version 2.
    texts.reverse();
    numbers.reverse();
    let (text, number) =
        (node.attributes.get_string("default_string")?, node.attributes.get_int("default_int64")?);
    let dtype = node.input(0).and_then(|input| contrib::operand_dtype(&node, input, graph));
    let is_of_texts = match dtype {
        Some(dtype) => dtype == Dtype::String,
        // By convention, only the default for the output type is set.
        None => text.is_none(),
    };
    let (texts, numbers) = (Attribute::Strings(texts), Attribute::Ints(numbers));
    node.attributes = if is_of_texts {
        let default = Attribute::Int(number.unwrap_or(-1));
        let pairs =
            Attributes::new().with_attribute("keys_strings", texts).with_attribute("values_int64s", numbers);
        pairs.with_attribute("default_int64", default)
    } else {
        let default = Attribute::String(text.unwrap_or("_Unused").to_owned());
        let pairs =
            Attributes::new().with_attribute("keys_int64s", numbers).with_attribute("values_strings", texts);
        pairs.with_attribute("default_string", default)
    };
    (node.op, node.opset) = ("LabelEncoder".into(), node.opset.max(LABEL_ENCODER_OPSET));
    Ok(node)
}

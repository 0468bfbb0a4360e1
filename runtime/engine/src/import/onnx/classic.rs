//! Nodes of the domain `ai.onnx.ml` whose results are no numbers, written with those whose are.
//!
//! Classifiers of texts become classifiers of numbers with a `LabelEncoder` behind. `ZipMap`, which puts the name of its
//! class beside each score, becomes the scores themselves: there are no maps here, and who wants to know the names finds
//! them in the order of the columns.

use oarlock_core::{Attribute, Attributes};

use crate::graph::{Graph, Node, Value, ValueType};

/// Versions of ops that are as they are used here.
const IDENTITY: u32 = 14;
const LABELS: u32 = 2;

const DOMAIN: &str = "ai.onnx.ml";

/// Classifiers, and what their labels are called where they are numbers.
const CLASSIFIERS: [(&str, &str); 3] = [
    ("LinearClassifier", "classlabels_ints"),
    ("SVMClassifier", "classlabels_ints"),
    ("TreeEnsembleClassifier", "classlabels_int64s"),
];

/// What a node of the domain stands for: adds all but the last to the graph, and gives back that one. Any other node stands
/// for itself.
pub(super) fn lower(mut node: Node, graph: &mut Graph) -> Node {
    if &*node.domain != DOMAIN {
        return node;
    }
    if &*node.op == "ZipMap" {
        if let Some(output) = node.output(0) {
            graph.value_mut(output).declared = ValueType::Unknown;
        }
        let name = node.name.clone();
        let mut scores = Node::new("", "Identity", IDENTITY, node.inputs, node.outputs);
        scores.name = name;
        return scores;
    }
    let classifier = CLASSIFIERS.into_iter().find(|(op, _)| *op == &*node.op);
    let (Some((_, numbers)), Some(Attribute::Strings(texts))) =
        (classifier, node.attributes.get("classlabels_strings"))
    else {
        return node;
    };
    let texts = texts.clone();
    let labels: Vec<i64> = (0..).take(texts.len()).collect();
    let kept = node.attributes.iter().filter(|(name, _)| *name != "classlabels_strings");
    node.attributes = kept.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    node.attributes.set(numbers, Attribute::Ints(labels.clone()));
    let Some(named) = node.output(0) else { return node };
    let numbered = graph.add(Value::named(format!("{} as numbers", graph.value(named).name)));
    node.outputs[0] = Some(numbered);
    let opset = node.opset.max(LABELS);
    graph.nodes.push(node);
    let mut names = Node::new(DOMAIN, "LabelEncoder", opset, [Some(numbered)], [Some(named)]);
    names.attributes = Attributes::new()
        .with("keys_int64s", Attribute::Ints(labels))
        .with("values_strings", Attribute::Strings(texts));
    names
}

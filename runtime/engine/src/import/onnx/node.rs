//! Nodes of the model.

use oarlock_core::{Attribute, Constant, Dtype, Error, Result};
use smallvec::SmallVec;

use super::attribute::{Content, Read};
use super::body::{Importer, label};
use super::messages::NodeProto;
use super::{classic, contrib, domain_of, legacy};
use crate::graph::{Node, Subgraph, ValueId, ValueType, Weight};
use crate::import::place::{Within as _, quoted, wrong};

/// The operands of a node; one that is left out is `None`.
pub(super) type Operands = SmallVec<[Option<ValueId>; 4]>;

impl<'m> Importer<'m> {
    /// Adds a node to the graph: itself, the value of a constant, or the nodes of a function.
    pub(super) fn node(&mut self, proto: &'m NodeProto) -> Result<()> {
        self.add(proto).within(|| label(proto))
    }

    fn add(&mut self, proto: &'m NodeProto) -> Result<()> {
        if self.scopes.calls().next().is_some() {
            self.budget.inline(proto)?;
        }
        if proto.op_type().is_empty() {
            return Err(wrong("a node of an op", "one without"));
        }
        let mut inputs = self.operands(&proto.input)?;
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        let outputs = self.operands(&proto.output)?;
        if let Some(function) = self.functions.find(proto) {
            return self.call(function, proto, &inputs, &outputs);
        }
        let domain = domain_of(proto.domain());
        if domain.is_empty() && proto.op_type() == "Constant" {
            return self.constant(proto, &outputs);
        }
        let opset = self.opset(domain)?;
        let mut node = Node::new(domain, proto.op_type(), opset, inputs, outputs);
        if !proto.name().is_empty() {
            node.name = self.scopes.title(proto.name());
        }
        for Read { name, content } in self.attributes(proto)? {
            match content {
                Content::Value(value) => node.attributes.set(name, value),
                Content::Texts(texts) => {
                    let (name, texts) = listed(&node, name, &texts)?;
                    node.attributes.set(name, texts);
                }
                Content::Sparse(_) => {
                    let expected = format!("a dense tensor in the attribute {}", quoted(name));
                    return Err(Error::unimplemented(format!("expected {expected}, found a sparse one")));
                }
                Content::Type(declared) => {
                    // `Optional` alone has one: the type of what it makes, were it not missing.
                    if let Some(output) = node.output(0) {
                        let declared = ValueType::Optional(declared.into());
                        self.scopes.graph().value_mut(output).declared = declared;
                    }
                }
                Content::Graph(graph, captures) => {
                    node.subgraphs.push(Subgraph { attribute: name.into(), graph, captures });
                }
            }
        }
        if domain.is_empty() {
            legacy::modernise(&mut node, &mut self.scopes)?;
        }
        let graph = self.scopes.graph();
        let before = graph.nodes.len();
        let node = classic::lower(node, graph)?;
        match contrib::lower(node, graph)? {
            Some(node) => graph.nodes.push(node),
            None => self.budget.lower(graph.nodes.len().saturating_sub(before))?,
        }
        Ok(())
    }

    fn operands(&mut self, names: &'m [String]) -> Result<Operands> {
        let find = |name: &'m String| if name.is_empty() { Ok(None) } else { self.scopes.find(name) };
        names.iter().map(find).collect()
    }

    /// Makes the output of a `Constant` one.
    fn constant(&mut self, proto: &'m NodeProto, outputs: &[Option<ValueId>]) -> Result<()> {
        let mut attributes = self.attributes(proto)?;
        let found = attributes.len();
        let (Some(Read { name, content }), 1) = (attributes.pop(), found) else {
            return Err(wrong("one attribute, which is the value", found));
        };
        let weight = match content {
            Content::Value(value) => weight_of(value).within(|| format!("the attribute {}", quoted(name)))?,
            Content::Texts(texts) => texts,
            Content::Sparse(weight) => weight,
            Content::Graph(..) | Content::Type(_) => {
                return Err(wrong("a value", format!("the attribute {}", quoted(name))));
            }
        };
        if let [Some(output)] = outputs {
            self.scopes.graph().value_mut(*output).weight = Some(weight);
            return Ok(());
        }
        Err(wrong("one output", outputs.len()))
    }
}

/// A tensor of texts as the attribute that stands for the same as a list. `LabelEncoder` alone has tensors of texts.
fn listed(node: &Node, name: &str, texts: &Weight) -> Result<(&'static str, Attribute)> {
    let is_labels = &*node.domain == "ai.onnx.ml" && &*node.op == "LabelEncoder";
    let texts = if let Weight::Texts { texts, .. } = texts { &texts[..] } else { &[] };
    match (name, texts) {
        ("keys_tensor", texts) if is_labels => Ok(("keys_strings", Attribute::Strings(texts.to_vec()))),
        ("values_tensor", texts) if is_labels => Ok(("values_strings", Attribute::Strings(texts.to_vec()))),
        ("default_tensor", [text]) if is_labels => Ok(("default_string", Attribute::String(text.clone()))),
        _ => {
            let expected = format!("numbers in the attribute {}", quoted(name));
            Err(Error::unimplemented(format!("expected {expected}, found a tensor of texts")))
        }
    }
}

/// The value of a constant that is written as an attribute.
fn weight_of(value: Attribute) -> Result<Weight> {
    let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let floats = |values: &[f64], dims: &[i64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect();
        Constant::new(Dtype::F32, dims, bytes)
    };
    let numbers = match value {
        Attribute::Tensor(numbers) => numbers,
        Attribute::Int(value) => Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?,
        Attribute::Ints(values) => Constant::of_ints(&values),
        Attribute::Float(value) => floats(&[value], &[])?,
        Attribute::Floats(values) => floats(&values, &[length(values.len())])?,
        Attribute::String(text) => return Ok(Weight::Texts { dims: Vec::new(), texts: [text].into() }),
        Attribute::Strings(texts) => {
            return Ok(Weight::Texts { dims: vec![length(texts.len())], texts: texts.into() });
        }
    };
    Ok(Weight::Numbers(numbers))
}

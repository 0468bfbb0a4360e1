//! Imports nodes.

use oarlock_core::{Attribute, Constant, Dtype, Error, Result};
use smallvec::SmallVec;

use super::attribute::{AttributeContent, ImportedAttribute};
use super::importer::{OnnxImporter, node_label};
use super::messages::NodeProto;
use super::{contrib, legacy, normalize_domain, traditional_ml};
use crate::graph::{Node, Subgraph, ValueId, ValueType, Weight};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};
use oarlock_core::schema::ONNX_ML_DOMAIN;

/// Operands of a node; `None` if omitted.
pub(super) type NodeOperands = SmallVec<[Option<ValueId>; 4]>;

impl<'m> OnnxImporter<'m> {
    /// Imports a node. A `Constant` becomes a weight, and a function call is inlined.
    pub(super) fn import_node(&mut self, proto: &'m NodeProto) -> Result<()> {
        self.add_node(proto).with_location(|| node_label(proto))
    }

    fn add_node(&mut self, proto: &'m NodeProto) -> Result<()> {
        if self.scopes.enclosing_calls().next().is_some() {
            self.budget.spend_inlined_node(proto)?;
        }
        if proto.op_type().is_empty() {
            return Err(invalid_model("a node of an op", "one without"));
        }
        let mut inputs = self.resolve_operands(&proto.input)?;
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        let outputs = self.resolve_operands(&proto.output)?;
        if let Some(function) = self.functions.find_function(proto) {
            return self.inline_call(function, proto, &inputs, &outputs);
        }
        let domain = normalize_domain(proto.domain());
        if domain.is_empty() && proto.op_type() == "Constant" {
            return self.add_constant_output(proto, &outputs);
        }
        let opset = self.domain_opset(domain)?;
        let mut node = Node::new(domain, proto.op_type(), opset, inputs, outputs);
        if !proto.name().is_empty() {
            node.name = self.scopes.qualified_title(proto.name());
        }
        for ImportedAttribute { name, content } in self.import_attributes(proto)? {
            match content {
                AttributeContent::Value(value) => node.attributes.set(name, value),
                AttributeContent::Texts(texts) => {
                    let (name, texts) = texts_as_list(&node, name, &texts)?;
                    node.attributes.set(name, texts);
                }
                AttributeContent::Sparse(_) => {
                    let expected = format!("a dense tensor in the attribute {}", quote_name(name));
                    return Err(Error::unimplemented(format!("expected {expected}, found a sparse one")));
                }
                AttributeContent::Type(declared) => {
                    // Only `Optional` has a type: that of the value it could hold.
                    if let Some(output) = node.output(0) {
                        let declared = ValueType::Optional(declared.into());
                        self.scopes.current_graph().value_mut(output).declared = declared;
                    }
                }
                AttributeContent::Graph(graph, captures) => {
                    node.subgraphs.push(Subgraph { attribute: name.into(), graph, captures });
                }
            }
        }
        if domain.is_empty() {
            legacy::modernize_node(&mut node, &mut self.scopes)?;
        }
        let graph = self.scopes.current_graph();
        let before = graph.nodes.len();
        let node = traditional_ml::lower_ml_node(node, graph)?;
        match contrib::lower_contrib_node(node, graph)? {
            Some(node) => graph.nodes.push(node),
            None => self.budget.spend_lowered_nodes(graph.nodes.len().saturating_sub(before))?,
        }
        Ok(())
    }

    fn resolve_operands(&mut self, names: &'m [String]) -> Result<NodeOperands> {
        let find = |name: &'m String| if name.is_empty() { Ok(None) } else { self.scopes.find_value(name) };
        names.iter().map(find).collect()
    }

    /// Turns the output of a `Constant` node into a weight.
    fn add_constant_output(&mut self, proto: &'m NodeProto, outputs: &[Option<ValueId>]) -> Result<()> {
        let mut attributes = self.import_attributes(proto)?;
        let found = attributes.len();
        let (Some(ImportedAttribute { name, content }), 1) = (attributes.pop(), found) else {
            return Err(invalid_model("one attribute, which is the value", found));
        };
        let weight = match content {
            AttributeContent::Value(value) => {
                attribute_to_weight(value).with_location(|| format!("the attribute {}", quote_name(name)))?
            }
            AttributeContent::Texts(texts) => texts,
            AttributeContent::Sparse(weight) => weight,
            AttributeContent::Graph(..) | AttributeContent::Type(_) => {
                return Err(invalid_model("a value", format!("the attribute {}", quote_name(name))));
            }
        };
        if let [Some(output)] = outputs {
            self.scopes.current_graph().value_mut(*output).weight = Some(weight);
            return Ok(());
        }
        Err(invalid_model("one output", outputs.len()))
    }
}

/// Converts a string tensor to the equivalent list attribute. Only `LabelEncoder` has string tensors.
fn texts_as_list(node: &Node, name: &str, texts: &Weight) -> Result<(&'static str, Attribute)> {
    let is_labels = &*node.domain == ONNX_ML_DOMAIN && &*node.op == "LabelEncoder";
    let texts = if let Weight::Texts { texts, .. } = texts { &texts[..] } else { &[] };
    match (name, texts) {
        ("keys_tensor", texts) if is_labels => Ok(("keys_strings", Attribute::Strings(texts.to_vec()))),
        ("values_tensor", texts) if is_labels => Ok(("values_strings", Attribute::Strings(texts.to_vec()))),
        ("default_tensor", [text]) if is_labels => Ok(("default_string", Attribute::String(text.clone()))),
        _ => {
            let expected = format!("numbers in the attribute {}", quote_name(name));
            Err(Error::unimplemented(format!("expected {expected}, found a tensor of texts")))
        }
    }
}

/// Converts the attribute of a `Constant` node to a weight.
fn attribute_to_weight(value: Attribute) -> Result<Weight> {
    let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let floats = |values: &[f64], dims: &[i64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect();
        Constant::new(Dtype::F32, dims, bytes)
    };
    let numbers = match value {
        Attribute::Tensor(numbers) => numbers,
        Attribute::Int(value) => Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?,
        Attribute::Ints(values) => Constant::from_ints(&values),
        Attribute::Float(value) => floats(&[value], &[])?,
        Attribute::Floats(values) => floats(&values, &[length(values.len())])?,
        Attribute::String(text) => return Ok(Weight::Texts { dims: Vec::new(), texts: [text].into() }),
        Attribute::Strings(texts) => {
            return Ok(Weight::Texts { dims: vec![length(texts.len())], texts: texts.into() });
        }
    };
    Ok(Weight::Numbers(numbers))
}

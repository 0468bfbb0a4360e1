//! Imports attributes of nodes.

use oarlock_core::{Attribute, Error, Result};

use super::importer::OnnxImporter;
use super::messages::attribute_proto::AttributeType;
use super::messages::{AttributeProto, GraphProto, NodeProto};
use super::tensor::utf8_text;
use super::{sparse_tensor, tensor, value_types};
use crate::graph::{Graph, ValueId, ValueType, Weight};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// Limit on attributes of a node. No op has more than a few dozen, and each takes time to look up.
const MAX_ATTRIBUTES: usize = 1000;

pub(super) struct ImportedAttribute<'m> {
    pub(super) name: &'m str,
    pub(super) content: AttributeContent,
}

pub(super) enum AttributeContent {
    /// A plain attribute.
    Value(Attribute),
    /// A tensor of strings.
    Texts(Weight),
    /// A sparse tensor, made dense.
    Sparse(Weight),
    /// A type, as `Optional` has.
    Type(ValueType),
    /// A graph and its captures.
    Graph(Graph, Vec<ValueId>),
}

impl<'m> OnnxImporter<'m> {
    /// Imports the attributes of a node. Inside a function, references to the function's attributes resolve to the values of
    /// the call, or are left out if the call gives none.
    pub(super) fn import_attributes(&mut self, node: &'m NodeProto) -> Result<Vec<ImportedAttribute<'m>>> {
        let found = node.attribute.len();
        if found > MAX_ATTRIBUTES {
            return Err(invalid_model(format!("at most {MAX_ATTRIBUTES} attributes"), found));
        }
        let mut read: Vec<ImportedAttribute<'m>> = Vec::with_capacity(found);
        for attribute in &node.attribute {
            let name = attribute.name();
            if read.iter().any(|known| known.name == name) {
                return Err(invalid_model("every attribute once", format!("{} twice", quote_name(name))));
            }
            let place = || format!("the attribute {}", quote_name(name));
            let Some(meant) = self.resolve_attribute(attribute).with_location(place)? else { continue };
            for content in self.attribute_contents(meant).with_location(place)? {
                read.push(ImportedAttribute { name, content });
            }
        }
        Ok(read)
    }

    /// Resolves a reference to an attribute of the enclosing function; other attributes stand for themselves.
    pub(super) fn resolve_attribute(
        &self,
        attribute: &'m AttributeProto,
    ) -> Result<Option<&'m AttributeProto>> {
        match (attribute.ref_attr_name(), self.scopes.enclosing_calls().next()) {
            ("", _) => Ok(Some(attribute)),
            (name, Some(call)) => Ok(call.attributes.get(name).copied()),
            (name, None) => {
                let found = format!("one that means the attribute {} of a function", quote_name(name));
                Err(invalid_model("an attribute with a value, since this is no function", found))
            }
        }
    }

    fn attribute_contents(&mut self, attribute: &'m AttributeProto) -> Result<Vec<AttributeContent>> {
        let kind = attribute_kind(attribute)?;
        if kind == AttributeType::Graphs {
            return attribute.graphs.iter().map(|graph| self.graph_content(graph)).collect();
        }
        Ok(vec![self.attribute_content(attribute, kind)?])
    }

    fn attribute_content(
        &mut self,
        attribute: &'m AttributeProto,
        kind: AttributeType,
    ) -> Result<AttributeContent> {
        let missing = || invalid_model(format!("a value of the type `{}`", kind.as_str_name()), "none");
        let value = match kind {
            AttributeType::Int => Attribute::Int(attribute.i()),
            AttributeType::Float => Attribute::Float(attribute.f().into()),
            AttributeType::String => Attribute::String(utf8_text(attribute.s())?),
            AttributeType::Ints => Attribute::Ints(attribute.ints.clone()),
            AttributeType::Floats => {
                Attribute::Floats(attribute.floats.iter().map(|value| f64::from(*value)).collect())
            }
            AttributeType::Strings => Attribute::Strings(
                attribute.strings.iter().map(|bytes| utf8_text(bytes)).collect::<Result<_>>()?,
            ),
            AttributeType::Tensor => {
                let tensor = attribute.t.as_ref().ok_or_else(missing)?;
                match tensor::import_weight(tensor, &mut self.external)? {
                    Weight::Numbers(numbers) => Attribute::Tensor(numbers.to_held()?),
                    texts @ Weight::Texts { .. } => return Ok(AttributeContent::Texts(texts)),
                }
            }
            AttributeType::SparseTensor => {
                let tensor = attribute.sparse_tensor.as_ref().ok_or_else(missing)?;
                let weight = sparse_tensor::densify_weight(tensor, &mut self.external, &mut self.budget)?;
                return Ok(AttributeContent::Sparse(weight));
            }
            AttributeType::TypeProto => {
                let proto = attribute.tp.as_ref().ok_or_else(missing)?;
                return Ok(AttributeContent::Type(value_types::import_value_type(proto)?));
            }
            AttributeType::Graph => return self.graph_content(attribute.g.as_ref().ok_or_else(missing)?),
            AttributeType::Undefined
            | AttributeType::Graphs
            | AttributeType::Tensors
            | AttributeType::SparseTensors
            | AttributeType::TypeProtos => {
                return Err(Error::unimplemented(format!(
                    "expected a type that any op has, found `{}`",
                    kind.as_str_name()
                )));
            }
        };
        Ok(AttributeContent::Value(value))
    }

    fn graph_content(&mut self, graph: &'m GraphProto) -> Result<AttributeContent> {
        let (graph, captures) = self.import_body(graph)?;
        Ok(AttributeContent::Graph(graph, captures))
    }
}

/// The declared kind of an attribute; if none is declared, the kind of its content.
pub(super) fn attribute_kind(attribute: &AttributeProto) -> Result<AttributeType> {
    let number = attribute.r#type.unwrap_or_default();
    match AttributeType::try_from(number) {
        Ok(AttributeType::Undefined) => {}
        Ok(kind) => return Ok(kind),
        Err(_) => return Err(invalid_model("a type of attributes", format!("number {number}"))),
    }
    let held = [
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (attribute.sparse_tensor.is_some(), AttributeType::SparseTensor),
        (attribute.tp.is_some(), AttributeType::TypeProto),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.strings.is_empty(), AttributeType::Strings),
        (!attribute.graphs.is_empty(), AttributeType::Graphs),
    ];
    let found = held.into_iter().find_map(|(is_held, kind)| is_held.then_some(kind));
    found.ok_or_else(|| invalid_model("an attribute with a type", "one without type and value"))
}

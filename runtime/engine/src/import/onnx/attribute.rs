//! Attributes of nodes.

use oarlock_core::{Attribute, Error, Result};

use super::body::Importer;
use super::messages::attribute_proto::AttributeType;
use super::messages::{AttributeProto, GraphProto, NodeProto};
use super::tensor::text;
use super::{sparse, tensor, types};
use crate::graph::{Graph, ValueId, ValueType, Weight};
use crate::import::place::{Within as _, quoted, wrong};

/// The most attributes of a node. No op has more than a few dozens, and to look each up takes time.
const MOST_ATTRIBUTES: usize = 1000;

/// An attribute of a node.
pub(super) struct Read<'m> {
    pub(super) name: &'m str,
    pub(super) content: Content,
}

/// What an attribute holds.
pub(super) enum Content {
    /// What ops are given.
    Value(Attribute),
    /// A tensor of texts.
    Texts(Weight),
    /// A tensor that the model holds as a sparse one.
    Sparse(Weight),
    /// A type.
    Type(ValueType),
    /// A graph, and what it captures.
    Graph(Graph, Vec<ValueId>),
}

impl<'m> Importer<'m> {
    /// The attributes of a node. Those that mean an attribute of the function around them are what the call gives it, and
    /// are left out where it gives nothing.
    pub(super) fn attributes(&mut self, node: &'m NodeProto) -> Result<Vec<Read<'m>>> {
        let found = node.attribute.len();
        if found > MOST_ATTRIBUTES {
            return Err(wrong(format!("at most {MOST_ATTRIBUTES} attributes"), found));
        }
        let mut read: Vec<Read<'m>> = Vec::with_capacity(found);
        for attribute in &node.attribute {
            let name = attribute.name();
            if read.iter().any(|known| known.name == name) {
                return Err(wrong("every attribute once", format!("{} twice", quoted(name))));
            }
            let place = || format!("the attribute {}", quoted(name));
            let Some(meant) = self.meant(attribute).within(place)? else { continue };
            for content in self.contents(meant).within(place)? {
                read.push(Read { name, content });
            }
        }
        Ok(read)
    }

    /// The attribute that stands for one: itself, or what the call of the function around it gives.
    pub(super) fn meant(&self, attribute: &'m AttributeProto) -> Result<Option<&'m AttributeProto>> {
        match (attribute.ref_attr_name(), self.scopes.calls().next()) {
            ("", _) => Ok(Some(attribute)),
            (name, Some(call)) => Ok(call.attributes.get(name).copied()),
            (name, None) => {
                let found = format!("one that means the attribute {} of a function", quoted(name));
                Err(wrong("an attribute with a value, since this is no function", found))
            }
        }
    }

    fn contents(&mut self, attribute: &'m AttributeProto) -> Result<Vec<Content>> {
        let kind = kind(attribute)?;
        if kind == AttributeType::Graphs {
            return attribute.graphs.iter().map(|graph| self.graph(graph)).collect();
        }
        Ok(vec![self.content(attribute, kind)?])
    }

    fn content(&mut self, attribute: &'m AttributeProto, kind: AttributeType) -> Result<Content> {
        let missing = || wrong(format!("a value of the type `{}`", kind.as_str_name()), "none");
        let value = match kind {
            AttributeType::Int => Attribute::Int(attribute.i()),
            AttributeType::Float => Attribute::Float(attribute.f().into()),
            AttributeType::String => Attribute::String(text(attribute.s())?),
            AttributeType::Ints => Attribute::Ints(attribute.ints.clone()),
            AttributeType::Floats => {
                Attribute::Floats(attribute.floats.iter().map(|value| f64::from(*value)).collect())
            }
            AttributeType::Strings => {
                Attribute::Strings(attribute.strings.iter().map(|bytes| text(bytes)).collect::<Result<_>>()?)
            }
            AttributeType::Tensor => {
                let tensor = attribute.t.as_ref().ok_or_else(missing)?;
                match tensor::weight(tensor, &mut self.external)? {
                    Weight::Numbers(numbers) => Attribute::Tensor(numbers),
                    texts @ Weight::Texts { .. } => return Ok(Content::Texts(texts)),
                }
            }
            AttributeType::SparseTensor => {
                let tensor = attribute.sparse_tensor.as_ref().ok_or_else(missing)?;
                let weight = sparse::weight(tensor, &mut self.external, &mut self.budget)?;
                return Ok(Content::Sparse(weight));
            }
            AttributeType::TypeProto => {
                let proto = attribute.tp.as_ref().ok_or_else(missing)?;
                return Ok(Content::Type(types::value_type(proto)?));
            }
            AttributeType::Graph => return self.graph(attribute.g.as_ref().ok_or_else(missing)?),
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
        Ok(Content::Value(value))
    }

    fn graph(&mut self, graph: &'m GraphProto) -> Result<Content> {
        let (graph, captures) = self.body(graph)?;
        Ok(Content::Graph(graph, captures))
    }
}

/// What an attribute says that it holds, or what it does hold where it says nothing.
pub(super) fn kind(attribute: &AttributeProto) -> Result<AttributeType> {
    let number = attribute.r#type.unwrap_or_default();
    match AttributeType::try_from(number) {
        Ok(AttributeType::Undefined) => {}
        Ok(kind) => return Ok(kind),
        Err(_) => return Err(wrong("a type of attributes", format!("number {number}"))),
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
    found.ok_or_else(|| wrong("an attribute with a type", "one without type and value"))
}

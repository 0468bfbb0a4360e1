//! Encodes attributes of nodes.

use bytes::Bytes;
use oarlock_core::{Attribute, Result};

use super::types;
use super::weights;
use crate::graph::ValueType;
use crate::import::onnx::messages::attribute_proto::AttributeType;
use crate::import::onnx::messages::{AttributeProto, GraphProto};

/// Encodes an attribute that is not a graph. Floats are f32 in the file, as in every model that is read from one.
pub(super) fn encode_attribute(name: &str, value: &Attribute) -> Result<AttributeProto> {
    let text = |text: &String| Bytes::copy_from_slice(text.as_bytes());
    let own = |kind| empty_attribute(name, kind);
    Ok(match value {
        Attribute::Int(number) => AttributeProto { i: Some(*number), ..own(AttributeType::Int) },
        Attribute::Ints(numbers) => AttributeProto { ints: numbers.clone(), ..own(AttributeType::Ints) },
        Attribute::Float(number) => AttributeProto { f: Some(*number as f32), ..own(AttributeType::Float) },
        Attribute::Floats(numbers) => {
            let floats = numbers.iter().map(|number| *number as f32).collect();
            AttributeProto { floats, ..own(AttributeType::Floats) }
        }
        Attribute::String(string) => AttributeProto { s: Some(text(string)), ..own(AttributeType::String) },
        Attribute::Strings(strings) => {
            let strings = strings.iter().map(text).collect();
            AttributeProto { strings, ..own(AttributeType::Strings) }
        }
        Attribute::Tensor(numbers) => {
            let tensor = Box::new(weights::encode_numbers("", numbers)?);
            AttributeProto { t: Some(tensor), ..own(AttributeType::Tensor) }
        }
    })
}

/// An attribute that holds a branch or body.
pub(super) fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(Box::new(graph)), ..empty_attribute(name, AttributeType::Graph) }
}

/// An attribute that holds a type.
pub(super) fn type_attribute(name: &str, declared: &ValueType) -> AttributeProto {
    AttributeProto {
        tp: types::encode_type(declared).map(Box::new),
        ..empty_attribute(name, AttributeType::TypeProto)
    }
}

fn empty_attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

//! Attributes of nodes.

use bytes::Bytes;
use oarlock_core::Attribute;

use super::types;
use super::weights;
use crate::graph::ValueType;
use crate::import::onnx::messages::attribute_proto::AttributeType;
use crate::import::onnx::messages::{AttributeProto, GraphProto};

/// An attribute that ops are given. Its numbers are `f32` in the file, as in every model that was read from one.
pub(super) fn value(name: &str, value: &Attribute) -> AttributeProto {
    let text = |text: &String| Bytes::copy_from_slice(text.as_bytes());
    let own = |kind| of(name, kind);
    match value {
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
            let tensor = Box::new(weights::numbers("", numbers));
            AttributeProto { t: Some(tensor), ..own(AttributeType::Tensor) }
        }
    }
}

/// A branch or a body.
pub(super) fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(Box::new(graph)), ..of(name, AttributeType::Graph) }
}

/// A type.
pub(super) fn declared(name: &str, declared: &ValueType) -> AttributeProto {
    AttributeProto { tp: types::of(declared).map(Box::new), ..of(name, AttributeType::TypeProto) }
}

fn of(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

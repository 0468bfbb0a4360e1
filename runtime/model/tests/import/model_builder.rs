//! Builds models in a few lines.

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_model::Model;
use oarlock_model::graph::{self, Graph};
use oarlock_model::import::onnx::{self, messages::*};
use prost::Message as _;

use attribute_proto::AttributeType;
use tensor_proto::DataType;

pub(crate) fn build_node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        input: inputs.iter().map(|name| (*name).into()).collect(),
        output: outputs.iter().map(|name| (*name).into()).collect(),
        ..NodeProto::default()
    }
}

/// Builder methods for nodes.
pub(crate) trait NodeProtoBuilder: Sized {
    /// Sets the name.
    fn with_name(self, name: &str) -> Self;
    /// Sets the domain.
    fn with_domain(self, domain: &str) -> Self;
    /// Adds an attribute.
    fn with_attribute(self, attribute: AttributeProto) -> Self;
    /// Adds an attribute that is a graph.
    fn with_body(self, name: &str, graph: GraphProto) -> Self;
}

impl NodeProtoBuilder for NodeProto {
    fn with_name(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    fn with_domain(self, domain: &str) -> Self {
        Self { domain: Some(domain.into()), ..self }
    }

    fn with_attribute(mut self, attribute: AttributeProto) -> Self {
        self.attribute.push(attribute);
        self
    }

    fn with_body(self, name: &str, graph: GraphProto) -> Self {
        self.with_attribute(AttributeProto {
            g: Some(Box::new(graph)),
            ..build_attribute(name, AttributeType::Graph)
        })
    }
}

/// An attribute with a type but no value.
pub(crate) fn build_attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

pub(crate) fn int_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..build_attribute(name, AttributeType::Int) }
}

pub(crate) fn float_attribute(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..build_attribute(name, AttributeType::Float) }
}

pub(crate) fn tensor_attribute(name: &str, tensor: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(tensor)), ..build_attribute(name, AttributeType::Tensor) }
}

/// A reference to an attribute of the enclosing function.
pub(crate) fn attribute_reference(name: &str, kind: AttributeType, meant: &str) -> AttributeProto {
    AttributeProto { ref_attr_name: Some(meant.into()), ..build_attribute(name, kind) }
}

/// A tensor without elements.
pub(crate) fn build_tensor(name: &str, dtype: DataType, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(dtype.into()),
        dims: dims.to_vec(),
        ..TensorProto::default()
    }
}

/// An f32 tensor as raw bytes.
pub(crate) fn float_tensor(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto { raw_data: Some(bytes.into()), ..build_tensor(name, DataType::Float, dims) }
}

/// An i64 tensor as raw bytes.
pub(crate) fn int_tensor(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto { raw_data: Some(bytes.into()), ..build_tensor(name, DataType::Int64, dims) }
}

/// A value without a type.
pub(crate) fn build_value_info(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: None }
}

pub(crate) fn float_value_info(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = |size: &i64| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(*size)),
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(DataType::Float.into()), shape: Some(shape) };
    typed_value_info(name, type_proto::Value::TensorType(tensor))
}

pub(crate) fn typed_value_info(name: &str, value: type_proto::Value) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { value: Some(value) }) }
}

/// A graph named `g`.
pub(crate) fn build_graph(inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("g".into()),
        input: inputs.iter().map(|name| build_value_info(name)).collect(),
        node: nodes,
        output: outputs.iter().map(|name| build_value_info(name)).collect(),
        ..GraphProto::default()
    }
}

pub(crate) fn build_opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

/// A model with a graph of opset 20.
pub(crate) fn build_model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![build_opset("", 20)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// Imports a model and checks the graph.
pub(crate) fn read_model(model: &ModelProto) -> Result<Model> {
    let model = onnx::decode_onnx(Bytes::from(model.encode_to_vec()), None)?;
    graph::check_graph(&model.graph).expect("a graph that is read is one");
    Ok(model)
}

pub(crate) fn import_graph(model: &ModelProto) -> Graph {
    read_model(model).unwrap_or_else(|error| panic!("{error}")).graph
}

/// The error of a model that must be refused.
pub(crate) fn import_refusal(model: &ModelProto) -> String {
    match read_model(model) {
        Ok(model) => panic!("read as\n{}", model.graph),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "expected `{part}` in: {text}");
    }
}

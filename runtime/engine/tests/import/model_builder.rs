//! Models in a few lines.

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_engine::Model;
use oarlock_engine::graph::{self, Graph};
use oarlock_engine::import::onnx::{self, messages::*};
use prost::Message as _;

use attribute_proto::AttributeType;
use tensor_proto::DataType;

/// A node of ONNX's own domain.
pub(crate) fn build_node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        input: inputs.iter().map(|name| (*name).into()).collect(),
        output: outputs.iter().map(|name| (*name).into()).collect(),
        ..NodeProto::default()
    }
}

/// More about a node.
pub(crate) trait NodeProtoBuilder: Sized {
    /// With a name.
    fn with_name(self, name: &str) -> Self;
    /// Of another domain.
    fn with_domain(self, domain: &str) -> Self;
    /// With an attribute.
    fn with_attribute(self, attribute: AttributeProto) -> Self;
    /// With an attribute that is a graph.
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

/// An attribute of a type, without a value.
pub(crate) fn build_attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

/// An attribute that is an integer.
pub(crate) fn int_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..build_attribute(name, AttributeType::Int) }
}

/// An attribute that is a number.
pub(crate) fn float_attribute(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..build_attribute(name, AttributeType::Float) }
}

/// An attribute that is a tensor.
pub(crate) fn tensor_attribute(name: &str, tensor: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(tensor)), ..build_attribute(name, AttributeType::Tensor) }
}

/// An attribute that means one of the function around it.
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

/// A tensor of `f32`, as bytes.
pub(crate) fn float_tensor(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto { raw_data: Some(bytes.into()), ..build_tensor(name, DataType::Float, dims) }
}

/// A tensor of `i64`, as bytes.
pub(crate) fn int_tensor(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto { raw_data: Some(bytes.into()), ..build_tensor(name, DataType::Int64, dims) }
}

/// A value of which nothing is said but its name.
pub(crate) fn build_value_info(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: None }
}

/// A value that is a tensor of `f32`.
pub(crate) fn float_value_info(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = |size: &i64| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(*size)),
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(DataType::Float.into()), shape: Some(shape) };
    typed_value_info(name, type_proto::Value::TensorType(tensor))
}

/// A value of a type.
pub(crate) fn typed_value_info(name: &str, value: type_proto::Value) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { value: Some(value) }) }
}

/// A graph called `g`.
pub(crate) fn build_graph(inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("g".into()),
        input: inputs.iter().map(|name| build_value_info(name)).collect(),
        node: nodes,
        output: outputs.iter().map(|name| build_value_info(name)).collect(),
        ..GraphProto::default()
    }
}

/// The opset of a domain.
pub(crate) fn build_opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

/// A model of a graph, of opset 20.
pub(crate) fn build_model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![build_opset("", 20)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// Reads a model; checks that what becomes of it is a graph.
pub(crate) fn read_model(model: &ModelProto) -> Result<Model> {
    let model = onnx::decode_onnx(Bytes::from(model.encode_to_vec()), None)?;
    graph::check_graph(&model.graph).expect("a graph that is read is one");
    Ok(model)
}

/// The graph of a model.
pub(crate) fn import_graph(model: &ModelProto) -> Graph {
    read_model(model).unwrap_or_else(|error| panic!("{error}")).graph
}

/// Why a model is refused.
pub(crate) fn import_refusal(model: &ModelProto) -> String {
    match read_model(model) {
        Ok(model) => panic!("read as\n{}", model.graph),
        Err(error) => error.to_string(),
    }
}

/// Checks that a text has all the parts.
#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "expected `{part}` in: {text}");
    }
}

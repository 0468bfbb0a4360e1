//! Tiny models that the programs run.

use oarlock_engine::import::onnx::messages::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, tensor_proto::DataType, tensor_shape_proto, type_proto,
};
use prost::Message as _;

/// `sum = x + [1, 2, 3]` and `twice = sum + sum` for `x: f32[batch, 3]`.
pub(crate) fn sums_model() -> Vec<u8> {
    let weight = TensorProto {
        name: Some("w".to_owned()),
        dims: vec![3],
        data_type: Some(DataType::Float.into()),
        float_data: vec![1.0, 2.0, 3.0],
        ..TensorProto::default()
    };
    encode_model(GraphProto {
        input: vec![value_info("x", rows_type())],
        output: vec![value_info("sum", rows_type()), value_info("twice", rows_type())],
        initializer: vec![weight],
        node: vec![graph_node("Add", &["x", "w"], "sum"), graph_node("Add", &["sum", "sum"], "twice")],
        ..GraphProto::default()
    })
}

/// `pair = [x, x]`, a sequence, for `x: f32[batch, 3]`.
pub(crate) fn pair_model() -> Vec<u8> {
    let elements = type_proto::Sequence { elem_type: Some(Box::new(rows_type())) };
    let sequence = TypeProto { value: Some(type_proto::Value::SequenceType(Box::new(elements))) };
    encode_model(GraphProto {
        input: vec![value_info("x", rows_type())],
        output: vec![value_info("pair", sequence)],
        node: vec![graph_node("SequenceConstruct", &["x", "x"], "pair")],
        ..GraphProto::default()
    })
}

fn encode_model(graph: GraphProto) -> Vec<u8> {
    let opset = OperatorSetIdProto { version: Some(18), ..OperatorSetIdProto::default() };
    let graph = GraphProto { name: Some("test".to_owned()), ..graph };
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset],
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

/// `f32[batch, 3]`
fn rows_type() -> TypeProto {
    use tensor_shape_proto::{Dimension, dimension::Value};
    let dimension = |value| Dimension { value: Some(value) };
    let dims = vec![dimension(Value::DimParam("batch".to_owned())), dimension(Value::DimValue(3))];
    let tensor = type_proto::Tensor {
        elem_type: Some(DataType::Float.into()),
        shape: Some(TensorShapeProto { dim: dims }),
    };
    TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }
}

fn value_info(name: &str, kind: TypeProto) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(kind) }
}

fn graph_node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

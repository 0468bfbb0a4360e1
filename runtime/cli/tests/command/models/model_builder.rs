//! Builds small models from short texts.

use oarlock_engine::import::onnx::messages::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType,
    tensor_proto::{DataLocation, DataType},
    tensor_shape_proto, type_proto,
};
use prost::Message as _;

#[derive(Default)]
pub(crate) struct ModelBuilder {
    graph: GraphProto,
}

impl ModelBuilder {
    pub(crate) fn new() -> Self {
        Self { graph: GraphProto { name: Some("test".to_owned()), ..GraphProto::default() } }
    }

    /// Adds an input, such as `x: f32[batch, 3]`.
    pub(crate) fn with_input(mut self, text: &str) -> Self {
        self.graph.input.push(parse_value_proto(text));
        self
    }

    /// Adds an output, in the same notation.
    pub(crate) fn with_output(mut self, text: &str) -> Self {
        self.graph.output.push(parse_value_proto(text));
        self
    }

    /// Adds an `f32` weight.
    pub(crate) fn with_weight(mut self, name: &str, dims: &[i64], elements: &[f32]) -> Self {
        let tensor = make_tensor_proto(name, dims, DataType::Float);
        self.graph.initializer.push(TensorProto { float_data: elements.to_vec(), ..tensor });
        self
    }

    /// Adds an `i8` weight.
    pub(crate) fn with_bytes_weight(mut self, name: &str, dims: &[i64], elements: &[i8]) -> Self {
        let raw_data = Some(elements.iter().map(|element| *element as u8).collect());
        self.graph
            .initializer
            .push(TensorProto { raw_data, ..make_tensor_proto(name, dims, DataType::Int8) });
        self
    }

    /// Adds an `f32` weight that is stored in a file beside the model.
    pub(crate) fn with_external_weight(mut self, name: &str, dims: &[i64], file: &str) -> Self {
        let location = StringStringEntryProto { key: Some("location".into()), value: Some(file.into()) };
        self.graph.initializer.push(TensorProto {
            data_location: Some(DataLocation::External.into()),
            external_data: vec![location],
            ..make_tensor_proto(name, dims, DataType::Float)
        });
        self
    }

    /// Adds a node, such as `y = MatMul(x, w)`; its name is its first output in capitals. A domain other than ONNX's precedes
    /// the op, with a dot.
    pub(crate) fn with_node(self, text: &str) -> Self {
        self.with_attributed_node(text, &[])
    }

    pub(crate) fn with_unnamed_node(mut self, text: &str) -> Self {
        self = self.with_node(text);
        if let Some(node) = self.graph.node.last_mut() {
            node.name = None;
        }
        self
    }

    /// Adds an `i64` weight that holds a shape.
    pub(crate) fn with_shape(mut self, name: &str, sizes: &[i64]) -> Self {
        let tensor = make_tensor_proto(name, &[sizes.len() as i64], DataType::Int64);
        self.graph.initializer.push(TensorProto { int64_data: sizes.to_vec(), ..tensor });
        self
    }

    pub(crate) fn with_attributed_node(mut self, text: &str, attributes: &[(&str, i64)]) -> Self {
        let (outputs, call) = text.split_once(" = ").expect("outputs, ` = ` and a call");
        let (op, inputs) = call.strip_suffix(')').and_then(|call| call.split_once('(')).expect("a call");
        let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
        let list = |text: &str| -> Vec<String> {
            text.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let outputs = list(outputs);
        self.graph.node.push(NodeProto {
            name: outputs.first().map(|name| name.to_uppercase()),
            op_type: Some(op.to_owned()),
            domain: Some(domain.to_owned()),
            input: list(inputs),
            output: outputs,
            attribute: attributes.iter().map(|(name, value)| integer_attribute(name, *value)).collect(),
            ..NodeProto::default()
        });
        self
    }

    /// Adds a node `y = If(c)` with branches of one node each, such as `Relu(x)`.
    pub(crate) fn with_branches(mut self, [then_branch, else_branch]: [&str; 2]) -> Self {
        let branch = |name: &str, call: &str| AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(AttributeType::Graph.into()),
            g: Some(Box::new(
                Self::new().with_node(&format!("made = {call}")).with_output("made: f32[…]").graph,
            )),
            ..AttributeProto::default()
        };
        self = self.with_node("y = If(c)");
        let attributes = [branch("then_branch", then_branch), branch("else_branch", else_branch)];
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.extend(attributes);
        }
        self
    }

    /// Encodes the model with the newest opset.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.into_bytes_with_opset(18)
    }

    pub(crate) fn into_bytes_with_opset(self, opset_of_onnx: i64) -> Vec<u8> {
        let opset = |domain: &str, version| OperatorSetIdProto {
            domain: Some(domain.to_owned()),
            version: Some(version),
        };
        let model = ModelProto {
            ir_version: Some(8),
            opset_import: vec![opset("", opset_of_onnx), opset("acme", 1)],
            producer_name: Some("tests".to_owned()),
            graph: Some(self.graph),
            ..ModelProto::default()
        };
        model.encode_to_vec()
    }
}

/// A tensor with type and shape, but without data.
fn make_tensor_proto(name: &str, dims: &[i64], dtype: DataType) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(dtype.into()),
        ..TensorProto::default()
    }
}

fn integer_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Int.into()),
        i: Some(value),
        ..AttributeProto::default()
    }
}

fn parse_value_proto(text: &str) -> ValueInfoProto {
    let (name, kind) = text.split_once(": ").expect("a name, `: ` and a type");
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(parse_type_proto(kind)) }
}

fn parse_type_proto(kind: &str) -> TypeProto {
    if let Some(of) = kind.strip_prefix("optional ") {
        let optional = type_proto::Optional { elem_type: Some(Box::new(parse_type_proto(of))) };
        return TypeProto { value: Some(type_proto::Value::OptionalType(Box::new(optional))) };
    }
    if let Some(of) = kind.strip_prefix("sequence ") {
        let sequence = type_proto::Sequence { elem_type: Some(Box::new(parse_type_proto(of))) };
        return TypeProto { value: Some(type_proto::Value::SequenceType(Box::new(sequence))) };
    }
    let (dtype, dims) = kind.strip_suffix(']').and_then(|kind| kind.split_once('[')).expect("a type");
    let dtype = match dtype {
        "f32" => DataType::Float,
        "i64" => DataType::Int64,
        "u8" => DataType::Uint8,
        "bool" => DataType::Bool,
        "bf16" => DataType::Bfloat16,
        "string" => DataType::String,
        other => panic!("{other}"),
    };
    let dim = |text: &str| {
        let size = text.parse().map(tensor_shape_proto::dimension::Value::DimValue);
        let value = size.unwrap_or_else(|_| tensor_shape_proto::dimension::Value::DimParam(text.to_owned()));
        tensor_shape_proto::Dimension { value: Some(value) }
    };
    let shape = (dims != "…")
        .then(|| TensorShapeProto { dim: dims.split(", ").filter(|dim| !dim.is_empty()).map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(dtype.into()), shape };
    TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }
}

/// `y = max(x × w, 0)`, where `w` maps three numbers to their sum and their negated sum.
pub(crate) fn product_model() -> Vec<u8> {
    ModelBuilder::new()
        .with_input("x: f32[batch, 3]")
        .with_weight("w", &[3, 2], &[1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
        .with_node("h = MatMul(x, w)")
        .with_node("y = Relu(h)")
        .with_output("y: f32[batch, 2]")
        .into_bytes()
}

/// Two inputs that share a symbolic dimension, and two outputs.
pub(crate) fn pair_model() -> Vec<u8> {
    ModelBuilder::new()
        .with_input("a: f32[n]")
        .with_input("b: f32[n]")
        .with_node("sum = Add(a, b)")
        .with_attributed_node("sum/rounded = Cast(sum)", &[("to", 7)])
        .with_output("sum: f32[n]")
        .with_output("sum/rounded: i64[n]")
        .into_bytes()
}

/// Gathers rows of a table.
pub(crate) fn lookup_model() -> Vec<u8> {
    ModelBuilder::new()
        .with_input("tokens: i64[length]")
        .with_weight("table", &[2, 2], &[1.0, 2.0, 3.0, 4.0])
        .with_node("rows = Gather(table, tokens)")
        .with_output("rows: f32[length, 2]")
        .into_bytes()
}

/// Contains a node that no device can run.
pub(crate) fn foreign_op_model() -> Vec<u8> {
    ModelBuilder::new()
        .with_input("x: f32[2]")
        .with_node("h = Relu(x)")
        .with_node("y = acme.Magic(h)")
        .with_output("y: f32[2]")
        .into_bytes()
}

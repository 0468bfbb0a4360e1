//! Builder for small ONNX files.

use bytes::Bytes;
use oarlock_engine::import::onnx::messages::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto, attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto,
    type_proto,
};
use oarlock_engine::{Model, RuntimeValue, Session, SessionOptions, import};
use prost::Message as _;

use crate::sketch::{SHARED_RUNTIME, run_session};

/// A model under construction, with its inputs.
#[derive(Default)]
pub(crate) struct OnnxFile {
    pub(crate) graph: GraphProto,
}

/// An input with only a dtype and a rank.
fn value_info(name: &str, dtype: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = |size: &i64| {
        let value = (*size >= 0).then_some(tensor_shape_proto::dimension::Value::DimValue(*size));
        tensor_shape_proto::Dimension { value }
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(dtype as i32), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }),
    }
}

/// An attribute with a list of integers.
pub(crate) fn ints_attribute(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Ints as i32),
        ints: values.to_vec(),
        ..Default::default()
    }
}

/// An attribute with one integer.
pub(crate) fn int_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Int as i32),
        i: Some(value),
        ..Default::default()
    }
}

/// An attribute with one float.
pub(crate) fn float_attribute(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Float as i32),
        f: Some(value),
        ..Default::default()
    }
}

/// An attribute with a string.
pub(crate) fn text_attribute(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::String as i32),
        s: Some(value.as_bytes().to_vec().into()),
        ..Default::default()
    }
}

/// A subgraph, which captures values of the outer graph.
pub(crate) fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(Box::new(graph)),
        ..Default::default()
    }
}

impl OnnxFile {
    /// Adds an input; a negative size is unknown.
    pub(crate) fn add_input(&mut self, name: &str, dtype: DataType, dims: &[i64]) -> &mut Self {
        self.graph.input.push(value_info(name, dtype, dims));
        self
    }

    fn add_constant(&mut self, name: &str, dtype: DataType, dims: &[i64], bytes: Vec<u8>) -> &mut Self {
        self.graph.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            data_type: Some(dtype as i32),
            dims: dims.to_vec(),
            raw_data: Some(bytes.into()),
            ..Default::default()
        });
        self
    }

    pub(crate) fn add_floats(&mut self, name: &str, dims: &[i64], values: &[f32]) -> &mut Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add_constant(name, DataType::Float, dims, bytes)
    }

    pub(crate) fn add_bytes(&mut self, name: &str, dims: &[i64], values: &[u8]) -> &mut Self {
        self.add_constant(name, DataType::Uint8, dims, values.to_vec())
    }

    pub(crate) fn add_int32s(&mut self, name: &str, dims: &[i64], values: &[i32]) -> &mut Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add_constant(name, DataType::Int32, dims, bytes)
    }

    /// Adds a node of the domain `com.microsoft`, or of ONNX's if the name starts with a point. Names are separated by spaces;
    /// `_` is an omitted operand.
    pub(crate) fn add_node(
        &mut self,
        op: &str,
        inputs: &str,
        outputs: &str,
        attributes: &[AttributeProto],
    ) -> &mut Self {
        let names = |names: &str| {
            let name = |name: &str| if name == "_" { String::new() } else { name.to_owned() };
            names.split(' ').map(name).collect()
        };
        let domain = if op.starts_with('.') { "" } else { "com.microsoft" };
        self.graph.node.push(NodeProto {
            op_type: Some(op.trim_start_matches('.').to_owned()),
            domain: Some(domain.to_owned()),
            input: names(inputs),
            output: names(outputs),
            attribute: attributes.to_vec(),
            ..Default::default()
        });
        self
    }

    pub(crate) fn add_outputs(&mut self, names: &str) -> &mut Self {
        let output = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() };
        self.graph.output = names.split(' ').map(output).collect();
        self
    }

    pub(crate) fn import_model(&self) -> oarlock_core::Result<Model> {
        self.import_with_ir_version(10)
    }

    /// Imports the model with this version of the file format.
    pub(crate) fn import_with_ir_version(&self, ir_version: i64) -> oarlock_core::Result<Model> {
        let opset = |domain: &str, version: i64| OperatorSetIdProto {
            domain: Some(domain.to_owned()),
            version: Some(version),
        };
        let model = ModelProto {
            ir_version: Some(ir_version),
            opset_import: vec![opset("", 20), opset("com.microsoft", 1)],
            graph: Some(self.graph.clone()),
            ..Default::default()
        };
        import::onnx::decode_onnx(Bytes::from(model.encode_to_vec()), None)
    }

    pub(crate) fn start_session(&self) -> Session {
        let model = self.import_model().unwrap_or_else(|error| panic!("{error}"));
        Session::new(SHARED_RUNTIME.clone(), &model, &SessionOptions::default())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn run_model(&self, inputs: &[RuntimeValue]) -> Vec<RuntimeValue> {
        run_session(&self.start_session(), inputs)
    }
}

//! Encodes types.

use oarlock_core::Dtype;
use oarlock_core::infer::PartialDim;

use crate::graph::{DeclaredDimension, GraphValue, ValueType};
use crate::import::onnx::messages::tensor_shape_proto::Dimension as DimensionProto;
use crate::import::onnx::messages::tensor_shape_proto::dimension::Value as DimensionValue;
use crate::import::onnx::messages::type_proto::Value as TypeValue;
use crate::import::onnx::messages::{TensorShapeProto, TypeProto, ValueInfoProto, type_proto};

/// ONNX's number for a dtype.
pub(super) fn dtype_number(dtype: Dtype) -> i32 {
    i32::try_from(dtype.onnx_number()).unwrap_or_default()
}

pub(super) fn value_info(name: &str, declared: &ValueType) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), r#type: encode_type(declared) }
}

/// Encodes a type; `None` if nothing is known about it.
pub(super) fn encode_type(declared: &ValueType) -> Option<TypeProto> {
    let boxed = |declared| encode_type(declared).map(Box::new);
    let value = match declared {
        // ONNX cannot describe a tensor without a dtype.
        ValueType::Unknown | ValueType::Tensor { dtype: None, .. } => return None,
        ValueType::Tensor { dtype, dims } => TypeValue::TensorType(type_proto::Tensor {
            elem_type: dtype.map(dtype_number),
            shape: dims
                .as_ref()
                .map(|dims| TensorShapeProto { dim: dims.iter().map(encode_dimension).collect() }),
        }),
        ValueType::Sequence(of) => {
            TypeValue::SequenceType(Box::new(type_proto::Sequence { elem_type: boxed(of) }))
        }
        ValueType::Optional(of) => {
            TypeValue::OptionalType(Box::new(type_proto::Optional { elem_type: boxed(of) }))
        }
        ValueType::Map(key, of) => TypeValue::MapType(Box::new(type_proto::Map {
            key_type: Some(dtype_number(*key)),
            value_type: boxed(of),
        })),
    };
    Some(TypeProto { value: Some(value) })
}

/// The inferred type of a value, or else the declared one.
pub(super) fn resolved_type(value: &GraphValue) -> ValueType {
    if let Some(weight) = &value.weight {
        let dims = weight.dims().iter().copied().map(DeclaredDimension::Known).collect();
        return ValueType::Tensor { dtype: Some(weight.dtype()), dims: Some(dims) };
    }
    let Some(fact) = &value.fact else { return value.declared.clone() };
    let known =
        |dim: &PartialDim| dim.known_size().map_or(DeclaredDimension::Unknown, DeclaredDimension::Known);
    let dims = fact.dims.as_ref().map(|dims| dims.iter().map(known).collect());
    ValueType::Tensor { dtype: Some(fact.dtype), dims }
}

fn encode_dimension(dimension: &DeclaredDimension) -> DimensionProto {
    let value = match dimension {
        DeclaredDimension::Known(size) if *size >= 0 => Some(DimensionValue::DimValue(*size)),
        DeclaredDimension::Symbol(name) => Some(DimensionValue::DimParam(name.to_string())),
        DeclaredDimension::Known(_) | DeclaredDimension::Unknown => None,
    };
    DimensionProto { value }
}

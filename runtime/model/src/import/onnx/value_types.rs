//! Imports declared types.

use oarlock_core::{Dtype, Error, Result, shape};

use super::messages::tensor_shape_proto::Dimension as DimensionProto;
use super::messages::tensor_shape_proto::dimension::Value as DimensionValue;
use super::messages::type_proto::Value as TypeValue;
use super::messages::{TensorShapeProto, TypeProto, tensor_proto};
use crate::graph::{DeclaredDimension, ValueType};
use crate::import::error_location::invalid_model;

pub(super) fn import_value_type(proto: &TypeProto) -> Result<ValueType> {
    let inner = |proto: Option<&TypeProto>| proto.map_or(Ok(ValueType::Unknown), import_value_type);
    match &proto.value {
        None => Ok(ValueType::Unknown),
        Some(TypeValue::TensorType(tensor)) => {
            let dtype = match tensor.elem_type.unwrap_or_default() {
                0 => None,
                number => Some(dtype_from_number(number)?),
            };
            Ok(ValueType::Tensor { dtype, dims: tensor.shape.as_ref().map(import_dimensions).transpose()? })
        }
        Some(TypeValue::SequenceType(of)) => Ok(ValueType::Sequence(inner(of.elem_type.as_deref())?.into())),
        Some(TypeValue::OptionalType(of)) => Ok(ValueType::Optional(inner(of.elem_type.as_deref())?.into())),
        Some(TypeValue::MapType(map)) => {
            Ok(ValueType::Map(dtype_from_number(map.key_type())?, inner(map.value_type.as_deref())?.into()))
        }
        Some(TypeValue::SparseTensorType(_)) => Err(unsupported_type("a sparse tensor")),
        Some(TypeValue::OpaqueType(_)) => Err(unsupported_type("an opaque type")),
    }
}

pub(super) fn dtype_from_number(number: i32) -> Result<Dtype> {
    Dtype::from_onnx(number.into()).ok_or_else(|| match tensor_proto::DataType::try_from(number) {
        Ok(tensor_proto::DataType::Undefined) => invalid_model("a dtype", "none"),
        Ok(known) => unsupported_type(&format!("`{}`", known.as_str_name())),
        Err(_) => invalid_model("a dtype of ONNX", format!("number {number}")),
    })
}

fn unsupported_type(found: &str) -> Error {
    Error::unimplemented(format!("expected a type that is supported, found {found}"))
}

fn import_dimensions(shape: &TensorShapeProto) -> Result<Vec<DeclaredDimension>> {
    let (rank, most) = (shape.dim.len(), shape::MAX_RANK);
    if rank > most {
        return Err(invalid_model(format!("at most {most} dimensions"), rank));
    }
    shape.dim.iter().map(import_dimension).collect()
}

/// Imports a dimension. Some exporters write -1, or a name such as `?`, for an unknown size.
fn import_dimension(proto: &DimensionProto) -> Result<DeclaredDimension> {
    match &proto.value {
        None | Some(DimensionValue::DimValue(-1)) => Ok(DeclaredDimension::Unknown),
        Some(DimensionValue::DimValue(size)) if *size < 0 => {
            Err(invalid_model("dimensions of at least 0", format!("one of {size}")))
        }
        Some(DimensionValue::DimValue(size)) => Ok(DeclaredDimension::Known(*size)),
        Some(DimensionValue::DimParam(name)) if !name.contains(char::is_alphanumeric) => {
            Ok(DeclaredDimension::Unknown)
        }
        Some(DimensionValue::DimParam(name)) => Ok(DeclaredDimension::Symbol(name.as_str().into())),
    }
}

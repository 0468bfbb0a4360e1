//! Imports tensors: the contents of weights and attributes.

use oarlock_core::{Dtype, Result, shape};

use super::external_data::ExternalFiles;
use super::messages::TensorProto;
use super::messages::tensor_proto::DataLocation;
use super::{typed_data, value_types};
use crate::graph::Weight;
use crate::import::error_location::{invalid_model, quote_name};
use crate::import::weight::weight_from_bytes;

/// Imports a tensor. Its elements stay in the model or external file, unless they are few or have to be converted.
pub(super) fn import_weight(tensor: &TensorProto, external: &mut ExternalFiles) -> Result<Weight> {
    let (rank, most) = (tensor.dims.len(), shape::MAX_RANK);
    if rank > most {
        return Err(invalid_model(format!("at most {most} dimensions"), rank));
    }
    if tensor.segment.is_some() {
        return Err(invalid_model("a whole tensor", "a segment of one"));
    }
    let dtype = value_types::dtype_from_number(tensor.data_type())?;
    let location = tensor.data_location.unwrap_or_default();
    let is_external = match DataLocation::try_from(location) {
        Ok(location) => location == DataLocation::External,
        Err(_) => {
            return Err(invalid_model("elements in the model or in a file", format!("location {location}")));
        }
    };
    if dtype == Dtype::String {
        return if is_external {
            Err(invalid_model("texts in the model", "texts in a file"))
        } else {
            import_texts(tensor)
        };
    }
    let size = shape::size_in_bytes(dtype, &tensor.dims)?;
    let bytes = match tensor.raw_data.as_ref().filter(|bytes| !bytes.is_empty()) {
        _ if is_external => external.tensor_bytes(&tensor.external_data, size)?,
        Some(bytes) => bytes.clone(),
        None => typed_data::typed_bytes(tensor, dtype)?,
    };
    weight_from_bytes(dtype, &tensor.dims, bytes)
}

fn import_texts(tensor: &TensorProto) -> Result<Weight> {
    let (expected, found) = (shape::element_count(&tensor.dims)?, tensor.string_data.len());
    if found as u64 != expected {
        return Err(invalid_model(format!("{expected} texts for the shape {:?}", tensor.dims), found));
    }
    let texts = tensor.string_data.iter().map(|bytes| utf8_text(bytes)).collect::<Result<_>>()?;
    Ok(Weight::Texts { dims: tensor.dims.clone(), texts })
}

/// Decodes UTF-8 text.
pub(super) fn utf8_text(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(invalid_model(
            "text in UTF-8",
            quote_name(&String::from_utf8_lossy(&bytes[..bytes.len().min(512)])),
        )),
    }
}

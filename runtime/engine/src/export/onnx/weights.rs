//! Writes constants into the model or into a file beside it.

use bytes::Bytes;
use oarlock_core::{Constant, Dtype, Result};

use super::types;
use crate::graph::Weight;
use crate::import::onnx::messages::tensor_proto::DataLocation;
use crate::import::onnx::messages::{StringStringEntryProto, TensorProto};

/// Alignment of weights in an external file: one page, so that they can be mapped and suit all dtypes.
const WEIGHT_ALIGNMENT: u64 = 4096;
/// Smaller weights stay in the model.
const SMALL_WEIGHT_BYTES: usize = 1024;

/// Destination of weights.
pub(super) struct WeightWriter {
    /// Name of the external file; `None` to keep all weights in the model.
    file: Option<String>,
    parts: Vec<(u64, Bytes)>,
    end: u64,
}

impl WeightWriter {
    /// Keeps all weights in the model.
    pub(super) fn inline() -> Self {
        Self { file: None, parts: Vec::new(), end: 0 }
    }

    /// Writes large weights to an external file.
    pub(super) fn to_external_file(file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..Self::inline() }
    }

    /// Encodes a weight, and queues its bytes if it goes to the external file.
    pub(super) fn add_weight(&mut self, name: &str, weight: &Weight) -> Result<TensorProto> {
        let constant = match weight {
            Weight::Numbers(constant) => constant,
            Weight::Texts { dims, texts } => return Ok(self::encode_texts(name, dims, texts)),
        };
        match &self.file {
            Some(file) if constant.size_in_bytes() >= SMALL_WEIGHT_BYTES => {
                let (offset, length) = (self.end, constant.size_in_bytes());
                let entry = |key: &str, value: String| StringStringEntryProto {
                    key: Some(key.to_owned()),
                    value: Some(value),
                };
                let external_data = vec![
                    entry("location", file.clone()),
                    entry("offset", offset.to_string()),
                    entry("length", length.to_string()),
                ];
                self.parts.push((offset, constant.bytes()?));
                self.end = (offset + length as u64).next_multiple_of(WEIGHT_ALIGNMENT);
                let data_location = Some(DataLocation::External.into());
                Ok(TensorProto {
                    external_data,
                    data_location,
                    ..empty_tensor(name, constant.dtype(), constant.dims())
                })
            }
            _ => encode_numbers(name, constant),
        }
    }

    /// The parts of the external file with their offsets.
    pub(super) fn finish(self) -> Vec<(u64, Bytes)> {
        self.parts
    }
}

/// Encodes numbers inside the model.
pub(super) fn encode_numbers(name: &str, constant: &Constant) -> Result<TensorProto> {
    Ok(TensorProto {
        raw_data: Some(constant.bytes()?),
        ..empty_tensor(name, constant.dtype(), constant.dims())
    })
}

fn encode_texts(name: &str, dims: &[i64], texts: &[String]) -> TensorProto {
    let string_data = texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
    TensorProto { string_data, ..empty_tensor(name, Dtype::String, dims) }
}

fn empty_tensor(name: &str, dtype: Dtype, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: (!name.is_empty()).then(|| name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(types::dtype_number(dtype)),
        ..TensorProto::default()
    }
}

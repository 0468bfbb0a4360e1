//! Constants, in the model or in a file beside it.

use bytes::Bytes;
use oarlock_core::{Constant, Dtype};

use super::types;
use crate::graph::Weight;
use crate::import::onnx::messages::tensor_proto::DataLocation;
use crate::import::onnx::messages::{StringStringEntryProto, TensorProto};

/// Where weights begin in a file of their own, so that each page of it holds one and all dtypes lie well.
const ALIGNMENT: u64 = 4096;
/// Weights of fewer bytes stay in the model.
const SMALL: usize = 1024;

/// Where weights go.
pub(super) struct Weights {
    /// The file beside the model, if they go there.
    file: Option<String>,
    parts: Vec<(u64, Bytes)>,
    end: u64,
}

impl Weights {
    /// Weights that go to the model.
    pub(super) fn inside() -> Self {
        Self { file: None, parts: Vec::new(), end: 0 }
    }

    /// Weights that go to a file beside it.
    pub(super) fn beside(file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..Self::inside() }
    }

    /// Adds a weight.
    pub(super) fn add(&mut self, name: &str, weight: &Weight) -> TensorProto {
        let constant = match weight {
            Weight::Numbers(constant) => constant,
            Weight::Texts { dims, texts } => return self::texts(name, dims, texts),
        };
        match &self.file {
            Some(file) if constant.bytes().len() >= SMALL => {
                let (offset, length) = (self.end, constant.bytes().len());
                let entry = |key: &str, value: String| StringStringEntryProto {
                    key: Some(key.to_owned()),
                    value: Some(value),
                };
                let external_data = vec![
                    entry("location", file.clone()),
                    entry("offset", offset.to_string()),
                    entry("length", length.to_string()),
                ];
                self.parts.push((offset, constant.shared().clone()));
                self.end = (offset + length as u64).next_multiple_of(ALIGNMENT);
                let data_location = Some(DataLocation::External.into());
                TensorProto { external_data, data_location, ..empty(name, constant.dtype(), constant.dims()) }
            }
            _ => numbers(name, constant),
        }
    }

    /// What goes to the file beside the model.
    pub(super) fn finish(self) -> Vec<(u64, Bytes)> {
        self.parts
    }
}

/// Numbers that stay in the model.
pub(super) fn numbers(name: &str, constant: &Constant) -> TensorProto {
    TensorProto {
        raw_data: Some(constant.shared().clone()),
        ..empty(name, constant.dtype(), constant.dims())
    }
}

fn texts(name: &str, dims: &[i64], texts: &[String]) -> TensorProto {
    let string_data = texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
    TensorProto { string_data, ..empty(name, Dtype::String, dims) }
}

/// A tensor without its elements.
fn empty(name: &str, dtype: Dtype, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: (!name.is_empty()).then(|| name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(types::number(dtype)),
        ..TensorProto::default()
    }
}

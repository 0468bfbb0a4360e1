//! `LabelEncoder` with text values.

use std::collections::HashMap;

use oarlock_core::{Attribute, Attributes, Device, Dtype, Error, Result, Tensor};

use super::check_text_size;
use crate::graph::Node;
use oarlock_core::schema::ONNX_ML_DOMAIN;

/// Lookup table from keys to text.
pub(crate) struct TextLabelEncoder {
    texts: HashMap<LabelKey, String>,
    /// Result for keys that are not in the table.
    default: String,
}

/// A key. Floats are compared by their bits after normalization.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LabelKey {
    Text(String),
    Int(i64),
    Float(u64),
}

impl TextLabelEncoder {
    /// Returns `None` for a `LabelEncoder` whose values are numbers; a kernel runs that.
    pub(super) fn from_node(node: &Node) -> Result<Option<Self>> {
        let is_labels = &*node.domain == ONNX_ML_DOMAIN && &*node.op == "LabelEncoder";
        let Some(Attribute::Strings(values)) = node.attributes.get("values_strings").filter(|_| is_labels)
        else {
            return Ok(None);
        };
        let keys = label_keys(&node.attributes)?;
        if keys.len() != values.len() {
            return Err(Error::invalid_argument(format!(
                "expected a value for each of {} keys, found {}",
                keys.len(),
                values.len()
            )));
        }
        let default = node.attributes.get_string("default_string")?.unwrap_or("_Unused").to_owned();
        // The first of equal keys wins: collecting in reverse lets it overwrite the others.
        let pairs = keys.into_iter().zip(values.iter().cloned()).rev();
        Ok(Some(Self { texts: pairs.collect(), default }))
    }

    pub(super) fn encode(&self, host: &Device, tensor: &Tensor) -> Result<Tensor> {
        let keys: Vec<LabelKey> = match tensor.dtype() {
            Dtype::String => tensor.to_strings()?.into_iter().map(LabelKey::Text).collect(),
            Dtype::F32 => tensor.to_vec::<f32>()?.into_iter().map(|key| float_key(key.into())).collect(),
            Dtype::F64 => tensor.to_vec::<f64>()?.into_iter().map(float_key).collect(),
            Dtype::I16 => tensor.to_vec::<i16>()?.into_iter().map(|key| LabelKey::Int(key.into())).collect(),
            Dtype::I32 => tensor.to_vec::<i32>()?.into_iter().map(|key| LabelKey::Int(key.into())).collect(),
            _ => tensor.to_vec::<i64>()?.into_iter().map(LabelKey::Int).collect(),
        };
        let longest = self.texts.values().chain([&self.default]).map(String::len).max().unwrap_or(0);
        check_text_size((keys.len() as u64).saturating_mul((size_of::<String>() + longest) as u64))?;
        let texts = keys.iter().map(|key| self.texts.get(key).unwrap_or(&self.default).clone());
        Tensor::from_strings(host, tensor.dims(), texts.collect())
    }
}

/// Maps both zeros to one key, and all NaNs to another.
fn float_key(key: f64) -> LabelKey {
    LabelKey::Float(if key.is_nan() { f64::NAN } else { key + 0.0 }.to_bits())
}

/// The keys, from whichever attribute has them.
fn label_keys(attributes: &Attributes) -> Result<Vec<LabelKey>> {
    let found = ["keys_strings", "keys_int64s", "keys_floats", "keys_tensor"];
    match found.into_iter().find_map(|name| attributes.get(name)) {
        Some(Attribute::Strings(keys)) => Ok(keys.iter().cloned().map(LabelKey::Text).collect()),
        Some(Attribute::Ints(keys)) => Ok(keys.iter().copied().map(LabelKey::Int).collect()),
        Some(Attribute::Floats(keys)) => Ok(keys.iter().copied().map(float_key).collect()),
        Some(Attribute::Tensor(keys)) if keys.dtype().is_float() => {
            Ok(keys.to_floats()?.into_iter().map(float_key).collect())
        }
        Some(Attribute::Tensor(keys)) => Ok(keys.to_ints()?.into_iter().map(LabelKey::Int).collect()),
        _ => Err(Error::invalid_argument("expected an attribute with keys, found none")),
    }
}

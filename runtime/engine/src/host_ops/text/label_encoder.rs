//! `LabelEncoder` with text values.

use std::hash::Hash;
use std::sync::Arc;

use oarlock_core::{Attribute, Attributes, Device, Dtype, Error, Result, Tensor, shape};
use rustc_hash::FxHashMap;

use crate::graph::Node;
use oarlock_core::schema::ONNX_ML_DOMAIN;

/// Lookup table from keys to text. Outputs borrow its texts.
pub(crate) struct TextLabelEncoder {
    keys: TextLabelKeys,
    /// The values, and after them the result for keys that are not in the table.
    texts: Arc<[String]>,
}

/// Where in the texts the value of a key is. Floats are keys by their bits after normalization.
enum TextLabelKeys {
    Texts(FxHashMap<String, usize>),
    Ints(FxHashMap<i64, usize>),
    Floats(FxHashMap<u64, usize>),
}

impl TextLabelEncoder {
    /// Returns `None` for a `LabelEncoder` whose values are numbers; a kernel runs that.
    pub(super) fn from_node(node: &Node) -> Result<Option<Self>> {
        let is_labels = &*node.domain == ONNX_ML_DOMAIN && &*node.op == "LabelEncoder";
        let Some(Attribute::Strings(values)) = node.attributes.get("values_strings").filter(|_| is_labels)
        else {
            return Ok(None);
        };
        let (keys, count) = TextLabelKeys::new(&node.attributes)?;
        if count != values.len() {
            return Err(Error::invalid_argument(format!(
                "expected a value for each of {count} keys, found {}",
                values.len()
            )));
        }
        let default = node.attributes.get_string("default_string")?.unwrap_or("_Unused").to_owned();
        let texts = values.iter().cloned().chain([default]).collect();
        Ok(Some(Self { keys, texts }))
    }

    pub(super) fn encode(&self, host: &Device, tensor: &Tensor) -> Result<Tensor> {
        let default = self.texts.len() - 1;
        let indices = match (&self.keys, tensor.dtype()) {
            (TextLabelKeys::Texts(keys), Dtype::String) => find_labels(keys, default, tensor.to_strings()?),
            (TextLabelKeys::Ints(keys), Dtype::I16) => {
                find_labels(keys, default, tensor.to_vec::<i16>()?.into_iter().map(i64::from))
            }
            (TextLabelKeys::Ints(keys), Dtype::I32) => {
                find_labels(keys, default, tensor.to_vec::<i32>()?.into_iter().map(i64::from))
            }
            (TextLabelKeys::Ints(keys), Dtype::I64) => find_labels(keys, default, tensor.to_vec::<i64>()?),
            (TextLabelKeys::Floats(keys), Dtype::F32) => {
                let elements = tensor.to_vec::<f32>()?.into_iter();
                find_labels(keys, default, elements.map(|key| float_key(key.into())))
            }
            (TextLabelKeys::Floats(keys), Dtype::F64) => {
                find_labels(keys, default, tensor.to_vec::<f64>()?.into_iter().map(float_key))
            }
            // No key has the dtype of the elements.
            _ => vec![default; shape::element_count(tensor.dims())? as usize],
        };
        Tensor::from_shared_strings(host, tensor.dims(), &self.texts, indices.into_iter())
    }
}

fn find_labels<K: Hash + Eq>(
    keys: &FxHashMap<K, usize>,
    default: usize,
    elements: impl IntoIterator<Item = K>,
) -> Vec<usize> {
    elements.into_iter().map(|element| keys.get(&element).copied().unwrap_or(default)).collect()
}

/// Maps both zeros to one key, and all NaNs to another.
fn float_key(key: f64) -> u64 {
    if key.is_nan() { f64::NAN } else { key + 0.0 }.to_bits()
}

impl TextLabelKeys {
    /// The keys, from whichever attribute has them, and their number.
    fn new(attributes: &Attributes) -> Result<(Self, usize)> {
        let found = ["keys_strings", "keys_int64s", "keys_floats", "keys_tensor"];
        let texts = |keys: &[String]| Self::Texts(first_positions(keys.iter().cloned()));
        let ints = |keys: &[i64]| Self::Ints(first_positions(keys.iter().copied()));
        let floats = |keys: &[f64]| Self::Floats(first_positions(keys.iter().copied().map(float_key)));
        match found.into_iter().find_map(|name| attributes.get(name)) {
            Some(Attribute::Strings(keys)) => Ok((texts(keys), keys.len())),
            Some(Attribute::Ints(keys)) => Ok((ints(keys), keys.len())),
            Some(Attribute::Floats(keys)) => Ok((floats(keys), keys.len())),
            Some(Attribute::Tensor(keys)) if keys.dtype().is_float() => {
                let keys = keys.to_floats()?;
                Ok((floats(&keys), keys.len()))
            }
            Some(Attribute::Tensor(keys)) => {
                let keys = keys.to_ints()?;
                Ok((ints(&keys), keys.len()))
            }
            _ => Err(Error::invalid_argument("expected an attribute with keys, found none")),
        }
    }
}

/// The first of equal keys wins.
fn first_positions<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> FxHashMap<K, usize> {
    let mut positions = FxHashMap::default();
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_insert(position);
    }
    positions
}

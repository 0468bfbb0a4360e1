//! Names and types of the values of a run.

use oarlock_engine::RuntimeValue;
use serde::Serialize;

/// A value's name and type, for JSON and for a line of text.
#[derive(Serialize)]
pub struct ValueDescription {
    /// The name in the model.
    pub name: String,
    /// `None` if it is no tensor.
    pub dtype: Option<&'static str>,
    /// `None` if it is no tensor.
    pub shape: Option<Vec<i64>>,
}

impl ValueDescription {
    /// Describes a value of a run.
    pub fn from_value(name: &str, value: &RuntimeValue) -> Self {
        let tensor = if let RuntimeValue::Tensor(tensor) = value { Some(tensor) } else { None };
        Self {
            name: name.to_owned(),
            dtype: tensor.map(|tensor| tensor.dtype().name()),
            shape: tensor.map(|tensor| tensor.dims().to_vec()),
        }
    }
}

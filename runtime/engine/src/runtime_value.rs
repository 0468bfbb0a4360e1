//! Inputs and outputs of a run.

use oarlock_core::{Error, Result, Tensor};

/// One value of a run. It mirrors the value types of ONNX.
#[derive(Clone, Debug)]
pub enum RuntimeValue {
    /// A tensor on any device.
    Tensor(Tensor),
    /// A sequence; its elements are tensors.
    Sequence(Vec<RuntimeValue>),
    /// An empty optional.
    Nothing,
}

impl RuntimeValue {
    /// The tensor, or an error that says what this is instead.
    pub fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(other.type_mismatch("a tensor")),
        }
    }

    /// The elements of the sequence, or an error that says what this is instead.
    pub fn as_sequence(&self) -> Result<&[Self]> {
        match self {
            Self::Sequence(elements) => Ok(elements),
            other => Err(other.type_mismatch("a sequence")),
        }
    }

    /// The kind of value with its article, for messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Nothing => "an optional that holds nothing",
        }
    }

    #[cold]
    fn type_mismatch(&self, expected: &str) -> Error {
        Error::invalid_argument(format!("expected {expected}, found {}", self.kind_name()))
    }
}

impl From<Tensor> for RuntimeValue {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

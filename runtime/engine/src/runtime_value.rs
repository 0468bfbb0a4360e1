//! What goes into a run and comes out of it.

use oarlock_core::{Error, Result, Tensor};

/// One value of a run.
#[derive(Clone, Debug)]
pub enum RuntimeValue {
    /// A tensor.
    Tensor(Tensor),
    /// A sequence.
    Sequence(Vec<RuntimeValue>),
    /// An optional that holds nothing.
    Nothing,
}

impl RuntimeValue {
    /// The tensor that it is.
    pub fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(other.type_mismatch("a tensor")),
        }
    }

    /// The sequence that it is.
    pub fn as_sequence(&self) -> Result<&[Self]> {
        match self {
            Self::Sequence(elements) => Ok(elements),
            other => Err(other.type_mismatch("a sequence")),
        }
    }

    /// What it is, for messages.
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

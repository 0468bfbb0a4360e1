//! What goes into a run and comes out of it.

use oarlock_core::{Error, Result, Tensor};

/// One value of a run.
#[derive(Clone, Debug)]
pub enum Datum {
    /// A tensor.
    Tensor(Tensor),
    /// A sequence.
    Sequence(Vec<Datum>),
    /// An optional that holds nothing.
    Nothing,
}

impl Datum {
    /// The tensor that it is.
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(other.instead_of("a tensor")),
        }
    }

    /// The sequence that it is.
    pub fn sequence(&self) -> Result<&[Self]> {
        match self {
            Self::Sequence(elements) => Ok(elements),
            other => Err(other.instead_of("a sequence")),
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Nothing => "an optional that holds nothing",
        }
    }

    #[cold]
    fn instead_of(&self, expected: &str) -> Error {
        Error::invalid_argument(format!("expected {expected}, found {}", self.kind()))
    }
}

impl From<Tensor> for Datum {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

//! Values: what flows between nodes.

use std::fmt;
use std::sync::Arc;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Constant, Dims, Dtype, shape};

/// Names a value within its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// The id of the value at a place. A graph of a file that fits into memory has fewer values than ids.
    pub(super) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Its place in the list of values, for tables beside the graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What flows between nodes: given, constant, or made by a node.
#[derive(Clone, Debug, Default)]
pub struct GraphValue {
    /// What the model calls it.
    pub name: Arc<str>,
    /// What the model says about its type.
    pub declared: ValueType,
    /// Its elements, where the model holds them.
    pub weight: Option<Weight>,
    /// What is known about it, where it is a tensor and something is known.
    pub fact: Option<TensorFact>,
}

impl GraphValue {
    /// A value of a name, of which nothing else is known.
    pub fn with_name(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A constant.
    pub fn with_weight(name: impl Into<Arc<str>>, weight: Weight) -> Self {
        Self { weight: Some(weight), ..Self::with_name(name) }
    }

    /// A value of which something is known.
    pub fn with_fact(name: impl Into<Arc<str>>, fact: TensorFact) -> Self {
        Self { fact: Some(fact), ..Self::with_name(name) }
    }

    /// The type of its elements, where it is known.
    pub fn dtype(&self) -> Option<Dtype> {
        self.weight.as_ref().map(Weight::dtype).or_else(|| self.fact.as_ref().map(|fact| fact.dtype))
    }

    /// Its shape, where all of it is known.
    pub fn dims(&self) -> Option<Dims> {
        match &self.weight {
            Some(weight) => Some(weight.dims().into()),
            None => self.fact.as_ref()?.known_dims(),
        }
    }

    /// How many bytes it has, where that is known.
    pub fn size_in_bytes(&self) -> Option<u64> {
        shape::size_in_bytes(self.dtype()?, &self.dims()?).ok()
    }

    /// Its numbers, where they are known: those of a constant, or of what follows from shapes.
    pub fn known_numbers(&self) -> Option<&Constant> {
        match &self.weight {
            Some(weight) => weight.as_numbers(),
            None => self.fact.as_ref()?.value.as_ref(),
        }
    }
}

/// What a model says about the type of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ValueType {
    /// Nothing.
    #[default]
    Unknown,
    /// A tensor.
    Tensor {
        /// The type of its elements, where it is said.
        dtype: Option<Dtype>,
        /// The sizes of its dimensions; none where not even their number is said.
        dims: Option<Vec<DeclaredDimension>>,
    },
    /// A sequence.
    Sequence(Box<ValueType>),
    /// Something that may be missing.
    Optional(Box<ValueType>),
    /// Values by keys of a dtype.
    Map(Dtype, Box<ValueType>),
}

/// What a model says about the size of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredDimension {
    /// This size.
    Known(i64),
    /// Some size; the same one wherever the name is the same.
    Symbol(Arc<str>),
    /// Some size.
    Unknown,
}

/// The elements of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// Numbers, which may lie in a mapped file.
    Numbers(Constant),
    /// Texts, with their shape.
    Texts {
        /// The sizes of the dimensions.
        dims: Vec<i64>,
        /// The texts, the last dimension fastest.
        texts: Arc<[String]>,
    },
}

impl Weight {
    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Numbers(constant) => constant.dtype(),
            Self::Texts { .. } => Dtype::String,
        }
    }

    /// The sizes of its dimensions.
    pub fn dims(&self) -> &[i64] {
        match self {
            Self::Numbers(constant) => constant.dims(),
            Self::Texts { dims, .. } => dims,
        }
    }

    /// Its numbers, where it has numbers.
    pub fn as_numbers(&self) -> Option<&Constant> {
        if let Self::Numbers(constant) = self { Some(constant) } else { None }
    }
}

impl fmt::Display for DeclaredDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(size) => size.fmt(f),
            Self::Symbol(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// As in `f32[batch, 3, ?]`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("?"),
            Self::Tensor { dtype, dims } => {
                match dtype {
                    Some(dtype) => write!(f, "{dtype}")?,
                    None => f.write_str("?")?,
                }
                let Some(dims) = dims else { return f.write_str("[…]") };
                let dims: Vec<String> = dims.iter().map(DeclaredDimension::to_string).collect();
                write!(f, "[{}]", dims.join(", "))
            }
            Self::Sequence(of) => write!(f, "sequence of {of}"),
            Self::Optional(of) => write!(f, "optional {of}"),
            Self::Map(key, of) => write!(f, "map of {key} to {of}"),
        }
    }
}

//! Values: what flows between nodes.

use std::fmt;
use std::sync::Arc;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Constant, Dims, Dtype, shape};

/// Identifies a value within its graph; an index into the graph's list of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// Saturates beyond `u32::MAX`, which a file that fits into memory cannot reach.
    pub(super) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Position in the list of values, to index tables beside the graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value of a graph: an input, a constant, or an output of a node.
#[derive(Clone, Debug, Default)]
pub struct GraphValue {
    /// Name in the model.
    pub name: Arc<str>,
    /// Type that the model declares; it may be missing or wrong.
    pub declared: ValueType,
    /// Elements of a constant.
    pub weight: Option<Weight>,
    /// Inferred dtype, shape and, for small values, elements; `None` for non-tensors and where nothing is known.
    pub fact: Option<TensorFact>,
}

impl GraphValue {
    /// A value with a name and nothing known about it.
    pub fn with_name(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A constant with a name.
    pub fn with_weight(name: impl Into<Arc<str>>, weight: Weight) -> Self {
        Self { weight: Some(weight), ..Self::with_name(name) }
    }

    /// A value with an inferred dtype and shape.
    pub fn with_fact(name: impl Into<Arc<str>>, fact: TensorFact) -> Self {
        Self { fact: Some(fact), ..Self::with_name(name) }
    }

    /// Element type, if known; that of a constant takes precedence.
    pub fn dtype(&self) -> Option<Dtype> {
        self.weight.as_ref().map(Weight::dtype).or_else(|| self.fact.as_ref().map(|fact| fact.dtype))
    }

    /// Shape, if every dimension is known.
    pub fn dims(&self) -> Option<Dims> {
        match &self.weight {
            Some(weight) => Some(weight.dims().into()),
            None => self.fact.as_ref()?.known_dims(),
        }
    }

    /// Size in bytes, if dtype and shape are known.
    pub fn size_in_bytes(&self) -> Option<u64> {
        shape::size_in_bytes(self.dtype()?, &self.dims()?).ok()
    }

    /// Elements, if known: those of a constant, or those that shape inference computed.
    pub fn known_numbers(&self) -> Option<&Constant> {
        match &self.weight {
            Some(weight) => weight.as_numbers(),
            None => self.fact.as_ref()?.value.as_ref(),
        }
    }
}

/// Type of a value as the model declares it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ValueType {
    /// Nothing is declared.
    #[default]
    Unknown,
    /// A tensor; dtype and shape may be missing.
    Tensor {
        /// Element type, if declared.
        dtype: Option<Dtype>,
        /// Dimensions; `None` if not even the rank is declared.
        dims: Option<Vec<DeclaredDimension>>,
    },
    /// A sequence with elements of one type.
    Sequence(Box<ValueType>),
    /// An optional value.
    Optional(Box<ValueType>),
    /// A map from keys of this dtype.
    Map(Dtype, Box<ValueType>),
}

/// Size of a dimension as the model declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredDimension {
    /// A fixed size.
    Known(i64),
    /// A named size, equal wherever the name is the same.
    Symbol(Arc<str>),
    /// Any size.
    Unknown,
}

/// Elements of a constant. Text is separate: it has no fixed-size elements that a [`Constant`] could hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// Numbers, possibly in a mapped file.
    Numbers(Constant),
    /// Text elements with their shape.
    Texts {
        /// Sizes of the dimensions.
        dims: Vec<i64>,
        /// The elements in row-major order.
        texts: Arc<[String]>,
    },
}

impl Weight {
    /// Element type; `String` for text.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Numbers(constant) => constant.dtype(),
            Self::Texts { .. } => Dtype::String,
        }
    }

    /// Sizes of the dimensions; all are known.
    pub fn dims(&self) -> &[i64] {
        match self {
            Self::Numbers(constant) => constant.dims(),
            Self::Texts { dims, .. } => dims,
        }
    }

    /// The elements, unless they are text.
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

/// Formats as in `f32[batch, 3, ?]`.
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

//! Constants: values known on the host, such as tensors in attributes and the values that shape inference reads.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Dims, Dtype, Error, Result, shape};

/// The largest alignment that any element needs.
const CONSTANT_ALIGNMENT: u64 = 8;

/// Bytes that need not always be in memory, because they can be read again. They have an address of their own all the time.
pub trait ConstantSource: fmt::Debug + Send + Sync {
    /// The address at which the bytes are when they are in memory, and their number.
    fn address_range(&self) -> (usize, usize);

    /// The bytes, read again if they are not in memory. They stay there while the result or a clone of it lives.
    fn read_bytes(&self) -> Result<Bytes>;

    /// Ends the first stay of the bytes in memory. From then on they are there only while someone holds them.
    fn let_go(&self);
}

/// A contiguous tensor in ordinary host memory. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Constant {
    dtype: Dtype,
    dims: Dims,
    bytes: ConstantBytes,
}

#[derive(Clone, Debug)]
enum ConstantBytes {
    Held(Bytes),
    OnDemand(Arc<dyn ConstantSource>),
}

impl Constant {
    /// Creates a constant from bytes in native byte order. Fails if their number does not match dtype and shape.
    pub fn new(dtype: Dtype, dims: &[i64], bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = bytes.into();
        let expected = shape::size_in_bytes(dtype, dims)?;
        if dtype == Dtype::String {
            return Err(Error::unimplemented("expected a constant of numbers, found one of strings"));
        }
        if bytes.len() as u64 != expected {
            let found = bytes.len();
            return Err(Error::invalid_argument(format!(
                "expected {expected} bytes for {dtype} of shape {dims:?}, found {found}"
            )));
        }
        Ok(Self { dtype, dims: dims.into(), bytes: ConstantBytes::Held(bytes) })
    }

    /// The same constant, whose bytes come from a source that has the same ones.
    pub fn with_source(self, source: Arc<dyn ConstantSource>) -> Self {
        debug_assert_eq!(source.address_range().1, self.size_in_bytes(), "the source of another constant");
        Self { bytes: ConstantBytes::OnDemand(source), ..self }
    }

    /// Creates a list of `i64`, the usual form of shapes and axes.
    pub fn from_ints(values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let dims = Dims::from_slice(&[i64::try_from(values.len()).unwrap_or(i64::MAX)]);
        Self { dtype: Dtype::I64, dims, bytes: ConstantBytes::Held(bytes.into()) }
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The sizes of its dimensions.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Its bytes, in native byte order. Fails if they have to be read again and cannot be.
    pub fn bytes(&self) -> Result<Bytes> {
        match &self.bytes {
            ConstantBytes::Held(bytes) => Ok(bytes.clone()),
            ConstantBytes::OnDemand(source) => source.read_bytes(),
        }
    }

    /// The number of its bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.address_range().1
    }

    /// The address of its bytes, at which nothing else is while it lives.
    pub fn address(&self) -> usize {
        self.address_range().0
    }

    fn address_range(&self) -> (usize, usize) {
        match &self.bytes {
            ConstantBytes::Held(bytes) => (bytes.as_ptr().addr(), bytes.len()),
            ConstantBytes::OnDemand(source) => source.address_range(),
        }
    }

    /// The same constant with its bytes in memory as long as it lives.
    pub fn to_held(&self) -> Result<Self> {
        Ok(Self { dtype: self.dtype, dims: self.dims.clone(), bytes: ConstantBytes::Held(self.bytes()?) })
    }

    /// True if its bytes need not be in memory.
    pub fn is_on_demand(&self) -> bool {
        matches!(self.bytes, ConstantBytes::OnDemand(_))
    }

    /// Tells the source, if there is one, that the bytes have to be in memory only while someone holds them.
    pub fn let_go(&self) {
        if let ConstantBytes::OnDemand(source) = &self.bytes {
            source.let_go();
        }
    }

    /// The same elements in another shape, sharing the bytes.
    pub fn with_shape(&self, dims: &[i64]) -> Result<Self> {
        self.reinterpret_as(self.dtype, dims)
    }

    /// The same bytes as elements of another dtype and shape.
    pub fn reinterpret_as(&self, dtype: Dtype, dims: &[i64]) -> Result<Self> {
        let expected = shape::size_in_bytes(dtype, dims)?;
        match &self.bytes {
            ConstantBytes::OnDemand(_) if expected == self.size_in_bytes() as u64 => {
                Ok(Self { dtype, dims: dims.into(), bytes: self.bytes.clone() })
            }
            _ => Self::new(dtype, dims, self.bytes()?),
        }
    }

    /// True if its elements are naturally aligned. Those of a model that was decoded from memory may not be.
    pub fn is_aligned(&self) -> bool {
        let size = self.dtype.byte_size().unwrap_or(1).min(CONSTANT_ALIGNMENT) as usize;
        self.address().is_multiple_of(size.max(1))
    }

    /// The same constant with aligned elements: a clone, or a copy if they are not aligned yet.
    pub fn to_aligned(&self) -> Result<Self> {
        if self.is_aligned() {
            return Ok(self.clone());
        }
        // Allocators guarantee at least the alignment that any element needs.
        Self::new(self.dtype, &self.dims, Bytes::copy_from_slice(&self.bytes()?))
    }

    /// Its elements as integers; supports `i32` and `i64`.
    pub fn to_ints(&self) -> Result<Vec<i64>> {
        match self.dtype {
            Dtype::I64 => self.decode_elements(i64::from_ne_bytes),
            Dtype::I32 => self.decode_elements(|bytes| i64::from(i32::from_ne_bytes(bytes))),
            other => Err(Error::invalid_argument(format!("expected i64 or i32, found {other}"))),
        }
    }

    /// Its elements as floating-point numbers; supports `f32`, `f64`, `i32` and `i64`.
    pub fn to_floats(&self) -> Result<Vec<f64>> {
        match self.dtype {
            Dtype::F32 => self.decode_elements(|bytes| f64::from(f32::from_ne_bytes(bytes))),
            Dtype::F64 => self.decode_elements(f64::from_ne_bytes),
            Dtype::I32 | Dtype::I64 => Ok(self.to_ints()?.into_iter().map(|value| value as f64).collect()),
            other => Err(Error::invalid_argument(format!("expected f32, f64, i32 or i64, found {other}"))),
        }
    }

    fn decode_elements<const SIZE: usize, T>(&self, decode: impl Fn([u8; SIZE]) -> T) -> Result<Vec<T>> {
        Ok(self.bytes()?.as_chunks::<SIZE>().0.iter().map(|bytes| decode(*bytes)).collect())
    }
}

/// Equal elements of one dtype and shape. Those that cannot be read are equal only at the same address.
impl PartialEq for Constant {
    fn eq(&self, other: &Self) -> bool {
        let has_same_bytes = || match (self.bytes(), other.bytes()) {
            (Ok(bytes), Ok(others)) => bytes == others,
            _ => false,
        };
        (self.dtype, &self.dims) == (other.dtype, &other.dims)
            && (self.address_range() == other.address_range() || has_same_bytes())
    }
}

impl Eq for Constant {}

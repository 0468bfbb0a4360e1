//! Constants: values known on the host, such as tensors in attributes and the values that shape inference reads.

use bytes::Bytes;

use crate::{Dims, Dtype, Error, Result, shape};

/// The largest alignment that any element needs.
const CONSTANT_ALIGNMENT: u64 = 8;

/// A contiguous tensor in ordinary host memory. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    dtype: Dtype,
    dims: Dims,
    bytes: Bytes,
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
        Ok(Self { dtype, dims: dims.into(), bytes })
    }

    /// Creates a list of `i64`, the usual form of shapes and axes.
    pub fn from_ints(values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let dims = Dims::from_slice(&[i64::try_from(values.len()).unwrap_or(i64::MAX)]);
        Self { dtype: Dtype::I64, dims, bytes: bytes.into() }
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The sizes of its dimensions.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Its bytes, in native byte order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The shared handle to its bytes, for a caller that keeps them alive by cloning it.
    pub fn shared_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same elements in another shape, sharing the bytes.
    pub fn with_shape(&self, dims: &[i64]) -> Result<Self> {
        Self::new(self.dtype, dims, self.bytes.clone())
    }

    /// The same bytes as elements of another dtype and shape.
    pub fn reinterpret_as(&self, dtype: Dtype, dims: &[i64]) -> Result<Self> {
        Self::new(dtype, dims, self.bytes.clone())
    }

    /// True if its elements are naturally aligned. Those of a model that was decoded from memory may not be.
    pub fn is_aligned(&self) -> bool {
        let size = self.dtype.byte_size().unwrap_or(1).min(CONSTANT_ALIGNMENT) as usize;
        (self.bytes.as_ptr() as usize).is_multiple_of(size.max(1))
    }

    /// The same constant with aligned elements: a clone, or a copy if they are not aligned yet.
    pub fn to_aligned(&self) -> Self {
        if self.is_aligned() {
            return self.clone();
        }
        // Allocators guarantee at least the alignment that any element needs.
        Self { dtype: self.dtype, dims: self.dims.clone(), bytes: Bytes::copy_from_slice(&self.bytes) }
    }

    /// Its elements as integers; supports `i32` and `i64`.
    pub fn to_ints(&self) -> Result<Vec<i64>> {
        match self.dtype {
            Dtype::I64 => Ok(self.decode_elements(i64::from_ne_bytes)),
            Dtype::I32 => Ok(self.decode_elements(|bytes| i64::from(i32::from_ne_bytes(bytes)))),
            other => Err(Error::invalid_argument(format!("expected i64 or i32, found {other}"))),
        }
    }

    /// Its elements as floating-point numbers; supports `f32`, `f64`, `i32` and `i64`.
    pub fn to_floats(&self) -> Result<Vec<f64>> {
        match self.dtype {
            Dtype::F32 => Ok(self.decode_elements(|bytes| f64::from(f32::from_ne_bytes(bytes)))),
            Dtype::F64 => Ok(self.decode_elements(f64::from_ne_bytes)),
            Dtype::I32 | Dtype::I64 => Ok(self.to_ints()?.into_iter().map(|value| value as f64).collect()),
            other => Err(Error::invalid_argument(format!("expected f32, f64, i32 or i64, found {other}"))),
        }
    }

    fn decode_elements<const SIZE: usize, T>(&self, decode: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
        self.bytes.as_chunks::<SIZE>().0.iter().map(|bytes| decode(*bytes)).collect()
    }
}

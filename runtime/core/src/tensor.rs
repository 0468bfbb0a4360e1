//! Tensors: elements in the memory of a device, seen through a shape.
//!
//! A tensor never changes once it is made, so clones and views share their memory: [`Tensor::transpose`],
//! [`Tensor::slice`], [`Tensor::expand`] and [`Tensor::reshape`] copy nothing where strides can say it.

mod elements;
mod view;

use std::fmt;
use std::sync::Arc;

use crate::memory::Allocation;
use crate::stream::Stream;
use crate::{Device, Dims, Dtype, Error, Result, shape};

pub(crate) use elements::Texts;

/// The memory of a tensor and what it needs to stay valid.
pub(crate) struct Storage {
    pub(crate) allocation: Allocation,
    pub(crate) device: Device,
    /// The stream in which the memory was written.
    pub(crate) stream: Stream,
    /// The text that strings in the memory point to.
    pub(crate) texts: Option<Texts>,
}

/// Elements of one dtype in a shape, on a device.
#[derive(Clone)]
pub struct Tensor {
    pub(crate) storage: Arc<Storage>,
    pub(crate) dtype: Dtype,
    /// Bytes from the start of the allocation to the first element.
    pub(crate) offset: u64,
    pub(crate) dims: Dims,
    /// Elements from one index to the next in each dimension; `None` when contiguous.
    pub(crate) strides: Option<Dims>,
}

impl Tensor {
    /// Makes a contiguous tensor with memory that nobody wrote yet.
    pub(crate) fn uninitialized(
        device: &Device,
        stream: &Stream,
        dtype: Dtype,
        dims: &[i64],
        holder: &'static str,
    ) -> Result<Self> {
        let size = shape::size_in_bytes(dtype, dims)?;
        Self::of_size(device, stream, dtype, dims, size, holder)
    }

    /// The same, of a shape whose size in bytes is known.
    #[inline]
    pub(crate) fn of_size(
        device: &Device,
        stream: &Stream,
        dtype: Dtype,
        dims: &[i64],
        size: u64,
        holder: &'static str,
    ) -> Result<Self> {
        if dtype == Dtype::String && !device.shares_host_memory() {
            return Err(Error::unimplemented("expected numbers, found strings, which only the CPU holds")
                .on_device(device));
        }
        let allocation =
            device.pool()?.allocate(size, stream.id(), holder).map_err(|error| error.on_device(device))?;
        let storage = Storage { allocation, device: device.clone(), stream: stream.clone(), texts: None };
        Ok(Self { storage: Arc::new(storage), dtype, offset: 0, dims: Dims::from_slice(dims), strides: None })
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The sizes of its dimensions.
    #[inline]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Elements from one index to the next in each dimension.
    pub fn strides(&self) -> Dims {
        self.strides.clone().unwrap_or_else(|| shape::contiguous_strides(&self.dims))
    }

    /// Whether its elements lie one after the other, the last dimension fastest.
    pub fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// The device it is on.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.storage.device
    }

    /// How many elements it has.
    pub fn element_count(&self) -> u64 {
        // A tensor is only made with a shape whose size was computed before.
        self.dims.iter().map(|dim| dim.unsigned_abs()).product()
    }

    /// Bytes from the first element to past the last, with gaps.
    pub(crate) fn extent(&self) -> u64 {
        let Some(strides) = &self.strides else {
            return shape::size_in_bytes(self.dtype, &self.dims).unwrap_or(0);
        };
        if self.dims.contains(&0) {
            return 0;
        }
        let last: i64 = self.dims.iter().zip(strides).map(|(dim, stride)| (dim - 1) * stride.max(&0)).sum();
        (last.unsigned_abs() + 1) * self.dtype.bytes().unwrap_or(1)
    }

    /// Waits until its elements are there. Reports what went wrong on the way to them.
    pub fn wait(&self) -> Result<()> {
        self.storage.stream.synchronize().map_err(|error| error.on_device(self.device()))
    }

    /// The same elements on another device; the tensor itself when it is there already.
    pub fn to(&self, device: &Device) -> Result<Self> {
        if self.device().is(device) {
            return Ok(self.clone());
        }
        if self.dtype == Dtype::String {
            return Self::from_texts(device, &self.dims, self.to_texts()?);
        }
        Self::from_bytes(device, self.dtype, &self.dims, &self.to_bytes()?)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {})", self.dtype, self.dims.as_slice(), self.device())
    }
}

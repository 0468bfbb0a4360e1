//! Tensors: elements in device memory, with a shape.
//!
//! Tensors are immutable, so clones and views share memory: [`Tensor::transpose`], [`Tensor::slice`], [`Tensor::expand`]
//! and [`Tensor::reshape`] copy nothing as long as strides can express the result.

mod elements;
mod layout;
mod selection;
mod view;

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::memory::DeviceAllocation;
use crate::stream::{Stream, StreamId};
use crate::{Constant, Device, Dims, Dtype, Error, Result, shape};

pub(crate) use elements::StringBuffers;
pub(crate) use layout::TensorLayout;
pub use selection::{DimSelection, SelectionSource};

/// Elements of one dtype in a shape, on a device. A tensor is one pointer, so clones are cheap and share everything.
#[derive(Clone)]
pub struct Tensor(Arc<TensorBody>);

struct TensorBody {
    layout: Arc<TensorLayout>,
    /// Bytes from the start of the allocation to the first element.
    offset: u64,
    memory: TensorMemory,
}

enum TensorMemory {
    /// Memory that belongs to this tensor.
    Own(TensorStorage),
    /// A view of the tensor that owns the memory. Views of views refer to the owner directly.
    Of(Tensor),
}

/// The memory of a tensor, and whatever keeps its contents valid.
pub(crate) struct TensorStorage {
    pub(crate) allocation: DeviceAllocation,
    /// The stream that wrote the memory; `None` for the device's own queue.
    stream: Option<Stream>,
    /// The text that strings in the memory point to.
    pub(crate) texts: Option<StringBuffers>,
    /// The owner of host memory that did not come from a pool.
    constant: Option<Constant>,
}

impl TensorStorage {
    /// The stream that wrote the memory; others must wait for it.
    #[inline]
    pub(crate) fn written_on(&self) -> &Stream {
        self.stream.as_ref().unwrap_or_else(|| self.allocation.pool().streams().immediate_stream())
    }
}

impl Tensor {
    /// Allocates a contiguous tensor without initializing it.
    pub(crate) fn uninitialized(
        device: &Device,
        stream: &Stream,
        dtype: Dtype,
        dims: &[i64],
        holder: &'static str,
    ) -> Result<Self> {
        Self::uninitialized_with_layout(stream, &TensorLayout::contiguous(device, dtype, dims)?, holder)
    }

    /// Allocates a tensor of a known layout without initializing it.
    #[inline]
    pub(crate) fn uninitialized_with_layout(
        stream: &Stream,
        layout: &Arc<TensorLayout>,
        holder: &'static str,
    ) -> Result<Self> {
        let device = &layout.device;
        if layout.dtype == Dtype::String && !device.shares_host_memory() {
            return Err(Error::unimplemented("expected numbers, found strings, which only the CPU holds")
                .with_device(device));
        }
        let taken = device.memory_pool()?.allocate(layout.extent, stream.id(), holder);
        let allocation = taken.map_err(|error| error.with_device(device))?;
        let stream = (stream.id() != StreamId::IMMEDIATE).then(|| stream.clone());
        let memory = TensorMemory::Own(TensorStorage { allocation, stream, texts: None, constant: None });
        Ok(Self(Arc::new(TensorBody { layout: layout.clone(), offset: 0, memory })))
    }

    /// Places a constant on a device: without a copy if the device can read it in place, otherwise as a copy.
    /// Kernels need aligned elements, unless they declare that an operand may be unaligned.
    pub fn from_constant(device: &Device, constant: &Constant) -> Result<Self> {
        let constant = constant.to_held()?;
        let (dtype, dims, bytes) = (constant.dtype(), constant.dims(), constant.bytes()?);
        let is_usable = device.shares_host_memory() && dtype != Dtype::Bool;
        if !is_usable || bytes.is_empty() {
            return Self::from_bytes(device, dtype, dims, &bytes);
        }
        let allocation = DeviceAllocation::from_host_bytes(device.memory_pool()?.clone(), &bytes);
        let layout = TensorLayout::contiguous(device, dtype, dims)?;
        let storage = TensorStorage { allocation, stream: None, texts: None, constant: Some(constant) };
        Ok(Self(Arc::new(TensorBody { layout, offset: 0, memory: TensorMemory::Own(storage) })))
    }

    /// A view with another layout, `offset` bytes further on.
    fn view_at(&self, layout: Arc<TensorLayout>, offset: u64) -> Self {
        let owner = match &self.0.memory {
            TensorMemory::Own(_) => self,
            TensorMemory::Of(owner) => owner,
        };
        let memory = TensorMemory::Of(owner.clone());
        Self(Arc::new(TensorBody { layout, offset: self.0.offset + offset, memory }))
    }

    /// The layout, which outputs of repeated calls with the same signature share.
    #[inline]
    pub(crate) fn layout(&self) -> &Arc<TensorLayout> {
        &self.0.layout
    }

    /// The storage; for a view, the owner's storage.
    #[inline]
    pub(crate) fn storage(&self) -> &TensorStorage {
        match &self.0.memory {
            TensorMemory::Own(storage) => storage,
            TensorMemory::Of(owner) => owner.storage(),
        }
    }

    /// Block and offset of the first element.
    #[inline]
    pub(crate) fn memory_location(&self) -> (abi::Memory, u64) {
        let allocation = &self.storage().allocation;
        (allocation.block_handle(), allocation.offset() + self.0.offset)
    }

    /// Keeps text alive that the tensor's strings point to. The tensor must not be shared yet.
    pub(crate) fn keep_strings(&mut self, texts: StringBuffers) {
        if let Some(TensorBody { memory: TensorMemory::Own(storage), .. }) = Arc::get_mut(&mut self.0) {
            storage.texts = Some(texts);
        }
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        self.0.layout.dtype
    }

    /// The sizes of its dimensions.
    #[inline]
    pub fn dims(&self) -> &[i64] {
        &self.0.layout.dims
    }

    /// For each dimension, the number of elements from one index to the next.
    pub fn strides(&self) -> Dims {
        self.0.layout.strides.clone().unwrap_or_else(|| shape::contiguous_strides(&self.0.layout.dims))
    }

    /// True if its elements are dense and in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.strides.is_none()
    }

    /// The device of its memory.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.0.layout.device
    }

    /// The product of its dimensions.
    pub fn element_count(&self) -> u64 {
        // Every shape passed the overflow check when its tensor was created.
        shape::element_count(self.dims()).unwrap_or(0)
    }

    /// Bytes from the first element to the end of the last, gaps included.
    pub(crate) fn extent(&self) -> u64 {
        self.0.layout.extent
    }

    /// Identifies the tensor among all that exist now. Clones have the same identity, views another one.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Waits until its elements are computed, and reports failures of the work that computes them.
    pub fn wait(&self) -> Result<()> {
        self.storage().written_on().synchronize().map_err(|error| error.with_device(self.device()))
    }

    /// Copies the elements to another device. Returns a clone if the tensor is already there.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        if self.device().is_same_device(device) {
            return Ok(self.clone());
        }
        if self.0.layout.dtype == Dtype::String {
            return Self::from_strings(device, &self.0.layout.dims, self.to_strings()?);
        }
        Self::from_bytes(device, self.0.layout.dtype, &self.0.layout.dims, &self.to_bytes()?)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {})", self.0.layout.dtype, self.0.layout.dims.as_slice(), self.device())
    }
}

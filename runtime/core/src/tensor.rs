//! Tensors: elements in the memory of a device, seen through a shape.
//!
//! A tensor never changes once it is made, so clones and views share their memory: [`Tensor::transpose`],
//! [`Tensor::slice`], [`Tensor::expand`] and [`Tensor::reshape`] copy nothing where strides can say it.

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

/// Elements of one dtype in a shape, on a device. A tensor is one pointer: clones are the same tensor.
#[derive(Clone)]
pub struct Tensor(Arc<TensorBody>);

/// What clones of a tensor share.
struct TensorBody {
    form: Arc<TensorLayout>,
    /// Bytes from the start of the allocation to the first element.
    offset: u64,
    memory: TensorMemory,
}

/// Where the elements of a tensor are.
enum TensorMemory {
    /// In memory that goes with it.
    Own(TensorStorage),
    /// In that of the tensor it is another view of, which has its own.
    Of(Tensor),
}

/// The memory of a tensor and what it needs to stay valid.
pub(crate) struct TensorStorage {
    pub(crate) allocation: DeviceAllocation,
    /// The stream in which the memory was written; `None` for the device's own queue.
    stream: Option<Stream>,
    /// The text that strings in the memory point to.
    pub(crate) texts: Option<StringBuffers>,
    /// What holds the memory, where it is the host's and no pool's.
    constant: Option<Constant>,
}

impl TensorStorage {
    /// The stream in which the memory was written.
    #[inline]
    pub(crate) fn written_on(&self) -> &Stream {
        self.stream.as_ref().unwrap_or_else(|| self.allocation.pool().streams().immediate_stream())
    }
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
        Self::uninitialized_with_layout(stream, &TensorLayout::contiguous(device, dtype, dims)?, holder)
    }

    /// The same, of a form that is known.
    #[inline]
    pub(crate) fn uninitialized_with_layout(
        stream: &Stream,
        form: &Arc<TensorLayout>,
        holder: &'static str,
    ) -> Result<Self> {
        let device = &form.device;
        if form.dtype == Dtype::String && !device.shares_host_memory() {
            return Err(Error::unimplemented("expected numbers, found strings, which only the CPU holds")
                .with_device(device));
        }
        let taken = device.memory_pool()?.allocate(form.extent, stream.id(), holder);
        let allocation = taken.map_err(|error| error.with_device(device))?;
        let stream = (stream.id() != StreamId::IMMEDIATE).then(|| stream.clone());
        let memory = TensorMemory::Own(TensorStorage { allocation, stream, texts: None, constant: None });
        Ok(Self(Arc::new(TensorBody { form: form.clone(), offset: 0, memory })))
    }

    /// The elements of a constant on a device: where they lie, if the device can read them there, or a copy. Kernels need
    /// them aligned, but for those that say otherwise of an operand.
    pub fn from_constant(device: &Device, constant: &Constant) -> Result<Self> {
        let (dtype, dims, bytes) = (constant.dtype(), constant.dims(), constant.bytes());
        let is_usable = device.shares_host_memory() && dtype != Dtype::Bool;
        if !is_usable || bytes.is_empty() {
            return Self::from_bytes(device, dtype, dims, bytes);
        }
        let allocation = DeviceAllocation::from_host_bytes(device.memory_pool()?.clone(), bytes);
        let storage =
            TensorStorage { allocation, stream: None, texts: None, constant: Some(constant.clone()) };
        let form = TensorLayout::contiguous(device, dtype, dims)?;
        Ok(Self(Arc::new(TensorBody { form, offset: 0, memory: TensorMemory::Own(storage) })))
    }

    /// Another view of its elements, from so many bytes on.
    fn view_at(&self, form: Arc<TensorLayout>, offset: u64) -> Self {
        let owner = match &self.0.memory {
            TensorMemory::Own(_) => self,
            TensorMemory::Of(owner) => owner,
        };
        let memory = TensorMemory::Of(owner.clone());
        Self(Arc::new(TensorBody { form, offset: self.0.offset + offset, memory }))
    }

    /// What it shares with tensors that are made alike.
    #[inline]
    pub(crate) fn form(&self) -> &Arc<TensorLayout> {
        &self.0.form
    }

    /// The memory its elements lie in.
    #[inline]
    pub(crate) fn storage(&self) -> &TensorStorage {
        match &self.0.memory {
            TensorMemory::Own(storage) => storage,
            TensorMemory::Of(owner) => owner.storage(),
        }
    }

    /// Where its first element lies: the block and the bytes from its start.
    #[inline]
    pub(crate) fn memory_location(&self) -> (abi::Memory, u64) {
        let allocation = &self.storage().allocation;
        (allocation.block_handle(), allocation.offset() + self.0.offset)
    }

    /// Keeps the text that its strings point to, for a tensor that nobody has seen yet.
    pub(crate) fn keep_strings(&mut self, texts: StringBuffers) {
        if let Some(TensorBody { memory: TensorMemory::Own(storage), .. }) = Arc::get_mut(&mut self.0) {
            storage.texts = Some(texts);
        }
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        self.0.form.dtype
    }

    /// The sizes of its dimensions.
    #[inline]
    pub fn dims(&self) -> &[i64] {
        &self.0.form.dims
    }

    /// Elements from one index to the next in each dimension.
    pub fn strides(&self) -> Dims {
        self.0.form.strides.clone().unwrap_or_else(|| shape::contiguous_strides(&self.0.form.dims))
    }

    /// Whether its elements lie one after the other, the last dimension fastest.
    pub fn is_contiguous(&self) -> bool {
        self.0.form.strides.is_none()
    }

    /// The device it is on.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.0.form.device
    }

    /// How many elements it has.
    pub fn element_count(&self) -> u64 {
        // A tensor is only made with a shape whose size was computed before.
        shape::element_count(self.dims()).unwrap_or(0)
    }

    /// Bytes from the first element to past the last, with gaps.
    pub(crate) fn extent(&self) -> u64 {
        self.0.form.extent
    }

    /// Waits until its elements are there. Reports what went wrong on the way to them.
    pub fn wait(&self) -> Result<()> {
        self.storage().written_on().synchronize().map_err(|error| error.with_device(self.device()))
    }

    /// The same elements on another device; the tensor itself when it is there already.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        if self.device().is_same_device(device) {
            return Ok(self.clone());
        }
        if self.0.form.dtype == Dtype::String {
            return Self::from_strings(device, &self.0.form.dims, self.to_strings()?);
        }
        Self::from_bytes(device, self.0.form.dtype, &self.0.form.dims, &self.to_bytes()?)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {})", self.0.form.dtype, self.0.form.dims.as_slice(), self.device())
    }
}

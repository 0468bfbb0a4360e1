//! Creates tensors from elements and reads them back: copies between the host and a device.

#![expect(unsafe_code, reason = "elements become bytes and back, and strings in memory point to text")]

use std::sync::Arc;

use oarlock_abi as abi;

use super::{Tensor, TensorLayout};
use crate::{Device, Dtype, Element, Error, Result, shape};

/// The text that the strings of a tensor point to, in pieces that several tensors may share.
#[derive(Clone, Default)]
pub(crate) struct StringBuffers(Vec<Arc<[String]>>);

impl StringBuffers {
    /// Also keeps the text of another tensor alive.
    pub(crate) fn extend_from(&mut self, other: &Self) {
        for piece in &other.0 {
            if !self.0.iter().any(|own| Arc::ptr_eq(own, piece)) {
                self.0.push(piece.clone());
            }
        }
    }
}

impl Tensor {
    /// Copies bytes, in native byte order, to a device.
    pub fn from_bytes(device: &Device, dtype: Dtype, dims: &[i64], bytes: &[u8]) -> Result<Self> {
        if dtype == Dtype::String {
            return Err(Error::invalid_argument("expected numbers, found strings; make them of text"));
        }
        let expected = shape::size_in_bytes(dtype, dims)?;
        if bytes.len() as u64 != expected {
            let found = bytes.len();
            return Err(Error::invalid_argument(format!(
                "expected {expected} bytes for {dtype} of shape {dims:?}, found {found}"
            )));
        }
        if dtype == Dtype::Bool && bytes.iter().any(|byte| *byte > 1) {
            return Err(Error::invalid_argument("expected bytes of 0 and 1 for bool, found others"));
        }
        let tensor = Self::uninitialized(device, device.default_stream()?, dtype, dims, "tensor")?;
        tensor.write_bytes(bytes)?;
        Ok(tensor)
    }

    /// Copies elements to a device.
    pub fn from_slice<T: Element>(device: &Device, dims: &[i64], elements: &[T]) -> Result<Self> {
        // SAFETY: elements have no padding, and every one of their bytes is initialized.
        let bytes =
            unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) };
        Self::from_bytes(device, T::DTYPE, dims, bytes)
    }

    /// Computes each element from its row-major index. If the host can write to the device's memory, elements are
    /// written in place.
    pub fn from_fn<T: Element>(device: &Device, dims: &[i64], element: impl Fn(u64) -> T) -> Result<Self> {
        let count = shape::element_count(dims)?;
        if !device.shares_host_memory() {
            let mut elements = reserve_elements(count)?;
            elements.extend((0..count).map(element));
            return Self::from_slice(device, dims, &elements);
        }
        let tensor = Self::uninitialized(device, device.default_stream()?, T::DTYPE, dims, "tensor")?;
        tensor.wait()?;
        let (memory, offset) = tensor.memory_location();
        let first = (memory.0 + offset) as *mut T;
        for at in 0..count {
            // SAFETY: the device shares the host's memory; the tensor has this many elements there, aligned as all
            // blocks are; nobody else has seen them, and earlier uses of the memory were waited for.
            unsafe { first.add(at as usize).write(element(at)) };
        }
        Ok(tensor)
    }

    /// Creates a tensor of strings. Only devices that share the host's memory support it.
    pub fn from_strings(device: &Device, dims: &[i64], texts: Vec<String>) -> Result<Self> {
        let texts: Arc<[String]> = texts.into();
        Self::from_shared_strings(device, dims, &texts, 0..texts.len())
    }

    /// Creates a tensor whose elements are strings of a table, by their indices, which must lie in it. The tensor shares the table.
    pub fn from_shared_strings(
        device: &Device,
        dims: &[i64],
        table: &Arc<[String]>,
        indices: impl ExactSizeIterator<Item = usize>,
    ) -> Result<Self> {
        let (found, expected) = (indices.len() as u64, shape::element_count(dims)?);
        if found != expected {
            let message = format!("expected {expected} strings for the shape {dims:?}, found {found}");
            return Err(Error::invalid_argument(message));
        }
        let element = |index: usize| {
            let (text, most) = (&table[index], abi::Str::MAX_BYTES);
            let size = text.len() as u64;
            let message = || format!("expected texts of at most {most} bytes, found one of {size}");
            (size <= most).then(|| abi::Str::borrowed(text)).ok_or_else(|| Error::invalid_argument(message()))
        };
        let elements = indices.map(element).collect::<Result<Vec<_>>>()?;
        let mut tensor =
            Self::uninitialized(device, device.default_stream()?, Dtype::String, dims, "tensor")?;
        // SAFETY: as in `from_slice`.
        let bytes =
            unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(&*elements)) };
        tensor.write_bytes(bytes)?;
        tensor.keep_strings(StringBuffers(vec![table.clone()]));
        Ok(tensor)
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let storage = self.storage();
        // SAFETY: the memory was allocated for this tensor, which nobody else has seen yet.
        let written = unsafe { storage.allocation.write_blocking(storage.written_on(), 0, bytes) };
        written.map_err(|error| error.with_device(self.device()))
    }

    /// Copies the elements to the host as contiguous bytes in native byte order.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.0.layout.dtype == Dtype::String {
            return Err(Error::invalid_argument("expected numbers, found strings; read them as text"));
        }
        self.gather_bytes()
    }

    /// Borrows the elements as bytes, without a copy. Returns `None` if the host cannot read the device's memory, if
    /// the tensor is not contiguous, and for strings, whose bytes are addresses.
    pub fn host_bytes(&self) -> Result<Option<&[u8]>> {
        let is_readable = self.device().shares_host_memory()
            && self.is_contiguous()
            && self.0.layout.dtype != Dtype::String;
        if !is_readable {
            return Ok(None);
        }
        self.wait()?;
        let size = usize::try_from(self.extent()).unwrap_or(usize::MAX);
        if size == 0 {
            return Ok(Some(&[]));
        }
        let (memory, offset) = self.memory_location();
        // SAFETY: on a device that shares the host's memory, block plus offset is an address; the tensor has that
        // many bytes there, keeps them for as long as it is borrowed, and nobody writes them once they were waited for.
        Ok(Some(unsafe { std::slice::from_raw_parts((memory.0 + offset) as *const u8, size) }))
    }

    /// The address of the first element, to be read with the tensor's strides. Returns `None` if the host cannot read
    /// the device's memory, and for strings, whose bytes are addresses. The address is valid as long as the tensor lives.
    pub fn host_address(&self) -> Result<Option<*const u8>> {
        if !self.device().shares_host_memory() || self.0.layout.dtype == Dtype::String {
            return Ok(None);
        }
        self.wait()?;
        let (memory, offset) = self.memory_location();
        Ok(Some((memory.0 + offset) as *const u8))
    }

    /// Copies the elements to the host, in row-major order.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.0.layout.dtype != T::DTYPE {
            let (expected, found) = (T::DTYPE, self.0.layout.dtype);
            return Err(Error::invalid_argument(format!("expected elements of {expected}, found {found}")));
        }
        let bytes = self.to_bytes()?;
        if T::DTYPE == Dtype::Bool && bytes.iter().any(|byte| *byte > 1) {
            return Err(Error::fatal("expected bytes of 0 and 1 for bool, found others that a kernel wrote"));
        }
        // SAFETY: the bytes are elements of this type, and every bit pattern is a valid value of it; those of bool
        // were checked.
        let read = |bytes: &[u8]| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
        Ok(bytes.chunks_exact(size_of::<T>()).map(read).collect())
    }

    /// Copies the strings to the host.
    pub fn to_strings(&self) -> Result<Vec<String>> {
        if self.0.layout.dtype != Dtype::String {
            return Err(Error::invalid_argument(format!("expected strings, found {}", self.0.layout.dtype)));
        }
        let bytes = self.gather_bytes()?;
        let read = |bytes: &[u8]| {
            // SAFETY: the bytes are a `Str`, which consists only of numbers and addresses.
            let text = unsafe { bytes.as_ptr().cast::<abi::Str>().read_unaligned() };
            // SAFETY: strings of a tensor point to text that its storage keeps alive.
            unsafe { text.text() }.map(str::to_owned)
        };
        let texts: Option<Vec<String>> = bytes.chunks_exact(size_of::<abi::Str>()).map(read).collect();
        texts.ok_or_else(|| Error::fatal("expected text in UTF-8, found other bytes that a kernel wrote"))
    }

    /// A contiguous copy made through the host, for devices that have no kernel for it.
    pub(crate) fn gather_through_host(&self) -> Result<Self> {
        match self.0.layout.dtype {
            Dtype::String => Self::from_strings(self.device(), &self.0.layout.dims, self.to_strings()?),
            _ => Self::from_bytes(self.device(), self.0.layout.dtype, &self.0.layout.dims, &self.to_bytes()?),
        }
    }

    /// Its elements as contiguous bytes.
    fn gather_bytes(&self) -> Result<Vec<u8>> {
        if let Some(here) = self.host_bytes()? {
            let mut bytes = reserve_elements(self.extent())?;
            bytes.extend_from_slice(here);
            return Ok(bytes);
        }
        self.wait()?;
        let mut bytes = reserve_elements(self.extent())?;
        bytes.resize(usize::try_from(self.extent()).unwrap_or(usize::MAX), 0);
        let storage = self.storage();
        // SAFETY: tensors never change once they exist, and the stream was waited for.
        let read =
            unsafe { storage.allocation.read_blocking(storage.written_on(), self.0.offset, &mut bytes) };
        read.map_err(|error| error.with_device(self.device()))?;
        let TensorLayout { dtype, dims, strides, .. } = &**self.layout();
        match strides {
            None => Ok(bytes),
            Some(strides) => {
                let gathered = reserve_elements(shape::size_in_bytes(*dtype, dims)?)?;
                Ok(gather_strided(&bytes, *dtype, dims, strides, gathered))
            }
        }
    }
}

/// Allocates, and fails instead of aborting: a broadcast tensor may have more elements than fit in the host's memory.
fn reserve_elements<T>(count: u64) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    let reserved = usize::try_from(count).is_ok_and(|count| elements.try_reserve_exact(count).is_ok());
    if reserved {
        return Ok(elements);
    }
    let size = count.saturating_mul(size_of::<T>() as u64);
    let message = format!("expected {size} bytes of the host's memory for the elements, found too little");
    Err(Error::resource_exhausted(message))
}

/// Copies the elements of a strided extent to contiguous memory.
fn gather_strided(
    extent: &[u8],
    dtype: Dtype,
    dims: &[i64],
    strides: &[i64],
    mut gathered: Vec<u8>,
) -> Vec<u8> {
    let size = dtype.byte_size().unwrap_or(1) as usize;
    let count: usize = dims.iter().map(|dim| *dim as usize).product();
    let mut counter = vec![0i64; dims.len()];
    for _ in 0..count {
        let at: i64 = counter.iter().zip(strides).map(|(index, stride)| index * stride).sum();
        let at = at as usize * size;
        gathered.extend_from_slice(&extent[at..at + size]);
        for (index, dim) in counter.iter_mut().zip(dims).rev() {
            *index += 1;
            if *index < *dim {
                break;
            }
            *index = 0;
        }
    }
    gathered
}

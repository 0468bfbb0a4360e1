//! Selections: parts of a tensor to view or to write to.

#![expect(
    unsafe_code,
    reason = "elements are written where they lie, which takes an address in the host's memory"
)]

use super::{Tensor, TensorLayout, TensorMemory};
use crate::{Device, Dims, Dtype, Error, Result};

/// A selection along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimSelection {
    /// One index. The dimension disappears.
    At(u64),
    /// Evenly spaced indices.
    Range {
        /// The first index.
        begin: u64,
        /// The number of indices.
        count: u64,
        /// The distance between consecutive indices.
        step: u64,
    },
    /// The whole dimension.
    Whole,
    /// Inserts a new dimension of size 1, without consuming a dimension of the tensor.
    New,
}

struct SelectionLayout {
    dims: Dims,
    strides: Dims,
    /// The offset of the first selected element, in elements.
    first: u64,
}

/// The elements to write into a selection.
#[derive(Clone, Copy)]
pub enum SelectionSource<'a> {
    /// The bytes of one element, which fills the selection.
    One(&'a [u8]),
    /// Elements in the shape of the selection, in memory that the host can read.
    Of(&'a Tensor),
}

impl Tensor {
    /// A view of the selection. Dimensions without a pick stay whole.
    pub fn select_view(&self, picks: &[DimSelection]) -> Result<Self> {
        let SelectionLayout { dims, strides, first } = self.selection_layout(picks)?;
        self.view_with_strides(dims, strides, first)
    }

    /// The shape of the selection.
    pub fn selected_dims(&self, picks: &[DimSelection]) -> Result<Dims> {
        Ok(self.selection_layout(picks)?.dims)
    }

    fn selection_layout(&self, picks: &[DimSelection]) -> Result<SelectionLayout> {
        let own = self.strides();
        let mut part = SelectionLayout { dims: Dims::new(), strides: Dims::new(), first: 0 };
        let mut axes = self.dims().iter().zip(&own);
        for pick in picks {
            if *pick == DimSelection::New {
                part.dims.push(1);
                part.strides.push(1);
                continue;
            }
            let Some((size, stride)) = axes.next() else {
                let rank = self.dims().len();
                return Err(Error::out_of_range(format!("expected picks of {rank} dimensions, found more")));
            };
            let (begin, count, step) = match *pick {
                DimSelection::At(index) => (index, 1, 1),
                DimSelection::Range { begin, count, step } => (begin, count, step),
                DimSelection::Whole | DimSelection::New => (0, size.unsigned_abs(), 1),
            };
            let past = count
                .checked_sub(1)
                .map_or(Some(begin), |steps| steps.checked_mul(step)?.checked_add(begin)?.checked_add(1));
            if past.is_none_or(|past| past > size.unsigned_abs()) || step == 0 {
                return Err(Error::out_of_range(format!(
                    "expected indices below {size}, found {count} from {begin} on with a step of {step}"
                )));
            }
            if self.dtype().is_packed() && *pick != DimSelection::Whole {
                let dtype = self.dtype();
                return Err(Error::unimplemented(format!(
                    "expected elements of whole bytes, found {dtype}, of which several share a byte"
                )));
            }
            part.first = part.first.saturating_add(stride.unsigned_abs().saturating_mul(begin));
            if !matches!(pick, DimSelection::At(_)) {
                part.dims.push(count as i64);
                part.strides.push(if count > 1 { stride.saturating_mul(step as i64) } else { *stride });
            }
        }
        for (size, stride) in axes {
            part.dims.push(*size);
            part.strides.push(*stride);
        }
        Ok(part)
    }

    /// Replaces the elements of a selection: in place if the memory is not shared, otherwise in a copy. Clones
    /// and views keep the old elements.
    ///
    /// Supports only numbers in memory that the host can write.
    pub fn write_selection(&mut self, picks: &[DimSelection], by: SelectionSource<'_>) -> Result<()> {
        let size = self.dtype().byte_size().filter(|_| self.is_host_writable()).unwrap_or(0) as usize;
        if size == 0 {
            return Err(Error::unimplemented("expected numbers in the host's memory, found others"));
        }
        let part = self.selection_layout(picks)?;
        let (bytes, steps) = match by {
            SelectionSource::One(bytes) => (bytes, vec![0; part.dims.len()].as_slice().into()),
            SelectionSource::Of(tensor) if *tensor.dims() == *part.dims && tensor.dtype() == self.dtype() => {
                (tensor.extent_bytes()?, tensor.strides())
            }
            SelectionSource::Of(tensor) => {
                let (expected, found) = (part.dims, tensor.dims());
                return Err(Error::invalid_argument(format!(
                    "expected {} of shape {expected:?}, found {} of {found:?}",
                    self.dtype(),
                    tensor.dtype()
                )));
            }
        };
        if part.dims.contains(&0) {
            return Ok(());
        }
        if let SelectionSource::One(bytes) = by {
            self.dtype().check_element(bytes)?;
        }
        let mut part = part;
        if self.is_exclusive() {
            self.wait()?;
        } else {
            let copy = |bytes: &[u8]| Self::from_bytes(self.device(), self.dtype(), self.dims(), bytes);
            let copied = match self.host_bytes()? {
                Some(bytes) => copy(bytes)?,
                None => copy(&self.to_bytes()?)?,
            };
            *self = copied;
            // The copy is contiguous, so the strides of the selection may differ.
            part = self.selection_layout(picks)?;
        }
        let (memory, offset) = self.memory_location();
        let extent = usize::try_from(self.extent()).unwrap_or(usize::MAX);
        // SAFETY: nobody else has this tensor or a view of it; its memory comes from a pool and the host can write
        // it; no work of the device uses it, since that was waited for; and it has that many bytes.
        let target = unsafe { std::slice::from_raw_parts_mut((memory.0 + offset) as *mut u8, extent) };
        let walk = StridedCopy { dims: &part.dims, to: &part.strides, from: &steps };
        let first = part.first as usize;
        match size {
            1 => walk.copy_elements::<1>(target, first, bytes),
            2 => walk.copy_elements::<2>(target, first, bytes),
            4 => walk.copy_elements::<4>(target, first, bytes),
            8 => walk.copy_elements::<8>(target, first, bytes),
            _ => walk.copy_elements::<16>(target, first, bytes),
        }
        Ok(())
    }

    /// The address of the first element, for a caller that writes elements in place and does not share the address.
    /// Returns `None` if the memory is shared, if the host cannot write to it, or if the tensor is not contiguous.
    pub fn exclusive_address(&mut self) -> Result<Option<*mut u8>> {
        if !self.is_host_writable() || !self.is_exclusive() {
            return Ok(None);
        }
        self.wait()?;
        let (memory, offset) = self.memory_location();
        Ok(Some((memory.0 + offset) as *mut u8))
    }

    fn is_host_writable(&self) -> bool {
        let is_number = self.dtype() != Dtype::String && !self.dtype().is_packed();
        is_number && self.device().shares_host_memory()
    }

    /// True if no other tensor shares its memory and no other stream uses it.
    fn is_exclusive(&mut self) -> bool {
        if !self.is_contiguous() {
            return false;
        }
        match std::sync::Arc::get_mut(&mut self.0).map(|body| &mut body.memory) {
            Some(TensorMemory::Own(storage)) => {
                storage.constant.is_none() && !storage.allocation.is_used_elsewhere()
            }
            _ => false,
        }
    }

    /// Its bytes from the first element to the end of the last, gaps included.
    fn extent_bytes(&self) -> Result<&[u8]> {
        if !self.is_host_writable() {
            return Err(Error::unimplemented("expected numbers in the host's memory, found others"));
        }
        self.wait()?;
        let (memory, offset) = self.memory_location();
        if self.dims().contains(&0) {
            return Ok(&[]);
        }
        let extent = usize::try_from(self.extent()).unwrap_or(usize::MAX);
        // SAFETY: the device shares the host's memory, the tensor has that many bytes there for as long as it is
        // borrowed, and nobody writes to the memory of an existing tensor.
        Ok(unsafe { std::slice::from_raw_parts((memory.0 + offset) as *const u8, extent) })
    }

    /// Creates a tensor whose elements all have the given bytes. On a device whose memory the host cannot write, all
    /// bytes of the element must be equal, since the device fills memory byte by byte.
    pub fn filled(device: &Device, dtype: Dtype, dims: &[i64], element: &[u8]) -> Result<Self> {
        dtype.check_element(element)?;
        let first = element.first().copied().unwrap_or(0);
        let is_even = element.iter().all(|byte| *byte == first);
        if !is_even && !device.shares_host_memory() {
            return Err(Error::unimplemented("expected memory that the host can write, found others"));
        }
        let mut tensor = Self::uninitialized_with_layout(
            device.default_stream()?,
            &TensorLayout::contiguous(device, dtype, dims)?,
            "tensor",
        )?;
        if tensor.extent() == 0 {
            return Ok(tensor);
        }
        if !is_even {
            tensor.write_selection(&[], SelectionSource::One(element))?;
            return Ok(tensor);
        }
        let storage = tensor.storage();
        // SAFETY: nobody else has seen the tensor yet.
        let filled =
            unsafe { storage.allocation.enqueue_fill(storage.written_on(), 0, first, tensor.extent()) };
        filled.map_err(|error| error.with_device(device))?;
        tensor.wait()?;
        Ok(tensor)
    }
}

impl Dtype {
    /// Checks that `bytes` are exactly one valid element.
    fn check_element(self, bytes: &[u8]) -> Result<()> {
        let is_element = !self.is_packed()
            && self != Self::String
            && self.byte_size() == Some(bytes.len() as u64)
            && (self != Self::Bool || bytes.iter().all(|byte| *byte <= 1));
        if is_element {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("expected the bytes of one element of {self}, found {bytes:?}")))
    }
}

/// Copies elements into a selection, with strides on both sides.
struct StridedCopy<'a> {
    dims: &'a [i64],
    /// Strides of the target, in elements.
    to: &'a [i64],
    /// Strides of the source, in elements; 0 along broadcast dimensions.
    from: &'a [i64],
}

impl StridedCopy<'_> {
    fn copy_elements<const SIZE: usize>(&self, target: &mut [u8], first: usize, source: &[u8]) {
        let (target, source) = (target.as_chunks_mut::<SIZE>().0, source.as_chunks::<SIZE>().0);
        self.copy_axis::<SIZE>(0, target, first, source, 0);
    }

    fn copy_axis<const SIZE: usize>(
        &self,
        axis: usize,
        target: &mut [[u8; SIZE]],
        to: usize,
        source: &[[u8; SIZE]],
        from: usize,
    ) {
        let Some(size) = self.dims.get(axis) else {
            target[to] = source[from];
            return;
        };
        let (size, step, other) = (*size as usize, self.to[axis] as usize, self.from[axis] as usize);
        if axis + 1 < self.dims.len() {
            for index in 0..size {
                self.copy_axis(axis + 1, target, to + index * step, source, from + index * other);
            }
            return;
        }
        match (step, other) {
            (1, 1) => target[to..to + size].copy_from_slice(&source[from..from + size]),
            (1, 0) => target[to..to + size].fill(source[from]),
            _ => {
                for index in 0..size {
                    target[to + index * step] = source[from + index * other];
                }
            }
        }
    }
}

//! Parts of a tensor, to see and to write.

#![expect(
    unsafe_code,
    reason = "elements are written where they lie, which takes an address in the host's memory"
)]

use super::{Tensor, TensorLayout, TensorMemory};
use crate::{Device, Dims, Dtype, Error, Result};

/// What is picked along one dimension, from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimSelection {
    /// One index, which leaves no dimension.
    At(u64),
    /// So many indices from one on, each so many after the one before.
    Range {
        /// The first index.
        begin: u64,
        /// How many there are.
        count: u64,
        /// How far they are apart.
        step: u64,
    },
    /// The whole dimension.
    Whole,
    /// No dimension of the tensor, but a new one of one element.
    New,
}

/// How a part of a tensor lies.
struct SelectionLayout {
    dims: Dims,
    strides: Dims,
    /// Elements from the first of the tensor to the first of the part.
    first: u64,
}

/// What is written into a part of a tensor.
#[derive(Clone, Copy)]
pub enum SelectionSource<'a> {
    /// The bytes of one element, everywhere.
    One(&'a [u8]),
    /// Elements in the shape of the part, in memory that the host can read.
    Of(&'a Tensor),
}

impl Tensor {
    /// The part that is picked, as another view of the same elements. Dimensions beyond the picks stay whole.
    pub fn select_view(&self, picks: &[DimSelection]) -> Result<Self> {
        let SelectionLayout { dims, strides, first } = self.selection_layout(picks)?;
        self.view_with_strides(dims, strides, first)
    }

    /// The shape of the part that is picked.
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

    /// Makes it a tensor with other elements in the part that is picked: in the memory that it has, where nobody else sees
    /// that, and in a copy otherwise. Whoever has a clone or a view keeps what it was.
    ///
    /// Only tensors of numbers in memory that the host can write can be changed so.
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
            // It may have had gaps, which it has no more.
            part = self.selection_layout(picks)?;
        }
        let (memory, offset) = self.memory_location();
        let extent = usize::try_from(self.extent()).unwrap_or(usize::MAX);
        // SAFETY: nobody else has this tensor or a view of it, its memory is of a pool that the host can write, no work of the
        // device uses it, as was waited for, and it has so many bytes.
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

    /// Where its first element lies, for whoever writes its elements while it is there and gives it to nobody: none where others
    /// see its memory, the host cannot write that, or it has gaps.
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

    /// Whether nobody else sees its memory, and no work of another stream does.
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

    /// The bytes from its first element to past its last, with gaps.
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
        // SAFETY: the device shares the host's memory, the tensor has so many bytes from there for as long as it is borrowed,
        // and nobody writes what somebody has a tensor of.
        Ok(unsafe { std::slice::from_raw_parts((memory.0 + offset) as *const u8, extent) })
    }

    /// A tensor of one element everywhere, given by its bytes. On devices whose memory the host cannot write, the bytes must
    /// all be the same.
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
    /// Checks that bytes are one element.
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

/// Goes through a part, and through what is written there.
struct StridedCopy<'a> {
    dims: &'a [i64],
    /// Elements from one index to the next in the part.
    to: &'a [i64],
    /// The same in what is written.
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

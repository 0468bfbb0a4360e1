//! Outputs with data-dependent shapes: the kernel requests their memory while it runs.

#![expect(unsafe_code, reason = "a kernel reads outputs while it asks for their memory")]

use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;
use oarlock_host::{CallServices, PluginFailure};

use super::descriptors;
use crate::stream::Stream;
use crate::{Device, Dtype, Error, Tensor};

/// The outputs of one call. An output without a tensor gets one when the kernel requests it.
pub(crate) struct AllocatingOutputs<'a> {
    device: &'a Device,
    stream: &'a Stream,
    label: &'static str,
    /// The descriptors that the kernel sees, in the order of the outputs.
    descriptions: Vec<UnsafeCell<abi::Tensor>>,
    taken: Mutex<AllocatedOutputs>,
}

struct AllocatedOutputs {
    tensors: Vec<Option<Tensor>>,
    /// The first error raised here. It is more precise than the error that the kernel reports as a consequence.
    error: Option<Error>,
}

// SAFETY: the descriptors are written only under the lock, on behalf of a kernel that waits until that is done.
unsafe impl Sync for AllocatingOutputs<'_> {}

impl<'a> AllocatingOutputs<'a> {
    /// Outputs that already have a tensor already have memory. `descriptions` holds one descriptor for each output.
    pub(crate) fn new(
        device: &'a Device,
        stream: &'a Stream,
        label: &'static str,
        descriptions: impl IntoIterator<Item = abi::Tensor>,
        tensors: Vec<Option<Tensor>>,
    ) -> Self {
        let descriptions = descriptions.into_iter().map(UnsafeCell::new).collect();
        Self {
            device,
            stream,
            label,
            descriptions,
            taken: Mutex::new(AllocatedOutputs { tensors, error: None }),
        }
    }

    pub(crate) fn descriptor_pointers(&self) -> Vec<*const abi::Tensor> {
        self.descriptions.iter().map(|description| description.get().cast_const()).collect()
    }

    /// The tensors, and the first error that occurred while they were allocated.
    pub(crate) fn into_tensors(self) -> (Vec<Option<Tensor>>, Option<Error>) {
        let AllocatedOutputs { tensors, error } =
            self.taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        (tensors, error)
    }

    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> crate::Result<Tensor> {
        let count = self.descriptions.len();
        if index as usize >= count {
            return Err(Error::out_of_range(format!(
                "expected the index of one of {count} outputs, found {index}"
            )));
        }
        let dtype = Dtype::from_abi(dtype).ok_or_else(|| {
            Error::invalid_argument(format!("expected a dtype, found the number {}", dtype.0))
        })?;
        // SAFETY: the lock is held, so nobody writes the descriptor.
        let stated = Dtype::from_abi(unsafe { (*self.descriptions[index as usize].get()).dtype });
        if let Some(stated) = stated.filter(|stated| *stated != dtype) {
            return Err(Error::invalid_argument(format!("expected {stated}, found {dtype}")));
        }
        Tensor::uninitialized(self.device, self.stream, dtype, dims, self.label)
    }
}

impl CallServices for AllocatingOutputs<'_> {
    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), PluginFailure> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let known = taken.tensors.get(index as usize).and_then(Option::as_ref);
        let tensor = match known.map(|known| check_known_output(known, index, dtype, dims)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => Err(error),
            None => self.allocate_output(index, dtype, dims),
        };
        let tensor = match tensor {
            Ok(tensor) => tensor,
            Err(error) => {
                let error = error.with_operand(format!("output {index}"));
                let failure = PluginFailure::new("core", abi::Code(error.kind() as u32), error.to_string());
                taken.error.get_or_insert(error);
                return Err(failure);
            }
        };
        let place = &mut taken.tensors[index as usize];
        let tensor = place.insert(tensor);
        let mut description = descriptors::describe_layout(tensor.layout());
        descriptors::bind_memory(&mut description, tensor);
        // SAFETY: nobody else writes while the lock is held, and the kernel that reads is waiting for this. The
        // layout that the descriptor points into belongs to the tensor, which lives until the call is over.
        unsafe { self.descriptions[index as usize].get().write(description) };
        Ok(())
    }
}

/// A kernel may also request an output of known shape, but only with the known dtype and shape.
fn check_known_output(known: &Tensor, index: u32, dtype: abi::Dtype, dims: &[i64]) -> crate::Result<()> {
    if known.dtype().to_abi() == dtype && known.dims() == dims {
        return Ok(());
    }
    let message = format!(
        "expected output {index} as {} of shape {:?}, which it has, found {} of shape {dims:?}",
        known.dtype(),
        known.dims(),
        dtype.name().unwrap_or("an unknown dtype"),
    );
    Err(Error::invalid_argument(message))
}

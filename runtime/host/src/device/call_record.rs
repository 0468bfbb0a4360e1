//! The host's own record of a call that a tool makes, with memory for the outputs that its kernel asks for.

#![expect(unsafe_code, reason = "a kernel reads outputs while it asks for their memory")]

use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;

use crate::device::kernel::OutputMemory;
use crate::services::errors::Failure;
use crate::{Block, Device};

/// A tensor in the memory of a device, contiguous from the start of its block.
#[derive(Debug)]
pub struct DeviceTensor {
    /// The type of its elements.
    pub dtype: abi::Dtype,
    /// The sizes of its dimensions.
    pub dims: Vec<i64>,
    /// Its memory.
    pub block: Block,
}

impl DeviceTensor {
    /// Takes memory for a tensor of this dtype and shape.
    pub fn allocate(device: &Device, dtype: abi::Dtype, dims: &[i64]) -> Result<Self, Failure> {
        let size = size_in_bytes(dtype, dims).ok_or_else(|| {
            let found = format!("the dtype {} and the shape {dims:?}", dtype.name().unwrap_or("unknown"));
            device.refuse("a dtype with a size and a shape that memory can hold", found, "")
        })?;
        Ok(Self { dtype, dims: dims.to_vec(), block: device.allocate(size)? })
    }

    pub(crate) fn describe(&self) -> abi::Tensor {
        abi::Tensor {
            block: self.block.memory(),
            size_in_bytes: size_in_bytes(self.dtype, &self.dims).unwrap_or(0),
            dtype: self.dtype,
            dims: self.dims.as_ptr(),
            dims_count: self.dims.len() as u64,
            ..abi::Tensor::EMPTY
        }
    }
}

/// How many bytes a contiguous tensor has; `None` for strings, unknown dtypes and shapes that cannot be.
pub fn size_in_bytes(dtype: abi::Dtype, dims: &[i64]) -> Option<u64> {
    use abi::Dtype;
    let bits = match dtype {
        Dtype::I4 | Dtype::U4 => 4,
        Dtype::BOOL | Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 8,
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => 16,
        Dtype::I32 | Dtype::U32 | Dtype::F32 => 32,
        Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => 64,
        Dtype::C128 => 128,
        _ => return None,
    };
    let count = dims.iter().try_fold(1u64, |count, size| count.checked_mul(u64::try_from(*size).ok()?))?;
    Some(count.checked_mul(bits)?.div_ceil(8))
}

/// The outputs of a running call.
pub(crate) struct CallRecord {
    device: Device,
    /// What the call shows of each output. The kernel reads it, and it changes only while `allocated` is locked.
    tensors: Vec<UnsafeCell<abi::Tensor>>,
    allocated: Mutex<Vec<Option<DeviceTensor>>>,
}

// SAFETY: the cells are written only under the lock, by a kernel that waits for it.
unsafe impl Sync for CallRecord {}

impl CallRecord {
    pub(crate) fn new(device: &Device, outputs: &[Option<DeviceTensor>]) -> Self {
        let describe = |output: &Option<DeviceTensor>| {
            UnsafeCell::new(output.as_ref().map_or(abi::Tensor::EMPTY, DeviceTensor::describe))
        };
        Self {
            device: device.clone(),
            tensors: outputs.iter().map(describe).collect(),
            allocated: Mutex::new(outputs.iter().map(|_| None).collect()),
        }
    }

    /// The outputs as a call lists them.
    pub(crate) fn tensors(&self) -> Vec<*const abi::Tensor> {
        self.tensors.iter().map(|tensor| tensor.get().cast_const()).collect()
    }

    /// The outputs that the kernel allocated.
    pub(crate) fn into_allocated(self) -> Vec<Option<DeviceTensor>> {
        self.allocated.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputMemory for CallRecord {
    fn allocate(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), Failure> {
        let mut allocated = self.allocated.lock().unwrap_or_else(PoisonError::into_inner);
        let at = index as usize;
        if at >= self.tensors.len() {
            let expected = format!("the index of one of {} outputs", self.tensors.len());
            return Err(self.device.refuse(expected, index, ""));
        }
        if allocated[at].is_some() {
            return Err(self.device.refuse(
                "an output that has no memory yet",
                format!("output {index}"),
                "",
            ));
        }
        let tensor = DeviceTensor::allocate(&self.device, dtype, dims)?;
        // SAFETY: nobody else writes while the lock is held, and the kernel that reads is waiting for this.
        unsafe { self.tensors[at].get().write(tensor.describe()) };
        allocated[at] = Some(tensor);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_packed_elements_and_impossible_shapes_have_none() {
        assert_eq!(size_in_bytes(abi::Dtype::F32, &[2, 3]), Some(24));
        assert_eq!(size_in_bytes(abi::Dtype::I4, &[3]), Some(2));
        assert_eq!(size_in_bytes(abi::Dtype::F64, &[]), Some(8));
        assert_eq!(size_in_bytes(abi::Dtype::F64, &[7, 0]), Some(0));
        assert_eq!(size_in_bytes(abi::Dtype::F64, &[-1]), None);
        assert_eq!(size_in_bytes(abi::Dtype::F64, &[i64::MAX, 3]), None);
        assert_eq!(size_in_bytes(abi::Dtype::STRING, &[1]), None);
    }
}

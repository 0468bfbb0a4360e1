//! Elements in a shape, on their way from a user to a device.

use oarlock_core::{Device, Dtype, Tensor};

use crate::problem::CommandError;

/// What a file or an argument holds.
#[derive(Debug, PartialEq)]
pub(crate) struct HostArray {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// Whether the first dimension is the fastest in memory, not the last.
    pub(crate) is_fortran: bool,
    pub(crate) elements: ArrayElements,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ArrayElements {
    /// In the order of the machine.
    Bytes(Vec<u8>),
    Texts(Vec<String>),
}

impl HostArray {
    /// Copies it to a device. What is in the order of Fortran stays so, and is seen with strides.
    pub(crate) fn to_tensor(&self, device: &Device) -> Result<Tensor, CommandError> {
        let mut dims = self.dims.clone();
        if self.is_fortran {
            dims.reverse();
        }
        let tensor = match &self.elements {
            ArrayElements::Bytes(bytes) => Tensor::from_bytes(device, self.dtype, &dims, bytes)?,
            ArrayElements::Texts(texts) => Tensor::from_strings(device, &dims, texts.clone())?,
        };
        if self.is_fortran && dims.len() > 1 {
            let order: Vec<usize> = (0..dims.len()).rev().collect();
            return Ok(tensor.transpose(&order)?);
        }
        Ok(tensor)
    }
}

//! Arrays on the host, on their way from a file or an argument to a device.

use oarlock_core::{Device, Dtype, Tensor};

use crate::problem::CommandError;

#[derive(Debug, PartialEq)]
pub(crate) struct HostArray {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// True if the first dimension varies fastest in memory (Fortran order).
    pub(crate) is_fortran: bool,
    pub(crate) elements: ArrayElements,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ArrayElements {
    /// In the byte order of the machine.
    Bytes(Vec<u8>),
    Texts(Vec<String>),
}

impl HostArray {
    /// Copies the elements to a device. Fortran order is kept and expressed through strides.
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

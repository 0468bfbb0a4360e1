//! Arrays on the host, on their way from a file or an argument to a device.

use oarlock_core::{Device, Dtype, Tensor};

/// An array on the host.
#[derive(Debug, PartialEq)]
pub struct HostArray {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape.
    pub dims: Vec<i64>,
    /// True if the first dimension varies fastest in memory (Fortran order).
    pub is_fortran: bool,
    /// Its elements, in the order of memory.
    pub elements: ArrayElements,
}

/// Elements of an array.
#[derive(Debug, PartialEq)]
pub enum ArrayElements {
    /// In the byte order of the machine.
    Bytes(Vec<u8>),
    /// Strings.
    Texts(Vec<String>),
}

impl HostArray {
    /// Copies the elements to a device. Fortran order is kept and expressed through strides.
    pub fn to_tensor(&self, device: &Device) -> Result<Tensor, oarlock_core::Error> {
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
            return tensor.transpose(&order);
        }
        Ok(tensor)
    }
}

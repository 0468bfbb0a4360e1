//! Operands of 8-bit integers, signed or not, as bytes.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_sdk::{Dtype, Result, TensorView};

/// The input images of a quantized convolution.
pub(super) struct QuantizedImages<'a> {
    pub(super) x: &'a [u8],
    pub(super) is_signed: bool,
    /// The zero point, which is also the value of padding.
    pub(super) zero: u8,
}

/// The bytes of an 8-bit integer operand.
///
/// # Safety
///
/// As for [`TensorView::elements`].
pub unsafe fn tensor_bytes<'a>(tensor: &TensorView<'a>) -> Result<&'a [u8]> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if tensor.dtype() == Dtype::I8 { tensor.element_bytes::<i8>() } else { tensor.element_bytes::<u8>() }
    }
}

/// Mutable version of [`tensor_bytes`].
///
/// # Safety
///
/// As for [`TensorView::elements_mut`].
pub(super) unsafe fn tensor_bytes_mut<'a>(tensor: &TensorView<'a>) -> Result<&'a mut [u8]> {
    // SAFETY: guaranteed by the caller; a signed byte has the same size as an unsigned one.
    unsafe {
        if tensor.dtype() == Dtype::I8 {
            let signed = tensor.elements_mut::<i8>()?;
            Ok(std::slice::from_raw_parts_mut(signed.as_mut_ptr().cast(), signed.len()))
        } else {
            tensor.elements_mut::<u8>()
        }
    }
}

//! Access to operands in host memory and to attributes that are tensors.

#![expect(unsafe_code, reason = "operands in the host's memory are addresses")]

use oarlock_sdk::{Dtype, Element, KernelCall, PluginError, Result, TensorView, abi, bf16, dispatch, f16};

use crate::argument_list::FormulaNumber;

/// Converts an element for use as a formula's parameter.
trait AsNumber: Element {
    fn as_number(self) -> FormulaNumber;
}

macro_rules! as_number {
    ($($ty:ty => $kind:ident, $value:ident => $number:expr;)*) => {
        $(impl AsNumber for $ty {
            fn as_number(self) -> FormulaNumber {
                let $value = self;
                FormulaNumber::$kind($number)
            }
        })*
    };
}

as_number! {
    bool => Int, value => value.into();
    i8 => Int, value => value.into();
    u8 => Int, value => value.into();
    i16 => Int, value => value.into();
    u16 => Int, value => value.into();
    i32 => Int, value => value.into();
    u32 => Int, value => value.into();
    i64 => Int, value => value;
    // The bits are kept: the kernel turns the number back into an unsigned one.
    u64 => Int, value => value.cast_signed();
    // `f64` holds every value of the narrower floats exactly.
    f16 => Float, value => value.into();
    bf16 => Float, value => value.into();
    f32 => Float, value => value.into();
    f64 => Float, value => value;
}

/// Reads all elements of an operand that the kernel registered as a host operand.
pub(crate) fn host_numbers(tensor: &TensorView<'_>) -> Result<Vec<FormulaNumber>> {
    fn read_numbers<T: AsNumber>(tensor: &TensorView<'_>) -> Result<Vec<FormulaNumber>> {
        // SAFETY: the kernel registered the operand as a host operand, so it lies in host memory, and nothing writes it during
        // the call.
        let elements = unsafe { tensor.elements::<T>() }?;
        Ok(elements.iter().map(|element| element.as_number()).collect())
    }
    dispatch!(tensor.dtype(), floating_and_integral + f16 + bf16 + bool + u16 + u32 + u64, T => read_numbers::<T>(tensor))
}

/// Like [`host_numbers`], for an operand of integers.
pub(crate) fn host_integers(tensor: &TensorView<'_>) -> Result<Vec<i64>> {
    let integer = |number| match number {
        FormulaNumber::Int(number) => Ok(number),
        FormulaNumber::Float(_) => {
            Err(PluginError::invalid_argument("expected an operand of integers, found one of others"))
        }
    };
    host_numbers(tensor)?.into_iter().map(integer).collect()
}

/// Like [`host_integers`], for an optional operand.
pub(crate) fn optional_host_integers(call: &KernelCall<'_>, index: usize) -> Result<Option<Vec<i64>>> {
    call.optional_input(index)?.map(|tensor| host_integers(&tensor)).transpose()
}

/// The first element of a tensor attribute, as the bits of an unsigned integer of its size.
pub(crate) fn tensor_attribute(call: &KernelCall<'_>, name: &str, dtype: Dtype) -> Result<Option<u64>> {
    let raw = call.as_raw();
    for index in 0..raw.attributes_count as usize {
        // SAFETY: the host guarantees that the list has as many entries as its count says, and that everything it points to lives
        // during the call.
        let attribute = unsafe { &**raw.attributes.add(index) };
        // SAFETY: the name is part of the same call.
        let is_named = unsafe { attribute.name.text() } == Some(name);
        if !is_named || attribute.kind != abi::AttributeKind::TENSOR || attribute.tensors_count == 0 {
            continue;
        }
        // SAFETY: the tensor list is part of the same call and not empty.
        let tensor = unsafe { &**attribute.tensors };
        // The bytes are read without a view that knows their bounds, so everything is checked here.
        let size = crate::source::element_size(dtype);
        if tensor.dtype != dtype || tensor.size_in_bytes < size || tensor.block.0 == 0 {
            let found = tensor.dtype.name().unwrap_or("an unknown dtype");
            return Err(PluginError::invalid_argument(format!(
                "expected an element of the output's dtype as `{name}`, found {found} in {} bytes",
                tensor.size_in_bytes
            )));
        }
        // Elements are little-endian: one of any size fills the low bytes, and the rest stays 0.
        let mut bytes = [0; 8];
        // SAFETY: the tensor lies in host memory and has at least `size` bytes; `size` is at most 8, so the bytes fit into the
        // target.
        unsafe {
            let source = (tensor.block.0 + tensor.offset) as *const u8;
            std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), size as usize);
        }
        return Ok(Some(u64::from_le_bytes(bytes)));
    }
    Ok(None)
}

//! Creates values.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::c_void;

use oarlock_core::{Constant, Dtype as CoreDtype, Error, Result, Tensor};
use oarlock_engine::RuntimeValue;

use super::{ValueHandle, core_dtype, read_inputs};
use crate::borrowed_memory::BorrowedMemory;
use crate::c_types::{Dtype, ReleaseCallback, Text};
use crate::device_handle::DeviceHandle;
use crate::pointer::{clear_output_handle, deref_required, into_raw_handle, read_array};

/// The tensor must be contiguous.
fn tensor_handle(tensor: Tensor) -> *mut ValueHandle {
    into_raw_handle(ValueHandle::from_contiguous(RuntimeValue::Tensor(tensor)))
}

/// Rejects numbers that are no dtype.
fn require_dtype(dtype: Dtype) -> Result<CoreDtype> {
    core_dtype(dtype).ok_or_else(|| {
        let Dtype(found) = dtype;
        Error::invalid_argument(format!("expected one of the numbers `OARLOCK_DTYPE_…`, found {found}"))
    })
}

pub(crate) unsafe fn create_tensor(
    device: *const DeviceHandle,
    dtype: Dtype,
    dims: *const i64,
    rank: u64,
    data: *const c_void,
    size: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, device) =
        unsafe { (clear_output_handle(value, "value")?, deref_required(device, "device")?.device()) };
    // SAFETY: guaranteed by the caller.
    let (dims, bytes) =
        unsafe { (read_array(dims, rank, "dims")?, read_array(data.cast::<u8>(), size, "data")?) };
    *place = tensor_handle(Tensor::from_bytes(device, require_dtype(dtype)?, dims, bytes)?);
    Ok(())
}

#[expect(
    clippy::too_many_arguments,
    reason = "C has no better way to say a shape and a function with its context"
)]
pub(crate) unsafe fn borrow_tensor(
    device: *const DeviceHandle,
    dtype: Dtype,
    dims: *const i64,
    rank: u64,
    data: *const c_void,
    size: u64,
    release: ReleaseCallback,
    context: *mut c_void,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller. Made first, so that the memory is released on every error.
    let lent = unsafe { BorrowedMemory::new(data, size, release, context) };
    // SAFETY: guaranteed by the caller.
    let (place, device) =
        unsafe { (clear_output_handle(value, "value")?, deref_required(device, "device")?.device()) };
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { read_array(dims, rank, "dims")? };
    if release.0.is_none() {
        let error = Error::invalid_argument("expected `release`, found NULL");
        return Err(error.with_advice("`oarlock_tensor_create` copies and needs none"));
    }
    let constant = Constant::new(require_dtype(dtype)?, dims, lent.into_bytes()?)?;
    *place = tensor_handle(Tensor::from_constant(device, &constant.to_aligned()?)?);
    Ok(())
}

pub(crate) unsafe fn create_text_tensor(
    device: *const DeviceHandle,
    dims: *const i64,
    rank: u64,
    texts: *const Text,
    count: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, device) =
        unsafe { (clear_output_handle(value, "value")?, deref_required(device, "device")?.device()) };
    // SAFETY: guaranteed by the caller.
    let (dims, texts) = unsafe { (read_array(dims, rank, "dims")?, read_array(texts, count, "texts")?) };
    let text = |(index, text): (usize, &Text)| {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { read_array(text.data.cast::<u8>(), text.size, "text")? };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            Error::invalid_argument(format!("expected text in UTF-8 as element {index}, found other bytes"))
        })
    };
    let texts = texts.iter().enumerate().map(text).collect::<Result<_>>()?;
    *place = tensor_handle(Tensor::from_strings(device, dims, texts)?);
    Ok(())
}

pub(crate) unsafe fn create_sequence(
    elements: *const *const ValueHandle,
    count: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, elements) = unsafe { (clear_output_handle(value, "value")?, read_inputs(elements, count)?) };
    *place = into_raw_handle(ValueHandle::from_contiguous(RuntimeValue::Sequence(elements)));
    Ok(())
}

pub(crate) unsafe fn create_nothing(value: *mut *mut ValueHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    *unsafe { clear_output_handle(value, "value")? } =
        into_raw_handle(ValueHandle::from_contiguous(RuntimeValue::Nothing));
    Ok(())
}

pub(crate) unsafe fn share_value(value: *const ValueHandle, shared: *mut *mut ValueHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, value) = unsafe { (clear_output_handle(shared, "shared")?, deref_required(value, "value")?) };
    *place = into_raw_handle(ValueHandle::from_contiguous(value.runtime_value.clone()));
    Ok(())
}

pub(crate) unsafe fn copy_tensor_to(
    value: *const ValueHandle,
    device: *const DeviceHandle,
    copy: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, value) = unsafe { (clear_output_handle(copy, "copy")?, deref_required(value, "value")?) };
    // SAFETY: guaranteed by the caller.
    let device = unsafe { deref_required(device, "device")? }.device();
    *place = tensor_handle(value.runtime_value.as_tensor()?.to_device(device)?);
    Ok(())
}

pub(crate) unsafe fn sequence_element(
    value: *const ValueHandle,
    index: u64,
    element: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, value) =
        unsafe { (clear_output_handle(element, "element")?, deref_required(value, "value")?) };
    let elements = value.runtime_value.as_sequence()?;
    let found = usize::try_from(index).ok().and_then(|index| elements.get(index));
    let found = found.ok_or_else(|| {
        let count = elements.len();
        Error::out_of_range(format!("expected an index below {count}, found {index}"))
    })?;
    *place = into_raw_handle(ValueHandle::from_contiguous(found.clone()));
    Ok(())
}

//! How values come to be.

#![expect(unsafe_code, reason = "handles and memory come from C as pointers")]

use core::ffi::c_void;

use oarlock_core::{Constant, Dtype as CoreDtype, Error, Result, Tensor};
use oarlock_engine::Datum;

use super::{ValueHandle, given, known};
use crate::device::DeviceHandle;
use crate::interface::{Dtype, ReleaseCallback, Text};
use crate::lent::Lent;
use crate::pointer::{give, held, list, place};

/// Makes a handle of a contiguous tensor.
fn handle(tensor: Tensor) -> *mut ValueHandle {
    give(ValueHandle::of(Datum::Tensor(tensor)))
}

/// The dtype that a program says.
fn dtype_of(dtype: Dtype) -> Result<CoreDtype> {
    known(dtype).ok_or_else(|| {
        let Dtype(found) = dtype;
        Error::invalid_argument(format!("expected one of the numbers `OARLOCK_DTYPE_…`, found {found}"))
    })
}

pub(crate) unsafe fn create(
    device: *const DeviceHandle,
    dtype: Dtype,
    dims: *const i64,
    rank: u64,
    data: *const c_void,
    size: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, device) = unsafe { (place(value, "value")?, held(device, "device")?.device()) };
    // SAFETY: as the caller says.
    let (dims, bytes) = unsafe { (list(dims, rank, "dims")?, list(data.cast::<u8>(), size, "data")?) };
    *place = handle(Tensor::from_bytes(device, dtype_of(dtype)?, dims, bytes)?);
    Ok(())
}

#[expect(
    clippy::too_many_arguments,
    reason = "C has no better way to say a shape and a function with its context"
)]
pub(crate) unsafe fn borrow(
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
    // SAFETY: as the caller says. Made first, so that whatever comes the memory is given back.
    let lent = unsafe { Lent::new(data, size, release, context) };
    // SAFETY: as the caller says.
    let (place, device) = unsafe { (place(value, "value")?, held(device, "device")?.device()) };
    // SAFETY: as the caller says.
    let dims = unsafe { list(dims, rank, "dims")? };
    if release.0.is_none() {
        let error = Error::invalid_argument("expected `release`, found NULL");
        return Err(error.hint("`oarlock_tensor_create` copies and needs none"));
    }
    let constant = Constant::new(dtype_of(dtype)?, dims, lent.into_bytes()?)?;
    *place = handle(Tensor::of_constant(device, &constant.aligned())?);
    Ok(())
}

pub(crate) unsafe fn of_texts(
    device: *const DeviceHandle,
    dims: *const i64,
    rank: u64,
    texts: *const Text,
    count: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, device) = unsafe { (place(value, "value")?, held(device, "device")?.device()) };
    // SAFETY: as the caller says.
    let (dims, texts) = unsafe { (list(dims, rank, "dims")?, list(texts, count, "texts")?) };
    let text = |(index, text): (usize, &Text)| {
        // SAFETY: as the caller says.
        let bytes = unsafe { list(text.data.cast::<u8>(), text.size, "text")? };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            Error::invalid_argument(format!("expected text in UTF-8 as element {index}, found other bytes"))
        })
    };
    let texts = texts.iter().enumerate().map(text).collect::<Result<_>>()?;
    *place = handle(Tensor::from_texts(device, dims, texts)?);
    Ok(())
}

pub(crate) unsafe fn sequence(
    elements: *const *const ValueHandle,
    count: u64,
    value: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, elements) = unsafe { (place(value, "value")?, given(elements, count)?) };
    *place = give(ValueHandle::of(Datum::Sequence(elements)));
    Ok(())
}

pub(crate) unsafe fn nothing(value: *mut *mut ValueHandle) -> Result<()> {
    // SAFETY: as the caller says.
    *unsafe { place(value, "value")? } = give(ValueHandle::of(Datum::Nothing));
    Ok(())
}

pub(crate) unsafe fn share(value: *const ValueHandle, shared: *mut *mut ValueHandle) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, value) = unsafe { (place(shared, "shared")?, held(value, "value")?) };
    *place = give(ValueHandle::of(value.datum.clone()));
    Ok(())
}

pub(crate) unsafe fn to(
    value: *const ValueHandle,
    device: *const DeviceHandle,
    copy: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, value) = unsafe { (place(copy, "copy")?, held(value, "value")?) };
    // SAFETY: as the caller says.
    let device = unsafe { held(device, "device")? }.device();
    *place = handle(value.datum.tensor()?.to(device)?);
    Ok(())
}

pub(crate) unsafe fn element(
    value: *const ValueHandle,
    index: u64,
    element: *mut *mut ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, value) = unsafe { (place(element, "element")?, held(value, "value")?) };
    let elements = value.datum.sequence()?;
    let found = usize::try_from(index).ok().and_then(|index| elements.get(index));
    let found = found.ok_or_else(|| {
        let count = elements.len();
        Error::out_of_range(format!("expected an index below {count}, found {index}"))
    })?;
    *place = give(ValueHandle::of(found.clone()));
    Ok(())
}

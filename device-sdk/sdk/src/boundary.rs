//! The boundary itself: it checks pointers and text from the host before safe code sees them, and lets no panic escape.

#![expect(unsafe_code, reason = "pointers from the other side become references here")]

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::error::{PluginError, Result};
use crate::host::HostServices;
use crate::panics;
use crate::pointer::HostPointer;
use crate::sized_struct::write_sized;

/// The object behind a plugin's context pointer.
#[repr(C)]
pub(crate) struct PluginInstance<D> {
    pub(crate) device: Arc<D>,
    pub(crate) host: HostServices,
}

/// Entry of every device slot: recovers the instance from the context and runs `call` under the panic guard.
///
/// # Safety
///
/// `context` is the context of a plugin whose device is a `D`.
pub(crate) unsafe fn enter_plugin<D>(
    context: *mut c_void,
    call: impl FnOnce(&PluginInstance<D>) -> Result<()>,
) -> abi::Error {
    // SAFETY: the caller vouches for the context; an instance is never changed.
    let instance = unsafe { &*context.cast::<PluginInstance<D>>() };
    guard_call(&instance.host, || call(instance))
}

/// Runs plugin code under the panic guard. An error or a caught panic is registered with the host, and its handle is returned.
#[inline]
pub fn guard_call(host: &HostServices, body: impl FnOnce() -> Result<()>) -> abi::Error {
    match panics::catch_panic(body) {
        Ok(Ok(())) => abi::Error::NONE,
        Ok(Err(error)) => host.report_error(&error),
        Err(panic) => host.report_error(&PluginError::from_panic(panic)),
    }
}

/// The function pointer for a table, or `None` if the device does not implement the slot.
pub(crate) fn slot_if_offered<F>(slots: &[&str], slot: &str, function: F) -> Option<F> {
    slots.contains(&slot).then_some(function)
}

#[cold]
fn missing_argument(name: &str) -> PluginError {
    PluginError::invalid_argument(format!("expected a pointer for `{name}`, found null"))
}

/// An out parameter, checked for null up front. Nothing is written unless the call succeeds.
pub(crate) struct OutValue<T>(*mut T);

impl<T> OutValue<T> {
    /// # Safety
    ///
    /// `place` is null or may be written until the call returns.
    pub(crate) unsafe fn new(place: *mut T, name: &str) -> Result<Self> {
        if place.is_null() { Err(missing_argument(name)) } else { Ok(Self(place)) }
    }

    pub(crate) fn write(self, value: T) -> Result<()> {
        // SAFETY: the caller of `new` vouched for the place.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes as many fields as the caller's struct has room for; its size field stays as it is.
    pub(crate) fn write_struct(self, value: T) -> Result<()> {
        // SAFETY: the caller of `new` vouched for the place, and a struct of the contract starts with its size.
        unsafe { write_sized(self.0, value) };
        Ok(())
    }
}

impl OutValue<*mut c_void> {
    pub(crate) fn write_pointer(self, value: HostPointer) -> Result<()> {
        self.write(value.as_ptr())
    }
}

/// An out parameter for a list: a buffer, its capacity, and the place for the count.
pub(crate) struct OutList<T> {
    items: *mut T,
    capacity: u64,
    count: *mut u64,
}

impl<T> OutList<T> {
    /// # Safety
    ///
    /// `items` has room for `capacity` items and `count` may be written, until the call returns.
    pub(crate) unsafe fn new(items: *mut T, capacity: u64, count: *mut u64, name: &str) -> Result<Self> {
        if count.is_null() || (items.is_null() && capacity > 0) {
            return Err(missing_argument(name));
        }
        Ok(Self { items, capacity, count })
    }

    /// Writes as many values as fit, but reports the full count, so that the caller can detect a buffer that is too short.
    pub(crate) fn write(self, values: Vec<T>) -> Result<()> {
        // SAFETY: the caller of `new` vouched for the count.
        unsafe { self.count.write(values.len() as u64) };
        let room = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        for (index, value) in values.into_iter().take(room).enumerate() {
            // SAFETY: the index is below the capacity.
            unsafe { self.items.add(index).write(value) };
        }
        Ok(())
    }
}

/// # Safety
///
/// `source` is null or has `count` items that stay readable for `'a`.
#[inline]
pub(crate) unsafe fn checked_slice<'a, T>(source: *const T, count: u64, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let count = checked_length::<T>(count, name)?;
    if source.is_null() {
        return Err(missing_argument(name));
    }
    // SAFETY: not null, a length a slice may have, and the caller vouches for the items.
    Ok(unsafe { core::slice::from_raw_parts(source, count) })
}

/// Like [`checked_slice`], for a list of pointers; a null element is an error.
///
/// # Safety
///
/// As for [`checked_slice`].
#[inline]
pub(crate) unsafe fn checked_pointers<'a, T>(
    source: *const *const T,
    count: u64,
    name: &str,
) -> Result<&'a [*const T]> {
    // SAFETY: the caller vouches for the list.
    let pointers = unsafe { checked_slice(source, count, name) }?;
    if pointers.iter().any(|pointer| pointer.is_null()) { Err(missing_argument(name)) } else { Ok(pointers) }
}

/// # Safety
///
/// As for [`checked_slice`]; each item is null or points to a `T` that stays readable for `'a`.
#[inline]
pub(crate) unsafe fn checked_references<'a, T>(
    source: *const *const T,
    count: u64,
    name: &str,
) -> Result<&'a [&'a T]> {
    // SAFETY: the caller vouches for the list.
    let pointers = unsafe { checked_pointers(source, count, name) }?;
    // SAFETY: a reference and a non-null pointer have the same layout, and the caller vouches for the pointees.
    Ok(unsafe { core::slice::from_raw_parts(pointers.as_ptr().cast(), pointers.len()) })
}

/// # Safety
///
/// `source` is null or has `size` bytes that stay readable for `'a`.
pub(crate) unsafe fn checked_bytes<'a>(source: *const c_void, size: u64, name: &str) -> Result<&'a [u8]> {
    // SAFETY: the caller vouches for the bytes.
    unsafe { checked_slice(source.cast(), size, name) }
}

/// # Safety
///
/// `target` is null or has `size` bytes that nobody else touches for `'a`.
pub(crate) unsafe fn checked_bytes_mut<'a>(
    target: *mut c_void,
    size: u64,
    name: &str,
) -> Result<&'a mut [u8]> {
    if size == 0 {
        return Ok(&mut []);
    }
    let size = checked_length::<u8>(size, name)?;
    if target.is_null() {
        return Err(missing_argument(name));
    }
    // SAFETY: not null, a length a slice may have, and the caller vouches for the bytes.
    Ok(unsafe { core::slice::from_raw_parts_mut(target.cast(), size) })
}

/// # Safety
///
/// `source` is null or points to a `T` that stays readable for `'a`.
#[inline]
pub(crate) unsafe fn checked_reference<'a, T>(source: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller vouches for the target of a non-null pointer.
    unsafe { source.as_ref() }.ok_or_else(|| missing_argument(name))
}

/// # Safety
///
/// The text stays readable for `'a`.
pub(crate) unsafe fn checked_text<'a>(source: abi::Str, name: &str) -> Result<&'a str> {
    // SAFETY: the caller vouches for the bytes.
    let text = unsafe { source.text() };
    text.ok_or_else(|| {
        PluginError::invalid_argument(format!("expected UTF-8 text for `{name}`, found other bytes"))
            .with_rule("S-5")
    })
}

#[inline]
fn checked_length<T>(count: u64, name: &str) -> Result<usize> {
    let fits = count.checked_mul(size_of::<T>() as u64).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if fits { Ok(count as usize) } else { Err(length_error(count, name)) }
}

#[cold]
fn length_error(count: u64, name: &str) -> PluginError {
    PluginError::out_of_range(format!("expected a length that fits into memory for `{name}`, found {count}"))
}

//! Checks pointers from C before they are used.
//!
//! NULL, misalignment, text that is not UTF-8 and structs of other versions are detected here. Invisible errors, such as a
//! freed handle, are the caller's responsibility.

#![expect(unsafe_code, reason = "pointers from C become references")]

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr;

use oarlock_core::{Error, Result};

/// No version of a struct is larger.
const MAX_STRUCT_BYTES: u64 = 4096;

/// `None` for NULL.
///
/// # Safety
/// A pointer that is not NULL points to a `T` that nothing changes during `'a`.
#[inline]
pub(crate) unsafe fn deref_nullable<'a, T>(pointer: *const T) -> Option<&'a T> {
    if !pointer.is_aligned() {
        return None;
    }
    // SAFETY: guaranteed by the caller, and aligned.
    unsafe { pointer.as_ref() }
}

/// An error for NULL.
///
/// # Safety
/// Same as [`deref_nullable`].
#[inline]
pub(crate) unsafe fn deref_required<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(pointer) }.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// As [`deref_required`], but mutable.
///
/// # Safety
/// Same as [`deref_nullable`], and nothing else accesses the `T`.
pub(crate) unsafe fn deref_required_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    if !pointer.is_aligned() {
        return Err(invalid_pointer_error(pointer, name));
    }
    // SAFETY: guaranteed by the caller, and aligned.
    unsafe { pointer.as_mut() }.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// An array; it may be NULL if `count` is 0.
///
/// # Safety
/// A pointer that is not NULL points to `count` elements that nothing changes during `'a`.
#[inline]
pub(crate) unsafe fn read_array<'a, T>(pointer: *const T, count: u64, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of::<T>()));
    if pointer.is_null() || !pointer.is_aligned() || size.is_none_or(|size| size > isize::MAX as usize) {
        return Err(
            invalid_pointer_error(pointer, name).with_advice(format!("it is said to hold {count} elements"))
        );
    }
    // SAFETY: guaranteed by the caller; the pointer is aligned, and the size in bytes was checked against the limit of a slice.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count as usize) })
}

/// A zero-terminated text.
///
/// # Safety
/// A pointer that is not NULL points to such a text, which nothing changes during `'a`.
pub(crate) unsafe fn read_text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: guaranteed by the caller.
    unsafe { read_optional_text(pointer, name) }?.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// A text that may be NULL.
///
/// # Safety
/// Same as [`read_text`].
pub(crate) unsafe fn read_optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller, and not NULL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| {
        let found = text.to_string_lossy();
        Error::invalid_argument(format!("expected `{name}` to be text in UTF-8, found `{found}`"))
    })
}

/// An array of texts.
///
/// # Safety
/// Same as [`read_array`], and same as [`read_text`] for each element.
pub(crate) unsafe fn read_texts<'a>(
    pointer: *const *const c_char,
    count: u64,
    name: &str,
) -> Result<Vec<&'a str>> {
    // SAFETY: guaranteed by the caller.
    unsafe { read_array(pointer, count, name)?.iter().map(|element| read_text(*element, name)).collect() }
}

/// Reads a struct of any version; fields that the caller's version lacks are zero.
///
/// # Safety
/// A pointer that is not NULL points to a struct that begins with its size as `u64`. All bytes zero are a valid `T`.
pub(crate) unsafe fn read_options<T: Copy>(pointer: *const T, name: &str) -> Result<T> {
    let mut read = MaybeUninit::<T>::zeroed();
    if !pointer.is_null() {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { read_array(pointer.cast::<u8>(), read_struct_size(pointer, name)?, name)? };
        let (known, newer) = bytes.split_at(bytes.len().min(size_of::<T>()));
        if newer.iter().any(|byte| *byte != 0) {
            let error =
                Error::unimplemented(format!("expected options of this version in `{name}`, found newer"));
            return Err(error.with_advice("use a library that is at least as new as its header"));
        }
        // SAFETY: the target has room for the known bytes, and the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast(), known.len()) };
    }
    // SAFETY: zeros are a valid `T`, as the caller says, and the other bytes are fields that the program filled in.
    Ok(unsafe { read.assume_init() })
}

/// Writes the fields that the caller's version of the struct has, except its size.
///
/// # Safety
/// Same as [`read_options`], and the struct may be written.
pub(crate) unsafe fn fill_struct<T: Copy>(pointer: *mut T, filled: &T, name: &str) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let size = unsafe { read_struct_size(pointer, name)? };
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(size_of::<T>());
    let header = size_of::<u64>();
    let (from, to) = (ptr::from_ref(filled).cast::<u8>(), pointer.cast::<u8>());
    // SAFETY: both structs have that many bytes; one is the caller's, the other this library's, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(from.add(header), to.add(header), size - header) };
    Ok(())
}

/// Reads the leading size field and checks it.
unsafe fn read_struct_size<T>(pointer: *const T, name: &str) -> Result<u64> {
    // SAFETY: guaranteed by the caller.
    let size = *unsafe { deref_required(pointer.cast::<u64>(), name)? };
    if !(size_of::<u64>() as u64..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(Error::invalid_argument(format!(
            "expected the field `size` of `{name}` to be the size of the struct, found {size}"
        ))
        .with_advice("set all of it to zero and `size` to `sizeof` of it"));
    }
    Ok(size)
}

/// Writes to a place that may be uninitialized.
///
/// # Safety
/// A pointer that is not NULL points to a writable place that nothing else accesses.
pub(crate) unsafe fn write_output<T: Copy>(pointer: *mut T, value: T, name: &str) -> Result<()> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(invalid_pointer_error(pointer, name));
    }
    // SAFETY: guaranteed by the caller, and aligned.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Sets an output handle to NULL and returns its place.
///
/// # Safety
/// A pointer that is not NULL points to a writable place that nothing else accesses during `'a`.
pub(crate) unsafe fn clear_output_handle<'a, T>(pointer: *mut *mut T, name: &str) -> Result<&'a mut *mut T> {
    // SAFETY: guaranteed by the caller.
    unsafe { write_output(pointer, ptr::null_mut(), name)? };
    // SAFETY: guaranteed by the caller, and written above.
    Ok(unsafe { &mut *pointer })
}

/// Sets output handles to NULL and returns their places.
///
/// # Safety
/// Same as [`clear_output_handle`], for `count` places.
pub(crate) unsafe fn clear_output_handles<'a, T>(
    pointer: *mut *mut T,
    count: u64,
    name: &str,
) -> Result<&'a mut [*mut T]> {
    // SAFETY: guaranteed by the caller; only the length of the result is used, so nothing is read.
    let count = unsafe { read_array(pointer.cast::<MaybeUninit<*mut T>>(), count, name)? }.len();
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `read_array` has checked the pointer, and the caller lets all of it be written.
    unsafe { ptr::write_bytes(pointer, 0, count) };
    // SAFETY: as above, and zeroes are NULL.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// The program has to free it.
pub(crate) fn into_raw_handle<T>(handle: T) -> *mut T {
    Box::into_raw(Box::new(handle))
}

/// Does nothing for NULL.
///
/// # Safety
/// A pointer that is not NULL came from [`into_raw_handle`] and is not used again.
pub(crate) unsafe fn free_handle<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Drops zero bytes, which a C string cannot hold.
pub(crate) fn to_c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cold]
fn invalid_pointer_error<T>(pointer: *const T, name: &str) -> Error {
    let found = if pointer.is_null() { "NULL" } else { "an address that nothing of its type can have" };
    Error::invalid_argument(format!("expected `{name}`, found {found}"))
}

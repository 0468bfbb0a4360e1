//! Pointers from C, looked at before anything is made of them.
//!
//! What cannot be seen, such as a handle that was freed, is for the caller to get right; NULL, a wrong alignment, a text
//! that is not UTF-8 and a struct of another version are seen here.

#![expect(unsafe_code, reason = "pointers from C become references")]

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr;

use oarlock_core::{Error, Result};

/// No struct is larger, whatever version it is of.
const MAX_STRUCT_BYTES: u64 = 4096;

/// What a pointer points to; nothing for NULL.
///
/// # Safety
/// A pointer that is not NULL points to a `T` that nobody changes for as long as `'a`.
#[inline]
pub(crate) unsafe fn deref_nullable<'a, T>(pointer: *const T) -> Option<&'a T> {
    if !pointer.is_aligned() {
        return None;
    }
    // SAFETY: as the caller says, and aligned.
    unsafe { pointer.as_ref() }
}

/// What a pointer that must not be NULL points to.
///
/// # Safety
/// As of [`deref_nullable`].
#[inline]
pub(crate) unsafe fn deref_required<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: as the caller says.
    unsafe { deref_nullable(pointer) }.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// The same, to be changed.
///
/// # Safety
/// As of [`deref_nullable`], and nobody else looks at it.
pub(crate) unsafe fn deref_required_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    if !pointer.is_aligned() {
        return Err(invalid_pointer_error(pointer, name));
    }
    // SAFETY: as the caller says, and aligned.
    unsafe { pointer.as_mut() }.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// The elements of an array; it may be NULL where there are none.
///
/// # Safety
/// A pointer that is not NULL points to so many elements that nobody changes for as long as `'a`.
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
    // SAFETY: as the caller says, aligned, and of no more bytes than there can be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count as usize) })
}

/// Text that ends with a zero.
///
/// # Safety
/// A pointer that is not NULL points to such text, which nobody changes for as long as `'a`.
pub(crate) unsafe fn read_text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: as the caller says.
    unsafe { read_optional_text(pointer, name) }?.ok_or_else(|| invalid_pointer_error(pointer, name))
}

/// Text that may be left out.
///
/// # Safety
/// As of [`read_text`].
pub(crate) unsafe fn read_optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says, and not NULL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| {
        let found = text.to_string_lossy();
        Error::invalid_argument(format!("expected `{name}` to be text in UTF-8, found `{found}`"))
    })
}

/// Texts.
///
/// # Safety
/// As of [`read_array`], each element as of [`read_text`].
pub(crate) unsafe fn read_texts<'a>(
    pointer: *const *const c_char,
    count: u64,
    name: &str,
) -> Result<Vec<&'a str>> {
    // SAFETY: as the caller says.
    unsafe { read_array(pointer, count, name)?.iter().map(|element| read_text(*element, name)).collect() }
}

/// A struct of any version: what the caller's version lacks is zero.
///
/// # Safety
/// A pointer that is not NULL points to a struct that begins with its size as `u64`. All bytes zero are a `T`.
pub(crate) unsafe fn read_options<T: Copy>(pointer: *const T, name: &str) -> Result<T> {
    let mut read = MaybeUninit::<T>::zeroed();
    if !pointer.is_null() {
        // SAFETY: as the caller says.
        let bytes = unsafe { read_array(pointer.cast::<u8>(), read_struct_size(pointer, name)?, name)? };
        let (known, newer) = bytes.split_at(bytes.len().min(size_of::<T>()));
        if newer.iter().any(|byte| *byte != 0) {
            let error =
                Error::unimplemented(format!("expected options of this version in `{name}`, found newer"));
            return Err(error.with_advice("use a library that is at least as new as its header"));
        }
        // SAFETY: there is room for as many bytes as are known, and both do not overlap.
        unsafe { ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast(), known.len()) };
    }
    // SAFETY: zeroes are a `T`, as the caller says, and so are the fields that were filled in by its own program.
    Ok(unsafe { read.assume_init() })
}

/// Fills in as much of a struct as the caller's version of it has, but for its size.
///
/// # Safety
/// As of [`read_options`], and the struct may be written.
pub(crate) unsafe fn fill_struct<T: Copy>(pointer: *mut T, filled: &T, name: &str) -> Result<()> {
    // SAFETY: as the caller says.
    let size = unsafe { read_struct_size(pointer, name)? };
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(size_of::<T>());
    let header = size_of::<u64>();
    let (from, to) = (ptr::from_ref(filled).cast::<u8>(), pointer.cast::<u8>());
    // SAFETY: both structs have so many bytes, and one is the caller's and the other this library's.
    unsafe { ptr::copy_nonoverlapping(from.add(header), to.add(header), size - header) };
    Ok(())
}

/// The size that a struct says.
unsafe fn read_struct_size<T>(pointer: *const T, name: &str) -> Result<u64> {
    // SAFETY: as the caller says.
    let size = *unsafe { deref_required(pointer.cast::<u64>(), name)? };
    if !(size_of::<u64>() as u64..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(Error::invalid_argument(format!(
            "expected the field `size` of `{name}` to be the size of the struct, found {size}"
        ))
        .with_advice("set all of it to zero and `size` to `sizeof` of it"));
    }
    Ok(size)
}

/// Puts something to where nothing may be yet.
///
/// # Safety
/// A pointer that is not NULL points to a place that may be written and that nobody else looks at.
pub(crate) unsafe fn write_output<T: Copy>(pointer: *mut T, value: T, name: &str) -> Result<()> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(invalid_pointer_error(pointer, name));
    }
    // SAFETY: as the caller says, and aligned.
    unsafe { pointer.write(value) };
    Ok(())
}

/// A place for a handle, which is NULL from now on until one is put there.
///
/// # Safety
/// A pointer that is not NULL points to a place that may be written and that nobody else looks at for as long as `'a`.
pub(crate) unsafe fn clear_output_handle<'a, T>(pointer: *mut *mut T, name: &str) -> Result<&'a mut *mut T> {
    // SAFETY: as the caller says.
    unsafe { write_output(pointer, ptr::null_mut(), name)? };
    // SAFETY: as the caller says, and written above.
    Ok(unsafe { &mut *pointer })
}

/// Places for handles, all NULL from now on.
///
/// # Safety
/// As of [`clear_output_handle`], for so many places.
pub(crate) unsafe fn clear_output_handles<'a, T>(
    pointer: *mut *mut T,
    count: u64,
    name: &str,
) -> Result<&'a mut [*mut T]> {
    // SAFETY: as the caller says; nothing is read of what `list` gives but how much it is.
    let count = unsafe { read_array(pointer.cast::<MaybeUninit<*mut T>>(), count, name)? }.len();
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `list` has looked at the pointer, and the caller lets all of it be written.
    unsafe { ptr::write_bytes(pointer, 0, count) };
    // SAFETY: as above, and zeroes are NULL.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// Makes a handle that the program is to free.
pub(crate) fn into_raw_handle<T>(handle: T) -> *mut T {
    Box::into_raw(Box::new(handle))
}

/// Frees a handle, if there is one.
///
/// # Safety
/// A pointer that is not NULL came from [`into_raw_handle`] and is not used again.
pub(crate) unsafe fn free_handle<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Text for C, which cannot have a zero within.
pub(crate) fn to_c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cold]
fn invalid_pointer_error<T>(pointer: *const T, name: &str) -> Error {
    let found = if pointer.is_null() { "NULL" } else { "an address that nothing of its type can have" };
    Error::invalid_argument(format!("expected `{name}`, found {found}"))
}

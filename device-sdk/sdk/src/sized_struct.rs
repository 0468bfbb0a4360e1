//! Structs of the contract: they begin with their size, which distinguishes older from newer ones.

#![expect(unsafe_code, reason = "structs of the other side are copied as bytes")]

/// Copies a struct of the other side. An older struct is shorter: the fields that it lacks keep their values from `empty`. The
/// copy of a null `source` is `empty`.
///
/// # Safety
///
/// `source` is null or points to a struct of the contract whose first field is its size in bytes.
pub unsafe fn copy_sized<T: Copy>(source: *const T, empty: T) -> T {
    let mut copy = empty;
    if !source.is_null() {
        // SAFETY: every struct of the contract starts with its size as a `u32`.
        let size = unsafe { source.cast::<u32>().read() } as usize;
        let size = size.min(size_of::<T>());
        // SAFETY: the source has at least `size` bytes and the copy has room for them; they do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(source.cast::<u8>(), (&raw mut copy).cast::<u8>(), size) };
    }
    copy
}

/// Copies as much of `value` as the struct at `place` has room for. The size field at `place` stays as it is.
///
/// # Safety
///
/// `place` points to a struct of the contract that the callee may write, whose first field is its size in bytes.
pub(crate) unsafe fn write_sized<T>(place: *mut T, value: T) {
    const SIZE_FIELD: usize = size_of::<u32>();
    // SAFETY: every struct of the contract starts with its size as a `u32`.
    let room = unsafe { place.cast::<u32>().read() } as usize;
    let rest = room.min(size_of::<T>()).saturating_sub(SIZE_FIELD);
    // SAFETY: both structs have `rest` bytes behind their size and do not overlap.
    unsafe {
        let source = (&raw const value).cast::<u8>().add(SIZE_FIELD);
        core::ptr::copy_nonoverlapping(source, place.cast::<u8>().add(SIZE_FIELD), rest);
    }
}

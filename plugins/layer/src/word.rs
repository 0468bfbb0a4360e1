//! Arguments of calls as words of 64 bits, so that a layer can treat all slots alike.

use core::ffi::c_void;

/// A pointer as a word.
pub fn pointer_word<T: ?Sized>(pointer: *const T) -> u64 {
    pointer.cast::<c_void>().expose_provenance() as u64
}

/// The pointer that a word stands for.
pub fn word_pointer<T>(word: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(word as usize)
}

/// As [`word_pointer`], for reading only.
pub fn word_const_pointer<T>(word: u64) -> *const T {
    word_pointer::<T>(word).cast_const()
}

//! Memory for the lists, texts and structs of a message that was read.

#![expect(unsafe_code, reason = "values are written to memory that was allocated as numbers")]

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;

/// The size of the first chunk, which is enough for most calls.
const CHUNK_WORDS: usize = 1024;

/// Memory that is only freed as a whole.
#[derive(Debug, Default)]
pub(crate) struct BumpStorage {
    chunks: RefCell<Vec<Box<[MaybeUninit<u64>]>>>,
    /// The words of the last chunk that are in use.
    used: Cell<usize>,
}

impl BumpStorage {
    /// Uninitialized words, which live as long as the storage and until it is cleared.
    fn take_words(&self, count: usize) -> *mut u64 {
        let mut chunks = self.chunks.borrow_mut();
        if chunks.last().is_none_or(|chunk| chunk.len() - self.used.get() < count) {
            chunks.push(Box::new_uninit_slice(count.max(CHUNK_WORDS)));
            self.used.set(0);
        }
        let at = self.used.get();
        self.used.set(at + count);
        let chunk = chunks.last_mut().expect("a chunk was pushed if there was none");
        // SAFETY: the chunk has `count` words from here on.
        unsafe { chunk.as_mut_ptr().add(at).cast() }
    }

    /// Stores a value; the address stays valid until the storage is cleared.
    pub(crate) fn store<T: Copy>(&self, value: T) -> *mut T {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let place = self.take_words(size_of::<T>().div_ceil(size_of::<u64>())).cast::<T>();
        // SAFETY: there is room, aligned for the type.
        unsafe { place.write(value) };
        place
    }

    /// Stores a list.
    pub(crate) fn store_list<T: Copy>(&self, list: &[T]) -> *mut T {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let place = self.take_words(size_of_val(list).div_ceil(size_of::<u64>())).cast::<T>();
        // SAFETY: there is room for the list, aligned for its type.
        unsafe { std::ptr::copy_nonoverlapping(list.as_ptr(), place, list.len()) };
        place
    }

    /// Stores bytes at an address that is aligned for any element.
    pub(crate) fn store_aligned(&self, bytes: &[u8]) -> *mut u8 {
        const ALIGNMENT: usize = 64;
        let place = self.take_words((bytes.len() + ALIGNMENT).div_ceil(size_of::<u64>())).cast::<u8>();
        // SAFETY: there is room for the bytes behind the padding.
        unsafe {
            let place = place.add(place.align_offset(ALIGNMENT));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            place
        }
    }

    /// Forgets everything. The first chunk is used again.
    pub(crate) fn clear(&mut self) {
        self.chunks.get_mut().truncate(1);
        self.used.set(0);
    }
}

// SAFETY: the chunks are the storage's own.
unsafe impl Send for BumpStorage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_stays_when_more_is_stored() {
        let mut storage = BumpStorage::default();
        for _ in 0..2 {
            let lists: Vec<(u64, *mut u64)> =
                (0..40).map(|number| (number, storage.store_list(&vec![number; 100]))).collect();
            let byte = storage.store(7_u8);
            let aligned = storage.store_aligned(&[1, 2, 3]);
            assert_eq!(aligned as usize % 64, 0);
            for (number, list) in lists {
                // SAFETY: the storage was not cleared yet.
                assert_eq!(unsafe { std::slice::from_raw_parts(list, 100) }, vec![number; 100]);
            }
            // SAFETY: as above.
            assert_eq!(unsafe { (*byte, *aligned.add(2)) }, (7, 3));
            storage.clear();
        }
    }
}

//! Memory borrowed from the program.

#![expect(unsafe_code, reason = "the memory is the program's, and so is the function that takes it back")]

use core::ffi::c_void;

use bytes::Bytes;
use oarlock_core::Result;

use crate::c_types::ReleaseCallback;
use crate::pointer::read_array;

/// Memory of the program, released on drop.
pub(crate) struct BorrowedMemory {
    data: *const c_void,
    size: u64,
    release: ReleaseCallback,
    context: *mut c_void,
}

// SAFETY: the program promises that the memory does not change while it is borrowed, and that it may be released on any
// thread.
unsafe impl Send for BorrowedMemory {}
// SAFETY: as above; a shared reference only allows reading.
unsafe impl Sync for BorrowedMemory {}

impl BorrowedMemory {
    /// Takes the memory over. It is released even if the caller fails afterwards.
    ///
    /// # Safety
    /// Data that is not NULL points to `size` bytes, which do not change until they are released; `release` may be called
    /// from any thread.
    pub(crate) unsafe fn new(
        data: *const c_void,
        size: u64,
        release: ReleaseCallback,
        context: *mut c_void,
    ) -> Self {
        Self { data, size, release, context }
    }

    /// The bytes keep the memory borrowed for as long as they live.
    pub(crate) fn into_bytes(self) -> Result<Bytes> {
        // SAFETY: as the caller of `new` promised; the check here lets `as_ref` rely on it.
        unsafe { read_array(self.data.cast::<u8>(), self.size, "data")? };
        Ok(Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for BorrowedMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is valid until this is dropped, as the caller of `new` promised.
        unsafe { read_array(self.data.cast::<u8>(), self.size, "data") }.unwrap_or_default()
    }
}

impl Drop for BorrowedMemory {
    fn drop(&mut self) {
        if let ReleaseCallback(Some(release)) = self.release {
            // SAFETY: the program passed the function for this purpose, and it is called once.
            unsafe { release(self.context, self.data, self.size) };
        }
    }
}

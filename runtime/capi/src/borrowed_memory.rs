//! Memory that a program lends.

#![expect(unsafe_code, reason = "the memory is the program's, and so is the function that takes it back")]

use core::ffi::c_void;

use bytes::Bytes;
use oarlock_core::Result;

use crate::interface::ReleaseCallback;
use crate::pointer::read_array;

/// Memory of the program, which is given back when this is dropped.
pub(crate) struct BorrowedMemory {
    data: *const c_void,
    size: u64,
    release: ReleaseCallback,
    context: *mut c_void,
}

// SAFETY: the program says that the memory does not change while it is lent, and that it may be taken back on any thread.
unsafe impl Send for BorrowedMemory {}
// SAFETY: as above; nothing is done through a shared one but reading.
unsafe impl Sync for BorrowedMemory {}

impl BorrowedMemory {
    /// Takes memory over, and gives it back even where the caller goes no further.
    ///
    /// # Safety
    /// Data that is not NULL points to so many bytes, which do not change until they are taken back; `release` may be called
    /// from any thread.
    pub(crate) unsafe fn new(
        data: *const c_void,
        size: u64,
        release: ReleaseCallback,
        context: *mut c_void,
    ) -> Self {
        Self { data, size, release, context }
    }

    /// The bytes, which keep the memory lent for as long as they are there.
    pub(crate) fn into_bytes(self) -> Result<Bytes> {
        // SAFETY: as whoever made it said; it is looked at here so that `as_ref` can rely on it.
        unsafe { read_array(self.data.cast::<u8>(), self.size, "data")? };
        Ok(Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for BorrowedMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is there until this is dropped, as whoever made it said.
        unsafe { read_array(self.data.cast::<u8>(), self.size, "data") }.unwrap_or_default()
    }
}

impl Drop for BorrowedMemory {
    fn drop(&mut self) {
        if let ReleaseCallback(Some(release)) = self.release {
            // SAFETY: the program handed the function over for this, and this happens once.
            unsafe { release(self.context, self.data, self.size) };
        }
    }
}

//! Page-locked host memory, from and to which the devices copy directly.

#![expect(unsafe_code, reason = "the memory is taken by a C function")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::result::{free_host, malloc_host};
use cudarc::driver::sys::CU_MEMHOSTALLOC_PORTABLE;
use oarlock_sdk::{HostPointer, Result, ensure};

use crate::context::{Context, Handle};

/// What was taken for one device, by address, with its size.
#[derive(Debug, Default)]
pub(crate) struct Pinned(Mutex<HashMap<usize, (Handle<*mut c_void>, u64)>>);

impl Pinned {
    pub(crate) fn allocate(&self, context: &Context, size: u64) -> Result<HostPointer> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        let entered = context.enter()?;
        // SAFETY: the memory is given back by `deallocate` or `clear` only.
        let address = unsafe { malloc_host(size as usize, CU_MEMHOSTALLOC_PORTABLE) };
        let address = entered.check("cuMemHostAlloc", address)?;
        let pointer = HostPointer::new(address, "address")?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), (Handle(address), size));
        Ok(pointer)
    }

    pub(crate) fn deallocate(&self, context: &Context, address: HostPointer, size: u64) -> Result<()> {
        let address = address.address();
        let key = address.addr();
        {
            let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ensure!(
                taken.get(&key).is_some_and(|(_, known)| *known == size),
                invalid_argument,
                "expected page-locked memory of this device with the size it was taken with, found {size} bytes at {key:#x}"
            );
            taken.remove(&key);
        }
        // SAFETY: the memory was taken by `allocate`, and is not in the table any more.
        context.give_back("cuMemFreeHost", || unsafe { free_host(address) })
    }

    /// Gives everything back.
    pub(crate) fn clear(&self, context: &Context) {
        let taken = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (address, _) in taken.into_values() {
            // SAFETY: as above. There is nobody to tell of a failure.
            let _ = context.give_back("cuMemFreeHost", || unsafe { free_host(address.0) });
        }
    }
}

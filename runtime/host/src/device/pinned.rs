//! Pinned host memory, which a device can copy from and to directly.

#![expect(unsafe_code, reason = "the memory belongs to a plugin and is reached by its address")]

use std::ptr::NonNull;

use crate::PluginDevice;
use crate::live_handles::HandleKind;
use crate::services::errors::PluginFailure;

/// Pinned host memory, freed when dropped; ordinary memory on a device that offers none.
#[derive(Debug)]
pub struct PinnedHostMemory {
    device: PluginDevice,
    bytes: PinnedBytes,
}

#[derive(Debug)]
enum PinnedBytes {
    Ordinary(Vec<u8>),
    Locked(NonNull<u8>, usize),
}

// SAFETY: the memory belongs to this value alone, and the slot that frees it may be called on any thread.
unsafe impl Send for PinnedHostMemory {}
// SAFETY: a shared reference only permits reads.
unsafe impl Sync for PinnedHostMemory {}

impl PinnedHostMemory {
    pub(crate) fn allocate(device: &PluginDevice, size: usize) -> Result<Self, PluginFailure> {
        let taken =
            (size > 0).then(|| device.core_calls().host_memory_allocate(device.id(), size as u64)).flatten();
        let bytes = match taken.transpose()? {
            None => PinnedBytes::Ordinary(vec![0; size]),
            Some(address) => {
                let address = NonNull::new(address.cast::<u8>()).ok_or_else(|| {
                    device.caller_failure("an address of pinned memory", "a null pointer", "R-1")
                })?;
                // SAFETY: the plugin allocated that many bytes, which nobody else uses; this initializes all of them.
                unsafe { address.write_bytes(0, size) };
                PinnedBytes::Locked(address, size)
            }
        };
        device.plugin().handle_counter().note_taken(HandleKind::Pinned);
        Ok(Self { device: device.clone(), bytes })
    }

    /// True if the memory is pinned, false if it is ordinary memory.
    pub fn is_locked(&self) -> bool {
        matches!(self.bytes, PinnedBytes::Locked(..))
    }

    /// The memory as a slice; it starts out zeroed.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            PinnedBytes::Ordinary(bytes) => bytes,
            // SAFETY: the plugin allocated that many bytes, which were initialized and are borrowed with this value.
            PinnedBytes::Locked(address, size) => unsafe {
                std::slice::from_raw_parts(address.as_ptr(), *size)
            },
        }
    }

    /// The memory as a mutable slice.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            PinnedBytes::Ordinary(bytes) => bytes,
            // SAFETY: as for reading, and the borrow is the only one.
            PinnedBytes::Locked(address, size) => unsafe {
                std::slice::from_raw_parts_mut(address.as_ptr(), *size)
            },
        }
    }
}

impl Drop for PinnedHostMemory {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if let PinnedBytes::Locked(address, size) = self.bytes {
            let address = address.as_ptr().cast();
            // SAFETY: the memory is alive, was allocated for this device with this size, and is not used again.
            let given = unsafe {
                self.device.core_calls().host_memory_deallocate(self.device.id(), address, size as u64)
            };
            if let Some(Err(failure)) = given {
                plugin.log_warning(&format!("pinned memory of {size} bytes was not given back: {failure}"));
            }
        }
        plugin.handle_counter().note_returned(HandleKind::Pinned);
    }
}

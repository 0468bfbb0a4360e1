//! Staging buffers: host memory for copies to and from a device, cached for the next copy.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_host::{PinnedHostMemory, PluginDevice, PluginFailure};

/// The smallest buffer, in bytes.
const SMALLEST_BUFFER: usize = 4 << 10;
/// The maximum size of the cache in bytes.
const MAX_CACHED: usize = 64 << 20;

/// The unused buffers of one device.
#[derive(Debug, Default)]
pub(super) struct StagingCache {
    kept: Mutex<Vec<PinnedHostMemory>>,
}

impl StagingCache {
    pub(super) fn take_buffer(
        self: &Arc<Self>,
        device: &PluginDevice,
        size: usize,
    ) -> Result<StagingBuffer, PluginFailure> {
        let capacity = size.max(SMALLEST_BUFFER).checked_next_power_of_two().unwrap_or(size);
        let mut kept = self.lock_cache();
        let found = kept.iter().position(|pinned| pinned.as_bytes().len() == capacity);
        let found = found.map(|index| kept.swap_remove(index));
        drop(kept);
        let pinned = found.map_or_else(|| device.allocate_pinned(capacity), Ok)?;
        Ok(StagingBuffer { cache: self.clone(), pinned: Some(pinned), size })
    }

    /// Releases all unused buffers.
    pub(super) fn trim_cache(&self) {
        let kept = std::mem::take(&mut *self.lock_cache());
        drop(kept);
    }

    fn cache_buffer(&self, pinned: PinnedHostMemory) {
        let mut kept = self.lock_cache();
        let bytes: usize = kept.iter().map(|pinned| pinned.as_bytes().len()).sum();
        if bytes + pinned.as_bytes().len() <= MAX_CACHED {
            kept.push(pinned);
        }
    }

    fn lock_cache(&self) -> MutexGuard<'_, Vec<PinnedHostMemory>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A host buffer for copies to and from a device, pinned if the device supports that. It returns to the cache when
/// dropped. Its initial contents are left over from earlier copies.
///
/// An asynchronous copy needs the buffer until the stream is past it. One way to keep it is to move it into
/// [`Stream::add_callback`](crate::stream::Stream::add_callback).
#[derive(Debug)]
pub struct StagingBuffer {
    cache: Arc<StagingCache>,
    /// `None` only while it is being dropped.
    pinned: Option<PinnedHostMemory>,
    size: usize,
}

impl Deref for StagingBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pinned.as_ref().map_or(&[], |pinned| &pinned.as_bytes()[..self.size])
    }
}

impl DerefMut for StagingBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pinned.as_mut().map_or(&mut [], |pinned| &mut pinned.as_bytes_mut()[..self.size])
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.cache.cache_buffer(pinned);
        }
    }
}

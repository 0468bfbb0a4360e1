//! Memory of the host that copies from and to a device go through, kept for the next copy.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_host::{Device, Failure, Pinned};

/// The smallest buffer, in bytes.
const SMALLEST: usize = 4 << 10;
/// How many bytes are kept.
const MOST_KEPT: usize = 64 << 20;

/// The buffers of one device that nobody uses.
#[derive(Debug, Default)]
pub(super) struct StagingCache {
    kept: Mutex<Vec<Pinned>>,
}

impl StagingCache {
    pub(super) fn take(self: &Arc<Self>, device: &Device, size: usize) -> Result<Staging, Failure> {
        let capacity = size.max(SMALLEST).checked_next_power_of_two().unwrap_or(size);
        let mut kept = self.kept();
        let found = kept.iter().position(|pinned| pinned.bytes().len() == capacity);
        let found = found.map(|index| kept.swap_remove(index));
        drop(kept);
        let pinned = found.map_or_else(|| device.allocate_pinned(capacity), Ok)?;
        Ok(Staging { cache: self.clone(), pinned: Some(pinned), size })
    }

    /// Gives back what is kept.
    pub(super) fn trim(&self) {
        let kept = std::mem::take(&mut *self.kept());
        drop(kept);
    }

    fn keep(&self, pinned: Pinned) {
        let mut kept = self.kept();
        let bytes: usize = kept.iter().map(|pinned| pinned.bytes().len()).sum();
        if bytes + pinned.bytes().len() <= MOST_KEPT {
            kept.push(pinned);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Pinned>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer of the host that a device copies from and to, page-locked where the device can; kept for others when
/// dropped. What is in it at first is left over from earlier copies.
///
/// Whoever copies from or to it in a stream keeps it until the stream is past the copy, as by moving it into
/// [`Stream::then`](crate::stream::Stream::then).
#[derive(Debug)]
pub struct Staging {
    cache: Arc<StagingCache>,
    /// Taken when dropped.
    pinned: Option<Pinned>,
    size: usize,
}

impl Deref for Staging {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pinned.as_ref().map_or(&[], |pinned| &pinned.bytes()[..self.size])
    }
}

impl DerefMut for Staging {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pinned.as_mut().map_or(&mut [], |pinned| &mut pinned.bytes_mut()[..self.size])
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.cache.keep(pinned);
        }
    }
}

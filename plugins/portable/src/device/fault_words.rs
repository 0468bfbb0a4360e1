//! Faults that kernels find in operand values, which only the device can see.
//!
//! Each stream has one word of device memory for faults, allocated with the first kernel that may report one. Such a kernel
//! writes the fault's number there and goes on. Waiting for the stream reads the word only if such a kernel was launched since
//! the last read, so other work pays nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::Stream;

/// The fault word of one stream.
pub(crate) struct FaultWord<B> {
    pub(crate) block: B,
    /// Number of launches that may write the word, and the highest launch that the last read covered.
    launched: AtomicU64,
    pub(super) read: AtomicU64,
    turn: Mutex<()>,
}

impl<B> FaultWord<B> {
    /// A word that no launch may have written yet.
    pub(super) fn of_block(block: B) -> Self {
        Self { block, launched: AtomicU64::new(0), read: AtomicU64::new(0), turn: Mutex::default() }
    }

    /// Counts a launch that may write the word.
    pub(crate) fn count_launch(&self) {
        self.launched.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn launch_count(&self) -> u64 {
        self.launched.load(Ordering::Acquire)
    }

    /// Locks the word for reading. On the default stream the lock is taken before the launch, so that each thread reads the fault
    /// of its own kernel.
    pub(crate) fn lock_reading(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fault words of a device, by stream.
pub(super) struct FaultWords<B>(Mutex<HashMap<u64, Arc<FaultWord<B>>>>);

// Not derived: `#[derive(Default)]` would demand `B: Default`.
impl<B> Default for FaultWords<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B> FaultWords<B> {
    pub(super) fn lock_words(&self) -> MutexGuard<'_, HashMap<u64, Arc<FaultWord<B>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's word, or `None` if no kernel that may fail was launched there.
    pub(super) fn find_word(&self, stream: Stream) -> Option<Arc<FaultWord<B>>> {
        self.lock_words().get(&stream.0).cloned()
    }

    /// Removes a destroyed stream's word; the caller frees it.
    pub(super) fn remove_word(&self, stream: Stream) -> Option<Arc<FaultWord<B>>> {
        self.lock_words().remove(&stream.0)
    }

    /// Removes all words; the caller frees them.
    pub(super) fn take_all_words(&self) -> impl Iterator<Item = Arc<FaultWord<B>>> + use<B> {
        std::mem::take(&mut *self.lock_words()).into_values()
    }
}

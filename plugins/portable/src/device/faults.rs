//! Faults that kernels find in operand values, which only the device can see.
//!
//! Each stream has one word of device memory for faults, allocated with the first kernel that may report one. Such a kernel
//! writes the fault's number there and goes on. Waiting for the stream reads the word only if such a kernel was launched since
//! the last read, so other work pays nothing.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{PluginError, Result, Stream};

use super::session::DeviceSession;
use crate::gpu::{BlockOffset, Gpu, GpuQueue as _};

/// A kernel reports a fault as one `u32`.
const FAULT_WORD_SIZE: usize = size_of::<u32>();

/// The fault word of one stream.
pub(crate) struct FaultWord<B> {
    pub(crate) block: B,
    /// Number of launches that may write the word, and the highest launch that the last read covered.
    launched: AtomicU64,
    read: AtomicU64,
    turn: Mutex<()>,
}

impl<B> FaultWord<B> {
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
    fn lock_words(&self) -> MutexGuard<'_, HashMap<u64, Arc<FaultWord<B>>>> {
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

impl<G: Gpu> DeviceSession<G> {
    /// The stream's word, allocated on first use.
    pub(crate) fn fault_word(&self, stream: Stream) -> Result<Arc<FaultWord<G::Block>>> {
        let mut all = self.words.lock_words();
        if let Some(word) = all.get(&stream.0) {
            return Ok(Arc::clone(word));
        }
        let block = self.driver_gpu().allocate_block(FAULT_WORD_SIZE as u64)?;
        if let Err(error) = self.clear_word(&block) {
            // Report the first failure, not this one.
            let _ = self.driver_gpu().free_block(block);
            return Err(error);
        }
        let (launched, read, turn) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        let word = Arc::new(FaultWord { block, launched, read, turn });
        all.insert(stream.0, Arc::clone(&word));
        Ok(word)
    }

    /// Reads the word up to launch `through` and returns the fault it holds. Each fault is reported once.
    pub(super) fn check_faults(&self, word: &FaultWord<G::Block>, through: u64) -> Result<()> {
        self.read_word_locked(word, through, &word.lock_reading())
    }

    /// Frees the word of a destroyed stream. Events recorded on that stream report no faults afterwards.
    pub(super) fn free_word(&self, word: &FaultWord<G::Block>) -> Result<()> {
        let _turn = word.lock_reading();
        word.read.store(u64::MAX, Ordering::Release);
        self.driver_gpu().free_block(word.block.clone())
    }

    /// Like [`DeviceSession::check_faults`], for a caller that already holds the reading lock.
    pub(crate) fn read_word_locked(
        &self,
        word: &FaultWord<G::Block>,
        through: u64,
        _turn: &MutexGuard<'_, ()>,
    ) -> Result<()> {
        if word.read.fetch_max(through, Ordering::AcqRel) >= through {
            return Ok(());
        }
        let mut bytes = [0; FAULT_WORD_SIZE];
        let place = BlockOffset { block: &word.block, offset: 0 };
        // SAFETY: on the default stream the copy is done when this returns, so `bytes` outlives it.
        unsafe { self.default_queue().enqueue_read(bytes.as_mut_ptr(), place, FAULT_WORD_SIZE) }?;
        let error = match u32::from_ne_bytes(bytes) {
            0 => return Ok(()),
            1 => PluginError::out_of_range("expected indices that lie inside of the data, found one outside"),
            _ => PluginError::invalid_argument("expected divisors other than 0 among integers, found 0"),
        };
        self.clear_word(&word.block)?;
        Err(error)
    }

    fn clear_word(&self, block: &G::Block) -> Result<()> {
        self.default_queue().enqueue_fill(BlockOffset { block, offset: 0 }, 0, FAULT_WORD_SIZE)
    }
}

//! What kernels find wrong with the values of operands, which lie where only the device sees them.
//!
//! A stream has a word of device memory for that, made when the first such kernel is launched there. A kernel that finds
//! something writes what it is and goes on. Whoever waits for the stream reads the word, if such a kernel was launched since
//! it was last read, so that other work pays nothing.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{PluginError, Result, Stream};

use super::session::DeviceSession;
use crate::gpu::{BlockOffset, Gpu, GpuQueue as _};

/// How many bytes a kernel writes.
const FAULT_WORD_SIZE: usize = size_of::<u32>();

/// The word of one stream.
pub(crate) struct FaultWord<B> {
    pub(crate) block: B,
    /// How many kernels were launched that may write it, and how many of them it was read behind.
    launched: AtomicU64,
    read: AtomicU64,
    turn: Mutex<()>,
}

impl<B> FaultWord<B> {
    /// Notes that a kernel was launched that may write it.
    pub(crate) fn count_launch(&self) {
        self.launched.fetch_add(1, Ordering::AcqRel);
    }

    /// How many were launched.
    pub(crate) fn launch_count(&self) -> u64 {
        self.launched.load(Ordering::Acquire)
    }

    /// Held while the word is read; from the launch on where several threads launch in one stream.
    pub(crate) fn lock_reading(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The words of a device, by stream.
pub(super) struct FaultWords<B>(Mutex<HashMap<u64, Arc<FaultWord<B>>>>);

// Written out, since a derived one would ask for a `B` that has a default too.
impl<B> Default for FaultWords<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B> FaultWords<B> {
    fn lock_words(&self) -> MutexGuard<'_, HashMap<u64, Arc<FaultWord<B>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That of a stream, if a kernel was launched there that needs it.
    pub(super) fn find_word(&self, stream: Stream) -> Option<Arc<FaultWord<B>>> {
        self.lock_words().get(&stream.0).cloned()
    }

    /// Forgets that of a stream that is gone.
    pub(super) fn remove_word(&self, stream: Stream) -> Option<Arc<FaultWord<B>>> {
        self.lock_words().remove(&stream.0)
    }

    /// Forgets all.
    pub(super) fn take_all_words(&self) -> impl Iterator<Item = Arc<FaultWord<B>>> + use<B> {
        std::mem::take(&mut *self.lock_words()).into_values()
    }
}

impl<G: Gpu> DeviceSession<G> {
    /// The word of a stream, made if need be.
    pub(crate) fn fault_word(&self, stream: Stream) -> Result<Arc<FaultWord<G::Block>>> {
        let mut all = self.words.lock_words();
        if let Some(word) = all.get(&stream.0) {
            return Ok(Arc::clone(word));
        }
        let block = self.driver_gpu().allocate_block(FAULT_WORD_SIZE as u64)?;
        if let Err(error) = self.clear_word(&block) {
            // The first failure is the one to tell.
            let _ = self.driver_gpu().free_block(block);
            return Err(error);
        }
        let (launched, read, turn) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        let word = Arc::new(FaultWord { block, launched, read, turn });
        all.insert(stream.0, Arc::clone(&word));
        Ok(word)
    }

    /// Tells what kernels found, of which so many have run; each finding is told once.
    pub(super) fn check_faults(&self, word: &FaultWord<G::Block>, through: u64) -> Result<()> {
        self.read_word_locked(word, through, &word.lock_reading())
    }

    /// Gives the word of a stream that is gone back. Events that were recorded in the stream find nothing in it any more.
    pub(super) fn free_word(&self, word: &FaultWord<G::Block>) -> Result<()> {
        let _turn = word.lock_reading();
        word.read.store(u64::MAX, Ordering::Release);
        self.driver_gpu().free_block(word.block.clone())
    }

    /// The same as [`DeviceSession::check_faults`] for whoever has the turn.
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
        // SAFETY: in the device's own stream the copy is done when this returns.
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

//! Reads the fault words of a device and turns what they hold into errors.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use oarlock_sdk::{PluginError, Result, Stream};

use super::fault_words::FaultWord;
use super::session::DeviceSession;
use crate::gpu::{BlockOffset, Gpu, GpuQueue as _};

/// A kernel reports a fault as one `u32`.
const FAULT_WORD_SIZE: usize = size_of::<u32>();

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
        let word = Arc::new(FaultWord::of_block(block));
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

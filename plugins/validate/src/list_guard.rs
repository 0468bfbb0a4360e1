//! Whether a plugin writes more items than a list has room for: the plugin fills a list of the layer's own, with guard bytes behind.

#![expect(unsafe_code, reason = "the list is copied to where the caller wants it")]

use oarlock_layer::{LayerCall, ParameterKind, pointer_word, word_pointer};

use crate::breach::CallBreach;

const GUARD_BYTES: usize = 64;
const GUARD_BYTE: u8 = 0xC7;

/// A longer list stays where it is.
const MAX_LIST_BYTES: u64 = 1 << 20;

/// A list of the layer's own, in place of the caller's.
pub(crate) struct ListGuard {
    name: &'static str,
    home: u64,
    capacity: u64,
    size: usize,
    /// Of whole words, so that items of every size are aligned.
    buffer: Vec<u64>,
    words: Vec<u64>,
}

impl ListGuard {
    /// Replaces the list that a call fills; `None` if it fills none.
    pub(crate) fn for_call(call: &LayerCall<'_>) -> Option<Self> {
        let parameters = call.description().parameters.iter().enumerate();
        let (at, name, item) = parameters.into_iter().find_map(|(at, parameter)| match parameter.kind {
            ParameterKind::OutItems(item) => Some((at, parameter.name, item)),
            _ => None,
        })?;
        let (home, capacity) = (call.words()[at], call.words()[at + 1]);
        let size =
            capacity.checked_mul(item as u64).filter(|&size| size <= MAX_LIST_BYTES && home != 0)? as usize;
        let guard = u64::from_ne_bytes([GUARD_BYTE; 8]);
        let buffer = vec![guard; size.div_ceil(8) + GUARD_BYTES / 8];
        let mut words = call.words().to_vec();
        words[at] = pointer_word(buffer.as_ptr());
        Some(Self { name, home, capacity, size, buffer, words })
    }

    /// The words of the call with the layer's list.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Copies the items to the caller if the call succeeded, and fails if the plugin wrote behind them.
    ///
    /// # Safety
    ///
    /// The call has returned to the layer, and not yet to its caller.
    pub(crate) unsafe fn close_list(&self, failed: bool) -> Result<(), CallBreach> {
        let bytes = self.buffer.as_ptr().cast::<u8>();
        if !failed {
            // SAFETY: the caller of the slot vouches for room for `capacity` items, which have this size.
            unsafe { word_pointer::<u8>(self.home).copy_from_nonoverlapping(bytes, self.size) };
        }
        // SAFETY: the buffer has so many bytes behind the items.
        let behind = unsafe { core::slice::from_raw_parts(bytes.add(self.size), GUARD_BYTES) };
        if behind.iter().all(|byte| *byte == GUARD_BYTE) {
            return Ok(());
        }
        let message =
            format!("expected at most {} items in `{}`, found a write behind them", self.capacity, self.name);
        Err(CallBreach::by_plugin("R-1", message))
    }
}

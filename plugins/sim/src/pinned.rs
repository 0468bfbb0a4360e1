//! Pinned host memory: ordinary memory that the engine tracks.
//!
//! Each allocation lies between guard pages, and freed ones keep their addresses for a while. A host program that overruns the
//! end or accesses freed memory dies on the spot; a copy that does so gets a specific error.

use std::collections::{BTreeMap, VecDeque};

use crate::error::SimError;
use crate::mapping::{ClosedPages, HostPages, HostSpan};
use crate::memory::FRESH_POISON;
use oarlock_fault_script::FaultKind;

/// Number of freed allocations whose addresses stay reserved.
const MAX_CLOSED_ALLOCATIONS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct PinnedMemory {
    live: BTreeMap<u64, HostPages>,
    freed: VecDeque<ClosedPages>,
}

impl PinnedMemory {
    pub(crate) fn allocate_pages(&mut self, size: usize, poison: bool) -> Result<*mut u8, SimError> {
        if size == 0 {
            return Err(SimError::invalid_argument(
                "a pinned allocation of 0 bytes was asked for, expected at least 1",
            ));
        }
        let pages = HostPages::new(size, if poison { FRESH_POISON } else { 0 })?;
        let pointer = pages.as_pointer();
        self.live.insert(pointer.addr() as u64, pages);
        Ok(pointer)
    }

    pub(crate) fn deallocate_pages(&mut self, address: u64, size: u64) -> Result<(), SimError> {
        match self.live.get(&address).map(HostPages::byte_length) {
            Some(length) if length == size => {}
            Some(length) => {
                return Err(SimError::invalid_argument(format!(
                    "the pinned allocation at {address:#x} has {length} bytes but was freed with a size of {size} bytes"
                )));
            }
            None if self.freed.iter().any(|pages| pages.contains_address(address)) => {
                let message = format!("the pinned allocation at {address:#x} was freed twice");
                return Err(SimError::new(FaultKind::UseAfterFree, message));
            }
            None => {
                return Err(SimError::invalid_argument(format!(
                    "no pinned allocation starts at {address:#x}, so none was freed"
                )));
            }
        }
        if let Some(pages) = self.live.remove(&address) {
            self.freed.push_back(pages.close_pages());
            if self.freed.len() > MAX_CLOSED_ALLOCATIONS {
                self.freed.pop_front();
            }
        }
        Ok(())
    }

    /// Checks a span of a copy. A span outside pinned memory is its creator's responsibility.
    pub(crate) fn check_span(&self, span: &HostSpan) -> Result<(), SimError> {
        let (address, length) = (span.base_address(), span.byte_length() as u64);
        if let Some((start, pages)) = self.live.range(..=address).next_back() {
            let room = (start + pages.byte_length()).saturating_sub(address);
            if room > 0 && length > room {
                return Err(SimError::invalid_argument(format!(
                    "a copy of {length} bytes at {address:#x} runs {} bytes past the end of the pinned allocation of {} \
                     bytes at {start:#x}",
                    length - room,
                    pages.byte_length()
                )));
            }
        }
        if self.freed.iter().any(|pages| pages.contains_address(address)) {
            let message =
                format!("a copy of {length} bytes at {address:#x} lies in pinned memory that was freed");
            return Err(SimError::new(FaultKind::UseAfterFree, message));
        }
        Ok(())
    }
}

//! Long-lived blocks that are read again and again, such as packed weights. Most are too small to fill a huge page, so they share
//! pages.

#![expect(unsafe_code, reason = "blocks are parts of memory that they share")]

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{ALIGNMENT, AllocatedBlock, HUGE_PAGE};

/// Bytes per shared allocation. Only pages that are written use physical memory.
const SHARED_BYTES: usize = 8 * HUGE_PAGE;
/// The largest block that goes into a shared allocation.
const MAX_SHARED_BLOCK: usize = SHARED_BYTES / 4;

/// The allocation with room for more blocks, and the offset of its free part. It is freed with the last of its blocks.
static OPEN_BLOCK: Mutex<(Weak<AllocatedBlock>, usize)> = Mutex::new((Weak::new(), 0));

/// A zeroed block.
pub struct SharedBlock {
    address: NonNull<u8>,
    /// Keeps the memory of the block alive.
    _memory: Arc<AllocatedBlock>,
}

// SAFETY: nothing else accesses the bytes of this block.
unsafe impl Send for SharedBlock {}
// SAFETY: as above.
unsafe impl Sync for SharedBlock {}

impl SharedBlock {
    pub fn new(size: usize) -> Self {
        let (memory, start) = if size > MAX_SHARED_BLOCK {
            (Arc::new(AllocatedBlock::new(size)), 0)
        } else {
            allocate_shared(size)
        };
        // SAFETY: there are `size` bytes from `start` on, and no other block has them.
        let address = unsafe {
            let address = memory.address.add(start);
            address.write_bytes(0, size);
            address
        };
        Self { address, _memory: memory }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.address.as_ptr()
    }
}

/// Reserves `size` bytes; returns the allocation and the offset in it.
fn allocate_shared(size: usize) -> (Arc<AllocatedBlock>, usize) {
    let mut open = OPEN_BLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let (memory, used) = &mut *open;
    let start = used.next_multiple_of(ALIGNMENT);
    let found = memory.upgrade().filter(|_| start + size <= SHARED_BYTES);
    let (memory, start) = match found {
        Some(memory) => (memory, start),
        None => {
            let new = Arc::new(AllocatedBlock::new(SHARED_BYTES));
            *memory = Arc::downgrade(&new);
            (new, 0)
        }
    };
    *used = start + size;
    (memory, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_all_sizes_are_zeroed_aligned_and_apart() {
        let sizes = [0, 1, 63, 64, 4096, 100_000, MAX_SHARED_BLOCK, MAX_SHARED_BLOCK + 1, SHARED_BYTES];
        let mut blocks = Vec::new();
        for (number, size) in (1..).zip(sizes.into_iter().cycle().take(30)) {
            let block = SharedBlock::new(size);
            assert!(block.as_ptr().addr().is_multiple_of(ALIGNMENT));
            // SAFETY: the block has `size` bytes, and nothing else accesses them.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), size) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(number);
            blocks.push((block, size, number));
            if number % 7 == 0 {
                drop(blocks.remove(0));
            }
        }
        for (block, size, number) in blocks {
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
            assert!(bytes.iter().all(|byte| *byte == number));
        }
    }
}

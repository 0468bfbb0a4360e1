//! Device memory: a table from the host's handles to the driver's blocks.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use oarlock_sdk::{Memory, MemoryRange, PluginError, Result};

pub(super) struct BlockTable<B>(RwLock<BlockEntries<B>>);

struct BlockEntries<B> {
    /// Blocks with their sizes, by handle.
    blocks: HashMap<u64, (B, u64)>,
    taken: u64,
}

// Not derived: `#[derive(Default)]` would demand `B: Default`.
impl<B> Default for BlockEntries<B> {
    fn default() -> Self {
        Self { blocks: HashMap::new(), taken: 0 }
    }
}

impl<B: Clone> BlockTable<B> {
    pub(super) fn new() -> Self {
        Self(RwLock::default())
    }

    fn read_entries(&self) -> RwLockReadGuard<'_, BlockEntries<B>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_entries(&self) -> RwLockWriteGuard<'_, BlockEntries<B>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.read_entries().taken
    }

    pub(super) fn insert_block(&self, handle: u64, block: B, size: u64) -> Memory {
        let mut table = self.write_entries();
        table.taken += size;
        table.blocks.insert(handle, (block, size));
        Memory(handle)
    }

    /// Removes a block from the table; the caller frees it.
    pub(super) fn remove_block(&self, handle: Memory, size: u64) -> Result<B> {
        let mut table = self.write_entries();
        let (_, expected) = table.blocks.get(&handle.0).ok_or_else(|| unknown_block(handle))?;
        if *expected != size {
            return Err(PluginError::invalid_argument(format!(
                "expected a block to be given back with its {expected} bytes, found {size}"
            ))
            .with_rule("M-1"));
        }
        let (block, _) = table.blocks.remove(&handle.0).ok_or_else(|| unknown_block(handle))?;
        table.taken -= size;
        Ok(block)
    }

    /// Empties the table; the caller frees the blocks.
    pub(super) fn take_all_blocks(&self) -> Vec<B> {
        let table = std::mem::take(&mut *self.write_entries());
        table.blocks.into_values().map(|(block, _)| block).collect()
    }

    /// Looks up a block and checks that `begin..end` lies inside it.
    pub(super) fn block_range(&self, handle: Memory, begin: u64, end: u64) -> Result<B> {
        let table = self.read_entries();
        let (block, size) = table.blocks.get(&handle.0).ok_or_else(|| unknown_block(handle))?;
        if begin > end || end > *size {
            return Err(PluginError::out_of_range(format!(
                "expected bytes inside a block of {size}, found {begin} to {end}"
            ))
            .with_rule("M-2"));
        }
        Ok(block.clone())
    }

    /// Like [`BlockTable::block_range`], for an offset and a size.
    pub(super) fn block_with_range(&self, range: MemoryRange) -> Result<B> {
        let MemoryRange { memory: handle, offset, size } = range;
        let end = offset.checked_add(size).ok_or_else(|| {
            PluginError::out_of_range(format!(
                "expected a range inside a block, found {size} bytes from {offset} on"
            ))
            .with_rule("M-2")
        })?;
        self.block_range(handle, offset, end)
    }
}

fn unknown_block(handle: Memory) -> PluginError {
    PluginError::not_found(format!(
        "expected a block of this device that is not given back, found the handle {}",
        handle.0
    ))
    .with_rule("M-1")
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Code;

    use super::*;

    #[test]
    fn what_does_not_lie_in_a_block_is_refused() {
        let blocks = BlockTable::new();
        let block = blocks.insert_block(7, 'a', 100);
        assert_eq!(
            blocks.block_with_range(MemoryRange { memory: block, offset: 60, size: 40 }).unwrap(),
            'a'
        );
        let code = |result: Result<char>| result.unwrap_err().code();
        assert_eq!(
            code(blocks.block_with_range(MemoryRange { memory: block, offset: 61, size: 40 })),
            Code::OUT_OF_RANGE
        );
        assert_eq!(
            code(blocks.block_with_range(MemoryRange { memory: block, offset: u64::MAX, size: 2 })),
            Code::OUT_OF_RANGE
        );
        assert_eq!(code(blocks.block_range(block, 2, 1)), Code::OUT_OF_RANGE);
        assert_eq!(
            code(blocks.block_with_range(MemoryRange { memory: Memory(8), offset: 0, size: 1 })),
            Code::NOT_FOUND
        );
    }

    #[test]
    fn a_block_is_given_back_once_and_with_its_size() {
        let blocks = BlockTable::new();
        let block = blocks.insert_block(7, 'a', 100);
        assert_eq!(blocks.remove_block(block, 99).unwrap_err().code(), Code::INVALID_ARGUMENT);
        assert_eq!(
            (blocks.allocated_bytes(), blocks.remove_block(block, 100).unwrap(), blocks.allocated_bytes()),
            (100, 'a', 0)
        );
        assert_eq!(blocks.remove_block(block, 100).unwrap_err().code(), Code::NOT_FOUND);
    }
}

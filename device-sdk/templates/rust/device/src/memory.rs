//! The chip's memory. A block is a number; only the chip knows where its bytes are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{Memory, MemoryRange, PluginError, Result, ensure};

pub const SIZE: u64 = 1 << 30;
pub const ALIGNMENT: u32 = 64;

#[derive(Default)]
pub struct DeviceMemory(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    bytes: HashMap<u64, Vec<u8>>,
    last: u64,
    used: u64,
}

impl DeviceMemory {
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request that cannot be met fails with `resource_exhausted` and changes nothing (M-3). No
    /// block is 0.
    pub fn allocate(&self, size: u64) -> Result<Memory> {
        let mut blocks = self.blocks();
        let left = SIZE - blocks.used;
        ensure!(size <= left, resource_exhausted, "expected {left} bytes or fewer, found {size}");
        (blocks.used, blocks.last) = (blocks.used + size, blocks.last + 1);
        let block = blocks.last;
        blocks.bytes.insert(block, vec![0; size as usize]);
        Ok(Memory(block))
    }

    /// A block is freed once (M-1).
    pub fn deallocate(&self, block: Memory) -> Result<()> {
        let mut blocks = self.blocks();
        let freed = blocks.bytes.remove(&block.0).ok_or_else(unknown_block)?;
        blocks.used -= freed.len() as u64;
        Ok(())
    }

    pub fn used(&self) -> u64 {
        self.blocks().used
    }

    pub fn read(&self, range: MemoryRange) -> Result<Vec<u8>> {
        self.blocks().range(range).map(|bytes| bytes.to_vec())
    }

    pub fn write(&self, range: MemoryRange, bytes: &[u8]) -> Result<()> {
        self.blocks().range(range).map(|target| target.copy_from_slice(bytes))
    }
}

impl Blocks {
    /// A range lies in its block (M-2). An operand without elements has no block.
    fn range(&mut self, MemoryRange { memory, offset, size }: MemoryRange) -> Result<&mut [u8]> {
        if size == 0 {
            return Ok(&mut []);
        }
        let bytes = self.bytes.get_mut(&memory.0).ok_or_else(unknown_block)?;
        let end = offset.saturating_add(size);
        let found = bytes.len();
        ensure!(end <= found as u64, out_of_range, "expected a range in {found} bytes, found {end}");
        Ok(&mut bytes[offset as usize..end as usize])
    }
}

fn unknown_block() -> PluginError {
    PluginError::not_found("expected a block that is allocated, found none of this number")
}

//! Device memory: a table from the handles the host knows to the buffers of the driver.
//!
//! A buffer lives as long as a command that was put into a queue needs it, even when the host has given its block back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{Error, Memory, Result, ensure};
use opencl3::memory::Buffer;

/// One block.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) buffer: Arc<Buffer<u8>>,
    pub(crate) size: u64,
}

/// The blocks of one device.
#[derive(Default)]
pub(crate) struct Blocks(Mutex<Table>);

#[derive(Default)]
struct Table {
    blocks: HashMap<u64, Block>,
    taken: u64,
}

impl Blocks {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.table().taken
    }

    pub(crate) fn insert(&self, handle: u64, block: Block) -> Memory {
        let mut table = self.table();
        table.taken += block.size;
        table.blocks.insert(handle, block);
        Memory(handle)
    }

    pub(crate) fn remove(&self, handle: Memory, size: u64) -> Result<()> {
        let mut table = self.table();
        let block = table.blocks.get(&handle.0).ok_or_else(|| unknown(handle))?;
        ensure_size(block.size, size)?;
        table.blocks.remove(&handle.0);
        table.taken -= size;
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn clear(&self) {
        *self.table() = Table::default();
    }

    /// The block, if the bytes from `begin` to before `end` lie in it.
    pub(crate) fn range(&self, handle: Memory, begin: u64, end: u64) -> Result<Block> {
        let block = self.table().blocks.get(&handle.0).cloned().ok_or_else(|| unknown(handle))?;
        if begin > end || end > block.size {
            let size = block.size;
            return Err(Error::out_of_range(format!(
                "expected bytes inside a block of {size}, found {begin} to {end}"
            ))
            .rule("M-2"));
        }
        Ok(block)
    }

    /// The same for a range that is given by its size.
    pub(crate) fn sized(&self, handle: Memory, offset: u64, size: u64) -> Result<Block> {
        let end = offset.checked_add(size);
        ensure!(
            end.is_some(),
            out_of_range,
            "expected a range inside a block, found {size} bytes from {offset} on"
        );
        self.range(handle, offset, end.unwrap_or(u64::MAX))
    }
}

fn unknown(handle: Memory) -> Error {
    Error::not_found(format!(
        "expected a block of this device that is not given back, found the handle {}",
        handle.0
    ))
    .rule("M-1")
}

fn ensure_size(expected: u64, found: u64) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected a block to be given back with its {expected} bytes, found {found}"
    ))
    .rule("M-1"))
}

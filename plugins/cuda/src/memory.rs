//! Device memory: which blocks there are. A block's handle is its address on the device.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use oarlock_sdk::{Error, Memory, Result};

/// The sizes of the blocks of one device, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Blocks(RwLock<HashMap<u64, u64>>);

impl Blocks {
    pub(crate) fn insert(&self, address: u64, size: u64) -> Memory {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(address, size);
        Memory(address)
    }

    /// Forgets a block, which the caller then gives back.
    pub(crate) fn remove(&self, block: Memory, size: u64) -> Result<()> {
        let mut blocks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let expected = *blocks.get(&block.0).ok_or_else(|| unknown(block))?;
        if expected != size {
            return Err(Error::invalid_argument(format!(
                "expected a block to be given back with its {expected} bytes, found {size}"
            ))
            .rule("M-1"));
        }
        blocks.remove(&block.0);
        Ok(())
    }

    /// Forgets all blocks and says where they are.
    pub(crate) fn take(&self) -> Vec<u64> {
        let mut blocks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *blocks).into_keys().collect()
    }

    /// The address of a block, if the bytes from `begin` to before `end` lie in it.
    pub(crate) fn range(&self, block: Memory, begin: u64, end: u64) -> Result<u64> {
        let blocks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let size = *blocks.get(&block.0).ok_or_else(|| unknown(block))?;
        if begin > end || end > size {
            return Err(Error::out_of_range(format!(
                "expected bytes inside a block of {size}, found {begin} to {end}"
            ))
            .rule("M-2"));
        }
        Ok(block.0)
    }

    /// The address of the first of `size` bytes that lie in a block.
    pub(crate) fn sized(&self, block: Memory, offset: u64, size: u64) -> Result<u64> {
        let end = offset.checked_add(size).ok_or_else(|| {
            Error::out_of_range(format!(
                "expected a range inside a block, found {size} bytes from {offset} on"
            ))
            .rule("M-2")
        })?;
        Ok(self.range(block, offset, end)? + offset)
    }
}

fn unknown(block: Memory) -> Error {
    Error::not_found(format!(
        "expected a block of this device that is not given back, found the handle {:#x}",
        block.0
    ))
    .rule("M-1")
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Code;

    use super::*;

    #[test]
    fn what_does_not_lie_in_a_block_is_refused() {
        let blocks = Blocks::default();
        let block = blocks.insert(4096, 100);
        assert_eq!(blocks.sized(block, 60, 40).unwrap(), 4156);
        let code = |result: Result<u64>| result.unwrap_err().code();
        assert_eq!(code(blocks.sized(block, 61, 40)), Code::OUT_OF_RANGE);
        assert_eq!(code(blocks.sized(block, u64::MAX, 2)), Code::OUT_OF_RANGE);
        assert_eq!(code(blocks.range(block, 2, 1)), Code::OUT_OF_RANGE);
        assert_eq!(code(blocks.sized(Memory(4097), 0, 1)), Code::NOT_FOUND);
    }

    #[test]
    fn a_block_is_given_back_once_and_with_its_size() {
        let blocks = Blocks::default();
        let block = blocks.insert(4096, 100);
        assert_eq!(blocks.remove(block, 99).unwrap_err().code(), Code::INVALID_ARGUMENT);
        blocks.remove(block, 100).unwrap();
        assert_eq!(blocks.remove(block, 100).unwrap_err().code(), Code::NOT_FOUND);
    }
}

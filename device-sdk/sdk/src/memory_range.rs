//! Ranges of device memory.

use oarlock_abi::Memory;

/// A range of bytes in a block of device memory. The contract passes it as three arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// The block, as the plugin allocated it.
    pub memory: Memory,
    /// The start of the range in the block, in bytes.
    pub offset: u64,
    /// The length of the range, in bytes.
    pub size: u64,
}

//! Ranges of device memory.

use oarlock_abi::Memory;

/// Bytes of a block of device memory, from an offset on. The contract passes them as three arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// The block, as the plugin allocated it.
    pub memory: Memory,
    /// Where the range begins in the block, in bytes.
    pub offset: u64,
    /// The length of the range, in bytes.
    pub size: u64,
}

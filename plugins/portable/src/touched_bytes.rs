//! What a launch reads and writes of a block.

use oarlock_sdk::Memory;

/// The bytes `begin..end` of a block, which are all that a launch reads or writes there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TouchedBytes {
    pub(crate) block: Memory,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

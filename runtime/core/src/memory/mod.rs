//! Device memory: one pool for each device, which takes large chunks of it and hands out pieces in stream order.
//!
//! Asking a device for memory is slow and often waits for all its work, so what is given back is kept for the next
//! request. A piece that was let go on the stream it was allocated for can be used again on that stream at once, because
//! work there happens in order; any other stream gets it only when that use is past. The books are in `arena`, the way
//! sizes become chunks in `plan`, and what waits for streams in `pool`.

mod allocation;
mod arena;
mod bins;
mod chunk_policy;
mod pool;
mod staging;
mod statistics;

pub use allocation::DeviceAllocation;
pub use pool::MemoryPool;
pub use staging::StagingBuffer;
pub use statistics::{MemoryHolder, PoolStatistics};

pub use crate::flags::AllocatorStrategy as Strategy;

use crate::flags::Flags;

/// What fresh memory is filled with where that is asked for: not a number in every float type.
pub const FRESH_POISON: u8 = 0xFF;
/// What freed memory is filled with where that is asked for: a huge negative number in every float type.
pub const FREED_POISON: u8 = 0xFB;

/// How a pool is set up.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Whether it takes memory as it is needed, small requests sharing chunks and large ones having their own, or a large
    /// part at the first request that it then cuts up.
    pub strategy: Strategy,
    /// The most bytes it takes of the device.
    pub limit: Option<u64>,
    /// Whether memory is filled with a byte that is not zero before it is handed out and after it comes back, so that
    /// reads of memory that nobody wrote show.
    pub poison: bool,
    /// `BestFit`: the part of the free memory that the first chunk takes, from 0 to 1, where the device does not say how
    /// large it should be. Of memory that the host needs too much less is taken.
    pub fraction: f64,
    /// `BestFit`: the bytes of the first chunk, instead of what the device or the fraction says.
    pub initial: Option<u64>,
    /// `BestFit`: the bytes of further chunks, instead of what the device says or the first chunk had.
    pub further: Option<u64>,
    /// Whether an event is put behind every asynchronous launch, so that a failure names the very op that caused it.
    /// Without them a launch costs less, and a failure names all ops since the last wait.
    pub attribute_errors: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::AutoGrowth,
            limit: None,
            poison: false,
            fraction: 0.92,
            initial: None,
            further: None,
            attribute_errors: true,
        }
    }
}

impl PoolOptions {
    /// What the flags say.
    pub fn from_flags(flags: &Flags) -> Self {
        Self {
            strategy: flags.allocator_strategy(),
            limit: flags.nonzero_count("device_memory_limit"),
            poison: flags.is_enabled("poison_memory"),
            fraction: flags.fraction_value("device_memory_fraction"),
            initial: flags.nonzero_count("device_memory_initial"),
            further: flags.nonzero_count("device_memory_refill"),
            attribute_errors: flags.is_enabled("attribute_async_errors"),
        }
    }
}

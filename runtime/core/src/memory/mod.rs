//! Device memory: each device has a pool, which allocates large chunks from it and serves requests with pieces of them,
//! in stream order.
//!
//! Device allocation is slow and often waits for all work on the device, so the pool caches released memory for later
//! requests. When a piece is released on the stream that it was allocated for, that stream can reuse it immediately,
//! because its work runs in order; other streams must wait until the last use is past. The bookkeeping is in `chunk_table`, the choice
//! of chunk sizes in `chunk_policy`, and waiting for streams in `pool`.

mod chunk_policy;
mod chunk_table;
mod pool;
mod staging;
mod statistics;

pub use pool::{DeviceAllocation, MemoryPool};
pub use staging::StagingBuffer;
pub use statistics::{MemoryHolder, PoolStatistics};

pub use crate::flags::AllocatorStrategy;

use crate::flags::Flags;

/// The byte that fills fresh memory if poisoning is on. It reads as NaN in `f16`, `bf16`, `f32` and `f64`.
pub const FRESH_POISON: u8 = 0xFF;
/// The byte that fills freed memory if poisoning is on. It reads as a huge negative number in those types.
pub const FREED_POISON: u8 = 0xFB;

/// The options of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Grow on demand, with chunks shared by small requests and separate chunks for large ones; or allocate a large chunk
    /// at the first request and split it.
    pub strategy: AllocatorStrategy,
    /// The maximum number of bytes to allocate from the device.
    pub limit: Option<u64>,
    /// If true, fill memory with a nonzero byte when it is allocated and when it is released, to expose reads of
    /// uninitialized memory.
    pub poison: bool,
    /// `BestFit`: the size of the first chunk as a fraction of the free memory, from 0 to 1, unless the device specifies
    /// a size. Much less is allocated if the device shares memory with the host.
    pub fraction: f64,
    /// `BestFit`: the size of the first chunk in bytes, overriding the device and `fraction`.
    pub initial: Option<u64>,
    /// `BestFit`: the size of further chunks in bytes, overriding the device and the size of the first chunk.
    pub further: Option<u64>,
    /// If true, record an event after each asynchronous launch, so that a failure names exactly the op that caused it.
    /// Without events, launches are cheaper, but a failure names all ops since the last wait.
    pub attribute_errors: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            strategy: AllocatorStrategy::AutoGrowth,
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
    /// Reads the options from flags.
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

//! How a pool rounds requests, and the sizes of the chunks that it allocates from its device.

use oarlock_host::{DeviceFlags, MemorySizes, PluginDevice};

use crate::memory::chunk_table::ChunkKind;
use crate::memory::{AllocatorStrategy, PoolOptions};
use crate::{Error, Result};

/// The size of the largest dtype, so multiples of it are aligned for every dtype.
const LARGEST_ELEMENT: u64 = 16;
/// `AutoGrowth`: requests up to this size share chunks.
const LARGEST_SMALL: u64 = 1 << 20;
/// `AutoGrowth`: the size of shared chunks; the size of every other chunk is a multiple of it.
const CHUNK_SIZE: u64 = 2 << 20;
/// The largest first chunk on a device that shares memory with the host.
const MAX_SHARED_CHUNK: u64 = 500 << 20;
/// The maximum fraction of free shared memory for the first chunk.
const SHARED_FRACTION: f64 = 0.125;

/// Sizes derived from the properties of a device and the options of its pool.
#[derive(Clone, Debug)]
pub(super) struct ChunkPolicy {
    strategy: AllocatorStrategy,
    /// Sizes and offsets in chunks are multiples of this.
    pub(super) unit: u64,
    padding: u64,
    max_chunk: u64,
    max_alloc: u64,
    first: u64,
    further: u64,
}

/// A request after rounding.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundedRequest {
    pub(super) size: u64,
    pub(super) kind: ChunkKind,
}

impl ChunkPolicy {
    pub(super) fn for_device(device: &PluginDevice, options: &PoolOptions) -> Result<Self> {
        let failed = |failure| Error::from(failure).with_device(device);
        let description = device.describe_device().map_err(failed)?;
        let free = device.memory_stats().map_err(failed)?.free;
        let shared = description.flags.contains(DeviceFlags::SHARES_HOST_MEMORY);
        let sizes = device.memory_sizes().map_err(failed)?;
        Self::new(options, sizes, u64::from(description.memory_alignment), free, shared)
            .map_err(|error| error.with_device(device))
    }

    fn new(
        options: &PoolOptions,
        sizes: MemorySizes,
        alignment: u64,
        free: u64,
        shared: bool,
    ) -> Result<Self> {
        let multiple = |a: u64, b: u64| least_common_multiple(a.max(1), b.max(1));
        let unit = multiple(sizes.min_chunk, alignment).and_then(|unit| multiple(unit, LARGEST_ELEMENT));
        let unit = unit.ok_or_else(|| {
            let found = format!("{} and {alignment}", sizes.min_chunk);
            Error::invalid_argument(format!(
                "expected a smallest chunk and an alignment that go together, found {found}"
            ))
        })?;
        let fraction = options.fraction;
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::invalid_argument(format!(
                "expected a fraction of memory from 0 to 1, found {fraction}"
            )));
        }
        let fitting = if shared {
            ((free as f64 * SHARED_FRACTION) as u64).min(MAX_SHARED_CHUNK)
        } else {
            (free as f64 * fraction) as u64
        };
        // A device without a preference reports all of its memory here, which is no sensible chunk size.
        let explicit = |size: u64| (size < sizes.max_alloc).then_some(size);
        let first = options.initial.or_else(|| explicit(sizes.init_alloc)).unwrap_or(fitting);
        let further = options.further.or_else(|| explicit(sizes.realloc)).unwrap_or(first);
        Ok(Self {
            strategy: options.strategy,
            unit,
            padding: sizes.extra_padding,
            max_chunk: sizes.max_chunk,
            max_alloc: sizes.max_alloc,
            first,
            further,
        })
    }

    /// Rounds a request up; `None` if the size overflows.
    #[inline]
    pub(super) fn round_request(&self, size: u64) -> Option<RoundedRequest> {
        let padded = size.checked_add(self.padding)?;
        let size = if self.unit.is_power_of_two() {
            padded.checked_add(self.unit - 1)? & !(self.unit - 1)
        } else {
            padded.checked_next_multiple_of(self.unit)?
        };
        let kind = match self.strategy {
            _ if size > self.max_chunk => ChunkKind::Straight,
            AllocatorStrategy::AutoGrowth if size > LARGEST_SMALL => ChunkKind::Large,
            _ => ChunkKind::Shared,
        };
        Some(RoundedRequest { size, kind })
    }

    /// Chunk sizes to try for a request, in this order. The last one is just large enough.
    pub(super) fn chunk_sizes(
        &self,
        request: RoundedRequest,
        is_first: bool,
        room: u64,
    ) -> impl Iterator<Item = u64> {
        let most = room.min(self.max_alloc);
        let wish = match (self.strategy, request.kind) {
            (_, ChunkKind::Straight) => request.size,
            (AllocatorStrategy::AutoGrowth, _) => {
                request.size.checked_next_multiple_of(CHUNK_SIZE).unwrap_or(request.size)
            }
            (AllocatorStrategy::BestFit, _) => {
                if is_first {
                    self.first
                } else {
                    self.further
                }
            }
        };
        let wish = wish.min(most) / self.unit * self.unit;
        let smaller = |size: &u64| Some(size / 2 / self.unit * self.unit);
        let steps = std::iter::successors(Some(wish), smaller).take_while(move |size| *size > request.size);
        steps.chain(std::iter::once(request.size)).filter(move |size| *size <= room)
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const SIZES: MemorySizes = MemorySizes {
        min_chunk: 256,
        max_chunk: 64 * MIB,
        max_alloc: 100 * MIB,
        extra_padding: 32,
        init_alloc: 100 * MIB,
        realloc: 100 * MIB,
    };

    fn test_policy(strategy: AllocatorStrategy, sizes: MemorySizes, shared: bool) -> ChunkPolicy {
        let options = PoolOptions { strategy, ..PoolOptions::default() };
        ChunkPolicy::new(&options, sizes, 512, 100 * MIB, shared).unwrap()
    }

    fn all_chunk_sizes(plan: &ChunkPolicy, size: u64, is_first: bool) -> Vec<u64> {
        plan.chunk_sizes(plan.round_request(size).unwrap(), is_first, u64::MAX).collect()
    }

    #[test]
    fn a_request_takes_its_padding_and_is_rounded_up_to_the_smallest_chunk_and_the_alignment() {
        let plan = test_policy(AllocatorStrategy::AutoGrowth, SIZES, false);
        assert_eq!([1, 480, 481].map(|size| plan.round_request(size).unwrap().size), [512, 512, 1024]);
        assert!(plan.round_request(u64::MAX - 8).is_none());
        let odd = MemorySizes { min_chunk: 48, ..SIZES };
        let odd = ChunkPolicy::new(&PoolOptions::default(), odd, 64, MIB, false).unwrap();
        assert_eq!((odd.unit, odd.round_request(200).unwrap().size), (192, 384));
    }

    #[test]
    fn requests_above_the_largest_chunk_go_straight_to_the_device() {
        let plan = test_policy(AllocatorStrategy::BestFit, SIZES, false);
        assert_eq!(plan.round_request(64 * MIB - 32).unwrap().kind, ChunkKind::Shared);
        assert_eq!(plan.round_request(64 * MIB).unwrap().kind, ChunkKind::Straight);
        assert_eq!(all_chunk_sizes(&plan, 64 * MIB, true), [64 * MIB + 512]);
    }

    #[test]
    fn a_growing_pool_takes_small_chunks_and_settles_for_the_request_alone() {
        let plan = test_policy(AllocatorStrategy::AutoGrowth, SIZES, false);
        assert_eq!(
            all_chunk_sizes(&plan, 100, true),
            [2 * MIB, MIB, MIB / 2, MIB / 4, MIB / 8, 65536, 32768, 16384, 8192, 4096, 2048, 1024, 512]
        );
        assert_eq!(all_chunk_sizes(&plan, 3 * MIB, true), [4 * MIB, 3 * MIB + 512]);
    }

    #[test]
    fn best_fit_claims_less_memory_of_a_host_shared_device() {
        let own = test_policy(AllocatorStrategy::BestFit, SIZES, false);
        assert_eq!(all_chunk_sizes(&own, 40 * MIB, true)[..2], [92 * MIB, 46 * MIB]);
        let shared = test_policy(AllocatorStrategy::BestFit, SIZES, true);
        assert_eq!(all_chunk_sizes(&shared, MIB, true)[0], 100 * MIB / 8);
        let explicit = MemorySizes { init_alloc: 16 * MIB, realloc: 8 * MIB, ..SIZES };
        let explicit = test_policy(AllocatorStrategy::BestFit, explicit, false);
        assert_eq!(
            (all_chunk_sizes(&explicit, MIB, true)[0], all_chunk_sizes(&explicit, MIB, false)[0]),
            (16 * MIB, 8 * MIB)
        );
    }

    #[test]
    fn a_chunk_never_leaves_the_room_there_is() {
        let plan = test_policy(AllocatorStrategy::AutoGrowth, SIZES, false);
        let request = plan.round_request(1500).unwrap();
        assert_eq!(plan.chunk_sizes(request, true, 2048).collect::<Vec<_>>(), [2048, 1536]);
        assert_eq!(plan.chunk_sizes(request, true, 1024).count(), 0);
    }
}

//! The counters of a pool, and the out-of-memory error, which lists the largest users of memory.

use std::fmt;

use oarlock_host::PluginFailure;

use crate::Error;
use crate::stream::InternedLabel;

/// The maximum number of labels that the error lists.
const MAX_HOLDERS: usize = 8;

/// The counters of a pool. Bytes are counted after rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes that are currently allocated to the program.
    pub allocated: u64,
    /// Bytes that the pool has allocated from the device.
    pub reserved: u64,
    /// The maximum of `allocated`.
    pub peak_allocated: u64,
    /// The maximum of `reserved`.
    pub peak_reserved: u64,
    /// Requests that free pieces of the pool satisfied.
    pub hits: u64,
    /// Requests that free pieces did not satisfy.
    pub misses: u64,
    /// Successful allocations on the device.
    pub device_allocations: u64,
}

impl PoolStatistics {
    #[inline]
    pub(super) fn count_allocated(&mut self, size: u64) {
        self.allocated += size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
    }

    /// The device has allocated the bytes that were reserved in advance.
    pub(super) fn count_reserved(&mut self) {
        self.device_allocations += 1;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }
}

/// The memory that is allocated for one op or tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// The label of the op or tensor.
    pub label: InternedLabel,
    /// The total size in bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u64,
}

/// The failed request, for the error.
pub(super) struct MemoryShortage<'a> {
    pub(super) size: u64,
    pub(super) label: InternedLabel,
    pub(super) statistics: PoolStatistics,
    pub(super) largest_free: u64,
    pub(super) device_free: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) refusal: Option<PluginFailure>,
    pub(super) holders: &'a [MemoryHolder],
}

impl MemoryShortage<'_> {
    #[cold]
    pub(super) fn into_error(self) -> Error {
        let hint = match self.limit {
            Some(limit) if self.statistics.reserved.saturating_add(self.size) > limit => {
                "drop tensors that are not needed any more, use smaller ones, or raise the memory limit of the pool"
            }
            _ => {
                "drop tensors that are not needed any more, use smaller ones, or end other programs on the device"
            }
        };
        Error::resource_exhausted(self.to_string()).with_advice(hint)
    }
}

impl fmt::Display for MemoryShortage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolStatistics { allocated, reserved, .. } = self.statistics;
        write!(
            f,
            "expected {} of memory for `{}`, found at most {} in one piece in the pool, which has {} of which {} are held",
            HumanBytes(self.size),
            self.label,
            HumanBytes(self.largest_free),
            HumanBytes(reserved),
            HumanBytes(allocated)
        )?;
        if let Some(free) = self.device_free {
            write!(f, "; {} are free on the device", HumanBytes(free))?;
        }
        if let Some(limit) = self.limit {
            write!(f, "; the limit is {}", HumanBytes(limit))?;
        }
        if let Some(refusal) = &self.refusal {
            write!(f, "; the device reports: {}", oarlock_host::sanitize_text(&refusal.message))?;
        }
        if self.holders.is_empty() {
            return Ok(());
        }
        write!(f, "\n{:>12}  {:>8}  held by", "bytes", "pieces")?;
        for MemoryHolder { label, bytes, count } in self.holders.iter().take(MAX_HOLDERS) {
            write!(f, "\n{:>12}  {count:>8}  {label}", HumanBytes(*bytes).to_string())?;
        }
        match self.holders.get(MAX_HOLDERS..) {
            None | Some([]) => Ok(()),
            Some(rest) => {
                let (bytes, count) = rest
                    .iter()
                    .fold((0, 0), |(bytes, count), holder| (bytes + holder.bytes, count + holder.count));
                write!(f, "\n{:>12}  {count:>8}  {} others", HumanBytes(bytes).to_string(), rest.len())
            }
        }
    }
}

/// Formats bytes with a unit.
struct HumanBytes(u64);

impl fmt::Display for HumanBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|(power, _)| self.0 >= 1 << power) {
            Some((power, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << power) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

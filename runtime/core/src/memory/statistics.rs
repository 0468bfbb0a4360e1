//! What a pool counts, and the error that says why there is no memory and who has it.

use std::fmt;

use oarlock_host::Failure;

use crate::Error;
use crate::stream::Label;

/// How many holders an error lists.
const MOST_HOLDERS: usize = 8;

/// What a pool counts. Bytes are counted as they are taken up, which is rounded up from what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes that the program holds now.
    pub allocated: u64,
    /// Bytes that the pool has of the device now.
    pub reserved: u64,
    /// The most bytes the program held at once.
    pub peak_allocated: u64,
    /// The most bytes the pool had at once.
    pub peak_reserved: u64,
    /// Requests that were met with what the pool had at hand.
    pub hits: u64,
    /// Requests that were not.
    pub misses: u64,
    /// How often the device gave memory.
    pub device_allocations: u64,
}

impl Statistics {
    #[inline]
    pub(super) fn held(&mut self, size: u64) {
        self.allocated += size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
    }

    /// Notes that the device gave the memory that was set aside.
    pub(super) fn taken(&mut self) {
        self.device_allocations += 1;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }
}

/// What one op or tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The label of its allocations.
    pub label: Label,
    /// Bytes in all.
    pub bytes: u64,
    /// In how many allocations.
    pub count: u64,
}

/// What is known when a request cannot be met.
pub(super) struct Shortage<'a> {
    pub(super) size: u64,
    pub(super) label: Label,
    pub(super) statistics: Statistics,
    pub(super) largest_free: u64,
    pub(super) device_free: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) refusal: Option<Failure>,
    /// Largest first.
    pub(super) holders: &'a [Holder],
}

impl Shortage<'_> {
    /// The error that tells it.
    #[cold]
    pub(super) fn error(self) -> Error {
        let hint = match self.limit {
            Some(limit) if self.statistics.reserved.saturating_add(self.size) > limit => {
                "drop tensors that are not needed any more, use smaller ones, or raise the memory limit of the pool"
            }
            _ => {
                "drop tensors that are not needed any more, use smaller ones, or end other programs on the device"
            }
        };
        Error::resource_exhausted(self.to_string()).hint(hint)
    }
}

impl fmt::Display for Shortage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Statistics { allocated, reserved, .. } = self.statistics;
        write!(
            f,
            "expected {} of memory for `{}`, found at most {} in one piece in the pool, which has {} of which {} are held",
            Bytes(self.size),
            self.label,
            Bytes(self.largest_free),
            Bytes(reserved),
            Bytes(allocated)
        )?;
        if let Some(free) = self.device_free {
            write!(f, "; {} are free on the device", Bytes(free))?;
        }
        if let Some(limit) = self.limit {
            write!(f, "; the limit is {}", Bytes(limit))?;
        }
        if let Some(refusal) = &self.refusal {
            write!(f, "; the device says: {}", oarlock_host::clean_text(&refusal.message))?;
        }
        if self.holders.is_empty() {
            return Ok(());
        }
        write!(f, "\n{:>12}  {:>8}  held by", "bytes", "pieces")?;
        for Holder { label, bytes, count } in self.holders.iter().take(MOST_HOLDERS) {
            write!(f, "\n{:>12}  {count:>8}  {label}", Bytes(*bytes).to_string())?;
        }
        match self.holders.get(MOST_HOLDERS..) {
            None | Some([]) => Ok(()),
            Some(rest) => {
                let (bytes, count) = rest
                    .iter()
                    .fold((0, 0), |(bytes, count), holder| (bytes + holder.bytes, count + holder.count));
                write!(f, "\n{:>12}  {count:>8}  {} others", Bytes(bytes).to_string(), rest.len())
            }
        }
    }
}

/// A number of bytes as people read it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|(power, _)| self.0 >= 1 << power) {
            Some((power, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << power) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

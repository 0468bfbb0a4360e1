//! The isolated address space of one device: its allocations, and checks of every access.
//!
//! Every access must lie inside one live allocation, to the byte. Freed ranges stay in quarantine before they are reused, so the
//! address of freed memory means "freed" for a long time, and a late access is detected instead of served.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;

use crate::error::SimError;
use crate::mapping::DevicePages;
use oarlock_fault_script::FaultKind;

/// Alignment of every allocation in bytes.
pub const ALIGNMENT: u64 = 256;
/// Gap after every allocation; its addresses never belong to another one.
const GUARD_GAP: u64 = 256;
/// Fill byte of fresh memory.
pub const FRESH_POISON: u8 = 0xCD;
/// Fill byte of freed memory.
pub const FREED_POISON: u8 = 0xDB;

/// Memory use of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// The quota in bytes.
    pub total: u64,
    /// Bytes that can still be allocated.
    pub free: u64,
    /// The most bytes in use at any time.
    pub peak: u64,
    /// Number of live allocations.
    pub live: u64,
}

/// The start of an access: an offset from an address. The access must lie in the same allocation as the address, so an offset
/// that strays into a neighbor is detected however far it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress {
    /// A device address, usually the start of an allocation.
    pub address: u64,
    /// Bytes from the address to the first byte of the access.
    pub offset: u64,
}

impl DeviceAddress {
    /// The location `offset` bytes after `address`.
    pub fn new(address: u64, offset: u64) -> Self {
        Self { address, offset }
    }
}

impl From<u64> for DeviceAddress {
    fn from(address: u64) -> Self {
        Self { address, offset: 0 }
    }
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(formatter, "{:#x}", self.address),
            offset => write!(formatter, "{:#x} + {offset}", self.address),
        }
    }
}

/// Memory of one device. Offsets inside are relative to the first device address.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    pages: DevicePages,
    quota: u64,
    poison: bool,
    used: u64,
    peak: u64,
    /// Live allocations: offset to size.
    live: BTreeMap<u64, u64>,
    /// Freed allocations whose addresses were not reused yet: offset to size.
    freed: BTreeMap<u64, u64>,
    /// Free spaces: offset to length, never adjacent.
    spaces: BTreeMap<u64, u64>,
    /// Freed spaces that must not be reused yet, oldest first, with their lengths.
    quarantine: VecDeque<(u64, u64)>,
    quarantined: u64,
}

impl DeviceMemory {
    pub(crate) fn new(quota: u64, poison: bool) -> Result<Self, SimError> {
        // The quota in use, as much again in quarantine, and gaps between allocations.
        let capacity = quota.checked_mul(4).and_then(|bytes| bytes.checked_add(1 << 20));
        let capacity = capacity.and_then(|bytes| usize::try_from(bytes).ok());
        let capacity = capacity.ok_or_else(|| {
            SimError::invalid_argument(format!("a quota of {quota} bytes is more than there can be"))
        })?;
        let pages = DevicePages::new(capacity)?;
        let spaces = BTreeMap::from([(0, pages.byte_length() as u64)]);
        Ok(Self {
            pages,
            quota,
            poison,
            used: 0,
            peak: 0,
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            spaces,
            quarantine: VecDeque::new(),
            quarantined: 0,
        })
    }

    /// True if any address in the range belongs to this device.
    pub(crate) fn reserves_address(&self, address: u64, length: u64) -> bool {
        let base = self.pages.base_address();
        let end = base + self.pages.byte_length() as u64;
        address < end && address.saturating_add(length.max(1)) > base
    }

    pub(crate) fn memory_statistics(&self) -> MemoryStatistics {
        let free = self.quota.saturating_sub(self.used);
        MemoryStatistics { total: self.quota, free, peak: self.peak, live: self.live.len() as u64 }
    }

    pub(crate) fn allocate_block(&mut self, size: u64) -> Result<u64, SimError> {
        if size == 0 {
            return Err(SimError::invalid_argument(
                "an allocation of 0 bytes was asked for, expected at least 1",
            ));
        }
        if size > self.quota - self.used {
            return Err(self.out_of_memory(size, ""));
        }
        let footprint = allocation_footprint(size);
        let mut found = self.take_free_space(footprint);
        while found.is_none() && self.release_oldest_quarantined() {
            found = self.take_free_space(footprint);
        }
        let Some(offset) = found else {
            return Err(self.out_of_memory(size, ", and the free addresses are too scattered"));
        };
        let reused: Vec<u64> =
            self.freed.range(offset..offset + footprint).map(|(&start, _)| start).collect();
        for start in reused {
            self.freed.remove(&start);
        }
        self.live.insert(offset, size);
        self.used += size;
        self.peak = self.peak.max(self.used);
        if self.poison {
            self.pages.as_bytes_mut()[byte_range(offset, size)].fill(FRESH_POISON);
        }
        Ok(self.pages.base_address() + offset)
    }

    pub(crate) fn deallocate_block(&mut self, address: u64, size: u64) -> Result<(), SimError> {
        let offset = self.checked_offset(address)?;
        match self.live.get(&offset) {
            Some(&allocated) if allocated == size => {}
            Some(&allocated) => {
                return Err(SimError::invalid_argument(format!(
                    "the allocation at {address:#x} has {allocated} bytes but was freed with a size of {size} bytes"
                )));
            }
            None => return Err(self.invalid_free_error(offset)),
        }
        self.live.remove(&offset);
        self.freed.insert(offset, size);
        self.used -= size;
        if self.poison {
            self.pages.as_bytes_mut()[byte_range(offset, size)].fill(FREED_POISON);
        }
        let footprint = allocation_footprint(size);
        self.quarantine.push_back((offset, footprint));
        self.quarantined += footprint;
        while self.quarantined > self.quota && self.release_oldest_quarantined() {}
        Ok(())
    }

    /// The bytes of an access, after all checks.
    pub(crate) fn access_bytes(&self, place: DeviceAddress, length: u64) -> Result<&[u8], SimError> {
        Ok(&self.pages.as_bytes()[self.check_access(place, length)?])
    }

    /// The bytes of an access, for writing, after all checks.
    pub(crate) fn access_bytes_mut(
        &mut self,
        place: DeviceAddress,
        length: u64,
    ) -> Result<&mut [u8], SimError> {
        let range = self.check_access(place, length)?;
        Ok(&mut self.pages.as_bytes_mut()[range])
    }

    /// Copies inside the device; the ranges must not overlap, since no device defines that.
    pub(crate) fn copy_ranges(
        &mut self,
        target: DeviceAddress,
        source: DeviceAddress,
        length: u64,
    ) -> Result<(), SimError> {
        let from = self.check_access(source, length)?;
        let to = self.check_access(target, length)?;
        if from.start < to.end && to.start < from.end {
            return Err(SimError::invalid_argument(format!(
                "a copy of {length} bytes from {source} to {target} overlaps itself, expected separate ranges"
            )));
        }
        self.pages.as_bytes_mut().copy_within(from, to.start);
        Ok(())
    }

    fn check_access(&self, place: DeviceAddress, length: u64) -> Result<Range<usize>, SimError> {
        if length == 0 {
            return Ok(0..0);
        }
        let offset = self.checked_offset(place.address)?;
        let describe = |start: u64, size: u64| {
            format!("the allocation of {size} bytes at {:#x}", self.pages.base_address() + start)
        };
        let access = format_args!("an access of {length} bytes at {place}");
        let before = self.live.range(..=offset).next_back();
        if let Some((&start, &size)) = before.filter(|&(&start, &size)| offset < start + size) {
            let end = (offset - start).saturating_add(place.offset).saturating_add(length);
            if end <= size {
                return Ok(byte_range(offset + place.offset, length));
            }
            let (past, allocation) = (end - size, describe(start, size));
            return Err(SimError::invalid_argument(format!(
                "{access} runs {past} bytes past the end of {allocation}"
            )));
        }
        if let Some((start, size)) = self.find_freed_range(offset) {
            let message = format!("{access} lies in {}, which was freed", describe(start, size));
            return Err(SimError::new(FaultKind::UseAfterFree, message));
        }
        Err(SimError::invalid_argument(match before {
            Some((&start, &size)) => format!(
                "{access} lies in no allocation; it is {} bytes past the end of {}",
                offset - (start + size),
                describe(start, size)
            ),
            None => format!("{access} lies in no allocation of the device"),
        }))
    }

    fn checked_offset(&self, address: u64) -> Result<u64, SimError> {
        if self.reserves_address(address, 1) {
            return Ok(address - self.pages.base_address());
        }
        Err(SimError::invalid_argument(format!("{address:#x} is not an address of this device")))
    }

    fn find_freed_range(&self, offset: u64) -> Option<(u64, u64)> {
        let (&start, &size) = self.freed.range(..=offset).next_back()?;
        (offset < start + size).then_some((start, size))
    }

    fn invalid_free_error(&self, offset: u64) -> SimError {
        let address = self.pages.base_address() + offset;
        if self.freed.contains_key(&offset) {
            let message = format!("the allocation at {address:#x} was freed twice");
            return SimError::new(FaultKind::UseAfterFree, message);
        }
        match self.live.range(..offset).next_back() {
            Some((&start, &size)) if offset < start + size => SimError::invalid_argument(format!(
                "{address:#x} was freed, but it is {} bytes into an allocation that starts at {:#x}",
                offset - start,
                self.pages.base_address() + start
            )),
            _ => {
                SimError::invalid_argument(format!("{address:#x} was freed, but no allocation starts there"))
            }
        }
    }

    /// Takes the first space that is long enough, cut to size.
    fn take_free_space(&mut self, footprint: u64) -> Option<u64> {
        let (&offset, &length) = self.spaces.iter().find(|&(_, &length)| length >= footprint)?;
        self.spaces.remove(&offset);
        if length > footprint {
            self.spaces.insert(offset + footprint, length - footprint);
        }
        Some(offset)
    }

    /// Releases the oldest space from quarantine; false if there is none.
    fn release_oldest_quarantined(&mut self) -> bool {
        let Some((mut offset, mut length)) = self.quarantine.pop_front() else { return false };
        self.quarantined -= length;
        if let Some(after) = self.spaces.remove(&(offset + length)) {
            length += after;
        }
        if let Some((&before, &its_length)) = self.spaces.range(..offset).next_back()
            && before + its_length == offset
        {
            self.spaces.remove(&before);
            offset = before;
            length += its_length;
        }
        self.spaces.insert(offset, length);
        true
    }

    fn out_of_memory(&self, size: u64, detail: &str) -> SimError {
        let (used, quota) = (self.used, self.quota);
        SimError::new(
            FaultKind::OutOfMemory,
            format!(
                "cannot allocate {size} bytes: {used} of the device's quota of {quota} bytes are in use{detail}"
            ),
        )
    }
}

/// Addresses that an allocation occupies, gap included; only called for sizes below the quota, so it cannot overflow.
fn allocation_footprint(size: u64) -> u64 {
    size.next_multiple_of(ALIGNMENT) + GUARD_GAP
}

/// Offsets lie inside the pages, whose length is a `usize`, so the casts are lossless.
fn byte_range(offset: u64, length: u64) -> Range<usize> {
    offset as usize..(offset + length) as usize
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

//! Pages behind simulated memory; the only module that maps memory.
//!
//! Device memory exists twice. The program sees a *reservation*: addresses without any access, so a program that dereferences a
//! device pointer dies at once instead of working by luck. The engine sees the *store*: the bytes, mapped at another address and
//! reached only by translating. A third kind, *host pages*, is ordinary memory between two guard pages.
#![expect(unsafe_code, reason = "maps, unmaps and slices pages, which the language cannot check")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::error::SimError;
use oarlock_fault_script::FaultKind;

/// Mapping granularity: a multiple of the page size on every Linux target of Rust.
const PAGE_UNIT: usize = 64 * 1024;

/// A mapping that is unmapped when dropped.
#[derive(Debug)]
struct PageMapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is plain memory and not tied to the thread that created it.
unsafe impl Send for PageMapping {}
// SAFETY: shared access exposes only the address; the bytes are reached through the owners below, whose borrowing rules are those
// of a `Box<[u8]>`.
unsafe impl Sync for PageMapping {}

impl PageMapping {
    fn new(address: *mut c_void, length: usize) -> Result<Self, SimError> {
        match NonNull::new(address.cast()) {
            Some(start) => Ok(Self { start, length }),
            None => Err(SimError::new(FaultKind::OutOfMemory, "the system mapped memory at address zero")),
        }
    }

    /// Reserves addresses without access; they cost no memory.
    fn reserve_addresses(length: usize) -> Result<Self, SimError> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: with a null hint and without `FIXED` the system picks unused addresses, so no live memory is replaced.
        let address =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) };
        Self::new(address.map_err(|error| mapping_error("reserve", length, error))?, length)
    }

    fn base_address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // SAFETY: the range came from `mmap`, is owned by this value alone, and every slice of it borrows its owner.
        // A failure could only mean that the range is not mapped, and then there is nothing left to do.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

fn mapping_error(what: &str, length: usize, error: rustix::io::Errno) -> SimError {
    SimError::new(
        FaultKind::OutOfMemory,
        format!("cannot {what} {length} bytes of address space: {error}; a smaller `quota` needs less"),
    )
}

/// Memory of one device: addresses for the program, bytes for the engine.
#[derive(Debug)]
pub(crate) struct DevicePages {
    reservation: PageMapping,
    store: PageMapping,
}

impl DevicePages {
    /// Maps pages for at least `capacity` bytes; they cost nothing until written.
    pub(crate) fn new(capacity: usize) -> Result<Self, SimError> {
        let length = capacity.max(1).next_multiple_of(PAGE_UNIT);
        let file = rustix::fs::memfd_create("oarlock-sim", MemfdFlags::CLOEXEC)
            .map_err(|error| mapping_error("create a file for", length, error))?;
        rustix::fs::ftruncate(&file, length as u64)
            .map_err(|error| mapping_error("size a file for", length, error))?;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint without `FIXED` replaces no live memory. The file is new, is at least `length` bytes long and is
        // closed at the end of this function, so nothing else can shrink or change it under the mapping.
        let address = unsafe { rustix::mm::mmap(ptr::null_mut(), length, access, flags, &file, 0) };
        let store = PageMapping::new(address.map_err(|error| mapping_error("map", length, error))?, length)?;
        Ok(Self { reservation: PageMapping::reserve_addresses(length)?, store })
    }

    /// The first device address.
    pub(crate) fn base_address(&self) -> u64 {
        self.reservation.base_address()
    }

    /// Size in bytes.
    pub(crate) fn byte_length(&self) -> usize {
        self.store.length
    }

    /// All bytes, by offset from the base.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the store is `length` bytes, readable, zero-initialized by the system, and changes only through `as_bytes_mut`,
        // which the borrow checker keeps apart from this borrow.
        unsafe { std::slice::from_raw_parts(self.store.start.as_ptr(), self.store.length) }
    }

    /// All bytes, for writing.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_bytes`; the store is writable too, and `&mut self` makes this the only view of it.
        unsafe { std::slice::from_raw_parts_mut(self.store.start.as_ptr(), self.store.length) }
    }
}

/// Host memory with a guard page on either side.
#[derive(Debug)]
pub(crate) struct HostPages {
    mapping: PageMapping,
    length: usize,
}

impl HostPages {
    /// Maps pages for `length` bytes, all set to `fill`.
    pub(crate) fn new(length: usize, fill: u8) -> Result<Self, SimError> {
        let too_long =
            || SimError::new(FaultKind::OutOfMemory, format!("{length} bytes is more than there can be"));
        let inner = length.checked_next_multiple_of(PAGE_UNIT).ok_or_else(too_long)?;
        let outer = inner.checked_add(2 * PAGE_UNIT).ok_or_else(too_long)?;
        let pages = Self { mapping: PageMapping::reserve_addresses(outer)?, length };
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range lies inside the mapping made above, which nothing else knows of yet.
        unsafe { rustix::mm::mprotect(pages.as_pointer().cast(), inner, access) }
            .map_err(|error| mapping_error("open", inner, error))?;
        // SAFETY: the `inner` bytes at the pointer are now writable, and nothing else knows of them yet.
        unsafe { pages.as_pointer().write_bytes(fill, inner) };
        Ok(pages)
    }

    /// Frees the bytes and makes their addresses fault for the life of the returned value.
    pub(crate) fn close_pages(self) -> ClosedPages {
        let Self { mapping, length } = self;
        let (start, outer) = (mapping.start.as_ptr().cast(), mapping.length);
        // SAFETY: the mapping is owned here and its bytes are given up with `self`; host code that still reads them is the bug
        // that the fault is meant to find.
        let closed = unsafe {
            rustix::mm::mprotect(start, outer, MprotectFlags::empty())
                .and_then(|()| rustix::mm::madvise(start, outer, rustix::mm::Advice::LinuxDontNeed))
        };
        // If `mprotect` fails, a late access goes unnoticed, which is no worse than on a real device.
        let _ = closed;
        ClosedPages { mapping, length }
    }

    /// The address of the first byte.
    pub(crate) fn as_pointer(&self) -> *mut u8 {
        self.mapping.start.as_ptr().wrapping_add(PAGE_UNIT)
    }

    /// The requested size in bytes.
    pub(crate) fn byte_length(&self) -> u64 {
        self.length as u64
    }
}

/// Addresses of freed host memory, reserved so that nothing else is mapped there.
#[derive(Debug)]
pub(crate) struct ClosedPages {
    mapping: PageMapping,
    length: usize,
}

impl ClosedPages {
    /// True if the address lies in the freed bytes.
    pub(crate) fn contains_address(&self, address: u64) -> bool {
        let start = self.mapping.base_address() + PAGE_UNIT as u64;
        (start..start + self.length as u64).contains(&address)
    }
}

/// Host memory that a copy reads or writes, possibly later and on another thread.
///
/// The C contract passes raw pointers and says how long they stay valid; this type carries that promise to the moment when the
/// copy runs. Nothing else in the engine dereferences such a pointer.
#[derive(Clone, Copy, Debug)]
pub struct HostSpan {
    start: *mut u8,
    length: usize,
}

// SAFETY: the promise made to `HostSpan::new` covers use on any thread.
unsafe impl Send for HostSpan {}

impl HostSpan {
    /// Creates a span of `length` bytes at `start`; `start` may be null if `length` is zero.
    ///
    /// # Safety
    /// Until the operation that gets the span has run, or the engine is shut down, the bytes must stay valid on any thread: for
    /// reads if the span is a copy's source, for writes if it is a copy's destination. Nothing may write a source or touch a
    /// destination while the copy runs. A span in device memory, or in freed pinned memory of the same engine, breaks no promise:
    /// the engine detects and reports it.
    pub unsafe fn new(start: *mut u8, length: usize) -> Self {
        Self { start, length }
    }

    /// The address of the first byte.
    pub fn base_address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Length in bytes.
    pub fn byte_length(&self) -> usize {
        self.length
    }

    /// Copies the host bytes into `target`, which must be as long as the span.
    pub(crate) fn read_into(&self, target: &mut [u8]) {
        assert_eq!(target.len(), self.length, "a host copy was given a device range of another length");
        if self.length > 0 {
            // SAFETY: the creator of the span promised `length` readable bytes, the lengths agree, and `target` is a unique
            // borrow of the engine's own store, which no host pointer can reach.
            unsafe { ptr::copy_nonoverlapping(self.start, target.as_mut_ptr(), self.length) };
        }
    }

    /// Copies `source`, which must be as long as the span, into the host bytes.
    pub(crate) fn write_from(&self, source: &[u8]) {
        assert_eq!(source.len(), self.length, "a host copy was given a device range of another length");
        if self.length > 0 {
            // SAFETY: the creator of the span promised `length` writable bytes, the lengths agree, and `source` lies in the
            // engine's own store, which no host pointer can reach.
            unsafe { ptr::copy_nonoverlapping(source.as_ptr(), self.start, self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_addresses_and_the_store_are_different_places() {
        let mut pages = DevicePages::new(100).unwrap();
        pages.as_bytes_mut()[99] = 7;
        assert_eq!(pages.as_bytes()[99], 7);
        assert_ne!(pages.base_address(), pages.as_bytes().as_ptr().addr() as u64);
        assert!(pages.byte_length() >= 100);
    }

    #[test]
    fn absurd_lengths_are_errors() {
        assert_eq!(HostPages::new(usize::MAX, 0).unwrap_err().kind, FaultKind::OutOfMemory);
        assert_eq!(HostPages::new(usize::MAX - 4 * PAGE_UNIT, 0).unwrap_err().kind, FaultKind::OutOfMemory);
    }
}

//! A file in memory that both processes map.

#![expect(unsafe_code, reason = "the memory is shared with a process that may write to it at any time")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{
    ANSWER_AT, ARENA_AT, LANE_BYTES, LANES, LANES_AT, LaneWords, REPLY_AT, REPLY_BYTES, REQUEST_BYTES,
    REQUEST_SLOTS, REQUESTS_AT, RegionWords, STAGING_AT, STAGING_BYTES, STAGING_PIECES,
};
use crate::wire::WireBreach;

/// The mapped memory. Pages take memory only once they are used.
#[derive(Debug)]
pub(crate) struct SharedRegion {
    base: NonNull<u8>,
    size: usize,
    file: OwnedFd,
}

// SAFETY: the memory is accessed through atomic words and copies of bytes, for which threads are coordinated by those words.
unsafe impl Send for SharedRegion {}
// SAFETY: as above.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// Creates a region with this much room for data. Its size is sealed: a child that shortened the file would crash the host.
    pub(crate) fn create_region(arena_bytes: usize) -> io::Result<Self> {
        let file =
            rustix::fs::memfd_create("oarlock-isolation", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let size = ARENA_AT + arena_bytes;
        rustix::fs::ftruncate(&file, size as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::map_file(file, size)
    }

    /// Maps the region that the parent has created.
    pub(crate) fn open_region(file: OwnedFd) -> io::Result<Self> {
        let size = File::from(file.try_clone()?).metadata()?.len();
        Self::map_file(file, usize::try_from(size).map_err(io::Error::other)?)
    }

    fn map_file(file: OwnedFd, size: usize) -> io::Result<Self> {
        if size < ARENA_AT {
            return Err(io::Error::other(format!(
                "expected at least {ARENA_AT} bytes of shared memory, found {size}"
            )));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size,
                access,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &file,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { base, size, file })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn words(&self) -> &RegionWords {
        // SAFETY: the region starts with the words, which are atomic, and is mapped as long as it is borrowed.
        unsafe { self.base.cast().as_ref() }
    }

    pub(crate) fn lane(&self, index: usize) -> LaneMemory<'_> {
        assert!(index < LANES, "a lane that exists");
        // SAFETY: the region has room for all lanes.
        let base = unsafe { self.base.add(LANES_AT + index * LANE_BYTES) };
        LaneMemory { base, _region: std::marker::PhantomData }
    }

    /// The size of the arena.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.size - ARENA_AT
    }

    /// The address of a range of the region, which includes the arena.
    pub(crate) fn range_address(&self, offset: u64, size: u64) -> Result<*mut u8, WireBreach> {
        if offset.checked_add(size).is_none_or(|end| end > self.size as u64) {
            let expected = format!("a range in {} bytes of shared memory", self.size);
            return Err(WireBreach::new(expected, format!("{size} bytes from {offset}")));
        }
        // SAFETY: the range is inside the region.
        Ok(unsafe { self.base.add(offset as usize) }.as_ptr())
    }

    /// The offset of an address, if all of these bytes are in the arena.
    pub(crate) fn arena_offset(&self, address: u64, size: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base.as_ptr() as u64)?;
        let end = offset.checked_add(size)?;
        (offset >= ARENA_AT as u64 && end <= self.size as u64).then_some(offset)
    }

    /// Returns the memory behind whole pages to the system. They read as zero from then on.
    pub(crate) fn forget_pages(&self, offset: u64, size: u64) {
        // If the system cannot, the pages stay, which costs memory and nothing else.
        _ = rustix::fs::fallocate(
            &self.file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            offset,
            size,
        );
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping is the region's own, and whoever used an address of it is gone.
        _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// One lane of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneMemory<'a> {
    base: NonNull<u8>,
    _region: std::marker::PhantomData<&'a SharedRegion>,
}

impl<'a> LaneMemory<'a> {
    pub(crate) fn words(self) -> &'a LaneWords {
        // SAFETY: the lane starts with the words, which are atomic, and the region is borrowed for `'a`.
        unsafe { self.base.cast().as_ref() }
    }

    /// Writes a request into the place for this number. The child is past the request that was there before.
    pub(crate) fn write_request(self, number: u32, bytes: &[u8]) -> bool {
        self.write_sized(
            REQUESTS_AT + (number as usize % REQUEST_SLOTS) * REQUEST_BYTES,
            REQUEST_BYTES,
            bytes,
        )
    }

    /// Copies a request out.
    pub(crate) fn read_request(self, number: u32, into: &mut Vec<u8>) -> Result<(), WireBreach> {
        self.read_sized(REQUESTS_AT + (number as usize % REQUEST_SLOTS) * REQUEST_BYTES, REQUEST_BYTES, into)
    }

    pub(crate) fn write_reply(self, bytes: &[u8]) -> bool {
        self.write_sized(REPLY_AT, REPLY_BYTES, bytes)
    }

    pub(crate) fn read_reply(self, into: &mut Vec<u8>) -> Result<(), WireBreach> {
        self.read_sized(REPLY_AT, REPLY_BYTES, into)
    }

    pub(crate) fn write_answer(self, bytes: &[u8]) -> bool {
        self.write_sized(ANSWER_AT, REPLY_BYTES, bytes)
    }

    pub(crate) fn read_answer(self, into: &mut Vec<u8>) -> Result<(), WireBreach> {
        self.read_sized(ANSWER_AT, REPLY_BYTES, into)
    }

    /// A size, then the bytes; false if they do not fit.
    fn write_sized(self, at: usize, room: usize, bytes: &[u8]) -> bool {
        if bytes.len() > room - size_of::<u32>() {
            return false;
        }
        // SAFETY: the room is inside the lane, and aligned to its size, which is at least that of the number.
        unsafe {
            let place = self.base.add(at);
            place.cast::<u32>().write_volatile(bytes.len() as u32);
            place.add(size_of::<u32>()).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
        true
    }

    /// Copies the size first, then that many bytes, so that a later change by the other side has no effect.
    fn read_sized(self, at: usize, room: usize, into: &mut Vec<u8>) -> Result<(), WireBreach> {
        into.clear();
        // SAFETY: the room is inside the lane and aligned.
        let place = unsafe { self.base.add(at) };
        // SAFETY: as above.
        let size = unsafe { place.cast::<u32>().read_volatile() } as usize;
        if size > room - size_of::<u32>() {
            return Err(WireBreach::new(
                format!("a message of at most {room} bytes"),
                format!("one of {size}"),
            ));
        }
        into.reserve(size);
        // SAFETY: the bytes are inside the lane, the vector has room for them, and any bytes are values.
        unsafe {
            std::ptr::copy_nonoverlapping(place.add(size_of::<u32>()).as_ptr(), into.as_mut_ptr(), size);
            into.set_len(size);
        }
        Ok(())
    }

    /// The staging buffer with this number.
    pub(crate) fn staging(self, piece: usize) -> *mut u8 {
        // SAFETY: the lane has room for that many pieces.
        unsafe { self.base.add(STAGING_AT + (piece % STAGING_PIECES) * STAGING_BYTES) }.as_ptr()
    }

    /// The offset of a staging buffer in the region.
    pub(crate) fn staging_offset(lane: usize, piece: usize) -> u64 {
        (LANES_AT + lane * LANE_BYTES + STAGING_AT + (piece % STAGING_PIECES) * STAGING_BYTES) as u64
    }
}

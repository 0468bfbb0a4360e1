//! Memory of the CPU device: the host's own, in blocks that the widest vector registers can load from.

#![expect(unsafe_code, reason = "the device hands out raw memory and copies to and from it")]

mod kept;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use oarlock_sdk::{Error, Memory, Result};

pub(crate) use self::kept::Kept;

/// Wide enough for a cache line and for AVX-512.
pub(crate) const ALIGNMENT: usize = 64;
/// The huge pages of most machines. A processor walks over a large block faster when it has few pages to look up.
const HUGE_PAGE: usize = 2 << 20;
/// Blocks from here on begin at a huge page, and the system is asked for such pages.
const LARGE: usize = HUGE_PAGE;

pub(crate) fn allocate(size: u64) -> Result<Memory> {
    let layout = layout(size)?;
    // SAFETY: the layout is not of size 0.
    let address = unsafe { alloc(layout) };
    if address.is_null() {
        return Err(
            Error::resource_exhausted(format!("expected {size} bytes of memory, found less")).rule("M-3")
        );
    }
    ask_for_huge_pages(address, layout.size());
    Ok(Memory(address as u64))
}

/// A block of the plugin's own.
struct Block {
    address: NonNull<u8>,
    layout: Layout,
}

// SAFETY: this owns the block, which is bytes.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new(size: usize) -> Self {
        let layout = layout(size.max(1) as u64).expect("a size that fits into memory");
        // SAFETY: the layout is not of size 0.
        let address = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        // Pages are had when they are first written.
        ask_for_huge_pages(address.as_ptr(), layout.size());
        Self { address, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block is of this layout, and nothing reaches it any more.
        unsafe { dealloc(self.address.as_ptr(), self.layout) };
    }
}

/// A block of the plugin's own that was zeroed.
pub(crate) struct Zeroed(Block);

impl Zeroed {
    pub(crate) fn new(size: usize) -> Self {
        let block = Block::new(size);
        // SAFETY: all of the block is written.
        unsafe { block.address.write_bytes(0, block.layout.size()) };
        Self(block)
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0.address.as_ptr()
    }
}

/// Asks the system to back whole huge pages of a fresh block as such. It may say no, which costs speed only.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(address: *mut u8, size: usize) {
    if size >= LARGE {
        // SAFETY: the range lies in a block of the caller's, and the advice changes nothing that it can see.
        unsafe { libc::madvise(address.cast(), size / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_address: *mut u8, _size: usize) {}

pub(crate) fn deallocate(block: Memory, size: u64) -> Result<()> {
    let layout = layout(size)?;
    let address = address(block, 0)?;
    // SAFETY: the caller gives back a block it got from `allocate` with the size it asked for (rule M-1).
    unsafe { dealloc(address, layout) };
    Ok(())
}

/// Copies into a block. The caller keeps the range inside of it (rule M-2).
pub(crate) fn write(target: Memory, offset: u64, source: &[u8]) -> Result<()> {
    let target = address(target, offset)?;
    // SAFETY: the range lies in a block of the caller's (rule M-2), which is memory of its own.
    unsafe { ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) };
    Ok(())
}

/// Copies out of a block.
pub(crate) fn read(target: &mut [u8], source: Memory, offset: u64) -> Result<()> {
    let source = address(source, offset)?;
    // SAFETY: as for `write`.
    unsafe { ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) };
    Ok(())
}

/// Copies between two ranges, which may turn out to overlap: that is the caller's breach and not ours to crash over.
pub(crate) fn copy(target: Memory, to: u64, source: Memory, from: u64, size: u64) -> Result<()> {
    let (target, source) = (address(target, to)?, address(source, from)?);
    // SAFETY: as for `write`.
    unsafe { ptr::copy(source, target, length(size)?) };
    Ok(())
}

pub(crate) fn fill(target: Memory, offset: u64, byte: u8, size: u64) -> Result<()> {
    let target = address(target, offset)?;
    // SAFETY: as for `write`.
    unsafe { ptr::write_bytes(target, byte, length(size)?) };
    Ok(())
}

fn address(block: Memory, offset: u64) -> Result<*mut u8> {
    let sum = block.0.checked_add(offset).filter(|_| block.0 != 0);
    let address =
        sum.ok_or_else(|| Error::invalid_argument(format!("expected a block of memory, found {}", block.0)))?;
    Ok(address as *mut u8)
}

fn layout(size: u64) -> Result<Layout> {
    let bytes = length(size)?;
    let alignment = if bytes >= LARGE { HUGE_PAGE } else { ALIGNMENT };
    let layout = Layout::from_size_align(bytes, alignment).ok().filter(|layout| layout.size() > 0);
    layout.ok_or_else(|| {
        Error::resource_exhausted(format!("expected a size that fits into memory, found {size} bytes"))
            .rule("M-3")
    })
}

fn length(size: u64) -> Result<usize> {
    usize::try_from(size).map_err(|_| {
        Error::resource_exhausted(format!("expected a size that fits into memory, found {size}"))
    })
}

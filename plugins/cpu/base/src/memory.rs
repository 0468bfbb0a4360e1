//! Memory of the CPU device: host memory, in blocks aligned for the widest vector registers.

#![expect(unsafe_code, reason = "the device hands out raw memory and copies to and from it")]

mod shared_blocks;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use oarlock_sdk::{Memory, MemoryRange, PluginError, Result};

pub use self::shared_blocks::SharedBlock;

/// A cache line, which is also the size of a zmm register.
pub const ALIGNMENT: usize = 64;
/// The usual size of huge pages. A large block in few pages needs few TLB entries.
const HUGE_PAGE: usize = 2 << 20;
/// Blocks of at least this size are aligned to huge pages, and the system is advised to use them.
const LARGE_BLOCK: usize = HUGE_PAGE;

pub fn allocate_block(size: u64) -> Result<Memory> {
    let layout = block_layout(size)?;
    // SAFETY: the layout is not of size 0.
    let address = unsafe { alloc(layout) };
    if address.is_null() {
        return Err(PluginError::resource_exhausted(format!("expected {size} bytes of memory, found less"))
            .with_rule("M-3"));
    }
    advise_huge_pages(address, layout.size());
    Ok(Memory(address as u64))
}

/// A block of the plugin's own.
struct AllocatedBlock {
    address: NonNull<u8>,
    layout: Layout,
}

// SAFETY: this owns the block, which is plain bytes.
unsafe impl Send for AllocatedBlock {}
// SAFETY: as above.
unsafe impl Sync for AllocatedBlock {}

impl AllocatedBlock {
    fn new(size: usize) -> Self {
        let layout = block_layout(size.max(1) as u64).expect("a size that fits into memory");
        // SAFETY: the layout is not of size 0.
        let address = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        // Before the first write, since that is when the system assigns pages.
        advise_huge_pages(address.as_ptr(), layout.size());
        Self { address, layout }
    }
}

impl Drop for AllocatedBlock {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this layout, and nothing refers to it any more.
        unsafe { dealloc(self.address.as_ptr(), self.layout) };
    }
}

/// A zeroed block of the plugin's own.
pub struct ZeroedBlock(AllocatedBlock);

impl ZeroedBlock {
    pub fn new(size: usize) -> Self {
        let block = AllocatedBlock::new(size);
        // SAFETY: all of the block is written.
        unsafe { block.address.write_bytes(0, block.layout.size()) };
        Self(block)
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.0.address.as_ptr()
    }
}

/// Asks the system to back the whole huge pages of a fresh block with huge pages. A refusal only costs speed.
#[cfg(target_os = "linux")]
fn advise_huge_pages(address: *mut u8, size: usize) {
    if size >= LARGE_BLOCK {
        // SAFETY: the range lies in the caller's block, and the advice does not change its contents.
        unsafe { libc::madvise(address.cast(), size / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_address: *mut u8, _size: usize) {}

pub fn deallocate_block(block: Memory, size: u64) -> Result<()> {
    let layout = block_layout(size)?;
    let address = range_address(MemoryRange { memory: block, offset: 0, size })?;
    // SAFETY: the caller returns a block from `allocate`, with the size it requested (rule M-1).
    unsafe { dealloc(address, layout) };
    Ok(())
}

/// Copies into a block. The caller guarantees that the range lies within it (rule M-2).
pub fn write_block(target: MemoryRange, source: &[u8]) -> Result<()> {
    let target = range_address(target)?;
    // SAFETY: the range lies in a block of the caller's (rule M-2), which does not overlap `source`.
    unsafe { ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) };
    Ok(())
}

/// Copies out of a block.
pub fn read_block(target: &mut [u8], source: MemoryRange) -> Result<()> {
    let source = range_address(source)?;
    // SAFETY: as for `write_block`.
    unsafe { ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) };
    Ok(())
}

/// Copies between two ranges. Overlapping ranges break the caller's contract, but `ptr::copy` handles them, so they are not
/// undefined behavior here.
pub fn copy_block(target: MemoryRange, source: MemoryRange) -> Result<()> {
    let (to, from) = (range_address(target)?, range_address(source)?);
    // SAFETY: as for `write_block`.
    unsafe { ptr::copy(from, to, size_to_usize(source.size)?) };
    Ok(())
}

pub fn fill_block(target: MemoryRange, byte: u8) -> Result<()> {
    let address = range_address(target)?;
    // SAFETY: as for `write_block`.
    unsafe { ptr::write_bytes(address, byte, size_to_usize(target.size)?) };
    Ok(())
}

fn range_address(MemoryRange { memory: block, offset, .. }: MemoryRange) -> Result<*mut u8> {
    let sum = block.0.checked_add(offset).filter(|_| block.0 != 0);
    let address = sum.ok_or_else(|| {
        PluginError::invalid_argument(format!("expected a block of memory, found {}", block.0))
    })?;
    Ok(address as *mut u8)
}

fn block_layout(size: u64) -> Result<Layout> {
    let bytes = size_to_usize(size)?;
    let alignment = if bytes >= LARGE_BLOCK { HUGE_PAGE } else { ALIGNMENT };
    let layout = Layout::from_size_align(bytes, alignment).ok().filter(|layout| layout.size() > 0);
    layout.ok_or_else(|| {
        PluginError::resource_exhausted(format!("expected a size that fits into memory, found {size} bytes"))
            .with_rule("M-3")
    })
}

fn size_to_usize(size: u64) -> Result<usize> {
    usize::try_from(size).map_err(|_| {
        PluginError::resource_exhausted(format!("expected a size that fits into memory, found {size}"))
    })
}

//! Host memory as a device, on which kernels for the processor are checked without any plugin that drives one.

#![expect(unsafe_code, reason = "the slots are called through pointers and work on raw memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

use oarlock_abi as abi;

/// The alignment of every block, that of a cache line.
const BLOCK_ALIGNMENT: usize = 64;

/// A core table whose blocks are addresses in this process. It holds what checks of kernels need, and ignores its context.
pub fn host_memory_table() -> abi::CoreTable {
    abi::CoreTable {
        device_synchronize: Some(synchronize),
        memory_allocate: Some(allocate),
        memory_deallocate: Some(deallocate),
        memory_copy_h2d: Some(copy_from_host),
        memory_copy_d2h: Some(copy_to_host),
        min_chunk_size: Some(min_chunk_size),
        ..abi::CoreTable::EMPTY
    }
}

fn block_layout(size: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(size).ok()?.max(1), BLOCK_ALIGNMENT).ok()
}

unsafe extern "C" fn synchronize(_: *mut c_void, _: u32) -> abi::Error {
    abi::Error::NONE
}

/// Leaves the block 0 if there is no memory, which the caller notices: an error needs a host.
unsafe extern "C" fn allocate(_: *mut c_void, _: u32, size: u64, block: *mut abi::Memory) -> abi::Error {
    // SAFETY: the layout is not empty, and the caller lets the slot write the block.
    unsafe {
        let address = block_layout(size).map_or(std::ptr::null_mut(), |layout| alloc_zeroed(layout));
        *block = abi::Memory(address.expose_provenance() as u64);
    }
    abi::Error::NONE
}

unsafe extern "C" fn deallocate(_: *mut c_void, _: u32, block: abi::Memory, size: u64) -> abi::Error {
    if let Some(layout) = block_layout(size) {
        // SAFETY: a block is freed once, with the size that it was allocated with (rule M-1).
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(block.0 as usize), layout) };
    }
    abi::Error::NONE
}

unsafe extern "C" fn copy_from_host(
    _: *mut c_void,
    _: u32,
    block: abi::Memory,
    offset: u64,
    source: *const c_void,
    size: u64,
) -> abi::Error {
    let target = std::ptr::with_exposed_provenance_mut::<u8>((block.0 + offset) as usize);
    // SAFETY: the range lies within the block (rule M-2), and the suite's own buffer is elsewhere.
    unsafe { std::ptr::copy_nonoverlapping(source.cast::<u8>(), target, size as usize) };
    abi::Error::NONE
}

unsafe extern "C" fn copy_to_host(
    _: *mut c_void,
    _: u32,
    target: *mut c_void,
    size: u64,
    block: abi::Memory,
    offset: u64,
) -> abi::Error {
    let source = std::ptr::with_exposed_provenance::<u8>((block.0 + offset) as usize);
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(source, target.cast::<u8>(), size as usize) };
    abi::Error::NONE
}

unsafe extern "C" fn min_chunk_size(_: *mut c_void, _: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the caller lets the slot write the size.
    unsafe { *size = BLOCK_ALIGNMENT as u64 };
    abi::Error::NONE
}

//! Elements in host memory that a call refers to: they cross in the arena.

#![expect(unsafe_code, reason = "elements are copied from and to addresses of the caller")]

use oarlock_abi as abi;

use super::data_arena::DataArena;
use crate::wire::WireBreach;

/// Arena memory that a call uses until it is done.
#[derive(Debug)]
pub(crate) struct CrossedMemory<'a> {
    arena: &'a DataArena,
    pieces: Vec<u64>,
    outputs: Vec<CrossedOutput>,
}

/// An output that the plugin writes in the arena.
#[derive(Debug)]
struct CrossedOutput {
    offset: u64,
    target: *mut u8,
    size: u64,
}

impl<'a> CrossedMemory<'a> {
    pub(crate) fn new(arena: &'a DataArena) -> Self {
        Self { arena, pieces: Vec::new(), outputs: Vec::new() }
    }

    /// True if the call needs no memory that has to be freed when it is done.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A piece of the arena that lives as long as the call.
    pub(crate) fn take_piece(&mut self, size: u64) -> Result<u64, WireBreach> {
        let piece = self.arena.take_piece(size).ok_or_else(|| {
            WireBreach::new(
                "room in the memory that is shared with the plugin",
                format!("none for {size} bytes"),
            )
        })?;
        self.pieces.push(piece);
        Ok(piece)
    }

    /// The offset at which the plugin finds the elements at an address of the caller.
    ///
    /// # Safety
    ///
    /// `size` bytes at `address` can be read until this returns and, if `is_output`, written until the call is done.
    pub(crate) unsafe fn cross_elements(
        &mut self,
        address: u64,
        size: u64,
        is_output: bool,
    ) -> Result<u64, WireBreach> {
        let region = self.arena.region();
        if let Some(offset) = region.arena_offset(address, size) {
            return Ok(offset);
        }
        let offset = self.take_piece(size)?;
        let target = region.range_address(offset, size)?;
        if is_output {
            self.outputs.push(CrossedOutput { offset, target: address as *mut u8, size });
        }
        // An output crosses too: a kernel may leave parts of it as they are.
        // SAFETY: the caller vouches for the source, and the piece is that large and nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, target, size as usize) };
        Ok(offset)
    }

    /// Copies the outputs to their places, after the call succeeded.
    pub(crate) fn copy_outputs(&self) -> Result<(), WireBreach> {
        for CrossedOutput { offset, target, size } in &self.outputs {
            let source = self.arena.region().range_address(*offset, *size)?;
            // SAFETY: the caller of the call vouches for the target until the call is done; the piece is that large.
            unsafe { std::ptr::copy_nonoverlapping(source, *target, *size as usize) };
        }
        Ok(())
    }
}

impl Drop for CrossedMemory<'_> {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            self.arena.give_piece(piece);
        }
    }
}

/// True if the elements of a tensor are in memory of the host.
pub(crate) fn is_in_host_memory(tensor: &abi::Tensor) -> bool {
    let is_host =
        [abi::MemoryKind::HOST, abi::MemoryKind::PINNED, abi::MemoryKind::UNIFIED].contains(&tensor.place);
    is_host && !tensor.bits.contains(abi::TensorFlags::ABSENT)
}

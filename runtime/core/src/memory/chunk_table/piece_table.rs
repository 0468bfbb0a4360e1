//! Storage for pieces, each at an index that is stable as long as the piece exists.

use std::ops::{Index, IndexMut};

use crate::stream::InternedLabel;

/// The null index.
pub(in crate::memory) const NO_PIECE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceState {
    /// The slot contains no piece and can be reused.
    Vacant,
    Free,
    /// Free but in no bin, since the next request may be for exactly this size.
    Recent,
    Held,
    /// Released, but streams still use it.
    Cooling,
}

#[derive(Debug)]
pub(super) struct MemoryPiece {
    pub(super) size: u64,
    /// The previous and the next piece in the same bin. In a vacant slot, the second is the next vacant slot.
    pub(super) links: [u32; 2],
    pub(super) offset: u64,
    /// The pieces before and after it in its chunk.
    pub(super) neighbors: [u32; 2],
    pub(super) chunk: u32,
    /// The stream that uses it, or the last that used it.
    pub(super) owner: u32,
    /// The launch count of its stream after the release; set only when another stream needs memory.
    pub(super) date: u64,
    pub(super) label: InternedLabel,
    pub(super) state: PieceState,
}

/// All pieces. Vacant slots are reused.
#[derive(Debug)]
pub(super) struct PieceTable {
    all: Vec<MemoryPiece>,
    /// The first vacant slot.
    vacant: u32,
}

impl PieceTable {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), vacant: NO_PIECE }
    }

    /// All slots, including vacant ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = &MemoryPiece> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut MemoryPiece> {
        self.all.iter_mut()
    }

    /// The indices of all slots.
    pub(super) fn piece_indices(&self) -> std::ops::Range<u32> {
        0..self.all.len() as u32
    }

    pub(super) fn add_piece(&mut self, piece: MemoryPiece) -> u32 {
        let index = self.vacant;
        if index == NO_PIECE {
            self.all.push(piece);
            return (self.all.len() - 1) as u32;
        }
        self.vacant = self[index].links[1];
        self[index] = piece;
        index
    }

    pub(super) fn vacate_slot(&mut self, index: u32) {
        self[index].state = PieceState::Vacant;
        self[index].links[1] = self.vacant;
        self.vacant = index;
    }
}

impl Index<u32> for PieceTable {
    type Output = MemoryPiece;

    #[inline]
    fn index(&self, index: u32) -> &MemoryPiece {
        &self.all[index as usize]
    }
}

impl IndexMut<u32> for PieceTable {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut MemoryPiece {
        &mut self.all[index as usize]
    }
}

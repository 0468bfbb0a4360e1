//! Pieces of chunks, each at a number that stays the same as long as it is one.

use std::ops::{Index, IndexMut};

use crate::stream::InternedLabel;

/// No piece.
pub(in crate::memory) const NO_PIECE: u32 = u32::MAX;

/// What a piece is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceState {
    /// It is no piece; its place can be used for one.
    Vacant,
    Free,
    /// Free, but in no list, since the next request may be for just as much.
    Recent,
    Held,
    /// Given back, while streams still work on it.
    Cooling,
}

/// A part of a chunk.
#[derive(Debug)]
pub(in crate::memory) struct MemoryPiece {
    pub(in crate::memory) size: u64,
    /// The previous and the next free piece of the same list; for vacant places the second is the next vacant one.
    pub(in crate::memory) links: [u32; 2],
    pub(super) offset: u64,
    /// The pieces before and after it in its chunk.
    pub(super) neighbours: [u32; 2],
    pub(super) chunk: u32,
    /// The stream that used it last, or uses it.
    pub(super) owner: u32,
    /// How many launches its stream had when it was let go, once anybody else asked for it.
    pub(super) date: u64,
    pub(super) label: InternedLabel,
    pub(super) state: PieceState,
}

/// All pieces. The places of those that are none any more are used again.
#[derive(Debug)]
pub(in crate::memory) struct PieceTable {
    all: Vec<MemoryPiece>,
    /// The first vacant place.
    vacant: u32,
}

impl PieceTable {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), vacant: NO_PIECE }
    }

    /// Every place, vacant ones included.
    pub(super) fn iter(&self) -> impl Iterator<Item = &MemoryPiece> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut MemoryPiece> {
        self.all.iter_mut()
    }

    /// The number of every place.
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

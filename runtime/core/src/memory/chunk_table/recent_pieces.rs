//! A small cache of pieces that were just released. Programs request the same sizes repeatedly, so a piece stays
//! whole and out of the bins for a while: to release and reuse it then costs only a comparison or two.

use super::piece_table::NO_PIECE;

const RECENT_SLOTS: usize = 4;

/// The pieces released last, with their sizes.
#[derive(Debug)]
pub(super) struct RecentPieces {
    pieces: [(u64, u32); RECENT_SLOTS],
    /// The slot to replace next.
    oldest: usize,
}

impl RecentPieces {
    pub(super) fn new() -> Self {
        Self { pieces: [(0, NO_PIECE); RECENT_SLOTS], oldest: 0 }
    }

    /// Takes a piece of exactly this size.
    #[inline]
    pub(super) fn take_exact(&mut self, size: u64) -> Option<u32> {
        let found = self.pieces.iter_mut().find(|(of, _)| *of == size)?;
        Some(std::mem::replace(found, (0, NO_PIECE)).1)
    }

    /// Adds a piece, and returns the one it evicts.
    #[inline]
    pub(super) fn push_recent(&mut self, size: u64, piece: u32) -> Option<u32> {
        let slot = self.pieces.iter().position(|(_, piece)| *piece == NO_PIECE).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % RECENT_SLOTS;
            self.oldest
        });
        let (_, old) = std::mem::replace(&mut self.pieces[slot], (size, piece));
        (old != NO_PIECE).then_some(old)
    }

    /// Removes all pieces.
    pub(super) fn drain_all(&mut self) -> impl Iterator<Item = u32> + use<> {
        let pieces = std::mem::replace(&mut self.pieces, [(0, NO_PIECE); RECENT_SLOTS]);
        pieces.into_iter().map(|(_, piece)| piece).filter(|piece| *piece != NO_PIECE)
    }
}

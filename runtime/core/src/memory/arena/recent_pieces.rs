//! Pieces that came back a moment ago. Programs ask again and again for the same sizes, so a piece stays whole and out of
//! the lists for a while: giving it back and taking it again is then a comparison or two.

use super::piece_table::NO_PIECE;

/// How many pieces are kept.
const RECENT_SLOTS: usize = 4;

/// The pieces that came back last, with their sizes.
#[derive(Debug)]
pub(super) struct RecentPieces {
    pieces: [(u64, u32); RECENT_SLOTS],
    /// The slot that was filled the longest time ago.
    oldest: usize,
}

impl RecentPieces {
    pub(super) fn new() -> Self {
        Self { pieces: [(0, NO_PIECE); RECENT_SLOTS], oldest: 0 }
    }

    /// A piece of just this size.
    #[inline]
    pub(super) fn take_exact(&mut self, size: u64) -> Option<u32> {
        let found = self.pieces.iter_mut().find(|(of, _)| *of == size)?;
        Some(std::mem::replace(found, (0, NO_PIECE)).1)
    }

    /// Keeps a piece; what has to go for it.
    #[inline]
    pub(super) fn push_recent(&mut self, size: u64, piece: u32) -> Option<u32> {
        let slot = self.pieces.iter().position(|(_, piece)| *piece == NO_PIECE).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % RECENT_SLOTS;
            self.oldest
        });
        let (_, old) = std::mem::replace(&mut self.pieces[slot], (size, piece));
        (old != NO_PIECE).then_some(old)
    }

    /// Lets all go.
    pub(super) fn drain_all(&mut self) -> impl Iterator<Item = u32> + use<> {
        let pieces = std::mem::replace(&mut self.pieces, [(0, NO_PIECE); RECENT_SLOTS]);
        pieces.into_iter().map(|(_, piece)| piece).filter(|piece| *piece != NO_PIECE)
    }
}

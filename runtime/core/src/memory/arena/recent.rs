//! Pieces that came back a moment ago. Programs ask again and again for the same sizes, so a piece stays whole and out of
//! the lists for a while: giving it back and taking it again is then a comparison or two.

use super::pieces::NONE;

/// How many pieces are kept.
const SLOTS: usize = 4;

/// The pieces that came back last, with their sizes.
#[derive(Debug)]
pub(super) struct Recent {
    pieces: [(u64, u32); SLOTS],
    /// The slot that was filled the longest time ago.
    oldest: usize,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { pieces: [(0, NONE); SLOTS], oldest: 0 }
    }

    /// A piece of just this size.
    #[inline]
    pub(super) fn take(&mut self, size: u64) -> Option<u32> {
        let found = self.pieces.iter_mut().find(|(of, _)| *of == size)?;
        Some(std::mem::replace(found, (0, NONE)).1)
    }

    /// Keeps a piece; what has to go for it.
    #[inline]
    pub(super) fn put(&mut self, size: u64, piece: u32) -> Option<u32> {
        let slot = self.pieces.iter().position(|(_, piece)| *piece == NONE).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % SLOTS;
            self.oldest
        });
        let (_, old) = std::mem::replace(&mut self.pieces[slot], (size, piece));
        (old != NONE).then_some(old)
    }

    /// Lets all go.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = u32> + use<> {
        let pieces = std::mem::replace(&mut self.pieces, [(0, NONE); SLOTS]);
        pieces.into_iter().map(|(_, piece)| piece).filter(|piece| *piece != NONE)
    }
}

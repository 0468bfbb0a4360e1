//! Hands out pieces of the arena. Only the host allocates, so its books are in its own memory.

use std::collections::BTreeMap;

use super::layout::ARENA_AT;

/// Sizes are multiples of a page, so that freed memory can go back to the system.
const GRANULE: u64 = 4096;
/// Freed pieces up to this size keep their pages, since they are soon used again.
const KEPT_BYTES: u64 = 1 << 20;

/// The free ranges of the arena: size by offset in the region.
#[derive(Debug)]
pub(crate) struct ArenaBooks {
    free: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
}

impl ArenaBooks {
    pub(crate) fn new(arena_bytes: usize) -> Self {
        let size = arena_bytes as u64 / GRANULE * GRANULE;
        Self { free: BTreeMap::from([(ARENA_AT as u64, size)]), taken: BTreeMap::new() }
    }

    /// Takes a piece: the first that is large enough.
    pub(crate) fn take_piece(&mut self, size: u64) -> Option<u64> {
        let size = size.max(1).checked_next_multiple_of(GRANULE)?;
        let (at, room) = self.free.iter().find(|(_, room)| **room >= size).map(|(at, room)| (*at, *room))?;
        self.free.remove(&at);
        if room > size {
            self.free.insert(at + size, room - size);
        }
        self.taken.insert(at, size);
        Some(at)
    }

    /// Gives a piece back; returns the size of a piece whose pages the system should get, and 0 for a small one. `None` if
    /// there is no such piece.
    pub(crate) fn give_piece(&mut self, offset: u64) -> Option<u64> {
        let size = self.taken.remove(&offset)?;
        let (mut at, mut room) = (offset, size);
        if let Some((before, length)) = self.free.range(..offset).next_back().map(|(at, room)| (*at, *room))
            && before + length == offset
        {
            self.free.remove(&before);
            (at, room) = (before, length + size);
        }
        if let Some(length) = self.free.remove(&(offset + size)) {
            room += length;
        }
        self.free.insert(at, room);
        Some(if size > KEPT_BYTES { size } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_merge_again() {
        let mut books = ArenaBooks::new(64 << 10);
        let all = books.free.clone();
        let taken: Vec<u64> = [1, 4096, 5000, 20000].map(|size| books.take_piece(size).expect("room")).into();
        for pair in taken.windows(2) {
            assert!(pair[0] < pair[1], "{taken:?}");
        }
        assert_eq!(taken[3] - taken[2], 8192);
        assert_eq!(books.take_piece(64 << 10), None);
        assert_eq!(books.take_piece(u64::MAX), None);
        for at in [taken[1], taken[3], taken[0], taken[2]] {
            assert_eq!(books.give_piece(at), Some(0));
        }
        assert_eq!(books.free, all);
        assert_eq!(books.give_piece(taken[0]), None, "given back twice");
    }
}

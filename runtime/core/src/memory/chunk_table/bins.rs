//! Free pieces in lists by size, so that finding a fit takes a constant number of steps.
//!
//! Sizes are counted in units of the pool. Up to 16 units, each size has its own list; above that, each power of two
//! is divided into 16 lists, and bitmaps show which lists are not empty. A request searches the list of its own size
//! and then the next one that is not empty, a few pieces each, for the smallest piece that fits.

use super::piece_table::{NO_PIECE, PieceTable};

const DIVISIONS: usize = 16;
const LEVELS: usize = 61;
/// The maximum number of pieces in one list that a search inspects.
const MAX_PROBES: usize = 16;

#[derive(Debug)]
pub(super) struct SizeBins {
    heads: Box<[u32]>,
    /// A bit for each level that has pieces.
    levels: u64,
    /// For each level, a bit for each division that has pieces.
    divisions: [u16; LEVELS],
}

impl SizeBins {
    pub(super) fn new() -> Self {
        let heads = vec![NO_PIECE; LEVELS * DIVISIONS].into_boxed_slice();
        Self { heads, levels: 0, divisions: [0; LEVELS] }
    }

    /// Pushes a free piece of `units` units to the front of its list.
    pub(super) fn insert(&mut self, pieces: &mut PieceTable, index: u32, units: u64) {
        let (level, division) = bin_index(units);
        let head = &mut self.heads[level * DIVISIONS + division];
        let next = std::mem::replace(head, index);
        pieces[index].links = [NO_PIECE, next];
        if next != NO_PIECE {
            pieces[next].links[0] = index;
        }
        self.levels |= 1 << level;
        self.divisions[level] |= 1 << division;
    }

    /// Unlinks a piece of `units` units from its list.
    pub(super) fn remove(&mut self, pieces: &mut PieceTable, index: u32, units: u64) {
        let [previous, next] = pieces[index].links;
        if next != NO_PIECE {
            pieces[next].links[0] = previous;
        }
        if previous != NO_PIECE {
            pieces[previous].links[1] = next;
            return;
        }
        let (level, division) = bin_index(units);
        self.heads[level * DIVISIONS + division] = next;
        if next == NO_PIECE {
            self.divisions[level] &= !(1 << division);
            if self.divisions[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }

    /// The smallest piece that the search finds for `size` bytes, which are `units` units.
    pub(super) fn find_fit(&self, pieces: &PieceTable, size: u64, units: u64) -> Option<u32> {
        let (level, division) = bin_index(units);
        if self.divisions[level] & (1 << division) != 0
            && let Some(found) = self.best_in_bin(pieces, level, division, size)
        {
            return Some(found);
        }
        let later = self.divisions[level] & !((2u32 << division).wrapping_sub(1) as u16);
        if later != 0 {
            return self.best_in_bin(pieces, level, later.trailing_zeros() as usize, size);
        }
        let above = self.levels & !((2u64 << level).wrapping_sub(1));
        if above == 0 {
            return None;
        }
        let level = above.trailing_zeros() as usize;
        self.best_in_bin(pieces, level, self.divisions[level].trailing_zeros() as usize, size)
    }

    fn best_in_bin(&self, pieces: &PieceTable, level: usize, division: usize, size: u64) -> Option<u32> {
        let (mut best, mut best_size) = (None, u64::MAX);
        let mut index = self.heads[level * DIVISIONS + division];
        for _ in 0..MAX_PROBES {
            if index == NO_PIECE {
                break;
            }
            let piece = &pieces[index];
            if piece.size == size {
                return Some(index);
            }
            if piece.size > size && piece.size < best_size {
                (best, best_size) = (Some(index), piece.size);
            }
            index = piece.links[1];
        }
        best
    }
}

/// The level and division of a size.
fn bin_index(units: u64) -> (usize, usize) {
    if units < DIVISIONS as u64 {
        return (0, units as usize);
    }
    let log = units.ilog2() as usize;
    (log - 3, (units >> (log - 4)) as usize & (DIVISIONS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_sizes_and_small_sizes_have_one_each() {
        let place = |units| {
            let (level, division) = bin_index(units);
            level * DIVISIONS + division
        };
        let places: Vec<usize> = (0..32).map(place).collect();
        assert_eq!(places, (0..32).collect::<Vec<_>>());
        assert!((1..1_000_000u64).all(|units| place(units) <= place(units + 1)));
        assert!(place(u64::MAX) < LEVELS * DIVISIONS);
    }
}

//! Where values lie that live only within a run.

use std::collections::BTreeSet;

/// Memory that is needed from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// How many bytes.
    pub(crate) size: u64,
    /// The step that writes it first.
    pub(crate) first: usize,
    /// The last step that reads or writes it.
    pub(crate) last: usize,
}

/// Everything begins at a multiple of this, which is a line of the cache and a register of the largest vectors.
const ALIGNMENT: u64 = 64;
/// Up to so many needs each is compared with every other.
const MOST_COMPARED: usize = 20_000;

/// Gives each need a place, so that no two that live at the same time overlap; says how much memory all of them take.
///
/// The largest are placed first, each at the lowest place that is free for as long as it lives: that wastes little, as
/// small ones fit between large ones. Where no number holds how much that is, it is said to be all that one holds, which no
/// device has.
pub(crate) fn place(needs: &[Need]) -> (Vec<u64>, u64) {
    if needs.len() > MOST_COMPARED {
        return place_in_order(needs);
    }
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(needs[*index].size), needs[*index].first));
    let mut places = vec![0u64; needs.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0u64;
    for index in order {
        let need = needs[index];
        let size = aligned(need.size);
        let lives_too =
            |other: &&usize| needs[**other].first <= need.last && need.first <= needs[**other].last;
        let mut place = 0u64;
        // `placed` is in the order of places, so the first gap that is large enough is the lowest.
        for other in placed.iter().filter(lives_too) {
            if place.saturating_add(size) <= places[*other] {
                break;
            }
            place = place.max(places[*other].saturating_add(aligned(needs[*other].size)));
        }
        places[index] = place;
        total = total.max(place.saturating_add(size));
        let at = placed.partition_point(|other| places[*other] <= place);
        placed.insert(at, index);
    }
    (places, total)
}

/// The same without comparing: each takes the smallest piece that is large enough and free when it is written first, or
/// memory of its own.
fn place_in_order(needs: &[Need]) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index].first);
    let (mut places, mut total) = (vec![0u64; needs.len()], 0u64);
    // Sizes and places of pieces, those in use behind the step that reads them last.
    let (mut free, mut used) = (BTreeSet::new(), BTreeSet::new());
    for index in order {
        let need = needs[index];
        while let Some((last, size, place)) = used.pop_first() {
            if last >= need.first {
                used.insert((last, size, place));
                break;
            }
            free.insert((size, place));
        }
        let size = aligned(need.size);
        let piece = free.range((size, 0)..).next().copied().unwrap_or((size, total));
        if !free.remove(&piece) {
            total = total.saturating_add(size);
        }
        places[index] = piece.1;
        used.insert((need.last, piece.0, piece.1));
    }
    (places, total)
}

fn aligned(size: u64) -> u64 {
    size.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(size: u64, first: usize, last: usize) -> Need {
        Need { size, first, last }
    }

    fn assert_apart(needs: &[Need]) -> u64 {
        assert_apart_by(place_in_order, needs);
        assert_apart_by(place, needs)
    }

    fn assert_apart_by(place: fn(&[Need]) -> (Vec<u64>, u64), needs: &[Need]) -> u64 {
        let (places, total) = place(needs);
        for (i, a) in needs.iter().enumerate() {
            assert!(places[i] + a.size <= total);
            for (j, b) in needs.iter().enumerate().skip(i + 1) {
                let together = a.first <= b.last && b.first <= a.last;
                let apart = places[i] + a.size <= places[j] || places[j] + b.size <= places[i];
                assert!(!together || apart, "{a:?} and {b:?} overlap");
            }
        }
        total
    }

    #[test]
    fn values_that_never_live_together_share_memory() {
        assert_eq!(assert_apart(&[need(640, 0, 1), need(640, 2, 3), need(64, 1, 2)]), 704);
    }

    #[test]
    fn a_chain_takes_as_much_as_its_largest_pair() {
        let chain: Vec<Need> = (0..20).map(|at| need(64 * (at as u64 % 5 + 1), at, at + 1)).collect();
        assert_eq!(assert_apart(&chain), 64 * (5 + 4));
    }

    #[test]
    fn more_than_a_number_holds_is_never_said_to_be_little() {
        assert_eq!(place(&[need(1 << 62, 0, 4); 4]).1, u64::MAX);
        assert_eq!(place(&[need(u64::MAX - 1, 0, 1), need(64, 1, 2)]).1, u64::MAX);
        assert_eq!(place_in_order(&[need(1 << 62, 0, 4); 4]).1, u64::MAX);
        assert_eq!(place(&[need(1 << 62, 0, 0), need(1 << 62, 1, 1)]).1, 1 << 62);
    }

    #[test]
    fn random_needs_never_overlap_while_they_live() {
        let mut state = 1u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let needs: Vec<Need> = (0..60)
                .map(|_| {
                    let first = next(40) as usize;
                    need(next(5000), first, first + next(10) as usize)
                })
                .collect();
            assert_apart(&needs);
        }
    }
}

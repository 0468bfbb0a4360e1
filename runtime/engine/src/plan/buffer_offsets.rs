//! Assigns arena offsets to buffers that live only within a run.

use std::collections::BTreeSet;

/// A buffer and the steps during which it must keep its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferLifetime {
    pub(crate) size: u64,
    /// The first step that writes it.
    pub(crate) first: usize,
    /// The last step that reads or writes it.
    pub(crate) last: usize,
}

/// Offsets are multiples of 64 bytes: one cache line, and one AVX-512 register.
const BUFFER_ALIGNMENT: u64 = 64;
/// Up to this many buffers, placement compares each with all others, which is quadratic.
const MAX_COMPARED_BUFFERS: usize = 20_000;

/// Assigns each buffer an offset such that no two buffers that are live at the same time overlap. Returns the total size too.
///
/// Greedy by size: the largest buffers are placed first, each at the lowest offset that is free for its whole lifetime. Small
/// buffers then fill the gaps, so little is wasted. A total that overflows saturates to `u64::MAX`, which no device can
/// allocate.
pub(crate) fn assign_offsets(needs: &[BufferLifetime]) -> (Vec<u64>, u64) {
    if needs.len() > MAX_COMPARED_BUFFERS {
        return assign_offsets_in_order(needs);
    }
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(needs[*index].size), needs[*index].first));
    let mut places = vec![0u64; needs.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0u64;
    for index in order {
        let need = needs[index];
        let size = align_size(need.size);
        let lives_too =
            |other: &&usize| needs[**other].first <= need.last && need.first <= needs[**other].last;
        let mut place = 0u64;
        // `placed` is sorted by offset, so the first gap that is large enough is the lowest.
        for other in placed.iter().filter(lives_too) {
            if place.saturating_add(size) <= places[*other] {
                break;
            }
            place = place.max(places[*other].saturating_add(align_size(needs[*other].size)));
        }
        places[index] = place;
        total = total.max(place.saturating_add(size));
        let at = placed.partition_point(|other| places[*other] <= place);
        placed.insert(at, index);
    }
    (places, total)
}

/// Linear-time fallback for very many buffers: in order of first use, each takes the smallest free block that is large enough,
/// or extends the arena.
fn assign_offsets_in_order(needs: &[BufferLifetime]) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index].first);
    let (mut places, mut total) = (vec![0u64; needs.len()], 0u64);
    // Free blocks as (size, offset); used ones are keyed by the last step that needs them.
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
        let size = align_size(need.size);
        let plan_value = free.range((size, 0)..).next().copied().unwrap_or((size, total));
        if !free.remove(&plan_value) {
            total = total.saturating_add(size);
        }
        places[index] = plan_value.1;
        used.insert((need.last, plan_value.0, plan_value.1));
    }
    (places, total)
}

fn align_size(size: u64) -> u64 {
    size.checked_next_multiple_of(BUFFER_ALIGNMENT).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_lifetime(size: u64, first: usize, last: usize) -> BufferLifetime {
        BufferLifetime { size, first, last }
    }

    fn assert_disjoint(needs: &[BufferLifetime]) -> u64 {
        assert_disjoint_by(assign_offsets_in_order, needs);
        assert_disjoint_by(assign_offsets, needs)
    }

    fn assert_disjoint_by(place: fn(&[BufferLifetime]) -> (Vec<u64>, u64), needs: &[BufferLifetime]) -> u64 {
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
        assert_eq!(
            assert_disjoint(&[
                buffer_lifetime(640, 0, 1),
                buffer_lifetime(640, 2, 3),
                buffer_lifetime(64, 1, 2)
            ]),
            704
        );
    }

    #[test]
    fn a_chain_takes_as_much_as_its_largest_pair() {
        let chain: Vec<BufferLifetime> =
            (0..20).map(|at| buffer_lifetime(64 * (at as u64 % 5 + 1), at, at + 1)).collect();
        assert_eq!(assert_disjoint(&chain), 64 * (5 + 4));
    }

    #[test]
    fn sizes_beyond_u64_saturate_instead_of_wrapping() {
        assert_eq!(assign_offsets(&[buffer_lifetime(1 << 62, 0, 4); 4]).1, u64::MAX);
        assert_eq!(
            assign_offsets(&[buffer_lifetime(u64::MAX - 1, 0, 1), buffer_lifetime(64, 1, 2)]).1,
            u64::MAX
        );
        assert_eq!(assign_offsets_in_order(&[buffer_lifetime(1 << 62, 0, 4); 4]).1, u64::MAX);
        assert_eq!(
            assign_offsets(&[buffer_lifetime(1 << 62, 0, 0), buffer_lifetime(1 << 62, 1, 1)]).1,
            1 << 62
        );
    }

    #[test]
    fn random_needs_never_overlap_while_they_live() {
        let mut state = 1u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let needs: Vec<BufferLifetime> = (0..60)
                .map(|_| {
                    let first = next(40) as usize;
                    buffer_lifetime(next(5000), first, first + next(10) as usize)
                })
                .collect();
            assert_disjoint(&needs);
        }
    }
}

//! A network that sorts as many vectors as fit into registers.
//!
//! The lanes of all vectors are columns. Each column is sorted, which takes no moves between lanes. Pairs of columns that lie side by
//! side are merged until one is left, in which elements go on from the end of a lane to the begin of the next. In the end, vectors are
//! transposed, so that elements go on from one lane to the next.

use super::{NETWORK_VECTORS, SortElement, SortVector};

/// Repeats a block for the first numbers, without a loop: the compiler would leave those that are long as they are, and vectors would have
/// to be in memory.
macro_rules! for_each_below {
    ($index:ident in $count:expr => $body:block) => {
        for_each_below!($index in $count => $body: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($index:ident in $count:expr => $body:block: $($number:literal)*) => {
        $(
            let $index = $number;
            if $index < $count $body
        )*
    };
}

#[target_feature(enable = "avx2,avx512f")]
pub(super) unsafe fn sort_avx512<E: SortElement, V: SortVector<E>>(elements: &mut [E], greatest: E) {
    // SAFETY: this function is only called on machines that have the instructions.
    unsafe { sort_in_network::<E, V>(elements, greatest) };
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sort_avx2<E: SortElement, V: SortVector<E>>(elements: &mut [E], greatest: E) {
    // SAFETY: as above.
    unsafe { sort_in_network::<E, V>(elements, greatest) };
}

/// Sorts up to [`NETWORK_VECTORS`] vectors of elements; `greatest` fills those that are not full.
///
/// # Safety
///
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn sort_in_network<E: SortElement, V: SortVector<E>>(elements: &mut [E], greatest: E) {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        match elements.len().div_ceil(V::LANES) {
            0 | 1 => sort_vectors::<E, V, 1>(elements, greatest),
            2 => sort_vectors::<E, V, 2>(elements, greatest),
            3..=4 => sort_vectors::<E, V, 4>(elements, greatest),
            5..=8 => sort_vectors::<E, V, 8>(elements, greatest),
            _ => sort_vectors::<E, V, NETWORK_VECTORS>(elements, greatest),
        }
    }
}

/// # Safety
///
/// As above.
#[inline(always)]
unsafe fn sort_vectors<E: SortElement, V: SortVector<E>, const N: usize>(elements: &mut [E], greatest: E) {
    let count = elements.len();
    assert!(count <= N * V::LANES);
    let start = elements.as_mut_ptr();
    // SAFETY: the caller guarantees the instructions.
    let mut vectors = [unsafe { V::splat(greatest) }; N];
    for_each_below!(index in N => {
        let first = index * V::LANES;
        // SAFETY: as above; the lanes lie in the elements.
        vectors[index] = unsafe { V::load_first(start.add(first.min(count)), count.saturating_sub(first), vectors[index]) };
    });
    sort_columns(&mut vectors);
    merge_columns::<E, V, N, 1, 1>(&mut vectors);
    if V::LANES > 2 {
        merge_columns::<E, V, N, 2, 3>(&mut vectors);
    }
    if V::LANES > 4 {
        merge_columns::<E, V, N, 4, 7>(&mut vectors);
    }
    if V::LANES > 8 {
        merge_columns::<E, V, N, 8, 15>(&mut vectors);
    }
    transpose_lanes(&mut vectors);
    for_each_below!(index in N => {
        let first = index * V::LANES;
        // SAFETY: as above.
        unsafe { vectors[index].store_first(start.add(first.min(count)), count.saturating_sub(first)) };
    });
}

/// Sorts each column by Batcher's odd-even mergesort, which takes 63 exchanges for 16 vectors.
#[inline(always)]
fn sort_columns<E, V: SortVector<E>, const N: usize>(vectors: &mut [V; N]) {
    merge_halves::<E, V, N, 1, 1>(vectors);
    merge_halves::<E, V, N, 2, 2>(vectors);
    merge_halves::<E, V, N, 2, 1>(vectors);
    merge_halves::<E, V, N, 4, 4>(vectors);
    merge_halves::<E, V, N, 4, 2>(vectors);
    merge_halves::<E, V, N, 4, 1>(vectors);
    merge_halves::<E, V, N, 8, 8>(vectors);
    merge_halves::<E, V, N, 8, 4>(vectors);
    merge_halves::<E, V, N, 8, 2>(vectors);
    merge_halves::<E, V, N, 8, 1>(vectors);
}

/// A step in merging sorted halves of `HALF` vectors: it exchanges those at a distance.
#[inline(always)]
fn merge_halves<E, V: SortVector<E>, const N: usize, const HALF: usize, const DISTANCE: usize>(
    vectors: &mut [V; N],
) {
    for_each_below!(low in N => {
        // The first step exchanges the halves' vectors at the same places; each step after it begins one distance later.
        let is_low = low / DISTANCE % 2 == usize::from(DISTANCE < HALF);
        let high = low + DISTANCE;
        if is_low && high < N && low / (2 * HALF) == high / (2 * HALF) {
            [vectors[low], vectors[high]] = vectors[low].exchange(vectors[high]);
        }
    });
}

/// Merges sorted sequences of `WIDTH` columns each in pairs: it exchanges each element of the first with its mirror image in the second,
/// and then those at half the distance, a quarter, and so on. `MIRROR` has all bits up to that of `WIDTH`.
#[inline(always)]
fn merge_columns<E, V: SortVector<E>, const N: usize, const WIDTH: usize, const MIRROR: usize>(
    vectors: &mut [V; N],
) {
    if N == 1 {
        vectors[0] = exchange_lanes::<E, V, MIRROR>(vectors[0]);
    }
    for_each_below!(index in N / 2 => {
        let (first, last) = (vectors[index], vectors[N - 1 - index].swap_lanes::<MIRROR>());
        let [small, great] = first.exchange(last);
        vectors[index] = small.blend_lanes::<MIRROR>(great);
        vectors[N - 1 - index] = great.blend_lanes::<MIRROR>(small).swap_lanes::<MIRROR>();
    });
    for_each_below!(index in N => {
        let vector = &mut vectors[index];
        if WIDTH > 4 {
            *vector = exchange_lanes::<E, V, 4>(*vector);
        }
        if WIDTH > 2 {
            *vector = exchange_lanes::<E, V, 2>(*vector);
        }
        if WIDTH > 1 {
            *vector = exchange_lanes::<E, V, 1>(*vector);
        }
    });
    change_at_distances(vectors, V::exchange);
}

/// Exchanges lanes whose numbers differ in some bits.
#[inline(always)]
fn exchange_lanes<E, V: SortVector<E>, const BITS: usize>(vector: V) -> V {
    let [small, great] = vector.exchange(vector.swap_lanes::<BITS>());
    small.blend_lanes::<BITS>(great)
}

/// Brings elements that go on from the end of a lane to the begin of the next in the order of lanes.
#[inline(always)]
fn transpose_lanes<E, V: SortVector<E>, const N: usize>(vectors: &mut [V; N]) {
    change_at_distances(vectors, V::interleave);
}

/// Changes pairs of vectors at half of their number, then at a quarter, and so on.
#[inline(always)]
fn change_at_distances<V: Copy, const N: usize>(vectors: &mut [V; N], change: impl Fn(V, V) -> [V; 2]) {
    change_pairs::<V, N, 8>(vectors, &change);
    change_pairs::<V, N, 4>(vectors, &change);
    change_pairs::<V, N, 2>(vectors, &change);
    change_pairs::<V, N, 1>(vectors, &change);
}

#[inline(always)]
fn change_pairs<V: Copy, const N: usize, const DISTANCE: usize>(
    vectors: &mut [V; N],
    change: &impl Fn(V, V) -> [V; 2],
) {
    for_each_below!(index in N / 2 => {
        let low = index / DISTANCE * 2 * DISTANCE + index % DISTANCE;
        if 2 * DISTANCE <= N {
            [vectors[low], vectors[low + DISTANCE]] = change(vectors[low], vectors[low + DISTANCE]);
        }
    });
}

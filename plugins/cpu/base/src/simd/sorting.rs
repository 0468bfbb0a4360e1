//! What a quicksort spends its time on: partitions, which divide integers into those below a pivot and the others, and the order of few
//! elements, by a network that compares the same places whatever they hold.

use crate::isa::Isa;

/// A SIMD vector of integers to sort.
#[cfg(x86_vectors)]
pub(super) trait SortVector<E>: Copy {
    const LANES: usize;

    /// # Safety
    ///
    /// The machine has the instructions of this type, as for all functions here without `self`.
    unsafe fn splat(value: E) -> Self;

    /// # Safety
    ///
    /// All lanes can be read.
    unsafe fn load(place: *const E) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut E);

    /// A bit for each lane that is below the same lane of a pivot.
    fn lanes_below(self, pivot: Self) -> u32;

    /// The lanes of a mask at the front, in their order. What follows them is arbitrary.
    fn compress(self, lanes: u32) -> Self;

    /// The smaller and the greater of each pair of lanes.
    fn exchange(self, other: Self) -> [Self; 2];

    /// Each lane holds what the lane had whose number differs in the bits of `bits`, which is below the number of lanes.
    fn swap_lanes(self, bits: usize) -> Self;

    /// Takes the lanes from `other` whose number has the highest bit of `bits`.
    fn blend_lanes(self, other: Self, bits: usize) -> Self;
}

/// An integer that can be sorted.
pub trait SortElement: Copy + Ord + Default + Send + Sync {
    /// Up to this many elements are best sorted by [`Self::sort_few`].
    const FEW: usize;

    /// True if the functions here use vectors.
    fn has_sort_vectors(isa: Isa) -> bool;

    /// Divides `elements` into those below a pivot and the others. One part moves to the front of `elements`, the other to the
    /// front of `moved`, which is as long; what follows each is arbitrary. Returns how many stay in `elements`: those below the
    /// pivot if `keeps_below`, and the others if not.
    fn partition(
        isa: Isa,
        elements: &mut [Self],
        moved: &mut [Self],
        pivot: Self,
        keeps_below: bool,
    ) -> usize;

    /// Sorts up to [`Self::FEW`] elements fast, and more of them correctly.
    fn sort_few(isa: Isa, elements: &mut [Self]);
}

/// A network sorts up to this many bytes: with more, partitions are faster.
const FEW_BYTES: usize = 1024;

macro_rules! sort_elements {
    ($($element:ident: $avx2:ident, $avx512:ident;)*) => {
        $(
            impl SortElement for $element {
                const FEW: usize = FEW_BYTES / size_of::<Self>();

                fn has_sort_vectors(isa: Isa) -> bool {
                    cfg!(x86_vectors) && isa >= Isa::Avx2
                }

                fn partition(
                    isa: Isa,
                    elements: &mut [Self],
                    moved: &mut [Self],
                    pivot: Self,
                    keeps_below: bool,
                ) -> usize {
                    match isa {
                        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
                        #[cfg(x86_vectors)]
                        Isa::Avx512 | Isa::Amx => unsafe {
                            on_vectors::partition_avx512::<_, super::x86::$avx512>(elements, moved, pivot, keeps_below)
                        },
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx2 | Isa::AvxVnni => unsafe {
                            on_vectors::partition_avx2::<_, super::x86::$avx2>(elements, moved, pivot, keeps_below)
                        },
                        _ => partition_rest(elements, moved, pivot, keeps_below, [0, 0]),
                    }
                }

                fn sort_few(isa: Isa, elements: &mut [Self]) {
                    match isa {
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx512 | Isa::Amx if elements.len() <= Self::FEW => unsafe {
                            on_vectors::sort_avx512::<_, super::x86::$avx512, _>(elements, [Self::MAX; Self::FEW]);
                        },
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx2 | Isa::AvxVnni if elements.len() <= Self::FEW => unsafe {
                            on_vectors::sort_avx2::<_, super::x86::$avx2, _>(elements, [Self::MAX; Self::FEW]);
                        },
                        _ => elements.sort_unstable(),
                    }
                }
            }
        )*
    };
}

sort_elements! {
    u32: Avx2SortU32, Avx512SortU32;
    u64: Avx2SortU64, Avx512SortU64;
}

impl SortElement for u128 {
    const FEW: usize = FEW_BYTES / size_of::<Self>();

    fn has_sort_vectors(_: Isa) -> bool {
        false
    }

    fn partition(_: Isa, elements: &mut [Self], moved: &mut [Self], pivot: Self, keeps_below: bool) -> usize {
        partition_rest(elements, moved, pivot, keeps_below, [0, 0])
    }

    fn sort_few(_: Isa, elements: &mut [Self]) {
        elements.sort_unstable();
    }
}

/// Partitions the elements from `read` on, one by one; `kept` of those before have stayed.
#[inline(always)]
fn partition_rest<E: SortElement>(
    elements: &mut [E],
    moved: &mut [E],
    pivot: E,
    keeps_below: bool,
    [mut kept, read]: [usize; 2],
) -> usize {
    for at in read..elements.len() {
        let element = elements[at];
        // Both are written, as a branch would often be mispredicted.
        elements[kept] = element;
        moved[at - kept] = element;
        kept += usize::from((element < pivot) == keeps_below);
    }
    kept
}

#[cfg(x86_vectors)]
mod on_vectors {
    use super::{SortElement, SortVector, partition_rest};

    #[target_feature(enable = "avx2,popcnt,avx512f")]
    pub(super) unsafe fn partition_avx512<E: SortElement, V: SortVector<E>>(
        elements: &mut [E],
        moved: &mut [E],
        pivot: E,
        keeps_below: bool,
    ) -> usize {
        // SAFETY: this function is only called on machines that have the instructions.
        unsafe { partition::<E, V>(elements, moved, pivot, keeps_below) }
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) unsafe fn partition_avx2<E: SortElement, V: SortVector<E>>(
        elements: &mut [E],
        moved: &mut [E],
        pivot: E,
        keeps_below: bool,
    ) -> usize {
        // SAFETY: as above.
        unsafe { partition::<E, V>(elements, moved, pivot, keeps_below) }
    }

    #[target_feature(enable = "avx2,avx512f")]
    pub(super) unsafe fn sort_avx512<E: SortElement, V: SortVector<E>, const N: usize>(
        elements: &mut [E],
        padded: [E; N],
    ) {
        // SAFETY: as above.
        unsafe { sort_in_network::<E, V, N>(elements, padded) };
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn sort_avx2<E: SortElement, V: SortVector<E>, const N: usize>(
        elements: &mut [E],
        padded: [E; N],
    ) {
        // SAFETY: as above.
        unsafe { sort_in_network::<E, V, N>(elements, padded) };
    }

    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn partition<E: SortElement, V: SortVector<E>>(
        elements: &mut [E],
        moved: &mut [E],
        pivot: E,
        keeps_below: bool,
    ) -> usize {
        let count = elements.len();
        assert!(moved.len() >= count);
        let (front, target) = (elements.as_mut_ptr(), moved.as_mut_ptr());
        let all = u32::MAX >> (32 - V::LANES);
        // What is kept: lanes below the pivot, or with all bits flipped, the others.
        let flipped = if keeps_below { 0 } else { all };
        // SAFETY: the caller guarantees the instructions.
        let pivots = unsafe { V::splat(pivot) };
        let (mut kept, mut read) = (0, 0);
        while read + V::LANES <= count {
            // SAFETY: the lanes lie before `count`. Both stores end there at the latest, since no more was kept or moved than was
            // read; the first only overwrites what was read.
            unsafe {
                let vector = V::load(front.add(read));
                let lanes = vector.lanes_below(pivots) ^ flipped;
                vector.compress(lanes).store(front.add(kept));
                vector.compress(lanes ^ all).store(target.add(read - kept));
                kept += lanes.count_ones() as usize;
            }
            read += V::LANES;
        }
        partition_rest(elements, moved, pivot, keeps_below, [kept, read])
    }

    /// A bitonic network. A step of it merges pairs of sorted sequences: it exchanges each element of the first with its mirror image in
    /// the second, and then elements at half the distance, a quarter, and so on. `padded` holds the greatest number everywhere.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn sort_in_network<E: SortElement, V: SortVector<E>, const N: usize>(
        elements: &mut [E],
        mut padded: [E; N],
    ) {
        // The last vector is filled with the greatest number. Vectors of nothing else would stay as they are, so there are none.
        padded[..elements.len()].copy_from_slice(elements);
        let vectors = elements.len().div_ceil(V::LANES);
        assert!(vectors * V::LANES <= padded.len());
        let start = padded.as_mut_ptr();
        // SAFETY: the vectors with these numbers lie in the array, as asserted.
        let load = |vector: usize| unsafe { V::load(start.add(vector * V::LANES)) };
        // SAFETY: as above.
        let store = |vector: usize, value: V| unsafe { value.store(start.add(vector * V::LANES)) };
        for vector in 0..vectors {
            store(vector, sort_lanes(load(vector)));
        }
        let mut merged = 1;
        while merged < vectors {
            for first in (0..vectors).step_by(2 * merged) {
                // From the mirror images of the last vectors on: earlier ones have none.
                for distance in 0..merged {
                    let (low, high) = (first + merged - 1 - distance, first + merged + distance);
                    if high >= vectors {
                        break;
                    }
                    let [small, great] = load(low).exchange(load(high).swap_lanes(V::LANES - 1));
                    store(low, small);
                    store(high, great.swap_lanes(V::LANES - 1));
                }
            }
            let mut distance = merged / 2;
            while distance > 0 {
                for first in (0..vectors).step_by(2 * distance) {
                    for low in first..(first + distance).min(vectors.saturating_sub(distance)) {
                        let [small, great] = load(low).exchange(load(low + distance));
                        store(low, small);
                        store(low + distance, great);
                    }
                }
                distance /= 2;
            }
            for vector in 0..vectors {
                store(vector, merge_lanes(load(vector), V::LANES / 2));
            }
            merged *= 2;
        }
        elements.copy_from_slice(&padded[..elements.len()]);
    }

    #[inline(always)]
    fn sort_lanes<E, V: SortVector<E>>(mut vector: V) -> V {
        let mut merged = 1;
        while merged < V::LANES {
            vector = merge_lanes(exchange_lanes(vector, 2 * merged - 1), merged / 2);
            merged *= 2;
        }
        vector
    }

    /// Exchanges lanes at a distance, at half of it, and so on.
    #[inline(always)]
    fn merge_lanes<E, V: SortVector<E>>(mut vector: V, mut distance: usize) -> V {
        while distance > 0 {
            vector = exchange_lanes(vector, distance);
            distance /= 2;
        }
        vector
    }

    /// Exchanges lanes whose numbers differ in some bits.
    #[inline(always)]
    fn exchange_lanes<E, V: SortVector<E>>(vector: V, bits: usize) -> V {
        let [small, great] = vector.exchange(vector.swap_lanes(bits));
        small.blend_lanes(great, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::SortElement;
    use crate::isa::Isa;

    /// Numbers far apart, so that all bits matter, and few of them, so that some are equal.
    fn random_elements<E>(count: usize, make: &impl Fn(u64) -> E) -> Vec<E> {
        let mut state = count as u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state >> 33
        };
        (0..count).map(|_| make(next() % 7 * (u64::MAX / 6))).collect()
    }

    fn check_sorting<E: SortElement + std::fmt::Debug>(make: impl Fn(u64) -> E) {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for count in (0..E::FEW + 2).chain([1000]) {
                let input = random_elements(count, &make);
                for (pivot, keeps_below) in (0..7).flat_map(|place| [(place, true), (place, false)]) {
                    let pivot = make(pivot * (u64::MAX / 6));
                    let (mut elements, mut moved) = (input.clone(), vec![E::default(); count]);
                    let kept = E::partition(isa, &mut elements, &mut moved, pivot, keeps_below);
                    let is_kept = |element: &E| (*element < pivot) == keeps_below;
                    let (stay, leave): (Vec<E>, Vec<E>) = input.iter().copied().partition(is_kept);
                    assert_eq!(elements[..kept], stay, "{isa:?}");
                    assert_eq!(moved[..count - kept], leave, "{isa:?}");
                }
                let (mut elements, mut expected) = (input.clone(), input);
                E::sort_few(isa, &mut elements);
                expected.sort_unstable();
                assert_eq!(elements, expected, "{isa:?}");
            }
        }
    }

    #[test]
    fn elements_are_partitioned_in_their_order_and_few_are_sorted() {
        check_sorting(|value| (value >> 32) as u32);
        check_sorting(|value| value);
        check_sorting(u128::from);
    }
}

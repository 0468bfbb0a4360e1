//! What a quicksort spends its time on: partitions, which bring integers below a pivot before the others, and the order of few elements,
//! by a network that compares the same places whatever they hold.

#[cfg(x86_vectors)]
mod sort_network;
#[cfg(x86_vectors)]
mod vector_partition;

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

    /// Loads up to `count` lanes, and takes the others from `rest`.
    ///
    /// # Safety
    ///
    /// So many lanes can be read.
    unsafe fn load_first(place: *const E, count: usize, rest: Self) -> Self;

    /// Stores up to `count` lanes.
    ///
    /// # Safety
    ///
    /// So many lanes can be written.
    unsafe fn store_first(self, place: *mut E, count: usize);

    /// A bit for each lane that is below the same lane of a pivot.
    fn lanes_below(self, pivot: Self) -> u32;

    /// The lanes of a mask at the front, and all others at the back. What the two vectors hold elsewhere is arbitrary.
    fn split_lanes(self, lanes: u32) -> [Self; 2];

    /// The smaller and the greater of each pair of lanes.
    fn exchange(self, other: Self) -> [Self; 2];

    /// Each lane holds what the lane had whose number differs in the bits of `BITS`, which is below the number of lanes.
    fn swap_lanes<const BITS: usize>(self) -> Self;

    /// Takes the lanes from `other` whose number has the highest bit of `BITS`.
    fn blend_lanes<const BITS: usize>(self, other: Self) -> Self;

    /// Lanes of the two in turn: those of their first halves, and those of their second halves.
    fn interleave(self, other: Self) -> [Self; 2];
}

/// An integer that can be sorted.
pub trait SortElement: Copy + Ord + Default + Send + Sync {
    /// True if the functions here use vectors.
    fn has_sort_vectors(isa: Isa) -> bool;

    /// Up to this many elements are best sorted by [`Self::sort_few`].
    fn few(isa: Isa) -> usize;

    /// Brings the elements below a pivot before the others, and returns their number. There is room for [`PARTITION_ROOM`] elements,
    /// which get lost.
    fn partition(isa: Isa, elements: &mut [Self], room: &mut [Self], pivot: Self) -> usize;

    /// Sorts up to [`Self::few`] elements fast, and more of them correctly.
    fn sort_few(isa: Isa, elements: &mut [Self]);
}

/// Of up to so many elements, one side of the pivot goes to the room and back, which is faster than partitions from both ends.
pub const PARTITION_ROOM: usize = 1024;

macro_rules! sort_elements {
    ($($element:ident: $avx2:ident, $avx512:ident;)*) => {
        $(
            impl SortElement for $element {
                fn has_sort_vectors(isa: Isa) -> bool {
                    cfg!(x86_vectors) && isa >= Isa::Avx2
                }

                fn few(isa: Isa) -> usize {
                    let vector_bytes = if isa >= Isa::Avx512 { 64 } else { 32 };
                    NETWORK_VECTORS * vector_bytes / size_of::<Self>()
                }

                fn partition(isa: Isa, elements: &mut [Self], room: &mut [Self], pivot: Self) -> usize {
                    match isa {
                        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
                        #[cfg(x86_vectors)]
                        Isa::Avx512 | Isa::Amx => unsafe {
                            vector_partition::partition_avx512::<_, super::x86::$avx512>(elements, room, pivot)
                        },
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx2 | Isa::AvxVnni => unsafe {
                            vector_partition::partition_avx2::<_, super::x86::$avx2>(elements, room, pivot)
                        },
                        _ => {
                            // Only vectors need it.
                            let _ = room;
                            partition_in_place(elements, pivot)
                        }
                    }
                }

                fn sort_few(isa: Isa, elements: &mut [Self]) {
                    match isa {
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx512 | Isa::Amx if elements.len() <= Self::few(isa) => unsafe {
                            sort_network::sort_avx512::<_, super::x86::$avx512>(elements, Self::MAX);
                        },
                        // SAFETY: as above.
                        #[cfg(x86_vectors)]
                        Isa::Avx2 | Isa::AvxVnni if elements.len() <= Self::few(isa) => unsafe {
                            sort_network::sort_avx2::<_, super::x86::$avx2>(elements, Self::MAX);
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
    fn has_sort_vectors(_: Isa) -> bool {
        false
    }

    fn few(_: Isa) -> usize {
        64
    }

    fn partition(_: Isa, elements: &mut [Self], _: &mut [Self], pivot: Self) -> usize {
        partition_in_place(elements, pivot)
    }

    fn sort_few(_: Isa, elements: &mut [Self]) {
        elements.sort_unstable();
    }
}

/// The network sorts up to this many vectors: with more, partitions are faster.
const NETWORK_VECTORS: usize = 16;

fn partition_in_place<E: SortElement>(elements: &mut [E], pivot: E) -> usize {
    let mut kept = 0;
    for at in 0..elements.len() {
        // They are swapped in any case, as a branch would often be mispredicted.
        elements.swap(at, kept);
        kept += usize::from(elements[kept] < pivot);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{PARTITION_ROOM, SortElement};
    use crate::isa::Isa;

    /// Numbers far apart, so that all bits matter. Some are equal.
    fn random_elements<E>(count: usize, make: &impl Fn(u64) -> E) -> Vec<E> {
        let mut state = count as u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state >> 33
        };
        let mut number = || {
            let (few, any) = (next() % 7 * (u64::MAX / 6), next() << 31 | next());
            if next() % 3 == 0 { few } else { any }
        };
        (0..count).map(|_| make(number())).collect()
    }

    fn check_sorting<E: SortElement + std::fmt::Debug>(make: impl Fn(u64) -> E) {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for count in (0..260).chain([511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 5000]) {
                let input = random_elements(count, &make);
                let mut expected = input.clone();
                expected.sort_unstable();
                // Below all, between two, and above all.
                for place in [0, 3, 6] {
                    let pivot = make(place * (u64::MAX / 6));
                    let (mut elements, mut room) = (input.clone(), vec![E::default(); PARTITION_ROOM]);
                    let below = E::partition(isa, &mut elements, &mut room, pivot);
                    assert!(elements[..below].iter().all(|element| *element < pivot), "{isa:?} {count}");
                    assert!(elements[below..].iter().all(|element| *element >= pivot), "{isa:?} {count}");
                    elements.sort_unstable();
                    assert_eq!(elements, expected, "{isa:?} {count}");
                }
                let mut elements = input;
                E::sort_few(isa, &mut elements);
                assert_eq!(elements, expected, "{isa:?} {count}");
            }
        }
    }

    #[test]
    fn elements_are_partitioned_and_few_are_sorted() {
        check_sorting(|value| (value >> 32) as u32);
        check_sorting(|value| value);
        check_sorting(u128::from);
    }

    /// A network that sorts zeros and ones in every order sorts anything.
    #[test]
    fn few_zeros_and_ones_are_sorted_wherever_they_are() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for bits in 0..1u32 << 16 {
                let mut elements: [u32; 16] = std::array::from_fn(|place| bits >> place & 1);
                u32::sort_few(isa, &mut elements);
                assert!(
                    elements.is_sorted() && elements.iter().sum::<u32>() == bits.count_ones(),
                    "{isa:?} {bits:#x}"
                );
            }
        }
    }
}

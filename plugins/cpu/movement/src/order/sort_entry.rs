//! What is sorted, and in which of two buffers it ends.

use oarlock_cpu_base::simd::SortElement;

/// An integer whose highest bits are a rank, and those below it, if any, a place.
pub(crate) trait SortEntry: SortElement {
    /// Makes an entry of a rank and a place; of the rank alone if there are no bits for a place.
    fn new(rank: u64, place: usize, place_bits: u32) -> Self;
    fn entry_rank(self, place_bits: u32) -> u64;
    fn entry_place(self, place_bits: u32) -> usize;
    /// The next greater entry, if there is one.
    fn next(self) -> Option<Self>;
    /// The lowest entry of its rank.
    fn lowest_of_rank(self, place_bits: u32) -> Self;
    /// Its distance above another, without the lowest `bits` bits.
    fn offset_from(self, lowest: Self, bits: u32) -> usize;
    /// The number of bits of its distance above another.
    fn offset_bits(self, lowest: Self) -> u32;
}

macro_rules! entries {
    ($($ty:ty),*) => {
        $(
            impl SortEntry for $ty {
                #[inline(always)]
                fn new(rank: u64, place: usize, place_bits: u32) -> Self {
                    if place_bits == 0 { rank as Self } else { (rank as Self) << place_bits | place as Self }
                }
                #[inline(always)]
                fn entry_rank(self, place_bits: u32) -> u64 {
                    (self >> place_bits) as u64
                }
                #[inline(always)]
                fn entry_place(self, place_bits: u32) -> usize {
                    (self & ((1 << place_bits) - 1)) as usize
                }
                #[inline(always)]
                fn next(self) -> Option<Self> {
                    self.checked_add(1)
                }
                #[inline(always)]
                fn lowest_of_rank(self, place_bits: u32) -> Self {
                    self >> place_bits << place_bits
                }
                #[inline(always)]
                fn offset_from(self, lowest: Self, bits: u32) -> usize {
                    ((self - lowest) >> bits) as usize
                }
                #[inline(always)]
                fn offset_bits(self, lowest: Self) -> u32 {
                    Self::BITS - (self - lowest).leading_zeros()
                }
            }
        )*
    };
}

entries!(u32, u64, u128);

/// Where sorted entries go.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BufferSide {
    /// The slice where they were.
    Same,
    /// The other of the two slices.
    Other,
}

impl BufferSide {
    pub(super) fn opposite(self) -> Self {
        if self == Self::Same { Self::Other } else { Self::Same }
    }
}

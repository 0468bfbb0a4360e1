//! Ranks: integers in the order in which elements are wanted. All that matters of an element is how its bits are ordered, so dtypes
//! of a size share the code that sorts, selects or compares them.

use std::ops::{BitAnd, BitXor, Not};

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::Dtype;

/// An integer that holds the bits of an element, and its rank.
pub(crate) trait RankInteger:
    Copy
    + Ord
    + Default
    + Sync
    + Into<u128>
    + BitAnd<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + 'static
{
    fn from_low_bits(bits: u64) -> Self;
    fn as_index(self) -> usize;
    fn from_cell<const N: usize>(cell: [u8; N]) -> Self;
    fn to_cell<const N: usize>(self) -> [u8; N];
}

macro_rules! rank_integers {
    ($($integer:ty),*) => {
        $(
            impl RankInteger for $integer {
                #[inline(always)]
                fn from_low_bits(bits: u64) -> Self {
                    bits as Self
                }
                #[inline(always)]
                fn as_index(self) -> usize {
                    self as usize
                }
                #[inline(always)]
                fn from_cell<const N: usize>(cell: [u8; N]) -> Self {
                    let mut bytes = [0; size_of::<Self>()];
                    bytes[..N].copy_from_slice(&cell);
                    Self::from_le_bytes(bytes)
                }
                #[inline(always)]
                fn to_cell<const N: usize>(self) -> [u8; N] {
                    let mut cell = [0; N];
                    cell.copy_from_slice(&self.to_le_bytes()[..N]);
                    cell
                }
            }
        )*
    };
}

rank_integers!(u32, u64);

/// Maps elements of a dtype of numbers to ranks. The differences between dtypes are data, so that the mapping has no branches. Loops use
/// a copy of their own: behind a reference, the compiler would read it again after each write.
#[derive(Clone, Copy)]
pub(crate) struct RankMapping<R> {
    /// The sign bit; 0 for unsigned integers.
    sign: R,
    /// The bits that negative numbers have inverted, as those of floats are in reverse order; 0 for integers.
    inverted: R,
    /// The bits of -0; those of 0 for integers.
    negative_zero: R,
    /// The bits of infinity, above which a float is NaN; all bits for integers.
    infinity: R,
    /// The rank of NaN, above all others: all bits.
    highest: R,
    /// All bits if the largest come first, which reverses the order.
    turned: R,
}

impl<R: RankInteger> RankMapping<R> {
    /// The mapping of a dtype of `size` bytes.
    pub(crate) fn new(dtype: Dtype, size: usize, is_largest_first: bool) -> Self {
        let (top, all) = (1u64 << (8 * size - 1), u64::MAX >> (64 - 8 * size));
        let infinity = match dtype {
            Dtype::F16 => Some(0x7C00),
            Dtype::BF16 => Some(0x7F80),
            Dtype::F32 => Some(f32::INFINITY.to_bits().into()),
            Dtype::F64 => Some(f64::INFINITY.to_bits()),
            _ => None,
        };
        let is_signed =
            infinity.is_some() || matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64);
        let of_floats = |bits| if infinity.is_some() { bits } else { 0 };
        Self {
            // Signed integers compare as unsigned ones once the sign bit is flipped.
            sign: R::from_low_bits(if is_signed { top } else { 0 }),
            inverted: R::from_low_bits(of_floats(all ^ top)),
            negative_zero: R::from_low_bits(of_floats(top)),
            infinity: R::from_low_bits(infinity.unwrap_or(all)),
            highest: R::from_low_bits(all),
            turned: R::from_low_bits(if is_largest_first { all } else { 0 }),
        }
    }

    /// Zeros share one rank, and so do all NaNs, whose rank is above all others.
    #[inline(always)]
    pub(crate) fn rank_of<const N: usize>(&self, cell: [u8; N]) -> R {
        let (bits, none) = (R::from_cell(cell), R::default());
        let bits = if bits == self.negative_zero { none } else { bits };
        let inverted = if bits & self.sign == none { none } else { self.inverted };
        let is_nan = bits & !self.sign > self.infinity;
        let rank = if is_nan { self.highest } else { bits ^ self.sign ^ inverted };
        rank ^ self.turned
    }

    /// Writes the ranks of elements.
    pub(crate) fn rank_elements<const N: usize>(&self, isa: Isa, elements: &[[u8; N]], ranks: &mut [R]) {
        with_isa!(isa, || {
            let mapping = *self;
            for (rank, element) in ranks.iter_mut().zip(elements) {
                *rank = mapping.rank_of(*element);
            }
        });
    }

    /// Turns ranks into elements of `N` bytes, as integers have.
    pub(crate) fn turn_into_elements<const N: usize>(&self, isa: Isa, ranks: &mut [R]) {
        with_isa!(isa, || {
            let mapping = *self;
            for rank in &mut *ranks {
                *rank = R::from_cell(mapping.element_of_rank::<N>(*rank));
            }
        });
    }

    /// True if an element has the rank of `one` but other bits.
    pub(crate) fn has_other_of_rank<const N: usize>(
        &self,
        isa: Isa,
        elements: &[[u8; N]],
        one: [u8; N],
    ) -> bool {
        with_isa!(isa, || {
            let (mapping, bits) = (*self, R::from_cell(one));
            let rank = mapping.rank_of(one);
            // `|` instead of `any`: without an early exit, elements are compared in whole registers.
            elements.iter().fold(false, |any, element| {
                any | (mapping.rank_of(*element) == rank) & (R::from_cell(*element) != bits)
            })
        })
    }

    /// An element of a rank.
    #[inline(always)]
    pub(crate) fn element_of_rank<const N: usize>(&self, rank: R) -> [u8; N] {
        let rank = rank ^ self.turned;
        let inverted = if rank & self.sign == R::default() { self.inverted } else { R::default() };
        (rank ^ self.sign ^ inverted).to_cell()
    }

    /// The ranks that different elements share: those of zeros and of NaNs. Integers have none.
    pub(crate) fn shared_ranks(&self) -> Option<[R; 2]> {
        let is_float = self.inverted != R::default();
        is_float.then(|| [self.sign ^ self.turned, self.highest ^ self.turned])
    }
}

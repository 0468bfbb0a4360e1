//! Vectors of integers to sort.

use std::arch::x86_64::*;

use crate::simd::sorting::SortVector;

/// Implements [`SortVector`] for a vector of AVX-512, which moves lanes to the front with one instruction.
macro_rules! zmm_sort {
    (
        $name:ident of $element:ident, $lanes:literal, $splat:ident, $below:ident, $compress:ident, $min:ident, $max:ident, $permute:ident,
        $blend:ident, $swaps:ident
    ) => {
        #[derive(Clone, Copy)]
        pub(in crate::simd) struct $name(__m512i);

        impl SortVector<$element> for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $splat(value.cast_signed()) })
            }

            #[inline(always)]
            unsafe fn load(place: *const $element) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
                Self(unsafe { _mm512_loadu_si512(place.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut $element) {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(place.cast(), self.0) };
            }

            #[inline(always)]
            fn lanes_below(self, pivot: Self) -> u32 {
                // SAFETY: a vector exists only if the machine has the instructions.
                u32::from(unsafe { $below(self.0, pivot.0) })
            }

            #[inline(always)]
            fn compress(self, lanes: u32) -> Self {
                // SAFETY: as above.
                Self(unsafe { $compress(lanes as _, self.0) })
            }

            #[inline(always)]
            fn exchange(self, other: Self) -> [Self; 2] {
                // SAFETY: as above.
                unsafe { [Self($min(self.0, other.0)), Self($max(self.0, other.0))] }
            }

            #[inline(always)]
            fn swap_lanes(self, bits: usize) -> Self {
                // SAFETY: as above; there is a lane number for each lane.
                Self(unsafe { $permute(_mm512_loadu_si512($swaps[bits].as_ptr().cast()), self.0) })
            }

            #[inline(always)]
            fn blend_lanes(self, other: Self, bits: usize) -> Self {
                // SAFETY: as above.
                Self(unsafe { $blend(HIGH_LANES[bits] as _, self.0, other.0) })
            }
        }
    };
}

zmm_sort!(
    Avx512SortU32 of u32, 16, _mm512_set1_epi32, _mm512_cmplt_epu32_mask, _mm512_maskz_compress_epi32, _mm512_min_epu32,
    _mm512_max_epu32, _mm512_permutexvar_epi32, _mm512_mask_blend_epi32, LANE_SWAPS
);
zmm_sort!(
    Avx512SortU64 of u64, 8, _mm512_set1_epi64, _mm512_cmplt_epu64_mask, _mm512_maskz_compress_epi64, _mm512_min_epu64,
    _mm512_max_epu64, _mm512_permutexvar_epi32, _mm512_mask_blend_epi64, PAIR_SWAPS
);

/// Implements [`SortVector`] for a vector of AVX2, which looks up where lanes go.
macro_rules! ymm_sort {
    (
        $name:ident of $element:ident, $lanes:literal, $splat:ident, $greater:ident, $mask:ident, $cast:ident, $moves:ident, $swaps:ident,
        $high:ident
    ) => {
        #[derive(Clone, Copy)]
        pub(in crate::simd) struct $name(__m256i);

        impl SortVector<$element> for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $splat(value.cast_signed()) })
            }

            #[inline(always)]
            unsafe fn load(place: *const $element) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
                Self(unsafe { _mm256_loadu_si256(place.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut $element) {
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(place.cast(), self.0) };
            }

            #[inline(always)]
            fn lanes_below(self, pivot: Self) -> u32 {
                // SAFETY: a vector exists only if the machine has the instructions.
                unsafe { $mask($cast(self.is_below(pivot))) as u32 }
            }

            #[inline(always)]
            fn compress(self, lanes: u32) -> Self {
                self.permute(&$moves[lanes as usize])
            }

            #[inline(always)]
            fn exchange(self, other: Self) -> [Self; 2] {
                // SAFETY: as above.
                unsafe {
                    let is_below = self.is_below(other);
                    let small = _mm256_blendv_epi8(other.0, self.0, is_below);
                    [Self(small), Self(_mm256_blendv_epi8(self.0, other.0, is_below))]
                }
            }

            #[inline(always)]
            fn swap_lanes(self, bits: usize) -> Self {
                self.permute(&$swaps[bits])
            }

            #[inline(always)]
            fn blend_lanes(self, other: Self, bits: usize) -> Self {
                // SAFETY: as above; there is a mask for each lane.
                Self(unsafe {
                    let mask = _mm256_loadu_si256($high[bits].as_ptr().cast());
                    _mm256_blendv_epi8(self.0, other.0, mask)
                })
            }
        }

        impl $name {
            #[inline(always)]
            fn is_below(self, other: Self) -> __m256i {
                // SAFETY: as above.
                unsafe {
                    // There are only comparisons of signed integers. Those compare like unsigned ones once the sign bit is flipped.
                    let sign = $splat((1 as $element).rotate_right(1).cast_signed());
                    $greater(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign))
                }
            }

            /// Moves words of 32 bits.
            #[inline(always)]
            fn permute<const N: usize>(self, moves: &[u32; N]) -> Self {
                const { assert!(N >= 8) };
                // SAFETY: as above, and there is a position for each word.
                Self(unsafe {
                    _mm256_permutevar8x32_epi32(self.0, _mm256_loadu_si256(moves.as_ptr().cast()))
                })
            }
        }
    };
}

ymm_sort!(
    Avx2SortU32 of u32, 8, _mm256_set1_epi32, _mm256_cmpgt_epi32, _mm256_movemask_ps, _mm256_castsi256_ps, LANE_MOVES, LANE_SWAPS,
    HIGH_LANE_MASKS
);
ymm_sort!(
    Avx2SortU64 of u64, 4, _mm256_set1_epi64x, _mm256_cmpgt_epi64, _mm256_movemask_pd, _mm256_castsi256_pd, PAIR_MOVES, PAIR_SWAPS,
    HIGH_PAIR_MASKS
);

/// For each mask of eight lanes of 32 bits, the positions of those in the mask.
static LANE_MOVES: [[u32; 8]; 256] = moves_of_masks::<256>(1);
/// For each mask of four lanes of 64 bits, the positions of their halves.
static PAIR_MOVES: [[u32; 8]; 16] = moves_of_masks::<16>(2);

/// For each set of bits, the positions of the words of the lanes whose numbers differ in them.
static LANE_SWAPS: [[u32; 16]; 16] = words_of_lanes(1);
static PAIR_SWAPS: [[u32; 16]; 16] = words_of_lanes(2);

/// For each set of bits, the lanes whose number has the highest of them.
static HIGH_LANES: [u16; 16] = high_lanes();
/// The same as masks of words, for lanes of one word and of two.
static HIGH_LANE_MASKS: [[u32; 8]; 16] = word_masks(1);
static HIGH_PAIR_MASKS: [[u32; 8]; 16] = word_masks(2);

/// The positions of the words of each lane in a mask, for lanes of so many words.
const fn moves_of_masks<const MASKS: usize>(words: usize) -> [[u32; 8]; MASKS] {
    let mut moves = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let (mut position, mut moved) = (0, 0);
        while position < 8 {
            if mask >> (position / words) & 1 == 1 {
                moves[mask][moved] = position as u32;
                moved += 1;
            }
            position += 1;
        }
        mask += 1;
    }
    moves
}

const fn words_of_lanes(words: usize) -> [[u32; 16]; 16] {
    let mut positions = [[0; 16]; 16];
    let mut index = 0;
    while index < 16 * 16 {
        let (bits, word) = (index / 16, index % 16);
        // Where there are only so many words, the remainder is never loaded.
        positions[bits][word] = (((word / words) ^ bits) * words + word % words) as u32 % 16;
        index += 1;
    }
    positions
}

const fn high_lanes() -> [u16; 16] {
    let mut lanes = [0; 16];
    let mut index = 16usize;
    while index < 16 * 16 {
        let (bits, lane) = (index / 16, index % 16);
        if lane >> bits.ilog2() & 1 == 1 {
            lanes[bits] |= 1 << lane;
        }
        index += 1;
    }
    lanes
}

const fn word_masks(words: usize) -> [[u32; 8]; 16] {
    let lanes = high_lanes();
    let mut masks = [[0; 8]; 16];
    let mut index = 0;
    while index < 16 * 8 {
        let (bits, word) = (index / 8, index % 8);
        if lanes[bits] >> (word / words) & 1 == 1 {
            masks[bits][word] = u32::MAX;
        }
        index += 1;
    }
    masks
}

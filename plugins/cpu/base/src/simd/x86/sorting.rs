//! Vectors of integers to sort.

use std::arch::x86_64::*;

use super::{lane_mask, wide_lane_mask};
use crate::simd::sorting::SortVector;

/// Implements [`SortVector`] for a vector of AVX-512, which moves lanes to the front with one instruction.
macro_rules! zmm_sort {
    (
        $name:ident of $element:ident, $lanes:literal, $splat:ident, $below:ident, $compress:ident, $min:ident, $max:ident,
        $blend:ident, $swaps:ident, $pairs:ident, $load:ident, $store:ident
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
            unsafe fn load_first(place: *const $element, count: usize, rest: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $load(rest.0, first_lanes(count.min($lanes)) as _, place.cast()) })
            }

            #[inline(always)]
            unsafe fn store_first(self, place: *mut $element, count: usize) {
                // SAFETY: as above.
                unsafe { $store(place.cast(), first_lanes(count.min($lanes)) as _, self.0) };
            }

            #[inline(always)]
            fn lanes_below(self, pivot: Self) -> u32 {
                // SAFETY: a vector exists only if the machine has the instructions.
                u32::from(unsafe { $below(self.0, pivot.0) })
            }

            #[inline(always)]
            fn split_lanes(self, lanes: u32) -> [Self; 2] {
                let others = $lanes - lanes.count_ones() as usize;
                // Others go from the front to the back by as many words of 32 bits as there are.
                let words = &ROTATIONS[others * (16 / $lanes)..][..16];
                // SAFETY: as above; there is a position for each word.
                unsafe {
                    let back = _mm512_loadu_si512(words.as_ptr().cast());
                    let others = _mm512_permutexvar_epi32(back, $compress(!lanes as _, self.0));
                    [Self($compress(lanes as _, self.0)), Self(others)]
                }
            }

            #[inline(always)]
            fn exchange(self, other: Self) -> [Self; 2] {
                // SAFETY: as above.
                unsafe { [Self($min(self.0, other.0)), Self($max(self.0, other.0))] }
            }

            #[inline(always)]
            fn swap_lanes<const BITS: usize>(self) -> Self {
                // SAFETY: as above; there is a position for each word.
                Self(unsafe {
                    _mm512_permutexvar_epi32(_mm512_loadu_si512($swaps[BITS].as_ptr().cast()), self.0)
                })
            }

            #[inline(always)]
            fn blend_lanes<const BITS: usize>(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $blend(HIGH_LANES[BITS] as _, self.0, other.0) })
            }

            #[inline(always)]
            fn interleave(self, other: Self) -> [Self; 2] {
                // SAFETY: as above; there is a position for each word.
                $pairs.each_ref().map(|pairs| unsafe {
                    Self(_mm512_permutex2var_epi32(
                        self.0,
                        _mm512_loadu_si512(pairs.as_ptr().cast()),
                        other.0,
                    ))
                })
            }
        }
    };
}

zmm_sort!(
    Avx512SortU32 of u32, 16, _mm512_set1_epi32, _mm512_cmplt_epu32_mask, _mm512_maskz_compress_epi32, _mm512_min_epu32,
    _mm512_max_epu32, _mm512_mask_blend_epi32, LANE_SWAPS, LANES_IN_TURN,
    _mm512_mask_loadu_epi32, _mm512_mask_storeu_epi32
);
zmm_sort!(
    Avx512SortU64 of u64, 8, _mm512_set1_epi64, _mm512_cmplt_epu64_mask, _mm512_maskz_compress_epi64, _mm512_min_epu64,
    _mm512_max_epu64, _mm512_mask_blend_epi64, PAIR_SWAPS, PAIRS_IN_TURN,
    _mm512_mask_loadu_epi64, _mm512_mask_storeu_epi64
);

/// A bit for each of the first lanes, of which there are 16 at most.
#[inline(always)]
fn first_lanes(count: usize) -> u32 {
    (1 << count) - 1
}

/// Implements [`SortVector`] for a vector of AVX2, which looks up where lanes go. It only compares signed integers, so lanes have their
/// sign bits flipped: then those compare like unsigned ones.
macro_rules! ymm_sort {
    (
        $name:ident of $element:ident, $lanes:literal, $splat:ident, $greater:ident, $mask:ident, $cast:ident, $moves:ident, $swaps:ident,
        $high:ident, $first:ident, $load:ident, $store:ident, $unpack_low:ident, $unpack_high:ident,
        |$one:ident, $other:ident| $exchange:expr
    ) => {
        #[derive(Clone, Copy)]
        pub(in crate::simd) struct $name(__m256i);

        impl SortVector<$element> for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $splat(value.cast_signed()) }).flip_signs()
            }

            #[inline(always)]
            unsafe fn load(place: *const $element) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
                Self(unsafe { _mm256_loadu_si256(place.cast()) }).flip_signs()
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut $element) {
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(place.cast(), self.flip_signs().0) };
            }

            #[inline(always)]
            unsafe fn load_first(place: *const $element, count: usize, rest: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    if count >= $lanes {
                        return Self::load(place);
                    }
                    let mask = $first(count);
                    Self(_mm256_blendv_epi8(rest.0, Self($load(place.cast(), mask)).flip_signs().0, mask))
                }
            }

            #[inline(always)]
            unsafe fn store_first(self, place: *mut $element, count: usize) {
                // SAFETY: as above.
                unsafe {
                    if count >= $lanes {
                        return self.store(place);
                    }
                    if count > 0 {
                        $store(place.cast(), $first(count), self.flip_signs().0);
                    }
                }
            }

            #[inline(always)]
            fn lanes_below(self, pivot: Self) -> u32 {
                // SAFETY: a vector exists only if the machine has the instructions.
                unsafe { $mask($cast($greater(pivot.0, self.0))) as u32 }
            }

            #[inline(always)]
            fn split_lanes(self, lanes: u32) -> [Self; 2] {
                [self.permute(&$moves[lanes as usize]); 2]
            }

            #[inline(always)]
            fn exchange(self, other: Self) -> [Self; 2] {
                let ($one, $other) = (self.0, other.0);
                // SAFETY: as above.
                let [small, great] = unsafe { $exchange };
                [Self(small), Self(great)]
            }

            #[inline(always)]
            fn swap_lanes<const BITS: usize>(self) -> Self {
                self.permute(&$swaps[BITS])
            }

            #[inline(always)]
            fn blend_lanes<const BITS: usize>(self, other: Self) -> Self {
                // SAFETY: as above; there is a mask for each lane.
                Self(unsafe {
                    let mask = _mm256_loadu_si256($high[BITS].as_ptr().cast());
                    _mm256_blendv_epi8(self.0, other.0, mask)
                })
            }

            #[inline(always)]
            fn interleave(self, other: Self) -> [Self; 2] {
                // SAFETY: as above.
                unsafe {
                    let (low, high) = ($unpack_low(self.0, other.0), $unpack_high(self.0, other.0));
                    [
                        Self(_mm256_permute2x128_si256::<0x20>(low, high)),
                        Self(_mm256_permute2x128_si256::<0x31>(low, high)),
                    ]
                }
            }
        }

        impl $name {
            #[inline(always)]
            fn flip_signs(self) -> Self {
                // SAFETY: as above.
                Self(unsafe { _mm256_xor_si256(self.0, $splat($element::cast_signed(1).rotate_right(1))) })
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
    HIGH_LANE_MASKS, lane_mask, _mm256_maskload_epi32, _mm256_maskstore_epi32, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32,
    |one, other| [_mm256_min_epi32(one, other), _mm256_max_epi32(one, other)]
);
ymm_sort!(
    Avx2SortU64 of u64, 4, _mm256_set1_epi64x, _mm256_cmpgt_epi64, _mm256_movemask_pd, _mm256_castsi256_pd, PAIR_MOVES, PAIR_SWAPS,
    HIGH_PAIR_MASKS, wide_lane_mask, _mm256_maskload_epi64, _mm256_maskstore_epi64, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64,
    |one, other| {
        let is_greater = _mm256_cmpgt_epi64(one, other);
        [_mm256_blendv_epi8(one, other, is_greater), _mm256_blendv_epi8(other, one, is_greater)]
    }
);

/// For each mask of eight lanes of 32 bits, the positions of those in the mask, and then those of the others.
static LANE_MOVES: [[u32; 8]; 256] = moves_of_masks::<256>(1);
/// For each mask of four lanes of 64 bits, the positions of their halves.
static PAIR_MOVES: [[u32; 8]; 16] = moves_of_masks::<16>(2);

/// For each set of bits, the positions of the words of the lanes whose numbers differ in them.
static LANE_SWAPS: [[u32; 16]; 16] = words_of_lanes(1);
static PAIR_SWAPS: [[u32; 16]; 16] = words_of_lanes(2);

/// The positions of words of two vectors, so that lanes of both come in turn.
static LANES_IN_TURN: [[u32; 16]; 2] = lanes_in_turn(1);
static PAIRS_IN_TURN: [[u32; 16]; 2] = lanes_in_turn(2);

/// From each number on, the positions of words of which so many go from the front to the back.
static ROTATIONS: [u32; 32] = rotations();

/// For each set of bits, the lanes whose number has the highest of them.
static HIGH_LANES: [u16; 16] = high_lanes();
/// The same as masks of words, for lanes of one word and of two.
static HIGH_LANE_MASKS: [[u32; 8]; 16] = word_masks(1);
static HIGH_PAIR_MASKS: [[u32; 8]; 16] = word_masks(2);

/// The positions of the words of each lane in a mask and then of the others, for lanes of so many words.
const fn moves_of_masks<const MASKS: usize>(words: usize) -> [[u32; 8]; MASKS] {
    let mut moves = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let (mut index, mut moved) = (0, 0);
        while index < 16 {
            // First for those in the mask, and then for the others.
            let (position, is_in_mask) = (index % 8, index < 8);
            if (mask >> (position / words) & 1 == 1) == is_in_mask {
                moves[mask][moved] = position as u32;
                moved += 1;
            }
            index += 1;
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

const fn lanes_in_turn(words: usize) -> [[u32; 16]; 2] {
    let mut positions = [[0; 16]; 2];
    let mut index = 0;
    while index < 2 * 16 {
        let (lane, word) = (index / words, index % words);
        // The words of the second vector come after those of the first.
        positions[index / 16][index % 16] = (lane % 2 * 16 + lane / 2 * words + word) as u32;
        index += 1;
    }
    positions
}

const fn rotations() -> [u32; 32] {
    let mut positions = [0; 32];
    let mut index = 0;
    while index < 32 {
        positions[index] = index as u32 % 16;
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

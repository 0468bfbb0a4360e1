//! Requantization of sums in AVX2 vectors.

use std::arch::x86_64::*;

use oarlock_cpu_base::simd::{Avx2I32Vector, AvxVnniVector, AvxVnniWordVector, IntegerVector};
use oarlock_cpu_base::unrolled;

use super::super::requantize::QuantizedTileEpilogue;
use super::super::tile::MAX_TILE_PIXELS;
use super::{RequantizedVector, store_and_finish_tile};

/// Sums in a ymm register.
trait YmmSums: IntegerVector {
    fn register(self) -> __m256i;
}

macro_rules! ymm_sums {
    ($($vector:ident)*) => {
        $(impl YmmSums for $vector {
            #[inline(always)]
            fn register(self) -> __m256i {
                self.0
            }
        })*
    };
}

ymm_sums!(Avx2I32Vector AvxVnniVector AvxVnniWordVector);

impl<V: YmmSums> RequantizedVector for V {
    #[inline(always)]
    unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
        sums: &[[Self; 2]; MAX_TILE_PIXELS],
        epilogue: &QuantizedTileEpilogue<'_>,
    ) {
        let [low, high] = epilogue.requantize.bounds;
        let factors = epilogue.factors.as_ptr();
        // SAFETY: the caller guarantees the instructions and the places of all pixels; here, all channels of the vectors exist.
        unsafe {
            if !epilogue.residual.is_null() || epilogue.factors.len() != VECTORS * Self::LANES {
                return store_and_finish_tile::<Self, PIXELS, VECTORS>(sums, epilogue);
            }
            let factors =
                [_mm256_loadu_ps(factors), _mm256_loadu_ps(factors.add((VECTORS - 1) * Self::LANES))];
            let (high, low) = (_mm256_set1_ps(high), _mm256_set1_epi16(low as i16));
            let zero = _mm256_set1_epi16(epilogue.requantize.zero as i16);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let mut whole = [_mm256_setzero_si256(); 2];
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let steps = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[PIXEL][VECTOR].register()), factors[VECTOR]);
                    // `min` returns its second operand for NaN, and the conversion turns NaN into the least integer, which is
                    // then clamped to the lower bound.
                    whole[VECTOR] = _mm256_cvtps_epi32(_mm256_min_ps(high, steps));
                });
                let packed = _mm256_packs_epi32(whole[0], whole[VECTORS - 1]);
                let moved = _mm256_add_epi16(_mm256_max_epi16(packed, low), zero);
                // Packing works within 128-bit lanes. Only the low bytes matter, and masked ones do not saturate.
                let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(moved);
                let ordered = _mm256_and_si256(ordered, _mm256_set1_epi16(0xff));
                let (first, second) = (_mm256_castsi256_si128(ordered), _mm256_extracti128_si256::<1>(ordered));
                let bytes = _mm_packus_epi16(first, second);
                let place = epilogue.output.wrapping_add(PIXEL * epilogue.pixel);
                if VECTORS == 2 {
                    _mm_storeu_si128(place.cast(), bytes);
                } else {
                    _mm_storel_epi64(place.cast(), bytes);
                }
            });
        }
    }
}

//! Requantization of sums in SSE2 vectors.

use std::arch::x86_64::*;

use oarlock_cpu_base::simd::{IntegerVector, Sse2I32Vector};
use oarlock_cpu_base::unrolled;

use super::super::requantize::QuantizedTileEpilogue;
use super::super::tile::MAX_TILE_PIXELS;
use super::{RequantizedVector, store_and_finish_tile};

impl RequantizedVector for Sse2I32Vector {
    #[inline(always)]
    unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
        sums: &[[Self; 2]; MAX_TILE_PIXELS],
        epilogue: &QuantizedTileEpilogue<'_>,
    ) {
        let [low, high] = epilogue.requantize.bounds;
        let factors = epilogue.factors.as_ptr();
        // SAFETY: every x86-64 processor has SSE2. The caller guarantees the places of all pixels; here, all channels of the vectors
        // exist.
        unsafe {
            if !epilogue.residual.is_null() || epilogue.factors.len() != VECTORS * Self::LANES {
                return store_and_finish_tile::<Self, PIXELS, VECTORS>(sums, epilogue);
            }
            let factors = [_mm_loadu_ps(factors), _mm_loadu_ps(factors.add((VECTORS - 1) * Self::LANES))];
            let (high, low) = (_mm_set1_ps(high), _mm_set1_epi16(low as i16));
            let zero = _mm_set1_epi16(epilogue.requantize.zero as i16);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let mut whole = [_mm_setzero_si128(); 2];
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let steps = _mm_mul_ps(_mm_cvtepi32_ps(sums[PIXEL][VECTOR].0), factors[VECTOR]);
                    // `min` returns its second operand for NaN, and the conversion turns NaN into the least integer, which is
                    // then clamped to the lower bound.
                    whole[VECTOR] = _mm_cvtps_epi32(_mm_min_ps(high, steps));
                });
                let packed = _mm_packs_epi32(whole[0], whole[VECTORS - 1]);
                let moved = _mm_add_epi16(_mm_max_epi16(packed, low), zero);
                // Only the low bytes matter, and masked ones do not saturate.
                let masked = _mm_and_si128(moved, _mm_set1_epi16(0xff));
                let bytes = _mm_packus_epi16(masked, masked);
                let place = epilogue.output.wrapping_add(PIXEL * epilogue.pixel);
                if VECTORS == 2 {
                    _mm_storel_epi64(place.cast(), bytes);
                } else {
                    place.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(bytes));
                }
            });
        }
    }
}

//! Requantization of sums in AVX-512 vectors.

use std::arch::x86_64::*;

use oarlock_cpu_base::simd::{Avx512VnniVector, IntegerVector};
use oarlock_cpu_base::unrolled;

use super::super::requantize::{InnerRounding, QuantizedTileEpilogue, ROUNDING_OFFSET};
use super::super::tile::MAX_TILE_PIXELS;
use super::RequantizedVector;

impl RequantizedVector for Avx512VnniVector {
    #[inline(always)]
    unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
        sums: &[[Self; 2]; MAX_TILE_PIXELS],
        epilogue: &QuantizedTileEpilogue<'_>,
    ) {
        // SAFETY: the caller guarantees the instructions and the places of all pixels.
        unsafe {
            let results = RequantizeVectors::new(epilogue);
            if epilogue.residual.is_null() {
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    let mut steps = [_mm512_setzero_ps(); 2];
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        steps[VECTOR] = results.scaled_steps(sums[PIXEL][VECTOR].0, VECTOR);
                    });
                    results.store_pixel::<VECTORS>(steps, epilogue, PIXEL);
                });
                return;
            }
            // The compiler would not unroll a longer loop, and would then keep the sums in memory from the start.
            let mut stored = [[Self(_mm512_setzero_si512()); 2]; MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 { stored[PIXEL][VECTOR] = sums[PIXEL][VECTOR]; });
            });
            finish_rows::<VECTORS>(&stored[..PIXELS], epilogue);
        }
    }
}

/// Requantizes the sums of some pixels, which are in memory, and stores the results.
///
/// # Safety
///
/// As for [`RequantizedVector::finish_tile`].
#[inline(always)]
pub(crate) unsafe fn finish_rows<const VECTORS: usize>(
    rows: &[[Avx512VnniVector; 2]],
    epilogue: &QuantizedTileEpilogue<'_>,
) {
    // SAFETY: the caller guarantees the instructions and the places of all pixels.
    unsafe {
        let results = RequantizeVectors::new(epilogue);
        for (pixel, sums) in rows.iter().enumerate() {
            let mut steps = [_mm512_setzero_ps(); 2];
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                steps[VECTOR] = results.scaled_steps(sums[VECTOR].0, VECTOR);
                if !epilogue.residual.is_null() {
                    steps[VECTOR] = results.add_residual(steps[VECTOR], epilogue, pixel, VECTOR);
                }
            });
            results.store_pixel::<VECTORS>(steps, epilogue, pixel);
        }
    }
}

/// Stores the sums of the first channels of a pixel.
///
/// # Safety
///
/// There is room for the sums, and the machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn store_row(sums: [Avx512VnniVector; 2], place: *mut i32, channels: usize) {
    let exists = (1u64 << channels) - 1;
    // SAFETY: masked stores write only sums of channels, which the caller guarantees.
    unsafe {
        _mm512_mask_storeu_epi32(place, exists as __mmask16, sums[0].0);
        _mm512_mask_storeu_epi32(
            place.wrapping_add(Avx512VnniVector::LANES),
            (exists >> 16) as __mmask16,
            sums[1].0,
        );
    }
}

/// The constants of requantization, as vectors.
struct RequantizeVectors {
    /// Masks of the channels that exist, for each vector.
    exists: [__mmask16; 2],
    factors: [__m512; 2],
    high: __m512,
    low: __m512i,
    zero: __m512i,
    /// Restores the order of two vectors packed into one: packing works within 128-bit lanes.
    order: __m512i,
}

impl RequantizeVectors {
    #[inline(always)]
    unsafe fn new(epilogue: &QuantizedTileEpilogue<'_>) -> Self {
        let exists = (1u64 << epilogue.factors.len()) - 1;
        let exists = [exists as __mmask16, (exists >> 16) as __mmask16];
        let [low, high] = epilogue.requantize.bounds;
        // SAFETY: the caller guarantees the instructions, and only existing factors are read.
        unsafe {
            let factors = epilogue.factors.as_ptr();
            Self {
                exists,
                factors: [
                    _mm512_maskz_loadu_ps(exists[0], factors),
                    _mm512_maskz_loadu_ps(exists[1], factors.wrapping_add(16)),
                ],
                high: _mm512_set1_ps(high),
                low: _mm512_set1_epi16(low as i16),
                zero: _mm512_set1_epi16(epilogue.requantize.zero as i16),
                order: _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
            }
        }
    }

    #[inline(always)]
    unsafe fn scaled_steps(&self, sums: __m512i, vector: usize) -> __m512 {
        // SAFETY: the caller guarantees the instructions.
        unsafe { _mm512_mul_ps(_mm512_cvtepi32_ps(sums), self.factors[vector]) }
    }

    /// Adds the residual to the scaled sums, after rounding them as if they had been stored in between.
    #[inline(always)]
    unsafe fn add_residual(
        &self,
        steps: __m512,
        epilogue: &QuantizedTileEpilogue<'_>,
        pixel: usize,
        vector: usize,
    ) -> __m512 {
        let addition = epilogue.requantize.residual;
        let place = epilogue.residual.wrapping_add(pixel * epilogue.pixel + vector * Self::LANES);
        // SAFETY: the caller guarantees the instructions, and only existing bytes are read.
        unsafe {
            let mut steps = steps;
            if let Some(InnerRounding { factor, bounds: [low, high] }) = addition.inner {
                // This operand order turns NaN into the lower bound, as in the portable version.
                let bounded = _mm512_min_ps(_mm512_max_ps(steps, _mm512_set1_ps(low)), _mm512_set1_ps(high));
                let whole = _mm512_set1_ps(ROUNDING_OFFSET);
                let rounded = _mm512_sub_ps(_mm512_add_ps(bounded, whole), whole);
                steps = _mm512_mul_ps(rounded, _mm512_set1_ps(factor));
            }
            let bytes = _mm_maskz_loadu_epi8(self.exists[vector], place.cast());
            let flipped = _mm_xor_si128(bytes, _mm_set1_epi8(addition.sign_flip.cast_signed()));
            let addend = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(flipped));
            let moved = _mm512_sub_ps(addend, _mm512_set1_ps(addition.zero));
            _mm512_add_ps(steps, _mm512_mul_ps(moved, _mm512_set1_ps(addition.factor)))
        }
    }

    const LANES: usize = <Avx512VnniVector as IntegerVector>::LANES;

    /// Rounds the scaled sums of a pixel and stores them.
    #[inline(always)]
    unsafe fn store_pixel<const VECTORS: usize>(
        &self,
        steps: [__m512; 2],
        epilogue: &QuantizedTileEpilogue<'_>,
        pixel: usize,
    ) {
        let place = epilogue.output.wrapping_add(pixel * epilogue.pixel);
        // SAFETY: the caller guarantees the instructions, and only existing bytes are written.
        unsafe {
            // `min` returns its second operand for NaN, and the conversion turns NaN into the least integer, which is then clamped
            // to the lower bound.
            let first = _mm512_cvtps_epi32(_mm512_min_ps(self.high, steps[0]));
            let second = _mm512_cvtps_epi32(_mm512_min_ps(self.high, steps[VECTORS - 1]));
            let packed = _mm512_permutexvar_epi64(self.order, _mm512_packs_epi32(first, second));
            let moved = _mm512_add_epi16(_mm512_max_epi16(packed, self.low), self.zero);
            let bytes = _mm512_cvtepi16_epi8(moved);
            match epilogue.factors.len() {
                32 if VECTORS == 2 => _mm256_storeu_si256(place.cast(), bytes),
                16 if VECTORS == 1 => _mm_storeu_si128(place.cast(), _mm256_castsi256_si128(bytes)),
                _ => {
                    let exists = u32::from(self.exists[0]) | u32::from(self.exists[1]) << 16;
                    _mm256_mask_storeu_epi8(place.cast(), exists, bytes);
                }
            }
        }
    }
}

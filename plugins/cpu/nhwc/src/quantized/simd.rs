//! SIMD vectors of 32-bit sums of each instruction set behind one trait. A step adds to each sum the products of four inputs,
//! which are the same for all sums, with four weights of its own. Sums wrap around, and no intermediate saturates.
//!
//! Loading a vector requires the instruction set, which the caller guarantees once; a vector that exists proves it.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

use oarlock_cpu_base::unrolled;

use super::requantize::QuantizedTileEpilogue;
use super::tile::MAX_TILE_PIXELS;

/// Products per sum and step: what `vpdpbusd` multiplies in a 32-bit lane.
pub(super) const QUAD: usize = 4;

/// The sign bit of a byte. Flipping it adds 128 to a signed byte, which makes it unsigned.
pub(super) const SIGN_BIT: u8 = 0x80;

/// A SIMD vector of sums.
pub(super) trait IntegerVector: Copy + 'static {
    const LANES: usize;

    /// Four inputs, broadcast to all sums.
    type Inputs: Copy;

    /// Four weights for each sum.
    type Weights: Copy;

    /// # Safety
    ///
    /// All lanes can be read, and the machine has the instructions of this type. The latter holds for all functions here without
    /// `self`.
    unsafe fn load(place: *const i32) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut i32);

    /// Loads unsigned inputs; signed ones are made unsigned.
    ///
    /// # Safety
    ///
    /// Four bytes can be read.
    unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs;

    /// # Safety
    ///
    /// Four bytes can be read for each sum.
    unsafe fn load_weights(place: *const i8) -> Self::Weights;

    /// Adds the four products of each lane.
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self;

    /// Requantizes the sums of a tile, one or two vectors per pixel, and stores the results.
    ///
    /// # Safety
    ///
    /// There is room for the results of the pixels, which only the caller accesses, and a residual of the same size, if any.
    #[inline(always)]
    unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
        sums: &[[Self; 2]; MAX_TILE_PIXELS],
        ending: &QuantizedTileEpilogue<'_>,
    ) {
        let mut stored = [[0; 2 * MAX_LANES]; MAX_TILE_PIXELS];
        // SAFETY: there is room for two vectors per pixel, and the caller guarantees the rest.
        unsafe {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[PIXEL][VECTOR].store(stored[PIXEL][VECTOR * Self::LANES..].as_mut_ptr());
                });
            });
            ending.finish_pixels(&stored[..PIXELS]);
        }
    }
}

/// Lanes of the widest vector.
pub(super) const MAX_LANES: usize = 16;

/// The fallback of every machine: four lanes, an xmm register on x86.
#[derive(Clone, Copy)]
pub(super) struct PortableIntegerVector([i32; 4]);

impl IntegerVector for PortableIntegerVector {
    const LANES: usize = 4;

    type Inputs = [u8; QUAD];
    type Weights = [[i8; QUAD]; 4];

    #[inline(always)]
    unsafe fn load(place: *const i32) -> Self {
        // SAFETY: the caller guarantees all lanes.
        Self(unsafe { place.cast::<[i32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut i32) {
        // SAFETY: the caller guarantees all lanes.
        unsafe { place.cast::<[i32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
        // SAFETY: the caller guarantees four bytes.
        let inputs = unsafe { place.cast::<[u8; QUAD]>().read() };
        if SIGNED { inputs.map(|input| input ^ SIGN_BIT) } else { inputs }
    }

    #[inline(always)]
    unsafe fn load_weights(place: *const i8) -> Self::Weights {
        // SAFETY: the caller guarantees four bytes for each sum.
        unsafe { place.cast::<[[i8; QUAD]; 4]>().read() }
    }

    #[inline(always)]
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
        let mut result = self;
        for (sum, weights) in result.0.iter_mut().zip(weights) {
            for (input, weight) in inputs.into_iter().zip(weights) {
                *sum = sum.wrapping_add(i32::from(input) * i32::from(weight));
            }
        }
        result
    }
}

#[cfg(x86_vectors)]
pub(super) use x86::{Avx2IntegerVector, Avx512IntegerVector};

#[cfg(x86_vectors)]
mod x86 {
    use std::arch::x86_64::*;

    use super::{IntegerVector, MAX_TILE_PIXELS, QUAD, SIGN_BIT};
    use crate::quantized::requantize::{InnerRounding, QuantizedTileEpilogue, ROUNDING_OFFSET};
    use oarlock_cpu_base::unrolled;

    /// The sign bits of four bytes.
    const SIGN_BITS: i32 = i32::from_ne_bytes([SIGN_BIT; QUAD]);

    /// Vectors of AVX-512 with VNNI.
    #[derive(Clone, Copy)]
    #[repr(transparent)]
    pub(crate) struct Avx512IntegerVector(__m512i);

    impl IntegerVector for Avx512IntegerVector {
        const LANES: usize = 16;

        type Inputs = __m512i;
        type Weights = __m512i;

        #[inline(always)]
        unsafe fn load(place: *const i32) -> Self {
            // SAFETY: the caller guarantees the instructions and the lanes.
            Self(unsafe { _mm512_loadu_si512(place.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, place: *mut i32) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(place.cast(), self.0) };
        }

        #[inline(always)]
        unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
            // SAFETY: the caller guarantees the instructions and four bytes.
            unsafe {
                let inputs = _mm512_set1_epi32(place.cast::<i32>().read_unaligned());
                if SIGNED { _mm512_xor_si512(inputs, _mm512_set1_epi32(SIGN_BITS)) } else { inputs }
            }
        }

        #[inline(always)]
        unsafe fn load_weights(place: *const i8) -> Self::Weights {
            // SAFETY: the caller guarantees the instructions and four bytes for each sum.
            unsafe { _mm512_loadu_si512(place.cast()) }
        }

        #[inline(always)]
        fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
            // SAFETY: a vector exists only where the machine has the instructions.
            Self(unsafe { _mm512_dpbusd_epi32(self.0, inputs, weights) })
        }

        #[inline(always)]
        unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
            sums: &[[Self; 2]; MAX_TILE_PIXELS],
            ending: &QuantizedTileEpilogue<'_>,
        ) {
            // SAFETY: the caller guarantees the instructions and the places of all pixels.
            unsafe {
                let results = RequantizeVectors::new(ending);
                if ending.residual.is_null() {
                    unrolled!(PIXEL in 0..PIXELS, at most 14 {
                        let mut steps = [_mm512_setzero_ps(); 2];
                        unrolled!(VECTOR in 0..VECTORS, at most 2 {
                            steps[VECTOR] = results.scaled_steps(sums[PIXEL][VECTOR].0, VECTOR);
                        });
                        results.store_pixel::<VECTORS>(steps, ending, PIXEL);
                    });
                    return;
                }
                // A longer loop would not be unrolled, and then the sums would have to be in memory from the start.
                let mut stored = [[Self(_mm512_setzero_si512()); 2]; MAX_TILE_PIXELS];
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 { stored[PIXEL][VECTOR] = sums[PIXEL][VECTOR]; });
                });
                Self::finish_rows::<VECTORS>(&stored[..PIXELS], ending);
            }
        }
    }

    impl Avx512IntegerVector {
        /// Requantizes the sums of some pixels, which are in memory, and stores the results.
        ///
        /// # Safety
        ///
        /// As for [`IntegerVector::finish_tile`].
        #[inline(always)]
        pub(crate) unsafe fn finish_rows<const VECTORS: usize>(
            rows: &[[Self; 2]],
            ending: &QuantizedTileEpilogue<'_>,
        ) {
            // SAFETY: the caller guarantees the instructions and the places of all pixels.
            unsafe {
                let results = RequantizeVectors::new(ending);
                for (pixel, sums) in rows.iter().enumerate() {
                    let mut steps = [_mm512_setzero_ps(); 2];
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        steps[VECTOR] = results.scaled_steps(sums[VECTOR].0, VECTOR);
                        if !ending.residual.is_null() {
                            steps[VECTOR] = results.add_residual(steps[VECTOR], ending, pixel, VECTOR);
                        }
                    });
                    results.store_pixel::<VECTORS>(steps, ending, pixel);
                }
            }
        }

        /// Stores the sums of the first channels of a pixel.
        ///
        /// # Safety
        ///
        /// There is room for them, and the machine has the instructions.
        #[inline(always)]
        pub(crate) unsafe fn store_row(sums: [Self; 2], place: *mut i32, channels: usize) {
            let exists = (1u64 << channels) - 1;
            // SAFETY: masked stores write only sums of channels, which the caller guarantees.
            unsafe {
                _mm512_mask_storeu_epi32(place, exists as __mmask16, sums[0].0);
                _mm512_mask_storeu_epi32(
                    place.wrapping_add(Self::LANES),
                    (exists >> 16) as __mmask16,
                    sums[1].0,
                );
            }
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
        unsafe fn new(ending: &QuantizedTileEpilogue<'_>) -> Self {
            let exists = (1u64 << ending.factors.len()) - 1;
            let exists = [exists as __mmask16, (exists >> 16) as __mmask16];
            let [low, high] = ending.requantize.bounds;
            // SAFETY: the caller guarantees the instructions, and only existing factors are read.
            unsafe {
                let factors = ending.factors.as_ptr();
                Self {
                    exists,
                    factors: [
                        _mm512_maskz_loadu_ps(exists[0], factors),
                        _mm512_maskz_loadu_ps(exists[1], factors.wrapping_add(16)),
                    ],
                    high: _mm512_set1_ps(high),
                    low: _mm512_set1_epi16(low as i16),
                    zero: _mm512_set1_epi16(ending.requantize.zero as i16),
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
            ending: &QuantizedTileEpilogue<'_>,
            pixel: usize,
            vector: usize,
        ) -> __m512 {
            let addition = ending.requantize.residual;
            let place = ending.residual.wrapping_add(pixel * ending.pixel + vector * Self::LANES);
            // SAFETY: the caller guarantees the instructions, and only existing bytes are read.
            unsafe {
                let mut steps = steps;
                if let Some(InnerRounding { factor, bounds: [low, high] }) = addition.inner {
                    // NaN becomes the lower bound, as in the portable version.
                    let bounded =
                        _mm512_min_ps(_mm512_max_ps(steps, _mm512_set1_ps(low)), _mm512_set1_ps(high));
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

        const LANES: usize = <Avx512IntegerVector as IntegerVector>::LANES;

        /// Rounds the steps of a pixel and stores them.
        #[inline(always)]
        unsafe fn store_pixel<const VECTORS: usize>(
            &self,
            steps: [__m512; 2],
            ending: &QuantizedTileEpilogue<'_>,
            pixel: usize,
        ) {
            let place = ending.output.wrapping_add(pixel * ending.pixel);
            // SAFETY: the caller guarantees the instructions, and only existing bytes are written.
            unsafe {
                // `min` returns its second operand for NaN, and the conversion makes it the least integer, which the lower bound
                // then clamps.
                let first = _mm512_cvtps_epi32(_mm512_min_ps(self.high, steps[0]));
                let second = _mm512_cvtps_epi32(_mm512_min_ps(self.high, steps[VECTORS - 1]));
                let packed = _mm512_permutexvar_epi64(self.order, _mm512_packs_epi32(first, second));
                let moved = _mm512_add_epi16(_mm512_max_epi16(packed, self.low), self.zero);
                let bytes = _mm512_cvtepi16_epi8(moved);
                match ending.factors.len() {
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

    /// A vector of AVX2. Even and odd bytes are widened separately, because `vpmaddubsw` saturates its sums to 16 bits.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2IntegerVector(__m256i);

    impl IntegerVector for Avx2IntegerVector {
        const LANES: usize = 8;

        type Inputs = [__m256i; 2];
        type Weights = [__m256i; 2];

        #[inline(always)]
        unsafe fn load(place: *const i32) -> Self {
            // SAFETY: the caller guarantees the instructions and the lanes.
            Self(unsafe { _mm256_loadu_si256(place.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, place: *mut i32) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(place.cast(), self.0) };
        }

        #[inline(always)]
        unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
            // SAFETY: the caller guarantees the instructions and four bytes.
            unsafe {
                let quad = place.cast::<i32>().read_unaligned();
                let inputs = _mm256_set1_epi32(if SIGNED { quad ^ SIGN_BITS } else { quad });
                [_mm256_and_si256(inputs, _mm256_set1_epi16(0xff)), _mm256_srli_epi16::<8>(inputs)]
            }
        }

        #[inline(always)]
        unsafe fn load_weights(place: *const i8) -> Self::Weights {
            // SAFETY: the caller guarantees the instructions and four bytes for each sum.
            unsafe {
                let weights = _mm256_loadu_si256(place.cast());
                [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(weights)), _mm256_srai_epi16::<8>(weights)]
            }
        }

        #[inline(always)]
        fn add_products(self, [even, odd]: Self::Inputs, [even_weights, odd_weights]: Self::Weights) -> Self {
            // SAFETY: a vector exists only where the machine has the instructions.
            Self(unsafe {
                let sum = _mm256_add_epi32(self.0, _mm256_madd_epi16(even, even_weights));
                _mm256_add_epi32(sum, _mm256_madd_epi16(odd, odd_weights))
            })
        }
    }
}

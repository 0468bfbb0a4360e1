//! Vectors of 32-bit sums.

use std::arch::x86_64::*;

use crate::simd::integer_vector::{IntegerVector, QUAD, SIGN_BIT};

/// The sign bits of four bytes.
const SIGN_BITS: i32 = i32::from_ne_bytes([SIGN_BIT; QUAD]);

/// Vectors of AVX-512 with VNNI.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx512VnniVector(pub __m512i);

impl IntegerVector for Avx512VnniVector {
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
        // SAFETY: a vector exists only if the machine has the instructions.
        Self(unsafe { _mm512_dpbusd_epi32(self.0, inputs, weights) })
    }
}

/// A vector of AVX2. Even and odd bytes are widened separately, because `vpmaddubsw` saturates its sums to 16 bits.
#[derive(Clone, Copy)]
pub struct Avx2I32Vector(__m256i);

impl IntegerVector for Avx2I32Vector {
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
        // SAFETY: a vector exists only if the machine has the instructions.
        Self(unsafe {
            let sum = _mm256_add_epi32(self.0, _mm256_madd_epi16(even, even_weights));
            _mm256_add_epi32(sum, _mm256_madd_epi16(odd, odd_weights))
        })
    }
}

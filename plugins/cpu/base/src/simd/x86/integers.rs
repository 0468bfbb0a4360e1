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

/// A vector of AVX2. It multiplies numbers of 16 bits, because `vpmaddubsw`, which multiplies bytes, saturates its sums to 16 bits.
#[derive(Clone, Copy)]
pub struct Avx2I32Vector(pub __m256i);

impl IntegerVector for Avx2I32Vector {
    const LANES: usize = 8;
    const FACTOR_BYTES: usize = 2;

    type Inputs = __m256i;
    type Weights = __m256i;

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
        unsafe { _mm256_set1_epi32(place.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn load_weights(place: *const i8) -> Self::Weights {
        // SAFETY: the caller guarantees the instructions and four bytes for each sum.
        unsafe { _mm256_loadu_si256(place.cast()) }
    }

    #[inline(always)]
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
        // SAFETY: a vector exists only if the machine has the instructions.
        Self(unsafe { _mm256_add_epi32(self.0, _mm256_madd_epi16(inputs, weights)) })
    }
}

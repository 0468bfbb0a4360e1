//! Vectors of SSE2, which every x86-64 processor has: those of integers, for which SSE4.1 has nothing better.

use std::arch::x86_64::*;

use super::integer_vector::IntegerVector;

/// A vector of sums. It multiplies numbers of 16 bits, since SSE2 has no products of bytes.
#[derive(Clone, Copy)]
pub struct Sse2I32Vector(pub __m128i);

impl IntegerVector for Sse2I32Vector {
    const LANES: usize = 4;
    const FACTOR_BYTES: usize = 2;

    type Inputs = __m128i;
    type Weights = __m128i;

    #[inline(always)]
    unsafe fn load(place: *const i32) -> Self {
        // SAFETY: the caller guarantees the lanes.
        Self(unsafe { _mm_loadu_si128(place.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut i32) {
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(place.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
        // SAFETY: the caller guarantees four bytes.
        unsafe { _mm_set1_epi32(place.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn load_weights(place: *const i8) -> Self::Weights {
        // SAFETY: the caller guarantees four bytes for each sum.
        unsafe { _mm_loadu_si128(place.cast()) }
    }

    #[inline(always)]
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
        // SAFETY: every x86-64 processor has SSE2.
        Self(unsafe { _mm_add_epi32(self.0, _mm_madd_epi16(inputs, weights)) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm_add_epi32(self.0, other.0) })
    }
}

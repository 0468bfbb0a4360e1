//! Vectors of 32-bit sums.

use std::arch::x86_64::*;

use crate::simd::integer_vector::{IntegerVector, QUAD, SIGN_BIT};

/// The sign bits of four bytes.
const SIGN_BITS: i32 = i32::from_ne_bytes([SIGN_BIT; QUAD]);

/// Implements a vector whose instruction set multiplies bytes exactly.
macro_rules! vnni_vector {
    (
        $(#[$comment:meta])*
        $name:ident, $vector:ident, $lanes:literal, $load:ident, $store:ident, $splat:ident, $xor:ident, $dot:ident
    ) => {
        $(#[$comment])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(pub $vector);

        impl IntegerVector for $name {
            const LANES: usize = $lanes;

            type Inputs = $vector;
            type Weights = $vector;

            #[inline(always)]
            unsafe fn load(place: *const i32) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
                Self(unsafe { $load(place.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut i32) {
                // SAFETY: as above.
                unsafe { $store(place.cast(), self.0) };
            }

            #[inline(always)]
            unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
                // SAFETY: the caller guarantees the instructions and four bytes.
                unsafe {
                    let inputs = $splat(place.cast::<i32>().read_unaligned());
                    if SIGNED { $xor(inputs, $splat(SIGN_BITS)) } else { inputs }
                }
            }

            #[inline(always)]
            unsafe fn load_weights(place: *const i8) -> Self::Weights {
                // SAFETY: the caller guarantees the instructions and four bytes for each sum.
                unsafe { $load(place.cast()) }
            }

            #[inline(always)]
            fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
                // SAFETY: a vector exists only if the machine has the instructions.
                Self(unsafe { $dot(self.0, inputs, weights) })
            }
        }
    };
}

vnni_vector!(
    /// A vector of AVX-512 with VNNI.
    Avx512VnniVector,
    __m512i,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    _mm512_xor_si512,
    _mm512_dpbusd_epi32
);

vnni_vector!(
    /// A vector of AVX-VNNI, which has the instruction of VNNI without AVX-512.
    AvxVnniVector,
    __m256i,
    8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    _mm256_xor_si256,
    _mm256_dpbusd_avx_epi32
);

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

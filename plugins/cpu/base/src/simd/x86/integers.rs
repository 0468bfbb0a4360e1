//! Vectors of 32-bit sums.

use std::arch::x86_64::*;

use crate::simd::integer_vector::{IntegerVector, QUAD, SIGN_BIT};

/// The sign bits of four bytes.
const SIGN_BITS: i32 = i32::from_ne_bytes([SIGN_BIT; QUAD]);

/// Implements a vector of sums, whose last function multiplies factors of as many bytes.
macro_rules! integer_vector {
    (
        $(#[$comment:meta])*
        $name:ident, $vector:ident, $lanes:literal, $load:ident, $store:ident, $splat:ident, $xor:ident,
        $add:ident, $factor_bytes:literal, $add_products:ident
    ) => {
        $(#[$comment])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(pub $vector);

        impl IntegerVector for $name {
            const LANES: usize = $lanes;
            const FACTOR_BYTES: usize = $factor_bytes;

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
                Self(unsafe { $add_products(self.0, inputs, weights) })
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $add(self.0, other.0) })
            }
        }
    };
}

/// Implements a vector of AVX-512.
macro_rules! zmm_vector {
    ($(#[$comment:meta])* $name:ident, $factor_bytes:literal, $add_products:ident) => {
        integer_vector!(
            $(#[$comment])*
            $name,
            __m512i,
            16,
            _mm512_loadu_si512,
            _mm512_storeu_si512,
            _mm512_set1_epi32,
            _mm512_xor_si512,
            _mm512_add_epi32,
            $factor_bytes,
            $add_products
        );
    };
}

/// Implements a vector of AVX2.
macro_rules! ymm_vector {
    ($(#[$comment:meta])* $name:ident, $factor_bytes:literal, $add_products:ident) => {
        integer_vector!(
            $(#[$comment])*
            $name,
            __m256i,
            8,
            _mm256_loadu_si256,
            _mm256_storeu_si256,
            _mm256_set1_epi32,
            _mm256_xor_si256,
            _mm256_add_epi32,
            $factor_bytes,
            $add_products
        );
    };
}

zmm_vector!(
    /// A vector of AVX-512 with VNNI.
    Avx512VnniVector,
    1,
    _mm512_dpbusd_epi32
);

zmm_vector!(
    /// A vector of AVX-512 with VNNI for numbers of 16 bits.
    Avx512VnniWordVector,
    2,
    _mm512_dpwssd_epi32
);

zmm_vector!(
    /// A vector of AVX-512 without VNNI. It multiplies numbers of 16 bits, like [`Avx2I32Vector`].
    Avx512WordVector,
    2,
    add_word_products_zmm
);

ymm_vector!(
    /// A vector of AVX-VNNI, which has the instruction of VNNI without AVX-512.
    AvxVnniVector,
    1,
    _mm256_dpbusd_avx_epi32
);

ymm_vector!(
    /// A vector of AVX-VNNI for numbers of 16 bits.
    AvxVnniWordVector,
    2,
    _mm256_dpwssd_avx_epi32
);

ymm_vector!(
    /// A vector of AVX2. It multiplies numbers of 16 bits, because `vpmaddubsw`, which multiplies bytes, saturates its sums to 16 bits.
    Avx2I32Vector,
    2,
    add_word_products_ymm
);

/// # Safety
///
/// The machine has AVX-512 BW.
#[inline(always)]
unsafe fn add_word_products_zmm(sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
    // SAFETY: the caller guarantees the instructions.
    unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(inputs, weights)) }
}

/// # Safety
///
/// The machine has AVX2.
#[inline(always)]
unsafe fn add_word_products_ymm(sums: __m256i, inputs: __m256i, weights: __m256i) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(inputs, weights)) }
}

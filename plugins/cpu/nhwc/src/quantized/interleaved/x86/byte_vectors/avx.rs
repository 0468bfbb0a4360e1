//! Vectors of bytes of AVX2 and more.

use std::arch::x86_64::*;

use super::{
    ByteVector, CopiedAccess, PartialAccess, QUAD, RequantizeParameters, SIGN_BIT, VectorProducts,
    WidenedVectorProducts, bytes, bytes_of_width, widened_products,
};

bytes_of_width!(512, VnniZmm, Avx512VnniProducts, MaskedAccess);
bytes_of_width!(256, VnniYmm, Avx512VnniProducts, MaskedAccess);
bytes_of_width!(128, VnniXmm, Avx512VnniProducts, MaskedAccess);
bytes_of_width!(256, AvxVnniYmm, AvxVnniProducts, CopiedAccess);
bytes_of_width!(128, AvxVnniXmm, AvxVnniProducts, CopiedAccess);
bytes_of_width!(256, WidenedYmm, WidenedVectorProducts, CopiedAccess);

/// AVX-512 VNNI: one instruction for four products of each lane.
pub(crate) enum Avx512VnniProducts {}

/// The same instruction without AVX-512.
pub(crate) enum AvxVnniProducts {}

macro_rules! vnni_products {
    ($products:ident, $vector:ident, $load:ident, $dot:ident) => {
        impl VectorProducts<$vector> for $products {
            const FACTOR_BYTES: usize = 1;

            type Factors = $vector;

            #[inline(always)]
            unsafe fn to_factors(bytes: $vector) -> Self::Factors {
                bytes
            }

            #[inline(always)]
            unsafe fn add_products(sums: $vector, inputs: Self::Factors, weights: *const i8) -> $vector {
                // SAFETY: the caller guarantees the instructions and the weights.
                unsafe { $dot(sums, inputs, $load(weights.cast())) }
            }
        }
    };
}

vnni_products!(Avx512VnniProducts, __m512i, _mm512_loadu_si512, _mm512_dpbusd_epi32);
vnni_products!(Avx512VnniProducts, __m256i, _mm256_loadu_si256, _mm256_dpbusd_epi32);
vnni_products!(Avx512VnniProducts, __m128i, _mm_loadu_si128, _mm_dpbusd_epi32);
vnni_products!(AvxVnniProducts, __m256i, _mm256_loadu_si256, _mm256_dpbusd_avx_epi32);
vnni_products!(AvxVnniProducts, __m128i, _mm_loadu_si128, _mm_dpbusd_avx_epi32);

widened_products!(
    __m256i,
    _mm256_loadu_si256,
    _mm256_and_si256,
    _mm256_set1_epi16,
    _mm256_srli_epi16,
    _mm256_madd_epi16,
    _mm256_add_epi32
);

/// With the masks of AVX-512.
enum MaskedAccess {}

macro_rules! partial {
    ($vector:ident, $mask:ident, $load:ident, $store:ident) => {
        impl PartialAccess<$vector> for MaskedAccess {
            #[inline(always)]
            unsafe fn load_partial(place: *const u8, count: usize) -> $vector {
                let mask = ((1u128 << count) - 1) as $mask;
                // SAFETY: the caller guarantees these bytes; masked-out bytes are not read.
                unsafe { $load(mask, place.cast()) }
            }

            #[inline(always)]
            unsafe fn store_partial(bytes: $vector, place: *mut u8, count: usize) {
                let mask = ((1u128 << count) - 1) as $mask;
                // SAFETY: the caller guarantees these bytes; masked-out bytes are not written.
                unsafe { $store(place.cast(), mask, bytes) };
            }
        }
    };
}

partial!(__m512i, __mmask64, _mm512_maskz_loadu_epi8, _mm512_mask_storeu_epi8);
partial!(__m256i, __mmask32, _mm256_maskz_loadu_epi8, _mm256_mask_storeu_epi8);
partial!(__m128i, __mmask16, _mm_maskz_loadu_epi8, _mm_mask_storeu_epi8);

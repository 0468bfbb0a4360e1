//! Vectors of bytes, of three widths and with two ways to multiply them. Those of AVX2 and more are in a file of their own.

#[cfg(x86_vectors)]
mod avx;

use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ptr;

use super::QUAD;
use crate::quantized::requantize::RequantizeParameters;
#[cfg(x86_vectors)]
pub(super) use avx::{AvxVnniXmm, AvxVnniYmm, VnniXmm, VnniYmm, VnniZmm, WidenedYmm};
use oarlock_cpu_base::simd::SIGN_BIT;

/// A vector of bytes: one per channel, or four per channel.
pub(super) trait ByteVector: Copy {
    const COUNT: usize;

    /// Bytes of a weight: 2 if bytes are widened before they are multiplied.
    const FACTOR_BYTES: usize;

    /// Bytes as they are multiplied.
    type Factors: Copy;

    /// The constants of requantization, broadcast to vectors.
    type Epilogue: Copy;

    /// # Safety
    ///
    /// All bytes, or `count` of them, are readable, and the machine has the instructions of this type. The instructions are a
    /// condition of all functions here.
    unsafe fn load(place: *const u8) -> Self;
    unsafe fn load_partial(place: *const u8, count: usize) -> Self;

    /// # Safety
    ///
    /// All bytes, or `count` of them, are writable.
    unsafe fn store(self, place: *mut u8);
    unsafe fn store_partial(self, place: *mut u8, count: usize);

    /// Makes signed bytes unsigned by flipping the sign bit.
    unsafe fn to_unsigned(self) -> Self;

    /// Transposes four pixels into the four bytes of each channel.
    unsafe fn interleave_pixels(pixels: [Self; QUAD]) -> [Self; QUAD];

    unsafe fn to_factors(self) -> Self::Factors;

    /// Adds the products of four bytes to each sum.
    ///
    /// # Safety
    ///
    /// There are as many weights as bytes in a vector.
    unsafe fn add_products(self, inputs: Self::Factors, weights: *const i8) -> Self;

    unsafe fn load_epilogue(requantize: &RequantizeParameters) -> Self::Epilogue;

    /// Requantizes the sums of all channels.
    ///
    /// # Safety
    ///
    /// There is a factor for each sum.
    unsafe fn requantize_sums(sums: [Self; QUAD], factors: *const f32, epilogue: Self::Epilogue) -> Self;
}

macro_rules! bytes {
    (
        $name:ident, $vector:ident, $floats:ident, $count:literal, $products:ty, $partial:ty,
        $load:ident $store:ident $xor:ident $splat_bytes:ident $splat:ident
        $low:ident $high:ident $low_pairs:ident $high_pairs:ident
        $load_floats:ident $splat_floats:ident $to_floats:ident $times:ident $least:ident $round:ident
        $pack:ident $greatest:ident $plus:ident $pack_bytes:ident
    ) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name($vector);

        impl ByteVector for $name {
            const COUNT: usize = $count;
            const FACTOR_BYTES: usize = <$products as VectorProducts<$vector>>::FACTOR_BYTES;

            type Factors = <$products as VectorProducts<$vector>>::Factors;

            /// The upper bound, the lower bound, the zero point, and the bits to flip at the end.
            type Epilogue = ($floats, $vector, $vector, $vector);

            #[inline(always)]
            unsafe fn load(place: *const u8) -> Self {
                // SAFETY: guaranteed by the caller.
                Self(unsafe { $load(place.cast()) })
            }

            #[inline(always)]
            unsafe fn load_partial(place: *const u8, count: usize) -> Self {
                // SAFETY: guaranteed by the caller.
                Self(unsafe { <$partial as PartialAccess<$vector>>::load_partial(place, count) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut u8) {
                // SAFETY: guaranteed by the caller.
                unsafe { $store(place.cast(), self.0) };
            }

            #[inline(always)]
            unsafe fn store_partial(self, place: *mut u8, count: usize) {
                // SAFETY: guaranteed by the caller.
                unsafe { <$partial as PartialAccess<$vector>>::store_partial(self.0, place, count) };
            }

            #[inline(always)]
            unsafe fn to_unsigned(self) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $xor(self.0, $splat_bytes(SIGN_BIT.cast_signed())) })
            }

            #[inline(always)]
            unsafe fn to_factors(self) -> Self::Factors {
                // SAFETY: as above.
                unsafe { <$products as VectorProducts<$vector>>::to_factors(self.0) }
            }

            #[inline(always)]
            unsafe fn interleave_pixels([a, b, c, d]: [Self; QUAD]) -> [Self; QUAD] {
                // SAFETY: the caller guarantees the instructions.
                unsafe {
                    let [low, low_next] = [$low(a.0, b.0), $low(c.0, d.0)];
                    let [high, high_next] = [$high(a.0, b.0), $high(c.0, d.0)];
                    [
                        Self($low_pairs(low, low_next)),
                        Self($high_pairs(low, low_next)),
                        Self($low_pairs(high, high_next)),
                        Self($high_pairs(high, high_next)),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn add_products(self, inputs: Self::Factors, weights: *const i8) -> Self {
                // SAFETY: the caller guarantees the instructions and the weights.
                Self(unsafe { <$products as VectorProducts<$vector>>::add_products(self.0, inputs, weights) })
            }

            #[inline(always)]
            unsafe fn load_epilogue(requantize: &RequantizeParameters) -> Self::Epilogue {
                let [low, high] = requantize.bounds;
                // Packing saturates to unsigned bytes, so signed results are shifted into that range and flipped back.
                let is_signed = low + (requantize.zero as f32) < 0.0;
                let sign_flip = if is_signed { i32::from(SIGN_BIT) } else { 0 };
                // SAFETY: the caller guarantees the instructions.
                unsafe {
                    (
                        $splat_floats(high),
                        $splat(low as i16),
                        $splat((requantize.zero + sign_flip) as i16),
                        $splat_bytes(sign_flip as i8),
                    )
                }
            }

            #[inline(always)]
            unsafe fn requantize_sums(
                sums: [Self; QUAD],
                factors: *const f32,
                (high, low, zero, sign_flip): Self::Epilogue,
            ) -> Self {
                // SAFETY: the caller guarantees the instructions and the factors.
                unsafe {
                    // A loop instead of `map`, because the closure would not be compiled for the instruction set.
                    let mut whole = [low; QUAD];
                    for (index, (whole, sum)) in whole.iter_mut().zip(sums).enumerate() {
                        let factors = $load_floats(factors.add(index * ($count / 4)));
                        // `min` returns its second operand for NaN, and the conversion turns NaN into the least integer.
                        *whole = $round($least(high, $times($to_floats(sum.0), factors)));
                    }
                    let [first, second] = [$pack(whole[0], whole[1]), $pack(whole[2], whole[3])];
                    let first = $plus($greatest(first, low), zero);
                    let second = $plus($greatest(second, low), zero);
                    Self($xor($pack_bytes(first, second), sign_flip))
                }
            }
        }
    };
}

#[cfg(x86_vectors)]
use bytes;

/// Everything of a width but its name, its products and its access to partial vectors.
macro_rules! bytes_of_width {
    (512, $name:ident, $products:ty, $partial:ty) => {
        bytes!(
            $name, __m512i, __m512, 64, $products, $partial,
            _mm512_loadu_si512 _mm512_storeu_si512 _mm512_xor_si512 _mm512_set1_epi8 _mm512_set1_epi16
            _mm512_unpacklo_epi8 _mm512_unpackhi_epi8 _mm512_unpacklo_epi16 _mm512_unpackhi_epi16
            _mm512_loadu_ps _mm512_set1_ps _mm512_cvtepi32_ps _mm512_mul_ps _mm512_min_ps _mm512_cvtps_epi32
            _mm512_packs_epi32 _mm512_max_epi16 _mm512_add_epi16 _mm512_packus_epi16
        );
    };
    (256, $name:ident, $products:ty, $partial:ty) => {
        bytes!(
            $name, __m256i, __m256, 32, $products, $partial,
            _mm256_loadu_si256 _mm256_storeu_si256 _mm256_xor_si256 _mm256_set1_epi8 _mm256_set1_epi16
            _mm256_unpacklo_epi8 _mm256_unpackhi_epi8 _mm256_unpacklo_epi16 _mm256_unpackhi_epi16
            _mm256_loadu_ps _mm256_set1_ps _mm256_cvtepi32_ps _mm256_mul_ps _mm256_min_ps _mm256_cvtps_epi32
            _mm256_packs_epi32 _mm256_max_epi16 _mm256_add_epi16 _mm256_packus_epi16
        );
    };
    (128, $name:ident, $products:ty, $partial:ty) => {
        bytes!(
            $name, __m128i, __m128, 16, $products, $partial,
            _mm_loadu_si128 _mm_storeu_si128 _mm_xor_si128 _mm_set1_epi8 _mm_set1_epi16
            _mm_unpacklo_epi8 _mm_unpackhi_epi8 _mm_unpacklo_epi16 _mm_unpackhi_epi16
            _mm_loadu_ps _mm_set1_ps _mm_cvtepi32_ps _mm_mul_ps _mm_min_ps _mm_cvtps_epi32
            _mm_packs_epi32 _mm_max_epi16 _mm_add_epi16 _mm_packus_epi16
        );
    };
}

#[cfg(x86_vectors)]
use bytes_of_width;

bytes_of_width!(128, WidenedXmm, WidenedVectorProducts, CopiedAccess);

/// A way to multiply bytes and add the products.
pub(super) trait VectorProducts<V> {
    const FACTOR_BYTES: usize;

    type Factors: Copy;

    /// # Safety
    ///
    /// The machine has the instructions. This is a condition of all functions here.
    unsafe fn to_factors(bytes: V) -> Self::Factors;

    /// # Safety
    ///
    /// There are as many weights as bytes in a vector.
    unsafe fn add_products(sums: V, inputs: Self::Factors, weights: *const i8) -> V;
}

/// Numbers of 16 bits: first the even bytes, then the odd ones.
pub(super) enum WidenedVectorProducts {}

macro_rules! widened_products {
    ($vector:ident, $load:ident, $and:ident, $splat:ident, $shift:ident, $multiply:ident, $add:ident) => {
        impl VectorProducts<$vector> for WidenedVectorProducts {
            const FACTOR_BYTES: usize = 2;

            type Factors = [$vector; 2];

            #[inline(always)]
            unsafe fn to_factors(bytes: $vector) -> Self::Factors {
                // SAFETY: the caller guarantees the instructions.
                unsafe { [$and(bytes, $splat(0xff)), $shift::<8>(bytes)] }
            }

            #[inline(always)]
            unsafe fn add_products(sums: $vector, [even, odd]: Self::Factors, weights: *const i8) -> $vector {
                // SAFETY: the caller guarantees the instructions, and two bytes for each weight.
                unsafe {
                    let sums = $add(sums, $multiply(even, $load(weights.cast())));
                    $add(sums, $multiply(odd, $load(weights.add(size_of::<$vector>()).cast())))
                }
            }
        }
    };
}

#[cfg(x86_vectors)]
use widened_products;

widened_products!(
    __m128i,
    _mm_loadu_si128,
    _mm_and_si128,
    _mm_set1_epi16,
    _mm_srli_epi16,
    _mm_madd_epi16,
    _mm_add_epi32
);

/// A way to load and store the first bytes of a vector.
trait PartialAccess<V> {
    /// # Safety
    ///
    /// `count` bytes are readable, and the machine has the instructions. This is a condition of both functions.
    unsafe fn load_partial(place: *const u8, count: usize) -> V;

    /// # Safety
    ///
    /// `count` bytes are writable.
    unsafe fn store_partial(bytes: V, place: *mut u8, count: usize);
}

/// By way of memory that has a whole vector.
enum CopiedAccess {}

impl<V> PartialAccess<V> for CopiedAccess {
    #[inline(always)]
    unsafe fn load_partial(place: *const u8, count: usize) -> V {
        let mut bytes = MaybeUninit::<V>::zeroed();
        // SAFETY: the caller guarantees these bytes, which are at most those of a vector; any bytes are a valid vector.
        unsafe {
            ptr::copy_nonoverlapping(place, bytes.as_mut_ptr().cast(), count.min(size_of::<V>()));
            bytes.assume_init()
        }
    }

    #[inline(always)]
    unsafe fn store_partial(bytes: V, place: *mut u8, count: usize) {
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping((&raw const bytes).cast(), place, count.min(size_of::<V>())) };
    }
}

//! Vectors of AVX2 and AVX-512.

mod integers;
mod sorting;

use std::arch::x86_64::*;

use super::float_vector::F32Vector;
use super::x86_floats::float_vector;

pub use integers::{
    Avx2I32Vector, Avx512VnniVector, Avx512VnniWordVector, Avx512WordVector, AvxVnniVector, AvxVnniWordVector,
};
pub(super) use sorting::{Avx2SortU32, Avx2SortU64, Avx512SortU32, Avx512SortU64};

#[derive(Clone, Copy)]
pub struct Avx2F32Vector(pub(super) __m256);

#[derive(Clone, Copy)]
pub struct Avx2F64Vector(__m256d);

#[derive(Clone, Copy)]
pub struct Avx512F32Vector(pub(super) __m512);

#[derive(Clone, Copy)]
pub struct Avx512F64Vector(__m512d);

/// AVX2 has no mask registers: a load from index 8 - n yields a mask of the first n lanes.
static LANE_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
unsafe fn lane_mask(count: usize) -> __m256i {
    // SAFETY: the eight numbers lie in the array, since the count is clamped to 8; the caller guarantees the instructions.
    unsafe { _mm256_loadu_si256(LANE_MASKS.as_ptr().add(8 - count.min(8)).cast()) }
}

/// The same mask for lanes of 64 bits.
#[inline(always)]
unsafe fn wide_lane_mask(count: usize) -> __m256i {
    // SAFETY: as above, with two numbers for each of at most 4 lanes.
    unsafe { _mm256_loadu_si256(LANE_MASKS.as_ptr().add(8 - 2 * count.min(4)).cast()) }
}

/// Stores the first lanes as halves, quarters and single lanes: on a Zen 3, a masked store takes more than eight cycles, and these one or
/// two.
#[inline(always)]
unsafe fn store_first_floats(place: *mut f32, count: usize, vector: __m256) {
    // SAFETY: the parts that are stored have `count` lanes at most; the caller guarantees the instructions.
    unsafe {
        if count >= 8 {
            return _mm256_storeu_ps(place, vector);
        }
        let (mut place, mut rest) = (place, _mm256_castps256_ps128(vector));
        if count & 4 != 0 {
            _mm_storeu_ps(place, rest);
            (place, rest) = (place.add(4), _mm256_extractf128_ps::<1>(vector));
        }
        if count & 2 != 0 {
            _mm_storel_epi64(place.cast(), _mm_castps_si128(rest));
            (place, rest) = (place.add(2), _mm_movehl_ps(rest, rest));
        }
        if count & 1 != 0 {
            _mm_store_ss(place, rest);
        }
    }
}

/// The same for lanes of 64 bits.
#[inline(always)]
unsafe fn store_first_doubles(place: *mut f64, count: usize, vector: __m256d) {
    // SAFETY: as above.
    unsafe {
        if count >= 4 {
            return _mm256_storeu_pd(place, vector);
        }
        let (mut place, mut rest) = (place, _mm256_castpd256_pd128(vector));
        if count & 2 != 0 {
            _mm_storeu_pd(place, rest);
            (place, rest) = (place.add(2), _mm256_extractf128_pd::<1>(vector));
        }
        if count & 1 != 0 {
            _mm_store_sd(place, rest);
        }
    }
}

float_vector!(
    Avx2F32Vector,
    __m256 of f32,
    8,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_div_ps,
    true,
    _mm256_fmadd_ps,
    _mm256_max_ps,
    _mm256_min_ps,
    |vector| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(vector, _mm256_setzero_ps())) == 0,
    |place, count| _mm256_maskload_ps(place, lane_mask(count)),
    |place, count, vector| store_first_floats(place, count, vector)
);

float_vector!(
    Avx512F32Vector,
    __m512 of f32,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    true,
    _mm512_fmadd_ps,
    _mm512_max_ps,
    _mm512_min_ps,
    |vector| _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(vector, _mm512_setzero_ps()) == 0,
    |place, count: usize| _mm512_maskz_loadu_ps(((1u32 << count) - 1) as __mmask16, place),
    |place, count: usize, vector| {
        _mm512_mask_storeu_ps(place, ((1u32 << count) - 1) as __mmask16, vector);
    }
);

float_vector!(
    Avx2F64Vector,
    __m256d of f64,
    4,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_div_pd,
    true,
    _mm256_fmadd_pd,
    _mm256_max_pd,
    _mm256_min_pd,
    |vector| _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NEQ_UQ>(vector, _mm256_setzero_pd())) == 0,
    |place, count| _mm256_maskload_pd(place, wide_lane_mask(count)),
    |place, count, vector| store_first_doubles(place, count, vector)
);

float_vector!(
    Avx512F64Vector,
    __m512d of f64,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_div_pd,
    true,
    _mm512_fmadd_pd,
    _mm512_max_pd,
    _mm512_min_pd,
    |vector| _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(vector, _mm512_setzero_pd()) == 0,
    |place, count: usize| _mm512_maskz_loadu_pd(((1u32 << count) - 1) as __mmask8, place),
    |place, count: usize, vector| {
        _mm512_mask_storeu_pd(place, ((1u32 << count) - 1) as __mmask8, vector);
    }
);

impl F32Vector for Avx2F32Vector {}

impl F32Vector for Avx512F32Vector {
    #[inline(always)]
    unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
        // SAFETY: the caller guarantees the instructions and `count` numbers.
        unsafe {
            let numbers = if count == 16 {
                _mm256_loadu_si256(place.cast())
            } else {
                _mm256_maskz_loadu_epi16(((1u32 << count) - 1) as __mmask16, place.cast())
            };
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(numbers))))
        }
    }

    #[inline(always)]
    unsafe fn store_bf16(self, place: *mut u16, count: usize) {
        // SAFETY: as above; both types have 32 bytes, and any bits are valid.
        unsafe {
            let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(self.0));
            if count == 16 {
                _mm256_storeu_si256(place.cast(), rounded);
            } else {
                _mm256_mask_storeu_epi16(place.cast(), ((1u32 << count) - 1) as __mmask16, rounded);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::float_vector::FloatVector;
    use super::*;
    use crate::isa::Isa;

    fn check_partial_stores<T: Copy + Default + PartialEq + std::fmt::Debug, V: FloatVector<T>>(lanes: &[T]) {
        for count in 0..=V::LANES {
            let mut stored = vec![T::default(); V::LANES];
            // SAFETY: the caller of this test has tested for the instructions; there are as many numbers as lanes.
            unsafe { V::load(lanes.as_ptr()).store_partial(stored.as_mut_ptr(), count) };
            assert_eq!(stored[..count], lanes[..count]);
            assert!(stored[count..].iter().all(|number| *number == T::default()), "{count}: {stored:?}");
        }
    }

    #[test]
    fn partial_stores_write_as_many_lanes_as_they_say() {
        if Isa::Avx2.is_available() {
            check_partial_stores::<f32, Avx2F32Vector>(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            check_partial_stores::<f64, Avx2F64Vector>(&[1.0, 2.0, 3.0, 4.0]);
        }
    }
}

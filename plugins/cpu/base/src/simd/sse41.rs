//! Vectors of SSE4.1. It has no FMA, so a multiply-add rounds twice, and no masks, so lanes are moved one by one where a vector is
//! partial.

use std::arch::x86_64::*;

use super::float_vector::F32Vector;
use super::x86_floats::float_vector;

/// Four `f32`.
#[derive(Clone, Copy)]
pub struct Sse41F32Vector(pub(super) __m128);

/// Two `f64`.
#[derive(Clone, Copy)]
pub struct Sse41F64Vector(__m128d);

float_vector!(
    Sse41F32Vector,
    __m128 of f32,
    4,
    _mm_set1_ps,
    _mm_loadu_ps,
    _mm_storeu_ps,
    _mm_add_ps,
    _mm_sub_ps,
    _mm_mul_ps,
    _mm_div_ps,
    false,
    multiply_add_ps,
    _mm_max_ps,
    _mm_min_ps,
    |vector| _mm_movemask_ps(_mm_cmpneq_ps(vector, _mm_setzero_ps())) == 0,
    load_floats,
    store_floats
);

float_vector!(
    Sse41F64Vector,
    __m128d of f64,
    2,
    _mm_set1_pd,
    _mm_loadu_pd,
    _mm_storeu_pd,
    _mm_add_pd,
    _mm_sub_pd,
    _mm_mul_pd,
    _mm_div_pd,
    false,
    multiply_add_pd,
    _mm_max_pd,
    _mm_min_pd,
    |vector| _mm_movemask_pd(_mm_cmpneq_pd(vector, _mm_setzero_pd())) == 0,
    load_doubles,
    store_doubles
);

/// # Safety
///
/// The machine has the instructions.
#[inline(always)]
unsafe fn multiply_add_ps(left: __m128, right: __m128, sum: __m128) -> __m128 {
    // SAFETY: the caller guarantees the instructions.
    unsafe { _mm_add_ps(sum, _mm_mul_ps(left, right)) }
}

/// # Safety
///
/// As for [`multiply_add_ps`].
#[inline(always)]
unsafe fn multiply_add_pd(left: __m128d, right: __m128d, sum: __m128d) -> __m128d {
    // SAFETY: the caller guarantees the instructions.
    unsafe { _mm_add_pd(sum, _mm_mul_pd(left, right)) }
}

/// # Safety
///
/// `count` numbers can be read, and the machine has the instructions.
#[inline(always)]
unsafe fn load_floats(place: *const f32, count: usize) -> __m128 {
    // SAFETY: guaranteed by the caller. Two numbers are read as one of 64 bits, at any alignment.
    unsafe {
        let pair = || _mm_castsi128_ps(_mm_loadl_epi64(place.cast()));
        match count {
            0 => _mm_setzero_ps(),
            1 => _mm_load_ss(place),
            2 => pair(),
            3 => _mm_movelh_ps(pair(), _mm_load_ss(place.add(2))),
            _ => _mm_loadu_ps(place),
        }
    }
}

/// # Safety
///
/// `count` numbers can be written, and the machine has the instructions.
#[inline(always)]
unsafe fn store_floats(place: *mut f32, count: usize, vector: __m128) {
    // SAFETY: guaranteed by the caller. Two numbers are written as one of 64 bits, at any alignment.
    unsafe {
        match count {
            0 => {}
            1 => _mm_store_ss(place, vector),
            2 => _mm_storel_epi64(place.cast(), _mm_castps_si128(vector)),
            3 => {
                _mm_storel_epi64(place.cast(), _mm_castps_si128(vector));
                _mm_store_ss(place.add(2), _mm_movehl_ps(vector, vector));
            }
            _ => _mm_storeu_ps(place, vector),
        }
    }
}

/// # Safety
///
/// As for [`load_floats`].
#[inline(always)]
unsafe fn load_doubles(place: *const f64, count: usize) -> __m128d {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match count {
            0 => _mm_setzero_pd(),
            1 => _mm_load_sd(place),
            _ => _mm_loadu_pd(place),
        }
    }
}

/// # Safety
///
/// As for [`store_floats`].
#[inline(always)]
unsafe fn store_doubles(place: *mut f64, count: usize, vector: __m128d) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match count {
            0 => {}
            1 => _mm_store_sd(place, vector),
            _ => _mm_storeu_pd(place, vector),
        }
    }
}

impl F32Vector for Sse41F32Vector {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::simd::FloatVector;

    fn lanes_of(vector: Sse41F32Vector) -> [f32; 4] {
        let mut lanes = [0.0; 4];
        // SAFETY: there is room for all lanes, and a vector exists only if the machine has the instructions.
        unsafe { vector.store(lanes.as_mut_ptr()) };
        lanes
    }

    #[test]
    fn partial_vectors_have_as_many_numbers_as_asked_for() {
        if !Isa::Sse41.is_available() {
            return;
        }
        let (numbers, doubles) = ([1.0f32, 2.0, 3.0, 4.0], [1.0f64, 2.0]);
        for count in 0..=4 {
            let mut written = [9.0; 4];
            // SAFETY: the machine has the instructions, and the arrays have all lanes.
            let loaded = unsafe {
                Sse41F32Vector::load(numbers.as_ptr()).store_partial(written.as_mut_ptr(), count);
                lanes_of(Sse41F32Vector::load_partial(numbers.as_ptr(), count))
            };
            for lane in 0..4 {
                assert_eq!(loaded[lane], if lane < count { numbers[lane] } else { 0.0 });
                assert_eq!(written[lane], if lane < count { numbers[lane] } else { 9.0 });
            }
        }
        for count in 0..=2 {
            let (mut loaded, mut written) = ([9.0; 2], [9.0; 2]);
            // SAFETY: as above.
            unsafe {
                Sse41F64Vector::load_partial(doubles.as_ptr(), count).store(loaded.as_mut_ptr());
                Sse41F64Vector::load(doubles.as_ptr()).store_partial(written.as_mut_ptr(), count);
            }
            for lane in 0..2 {
                assert_eq!(loaded[lane], if lane < count { doubles[lane] } else { 0.0 });
                assert_eq!(written[lane], if lane < count { doubles[lane] } else { 9.0 });
            }
        }
    }

    #[test]
    fn a_missing_number_stays_in_bounds() {
        if !Isa::Sse41.is_available() {
            return;
        }
        // SAFETY: the machine has the instructions.
        let [nan, one] = [f32::NAN, 1.0].map(|value| unsafe { Sse41F32Vector::splat(value) });
        assert!(lanes_of(nan.max(one)).iter().chain(&lanes_of(nan.min(one))).all(|lane| lane.is_nan()));
        assert!(!nan.is_finite() && one.is_finite());
    }
}

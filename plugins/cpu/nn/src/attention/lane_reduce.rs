//! The maximum and the sum of values. In such reductions the compiler keeps the lanes in memory, so each step waits for a store;
//! that is why AVX-512, SSE4.1 and NEON have intrinsics here.

#![cfg_attr(
    any(target_arch = "x86_64", arm_vectors),
    expect(unsafe_code, reason = "vectors are read through pointers")
)]

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::fold::join_lanes;

/// Values per group: four zmm registers. Four independent chains hide the 4 cycles of latency of an addition.
pub(super) const LANES: usize = 64;

/// The maximum of whole groups of values and `other`. NaN is ignored.
#[inline(always)]
pub(super) fn reduce_max(isa: Isa, values: &[f32], other: f32) -> f32 {
    #[cfg(x86_vectors)]
    if isa >= Isa::Avx512 {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        return unsafe { avx512::reduce_max(values, other) };
    }
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Sse41 {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        return unsafe { sse41::reduce_max(values, other) };
    }
    #[cfg(arm_vectors)]
    if isa >= Isa::Neon {
        return neon::reduce_max(values, other);
    }
    // The parameter is unused without vectors.
    let _ = isa;
    reduce_lanes(values, other, |left, right| if right > left { right } else { left })
}

/// The sum of whole groups of values.
#[inline(always)]
pub(super) fn reduce_sum(isa: Isa, values: &[f32]) -> f32 {
    #[cfg(x86_vectors)]
    if isa >= Isa::Avx512 {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        return unsafe { avx512::reduce_sum(values) };
    }
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Sse41 {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        return unsafe { sse41::reduce_sum(values) };
    }
    #[cfg(arm_vectors)]
    if isa >= Isa::Neon {
        return neon::reduce_sum(values);
    }
    let _ = isa;
    reduce_lanes(values, 0.0, |left, right| left + right)
}

#[inline(always)]
fn reduce_lanes(values: &[f32], none: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [none; LANES];
    for group in values.as_chunks::<LANES>().0 {
        for (lane, value) in lanes.iter_mut().zip(group) {
            *lane = join(*lane, *value);
        }
    }
    join_lanes(lanes, join)
}

#[cfg(x86_vectors)]
mod avx512 {
    use std::arch::x86_64::*;

    use super::LANES;

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn reduce_max(values: &[f32], other: f32) -> f32 {
        let mut lanes = [_mm512_set1_ps(other); 4];
        for group in values.as_chunks::<LANES>().0 {
            for (index, lanes) in lanes.iter_mut().enumerate() {
                // SAFETY: the group has four registers. If an operand is NaN, the instruction returns the second one.
                *lanes = _mm512_max_ps(unsafe { _mm512_loadu_ps(group.as_ptr().add(16 * index)) }, *lanes);
            }
        }
        let [first, second, third, fourth] = lanes;
        _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(first, second), _mm512_max_ps(third, fourth)))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn reduce_sum(values: &[f32]) -> f32 {
        let mut lanes = [_mm512_setzero_ps(); 4];
        for group in values.as_chunks::<LANES>().0 {
            for (index, lanes) in lanes.iter_mut().enumerate() {
                // SAFETY: the group has four registers.
                *lanes = _mm512_add_ps(*lanes, unsafe { _mm512_loadu_ps(group.as_ptr().add(16 * index)) });
            }
        }
        let [first, second, third, fourth] = lanes;
        _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(first, second), _mm512_add_ps(third, fourth)))
    }
}

#[cfg(target_arch = "x86_64")]
mod sse41 {
    use std::arch::x86_64::*;

    use super::LANES;

    #[target_feature(enable = "sse4.1,ssse3")]
    pub(super) fn reduce_max(values: &[f32], other: f32) -> f32 {
        // If an operand is NaN, the instruction returns the second one.
        let lanes = join_groups(values, other, |lanes, chunk| _mm_max_ps(chunk, lanes));
        let halves = _mm_max_ps(lanes, _mm_movehl_ps(lanes, lanes));
        _mm_cvtss_f32(_mm_max_ss(halves, _mm_shuffle_ps::<1>(halves, halves)))
    }

    #[target_feature(enable = "sse4.1,ssse3")]
    pub(super) fn reduce_sum(values: &[f32]) -> f32 {
        let lanes = join_groups(values, 0.0, |lanes, chunk| _mm_add_ps(lanes, chunk));
        let halves = _mm_add_ps(lanes, _mm_movehl_ps(lanes, lanes));
        _mm_cvtss_f32(_mm_add_ss(halves, _mm_shuffle_ps::<1>(halves, halves)))
    }

    /// Joins groups of registers, each with the lanes of its place in the group.
    #[inline]
    #[target_feature(enable = "sse4.1,ssse3")]
    fn join_groups(values: &[f32], none: f32, join: impl Fn(__m128, __m128) -> __m128) -> __m128 {
        let mut lanes = [_mm_set1_ps(none); 4];
        for group in values.as_chunks::<LANES>().0 {
            for (index, chunk) in group.as_chunks::<4>().0.iter().enumerate() {
                // SAFETY: a chunk has four numbers.
                lanes[index % 4] = join(lanes[index % 4], unsafe { _mm_loadu_ps(chunk.as_ptr()) });
            }
        }
        let [first, second, third, fourth] = lanes;
        join(join(first, second), join(third, fourth))
    }
}

#[cfg(arm_vectors)]
mod neon {
    use std::arch::aarch64::*;

    use super::LANES;

    /// Joins groups of registers, each with the lanes of its place in the group.
    #[inline(always)]
    fn join_groups(
        values: &[f32],
        none: f32,
        join: impl Fn(float32x4_t, float32x4_t) -> float32x4_t,
    ) -> float32x4_t {
        // SAFETY: every processor of the architecture has the instructions, and a chunk has four numbers.
        unsafe {
            let mut lanes = [vdupq_n_f32(none); 4];
            for group in values.as_chunks::<LANES>().0 {
                for (index, chunk) in group.as_chunks::<4>().0.iter().enumerate() {
                    lanes[index % 4] = join(lanes[index % 4], vld1q_f32(chunk.as_ptr()));
                }
            }
            let [first, second, third, fourth] = lanes;
            join(join(first, second), join(third, fourth))
        }
    }

    #[inline(always)]
    pub(super) fn reduce_max(values: &[f32], other: f32) -> f32 {
        // If one operand is NaN, the instruction returns the other one.
        // SAFETY: as above.
        unsafe { vmaxnmvq_f32(join_groups(values, other, |lanes, chunk| vmaxnmq_f32(lanes, chunk))) }
    }

    #[inline(always)]
    pub(super) fn reduce_sum(values: &[f32]) -> f32 {
        // SAFETY: as above.
        unsafe { vaddvq_f32(join_groups(values, 0.0, |lanes, chunk| vaddq_f32(lanes, chunk))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_finds_the_greatest_and_the_sum() {
        let mut values: Vec<f32> = (0..192).map(|index| ((index * 37) % 192) as f32).collect();
        for isa in oarlock_cpu_testing::isa_levels::isa_levels() {
            assert_eq!((reduce_max(isa, &values, 0.0), reduce_sum(isa, &values)), (191.0, 18336.0));
            assert_eq!((reduce_max(isa, &values, 500.0), reduce_max(isa, &[], -3.0)), (500.0, -3.0));
        }
        values[100] = f32::NAN;
        for isa in oarlock_cpu_testing::isa_levels::isa_levels() {
            assert!(reduce_max(isa, &values, 0.0) >= 190.0 && reduce_sum(isa, &values).is_nan());
        }
    }
}

//! Conversions of `f16` slices, by F16C where the processor has it.

#![cfg_attr(
    x86_vectors,
    expect(unsafe_code, reason = "instructions of F16C are only there where a machine has them")
)]

use oarlock_sdk::f16;

use crate::float_bits::{f16_to_f32, f32_to_f16};
use crate::isa::Isa;
use crate::with_isa;

/// Converts to `f32`. Both slices have the same length.
pub fn widen_f16(isa: Isa, from: &[f16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "as many results as numbers");
    #[cfg(x86_vectors)]
    if isa >= Isa::Avx2 {
        // SAFETY: levels from AVX2 on are only constructed on machines that have F16C.
        return unsafe { widen_by_f16c(from, to) };
    }
    with_isa!(isa, || {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f16_to_f32(from.to_bits());
        }
    });
}

/// Rounds to `f16`, to nearest and ties to even. Both slices have the same length.
pub fn round_to_f16(isa: Isa, from: &[f32], to: &mut [f16]) {
    assert_eq!(from.len(), to.len(), "as many results as numbers");
    #[cfg(x86_vectors)]
    if isa >= Isa::Avx2 {
        // SAFETY: as above.
        return unsafe { round_by_f16c(from, to) };
    }
    with_isa!(isa, || {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f16::from_bits(f32_to_f16(*from));
        }
    });
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,f16c")]
fn widen_by_f16c(from: &[f16], to: &mut [f32]) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};

    let (groups, rest) = from.as_chunks::<8>();
    let (results, others) = to.as_chunks_mut::<8>();
    for (result, group) in results.iter_mut().zip(groups) {
        // SAFETY: 16 bytes are read and 32 written, as many as the arrays have.
        unsafe {
            _mm256_storeu_ps(result.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(group.as_ptr().cast())));
        };
    }
    for (to, from) in others.iter_mut().zip(rest) {
        *to = f16_to_f32(from.to_bits());
    }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,f16c")]
fn round_by_f16c(from: &[f32], to: &mut [f16]) {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};

    let (groups, rest) = from.as_chunks::<8>();
    let (results, others) = to.as_chunks_mut::<8>();
    for (result, group) in results.iter_mut().zip(groups) {
        // SAFETY: 32 bytes are read and 16 written, as many as the arrays have.
        unsafe {
            let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(group.as_ptr()));
            _mm_storeu_si128(result.as_mut_ptr().cast(), rounded);
        }
    }
    for (to, from) in others.iter_mut().zip(rest) {
        *to = f16::from_bits(f32_to_f16(*from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    fn is_same(found: f32, expected: f32) -> bool {
        found == expected || found.is_nan() && expected.is_nan()
    }

    #[test]
    fn every_f16_is_widened_and_rounded_as_by_its_bits() {
        // One more than whole vectors.
        let halves: Vec<f16> = (0..=u16::MAX).chain([1]).map(f16::from_bits).collect();
        for isa in levels() {
            let mut floats = vec![0.0; halves.len()];
            widen_f16(isa, &halves, &mut floats);
            let mut rounded = vec![f16::ZERO; halves.len()];
            round_to_f16(isa, &floats, &mut rounded);
            for ((half, float), rounded) in halves.iter().zip(floats).zip(rounded) {
                let expected = f16_to_f32(half.to_bits());
                assert!(is_same(float, expected), "{half:e} is {float:e} on {isa}");
                assert!(is_same(rounded.to_f32(), expected), "{half:e} becomes {rounded:e} on {isa}");
            }
        }
    }

    #[test]
    fn floats_are_rounded_to_f16_as_by_their_bits() {
        let floats: Vec<f32> = (0..u32::MAX).step_by(9_973).map(f32::from_bits).collect();
        for isa in levels() {
            let mut rounded = vec![f16::ZERO; floats.len()];
            round_to_f16(isa, &floats, &mut rounded);
            for (float, rounded) in floats.iter().zip(rounded) {
                let expected = f16::from_bits(f32_to_f16(*float));
                assert!(
                    is_same(rounded.to_f32(), expected.to_f32()),
                    "{float:e} becomes {rounded:e} on {isa}"
                );
            }
        }
    }
}

//! Rounds numbers to bf16, to nearest even. Two consecutive numbers of a sum form a pair in the memory of one `f32`, the first in
//! the low half: the operand format of the AVX512-BF16 instructions. A pair is only moved and multiplied as a pair; its bits are
//! never interpreted as an `f32`.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

use oarlock_cpu_base::float_bits::bf16_bits;
use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};

/// The number of pairs for this many numbers. If the count is odd, the last pair is padded with 0.
pub(super) fn pair_count(numbers: usize) -> usize {
    numbers.div_ceil(2)
}

/// Rounds consecutive numbers into pairs.
pub(super) fn round_to_pairs(isa: Isa, numbers: &[f32], pairs: &mut [f32]) {
    assert!(pairs.len() == pair_count(numbers.len()), "a pair for each two numbers");
    let gathered =
        GatheredFloatRows { sources: &numbers.as_ptr(), rows: 1, parts: 1, length: numbers.len(), skip: 0 };
    // SAFETY: the numbers are readable, and there is a pair for every two of them.
    unsafe { gathered.round_gathered(isa, pairs.as_mut_ptr(), pairs.len()) };
}

/// Rows assembled from parts of equal length, given as pointers to the first parts of all rows, then to all second parts, and so
/// on. Each part starts `skip` numbers after its pointer.
pub(super) struct GatheredFloatRows {
    pub(super) sources: *const *const f32,
    pub(super) rows: usize,
    pub(super) parts: usize,
    pub(super) length: usize,
    pub(super) skip: usize,
}

impl GatheredFloatRows {
    /// Rounds all rows, into rows `stride` pairs apart.
    ///
    /// # Safety
    ///
    /// All parts are readable, and the pairs of all rows are writable.
    pub(super) unsafe fn round_gathered(self, isa: Isa, pairs: *mut f32, stride: usize) {
        #[cfg(x86_vectors)]
        if isa.has_bf16() {
            // SAFETY: the machine has the instructions, and the caller guarantees the numbers and pairs.
            return unsafe { x86::round_gathered_native(&self, pairs, stride) };
        }
        #[cfg(arm_vectors)]
        if isa.has_bf16() {
            // SAFETY: as above.
            return unsafe { arm::round_gathered_native(&self, pairs, stride) };
        }
        isa.vectorize(PortableRounding { gathered: self, pairs, stride });
    }

    /// Calls `round` with each part, its length, and the address for its first number.
    ///
    /// # Safety
    ///
    /// As for [`GatheredFloatRows::round_gathered`].
    #[inline(always)]
    unsafe fn for_each_part(
        &self,
        pairs: *mut f32,
        stride: usize,
        round: impl Fn(*const f32, usize, *mut u16),
    ) {
        let all = self.parts * self.length;
        // SAFETY: the caller guarantees the numbers and pairs.
        unsafe {
            for row in 0..self.rows {
                let target = pairs.add(row * stride).cast::<u16>();
                for part in 0..self.parts {
                    let source = (*self.sources.add(part * self.rows + row)).add(self.skip);
                    round(source, self.length, target.add(part * self.length));
                }
                if !all.is_multiple_of(2) {
                    *target.add(all) = 0;
                }
            }
        }
    }
}

/// Rounds two rows into pairs of one number from each. A missing second row counts as 0.
pub(super) fn round_interleaved_rows(isa: Isa, rows: [&[f32]; 2], pairs: &mut [f32]) {
    isa.vectorize(InterleavedRounding { rows, pairs });
}

#[inline(always)]
fn pack_pair(first: f32, second: f32) -> f32 {
    f32::from_bits(bf16_bits(second) << 16 | bf16_bits(first))
}

/// Rounding for machines without AVX512-BF16, which the compiler vectorizes. The creator guarantees the numbers and pairs.
struct PortableRounding {
    gathered: GatheredFloatRows,
    pairs: *mut f32,
    stride: usize,
}

impl SimdTask for PortableRounding {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        // SAFETY: the creator of this task guarantees the numbers and pairs.
        unsafe {
            self.gathered.for_each_part(self.pairs, self.stride, |source, length, target| {
                for place in 0..length {
                    *target.add(place) = bf16_bits(*source.add(place)) as u16;
                }
            });
        }
    }
}

struct InterleavedRounding<'a> {
    rows: [&'a [f32]; 2],
    pairs: &'a mut [f32],
}

impl SimdTask for InterleavedRounding<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let [first, second] = self.rows;
        if second.is_empty() {
            for (target, first) in self.pairs.iter_mut().zip(first) {
                *target = pack_pair(*first, 0.0);
            }
        } else {
            for ((target, first), second) in self.pairs.iter_mut().zip(first).zip(second) {
                *target = pack_pair(*first, *second);
            }
        }
    }
}

#[cfg(x86_vectors)]
mod x86 {
    use std::arch::x86_64::*;

    use super::GatheredFloatRows;

    /// Numbers rounded at once: two zmm of `f32` become one of bf16.
    const GROUP: usize = 32;

    /// # Safety
    ///
    /// As for [`GatheredFloatRows::round_gathered`], and the machine has the instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn round_gathered_native(gathered: &GatheredFloatRows, pairs: *mut f32, stride: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            gathered.for_each_part(pairs, stride, |source, length, target| {
                let whole = length / GROUP * GROUP;
                for place in (0..whole).step_by(GROUP) {
                    let (low, high) =
                        (_mm512_loadu_ps(source.add(place)), _mm512_loadu_ps(source.add(place + GROUP / 2)));
                    store_masked(target.add(place), !0, _mm512_cvtne2ps_pbh(high, low));
                }
                let rest = length - whole;
                if rest > 0 {
                    let (mask, source) = ((1u32 << rest) - 1, source.wrapping_add(whole));
                    // Masked-out lanes are not accessed.
                    let low = _mm512_maskz_loadu_ps(mask as __mmask16, source);
                    let high =
                        _mm512_maskz_loadu_ps((mask >> 16) as __mmask16, source.wrapping_add(GROUP / 2));
                    store_masked(target.add(whole), mask, _mm512_cvtne2ps_pbh(high, low));
                }
            });
        }
    }

    /// Stores the numbers selected by the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn store_masked(place: *mut u16, mask: __mmask32, rounded: __m512bh) {
        // SAFETY: the caller guarantees the numbers; both types have 64 bytes, and any bits are valid.
        unsafe {
            let rounded = std::mem::transmute::<__m512bh, __m512i>(rounded);
            if mask == !0 {
                _mm512_storeu_si512(place.cast(), rounded);
            } else {
                _mm512_mask_storeu_epi16(place.cast(), mask, rounded);
            }
        }
    }
}

#[cfg(arm_vectors)]
mod arm {
    use std::arch::aarch64::*;
    use std::arch::asm;

    use oarlock_cpu_base::float_bits::bf16_bits;

    use super::GatheredFloatRows;

    /// Numbers rounded at once: two registers of `f32` become one of bf16.
    const GROUP: usize = 8;

    /// # Safety
    ///
    /// As for [`GatheredFloatRows::round_gathered`], and the machine has the instructions.
    #[target_feature(enable = "bf16")]
    pub(super) unsafe fn round_gathered_native(gathered: &GatheredFloatRows, pairs: *mut f32, stride: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            gathered.for_each_part(pairs, stride, |source, length, target| {
                let whole = length / GROUP * GROUP;
                for place in (0..whole).step_by(GROUP) {
                    let (low, high) =
                        (vld1q_f32(source.add(place)), vld1q_f32(source.add(place + GROUP / 2)));
                    let mut rounded: uint16x8_t;
                    // The intrinsics are not stable yet. These instructions read and write registers alone.
                    asm!(
                        "bfcvtn {rounded:v}.4h, {low:v}.4s",
                        "bfcvtn2 {rounded:v}.8h, {high:v}.4s",
                        rounded = out(vreg) rounded,
                        low = in(vreg) low,
                        high = in(vreg) high,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                    vst1q_u16(target.add(place), rounded);
                }
                for place in whole..length {
                    *target.add(place) = bf16_bits(*source.add(place)) as u16;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::bf16;

    use super::*;

    /// Integers, ties between two bf16, large and small numbers, NaN and infinities.
    fn sample_numbers() -> Vec<f32> {
        let mut numbers: Vec<f32> = (0..70u32).map(|index| (index as f32 - 35.0) * 1.37e3).collect();
        numbers
            .extend([0x3f80_8000u32, 0x3f81_8000, 0x3f80_8001, 0xbf80_7fff, 0x7f7f_ffff].map(f32::from_bits));
        numbers.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 3e38, -1e-30]);
        numbers
    }

    fn unpack_halves(pairs: &[f32]) -> Vec<u16> {
        pairs.iter().flat_map(|pair| [pair.to_bits() as u16, (pair.to_bits() >> 16) as u16]).collect()
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_on_every_instruction_set() {
        let numbers = sample_numbers();
        let expected: Vec<u16> = numbers.iter().map(|number| bf16::from_f32(*number).to_bits()).collect();
        for isa in oarlock_cpu_testing::isa_levels::isa_levels() {
            for count in 0..numbers.len() {
                let mut pairs = vec![f32::NAN; pair_count(count)];
                round_to_pairs(isa, &numbers[..count], &mut pairs);
                let found = unpack_halves(&pairs);
                assert_eq!(&found[..count], &expected[..count], "{count} on {isa}");
                assert!(found[count..].iter().all(|half| *half == 0), "{count} on {isa}");
            }
        }
    }

    #[test]
    fn rows_are_put_together_from_parts() {
        let numbers = sample_numbers();
        for isa in [Isa::Scalar, oarlock_cpu_testing::isa_levels::best_isa()] {
            for (rows, parts, length, skip) in [(2, 3, 7, 2), (3, 2, 20, 1), (1, 1, 33, 0), (2, 2, 0, 3)] {
                let stride = pair_count(parts * length) + 3;
                let starts: Vec<usize> = (0..rows * parts).map(|index| index * 5).collect();
                let sources: Vec<*const f32> =
                    starts.iter().map(|start| numbers[*start..].as_ptr()).collect();
                let mut pairs = vec![f32::from_bits(0x1234_5678); rows * stride];
                let gathered = GatheredFloatRows { sources: sources.as_ptr(), rows, parts, length, skip };
                // SAFETY: the numbers follow their starts, and there is room for all rows.
                unsafe { gathered.round_gathered(isa, pairs.as_mut_ptr(), stride) };
                for (row, found) in pairs.chunks(stride).enumerate() {
                    let part = |part: usize| &numbers[starts[part * rows + row] + skip..][..length];
                    let expected = (0..parts).flat_map(part).map(|number| bf16::from_f32(*number).to_bits());
                    let padding = (parts * length) % 2;
                    let expected: Vec<u16> = expected.chain(vec![0; padding]).collect();
                    let (found, untouched) = found.split_at(pair_count(parts * length));
                    assert_eq!(unpack_halves(found), expected, "{isa}");
                    assert!(untouched.iter().all(|pair| pair.to_bits() == 0x1234_5678), "{isa}");
                }
            }
        }
    }

    #[test]
    fn numbers_above_each_other_are_pairs() {
        let numbers = sample_numbers();
        let (first, second) = numbers.split_at(40);
        let mut pairs = vec![f32::NAN; 40];
        for isa in [Isa::Scalar, oarlock_cpu_testing::isa_levels::best_isa()] {
            round_interleaved_rows(isa, [first, second], &mut pairs);
            for (index, halves) in unpack_halves(&pairs).chunks(2).enumerate().take(second.len()) {
                let expected = [first[index], second[index]].map(|number| bf16::from_f32(number).to_bits());
                assert_eq!(halves, expected, "{isa}");
            }
            round_interleaved_rows(isa, [first, &[]], &mut pairs);
            assert!(unpack_halves(&pairs).chunks(2).all(|pair| pair[1] == 0), "{isa}");
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for isa in [Isa::Scalar, oarlock_cpu_testing::isa_levels::best_isa()] {
            for nan in [f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
                let mut pairs = [0.0];
                round_to_pairs(isa, &[nan, nan], &mut pairs);
                assert!(unpack_halves(&pairs).iter().all(|half| bf16::from_bits(*half).is_nan()), "{isa}");
            }
        }
    }
}

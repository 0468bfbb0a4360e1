//! Vectors that multiply bf16 pairs. A lane of a factor contains two bf16 numbers, the first in its low half; their products with
//! the pair in the other factor are both added to the sum in that lane. Sums are plain `f32`, so initial values and epilogues are
//! the same as for `f32`.

#[cfg(arm_vectors)]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::float_vector::{F32Vector, FloatVector};
#[cfg(arm_vectors)]
use super::neon::NeonF32Vector;
use super::portable::PortableF32Vector;
#[cfg(target_arch = "x86_64")]
use super::sse41::Sse41F32Vector;
#[cfg(x86_vectors)]
use super::x86::{Avx2F32Vector, Avx512F32Vector};

/// A vector whose products are computed by `P`.
pub struct PairVector<V, P>(V, PhantomData<P>);

pub type PortablePairVector = PairVector<PortableF32Vector, WidenedPairs>;
#[cfg(target_arch = "x86_64")]
pub type Sse41PairVector = PairVector<Sse41F32Vector, WidenedPairs>;
#[cfg(x86_vectors)]
pub type Avx2PairVector = PairVector<Avx2F32Vector, WidenedPairs>;
#[cfg(x86_vectors)]
pub type Avx512PairVector = PairVector<Avx512F32Vector, NativePairs>;

#[cfg(arm_vectors)]
pub type NeonPairVector = PairVector<NeonF32Vector, WidenedPairs>;
#[cfg(arm_vectors)]
pub type NeonBf16PairVector = PairVector<NeonF32Vector, NativePairs>;

/// A way to multiply pairs.
pub trait PairProducts<V>: 'static {
    /// `sum` plus both products of each lane.
    fn add_products(sum: V, left: V, right: V) -> V;
}

/// Widens each number of a pair to `f32` (a bf16 followed by 16 zero bits), then multiplies.
pub enum WidenedPairs {}

/// Multiplies and adds both numbers of a pair in one instruction, of AVX512-BF16 or of FEAT_BF16.
#[cfg(any(x86_vectors, arm_vectors))]
pub enum NativePairs {}

/// Multiplies plain `f32`: only images are stored as bf16.
pub(super) enum UnpairedFactors {}

impl<V: FloatVector<f32>> PairProducts<V> for UnpairedFactors {
    #[inline(always)]
    fn add_products(sum: V, left: V, right: V) -> V {
        sum.add_product(left, right)
    }
}

const SECOND_HALF_MASK: u32 = 0xffff_0000;

impl PairProducts<PortableF32Vector> for WidenedPairs {
    #[inline(always)]
    fn add_products(
        sum: PortableF32Vector,
        left: PortableF32Vector,
        right: PortableF32Vector,
    ) -> PortableF32Vector {
        let first = |pairs: PortableF32Vector| {
            PortableF32Vector(pairs.0.map(|pair| f32::from_bits(pair.to_bits() << 16)))
        };
        let second = |pairs: PortableF32Vector| {
            PortableF32Vector(pairs.0.map(|pair| f32::from_bits(pair.to_bits() & SECOND_HALF_MASK)))
        };
        sum.add_product(first(left), first(right)).add_product(second(left), second(right))
    }
}

#[cfg(target_arch = "x86_64")]
impl PairProducts<Sse41F32Vector> for WidenedPairs {
    #[inline(always)]
    fn add_products(sum: Sse41F32Vector, left: Sse41F32Vector, right: Sse41F32Vector) -> Sse41F32Vector {
        // SAFETY: a vector exists only if the machine has the instructions.
        let first = |pairs: Sse41F32Vector| unsafe {
            Sse41F32Vector(_mm_castsi128_ps(_mm_slli_epi32::<16>(_mm_castps_si128(pairs.0))))
        };
        // SAFETY: as above.
        let second = |pairs: Sse41F32Vector| unsafe {
            let mask = _mm_set1_epi32(SECOND_HALF_MASK.cast_signed());
            Sse41F32Vector(_mm_castsi128_ps(_mm_and_si128(_mm_castps_si128(pairs.0), mask)))
        };
        sum.add_product(first(left), first(right)).add_product(second(left), second(right))
    }
}

#[cfg(x86_vectors)]
impl PairProducts<Avx2F32Vector> for WidenedPairs {
    #[inline(always)]
    fn add_products(sum: Avx2F32Vector, left: Avx2F32Vector, right: Avx2F32Vector) -> Avx2F32Vector {
        // SAFETY: a vector exists only if the machine has the instructions.
        let first = |pairs: Avx2F32Vector| unsafe {
            Avx2F32Vector(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(pairs.0))))
        };
        // SAFETY: as above.
        let second = |pairs: Avx2F32Vector| unsafe {
            let mask = _mm256_set1_epi32(SECOND_HALF_MASK.cast_signed());
            Avx2F32Vector(_mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs.0), mask)))
        };
        sum.add_product(first(left), first(right)).add_product(second(left), second(right))
    }
}

#[cfg(x86_vectors)]
impl PairProducts<Avx512F32Vector> for NativePairs {
    #[inline(always)]
    fn add_products(sum: Avx512F32Vector, left: Avx512F32Vector, right: Avx512F32Vector) -> Avx512F32Vector {
        // SAFETY: a vector of this kind exists only on machines with the instructions; any bits are a valid pair.
        unsafe {
            let pairs = |vector: Avx512F32Vector| std::mem::transmute::<__m512, __m512bh>(vector.0);
            Avx512F32Vector(_mm512_dpbf16_ps(sum.0, pairs(left), pairs(right)))
        }
    }
}

#[cfg(arm_vectors)]
impl PairProducts<NeonF32Vector> for WidenedPairs {
    #[inline(always)]
    fn add_products(sum: NeonF32Vector, left: NeonF32Vector, right: NeonF32Vector) -> NeonF32Vector {
        // SAFETY: every processor of the architecture has the instructions.
        let first = |pairs: NeonF32Vector| unsafe {
            NeonF32Vector(vreinterpretq_f32_u32(vshlq_n_u32::<16>(vreinterpretq_u32_f32(pairs.0))))
        };
        // SAFETY: as above.
        let second = |pairs: NeonF32Vector| unsafe {
            let mask = vdupq_n_u32(SECOND_HALF_MASK);
            NeonF32Vector(vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(pairs.0), mask)))
        };
        sum.add_product(first(left), first(right)).add_product(second(left), second(right))
    }
}

#[cfg(arm_vectors)]
impl PairProducts<NeonF32Vector> for NativePairs {
    #[inline(always)]
    fn add_products(sum: NeonF32Vector, left: NeonF32Vector, right: NeonF32Vector) -> NeonF32Vector {
        let mut sum = sum.0;
        // The intrinsic for this instruction is not stable yet.
        // SAFETY: a vector of this kind exists only on machines with the instruction; it reads and writes registers alone.
        unsafe {
            std::arch::asm!(
                "bfdot {sum:v}.4s, {left:v}.8h, {right:v}.8h",
                sum = inout(vreg) sum,
                left = in(vreg) left.0,
                right = in(vreg) right.0,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        NeonF32Vector(sum)
    }
}

impl<V: Copy, P> Clone for PairVector<V, P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Copy, P> Copy for PairVector<V, P> {}

/// Everything but products is delegated to the wrapped vector.
impl<V: F32Vector, P: PairProducts<V>> FloatVector<f32> for PairVector<V, P> {
    const LANES: usize = V::LANES;
    const HAS_FMA: bool = V::HAS_FMA;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { V::splat(value) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn load(place: *const f32) -> Self {
        // SAFETY: the caller guarantees the instructions and the lanes.
        Self(unsafe { V::load(place) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn load_partial(place: *const f32, count: usize) -> Self {
        // SAFETY: as above.
        Self(unsafe { V::load_partial(place, count) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut f32) {
        // SAFETY: as above.
        unsafe { self.0.store(place) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, place: *mut f32, count: usize) {
        // SAFETY: as above.
        unsafe { self.0.store_partial(place, count) };
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0), PhantomData)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        Self(self.0.subtract(other.0), PhantomData)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        Self(self.0.multiply(other.0), PhantomData)
    }

    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        Self(self.0.divide(other.0), PhantomData)
    }

    #[inline(always)]
    fn add_product(self, left: Self, right: Self) -> Self {
        Self(P::add_products(self.0, left.0, right.0), PhantomData)
    }

    #[inline(always)]
    fn max(self, low: Self) -> Self {
        Self(self.0.max(low.0), PhantomData)
    }

    #[inline(always)]
    fn min(self, high: Self) -> Self {
        Self(self.0.min(high.0), PhantomData)
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.is_finite()
    }
}

impl<V: F32Vector, P: PairProducts<V>> F32Vector for PairVector<V, P> {
    const HAS_BF16: bool = true;

    #[inline(always)]
    unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
        // SAFETY: the caller guarantees the instructions and the numbers.
        Self(unsafe { V::load_bf16(place, count) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store_bf16(self, place: *mut u16, count: usize) {
        // SAFETY: as above.
        unsafe { self.0.store_bf16(place, count) };
    }
}

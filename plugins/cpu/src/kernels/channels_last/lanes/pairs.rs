//! Vectors whose products are of pairs: a lane of a factor is not a number but the bits of two of bf16, the first in its low
//! half, and both their products with those of the other factor are added to the sum in their lane. Sums are numbers as
//! everywhere, so all that begins or finishes them stays as it is.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

#[cfg(x86_vectors)]
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::{Lanes, Plain};
#[cfg(x86_vectors)]
use super::{Ymm, Zmm};

/// Vectors with products of pairs, which `P` computes.
pub(in super::super) struct Pairs<V, P>(V, PhantomData<P>);

/// With what every machine has.
pub(in super::super) type PlainPairs = Pairs<Plain, Widened>;
/// With AVX2.
#[cfg(x86_vectors)]
pub(in super::super) type YmmPairs = Pairs<Ymm, Widened>;
/// With AVX512-BF16.
#[cfg(x86_vectors)]
pub(in super::super) type ZmmPairs = Pairs<Zmm, Joined>;

/// A way of computing products of pairs.
pub(in super::super) trait Products<V>: 'static {
    /// `sum` and both products of each lane of the factors.
    fn add(sum: V, left: V, right: V) -> V;
}

/// Each number of a pair is made one of f32, which is what a bf16 is with as many zeros behind it, and multiplied as such.
pub(in super::super) enum Widened {}

/// One instruction multiplies and adds both.
#[cfg(x86_vectors)]
pub(in super::super) enum Joined {}

/// Factors are no pairs but numbers; only images hold bf16.
pub(in super::super) enum Alone {}

impl<V: Lanes> Products<V> for Alone {
    #[inline(always)]
    fn add(sum: V, left: V, right: V) -> V {
        sum.plus_product(left, right)
    }
}

/// The bits of the second number of a pair.
const SECOND: u32 = 0xffff_0000;

impl Products<Plain> for Widened {
    #[inline(always)]
    fn add(sum: Plain, left: Plain, right: Plain) -> Plain {
        let first = |pairs: Plain| Plain(pairs.0.map(|pair| f32::from_bits(pair.to_bits() << 16)));
        let second = |pairs: Plain| Plain(pairs.0.map(|pair| f32::from_bits(pair.to_bits() & SECOND)));
        sum.plus_product(first(left), first(right)).plus_product(second(left), second(right))
    }
}

#[cfg(x86_vectors)]
impl Products<Ymm> for Widened {
    #[inline(always)]
    fn add(sum: Ymm, left: Ymm, right: Ymm) -> Ymm {
        // SAFETY: a vector exists only where the machine has the instructions.
        let first = |pairs: Ymm| unsafe {
            Ymm(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(pairs.0))))
        };
        // SAFETY: as above.
        let second = |pairs: Ymm| unsafe {
            let mask = _mm256_set1_epi32(SECOND.cast_signed());
            Ymm(_mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs.0), mask)))
        };
        sum.plus_product(first(left), first(right)).plus_product(second(left), second(right))
    }
}

#[cfg(x86_vectors)]
impl Products<Zmm> for Joined {
    #[inline(always)]
    fn add(sum: Zmm, left: Zmm, right: Zmm) -> Zmm {
        // SAFETY: a vector of this kind exists only where the machine has the instructions; pairs are bits of any kind.
        unsafe {
            let pairs = |vector: Zmm| std::mem::transmute::<__m512, __m512bh>(vector.0);
            Zmm(_mm512_dpbf16_ps(sum.0, pairs(left), pairs(right)))
        }
    }
}

impl<V: Copy, P> Clone for Pairs<V, P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Copy, P> Copy for Pairs<V, P> {}

/// All but products is that of the vectors.
impl<V: Lanes, P: Products<V>> Lanes for Pairs<V, P> {
    const COUNT: usize = V::COUNT;
    const ROUNDS: bool = true;

    #[inline(always)]
    unsafe fn load_rounded(place: *const u16, count: usize) -> Self {
        // SAFETY: the caller vouches for the instructions and the numbers.
        Self(unsafe { V::load_rounded(place, count) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store_rounded(self, place: *mut u16, count: usize) {
        // SAFETY: as above.
        unsafe { self.0.store_rounded(place, count) };
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Self(unsafe { V::splat(value) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn load(place: *const f32) -> Self {
        // SAFETY: the caller vouches for the instructions and the lanes.
        Self(unsafe { V::load(place) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn load_some(place: *const f32, count: usize) -> Self {
        // SAFETY: as above.
        Self(unsafe { V::load_some(place, count) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut f32) {
        // SAFETY: as above.
        unsafe { self.0.store(place) };
    }

    #[inline(always)]
    unsafe fn store_some(self, place: *mut f32, count: usize) {
        // SAFETY: as above.
        unsafe { self.0.store_some(place, count) };
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(self.0.plus(other.0), PhantomData)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self(self.0.minus(other.0), PhantomData)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(self.0.times(other.0), PhantomData)
    }

    #[inline(always)]
    fn over(self, other: Self) -> Self {
        Self(self.0.over(other.0), PhantomData)
    }

    #[inline(always)]
    fn plus_product(self, left: Self, right: Self) -> Self {
        Self(P::add(self.0, left.0, right.0), PhantomData)
    }

    #[inline(always)]
    fn at_least(self, low: Self) -> Self {
        Self(self.0.at_least(low.0), PhantomData)
    }

    #[inline(always)]
    fn at_most(self, high: Self) -> Self {
        Self(self.0.at_most(high.0), PhantomData)
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.is_finite()
    }
}

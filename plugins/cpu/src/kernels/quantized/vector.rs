//! Vectors of 32-bit sums of each instruction set under one name. To each sum a step adds the products of four inputs, which
//! are the same for all sums, with four weights of its own. Sums wrap around, and nothing on the way to them saturates.
//!
//! Whoever loads a vector vouches for the instruction set, once; a vector that exists proves it.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

/// How many inputs and weights a step multiplies.
pub(super) const QUAD: usize = 4;

/// What is added to a signed byte so that it becomes an unsigned one, by turning its first bit.
pub(super) const TURNED: u8 = 0x80;

/// Sums that one instruction works on.
pub(super) trait Vector: Copy + 'static {
    /// How many there are.
    const LANES: usize;

    /// Four inputs, for each sum.
    type Inputs: Copy;

    /// Four weights for each sum.
    type Weights: Copy;

    /// # Safety
    ///
    /// All lanes can be read, and the machine has the instructions of this type. The latter holds for all functions here
    /// without a `self`.
    unsafe fn load(place: *const i32) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut i32);

    /// Unsigned inputs; signed ones are made unsigned.
    ///
    /// # Safety
    ///
    /// Four bytes can be read.
    unsafe fn inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs;

    /// # Safety
    ///
    /// Four bytes can be read for each sum.
    unsafe fn weights(place: *const i8) -> Self::Weights;

    /// `self` and the four products of each lane.
    fn plus_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self;
}

/// Vectors of every machine.
#[derive(Clone, Copy)]
pub(super) struct Plain([i32; 4]);

impl Vector for Plain {
    const LANES: usize = 4;

    type Inputs = [u8; QUAD];
    type Weights = [[i8; QUAD]; 4];

    #[inline(always)]
    unsafe fn load(place: *const i32) -> Self {
        // SAFETY: the caller vouches for all lanes.
        Self(unsafe { place.cast::<[i32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut i32) {
        // SAFETY: the caller vouches for all lanes.
        unsafe { place.cast::<[i32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
        // SAFETY: the caller vouches for four bytes.
        let inputs = unsafe { place.cast::<[u8; QUAD]>().read() };
        if SIGNED { inputs.map(|input| input ^ TURNED) } else { inputs }
    }

    #[inline(always)]
    unsafe fn weights(place: *const i8) -> Self::Weights {
        // SAFETY: the caller vouches for four bytes for each sum.
        unsafe { place.cast::<[[i8; QUAD]; 4]>().read() }
    }

    #[inline(always)]
    fn plus_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
        let mut result = self;
        for (sum, weights) in result.0.iter_mut().zip(weights) {
            for (input, weight) in inputs.into_iter().zip(weights) {
                *sum = sum.wrapping_add(i32::from(input) * i32::from(weight));
            }
        }
        result
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Ymm, Zmm};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{QUAD, TURNED, Vector};

    /// The first bit of each of four bytes.
    const TURNED_QUAD: i32 = i32::from_ne_bytes([TURNED; QUAD]);

    /// Vectors of AVX-512 with VNNI.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Zmm(__m512i);

    impl Vector for Zmm {
        const LANES: usize = 16;

        type Inputs = __m512i;
        type Weights = __m512i;

        #[inline(always)]
        unsafe fn load(place: *const i32) -> Self {
            // SAFETY: the caller vouches for the instructions and the lanes.
            Self(unsafe { _mm512_loadu_si512(place.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, place: *mut i32) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(place.cast(), self.0) };
        }

        #[inline(always)]
        unsafe fn inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
            // SAFETY: the caller vouches for the instructions and four bytes.
            unsafe {
                let inputs = _mm512_set1_epi32(place.cast::<i32>().read_unaligned());
                if SIGNED { _mm512_xor_si512(inputs, _mm512_set1_epi32(TURNED_QUAD)) } else { inputs }
            }
        }

        #[inline(always)]
        unsafe fn weights(place: *const i8) -> Self::Weights {
            // SAFETY: the caller vouches for the instructions and four bytes for each sum.
            unsafe { _mm512_loadu_si512(place.cast()) }
        }

        #[inline(always)]
        fn plus_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
            // SAFETY: a vector exists only where the machine has the instructions.
            Self(unsafe { _mm512_dpbusd_epi32(self.0, inputs, weights) })
        }
    }

    /// Vectors of AVX2. Bytes at even and at odd places are widened apart, since the instruction that multiplies bytes
    /// saturates.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Ymm(__m256i);

    impl Vector for Ymm {
        const LANES: usize = 8;

        type Inputs = [__m256i; 2];
        type Weights = [__m256i; 2];

        #[inline(always)]
        unsafe fn load(place: *const i32) -> Self {
            // SAFETY: the caller vouches for the instructions and the lanes.
            Self(unsafe { _mm256_loadu_si256(place.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, place: *mut i32) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(place.cast(), self.0) };
        }

        #[inline(always)]
        unsafe fn inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
            // SAFETY: the caller vouches for the instructions and four bytes.
            unsafe {
                let quad = place.cast::<i32>().read_unaligned();
                let inputs = _mm256_set1_epi32(if SIGNED { quad ^ TURNED_QUAD } else { quad });
                [_mm256_and_si256(inputs, _mm256_set1_epi16(0xff)), _mm256_srli_epi16::<8>(inputs)]
            }
        }

        #[inline(always)]
        unsafe fn weights(place: *const i8) -> Self::Weights {
            // SAFETY: the caller vouches for the instructions and four bytes for each sum.
            unsafe {
                let weights = _mm256_loadu_si256(place.cast());
                [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(weights)), _mm256_srai_epi16::<8>(weights)]
            }
        }

        #[inline(always)]
        fn plus_products(
            self,
            [even, odd]: Self::Inputs,
            [even_weights, odd_weights]: Self::Weights,
        ) -> Self {
            // SAFETY: a vector exists only where the machine has the instructions.
            Self(unsafe {
                let sum = _mm256_add_epi32(self.0, _mm256_madd_epi16(even, even_weights));
                _mm256_add_epi32(sum, _mm256_madd_epi16(odd, odd_weights))
            })
        }
    }
}

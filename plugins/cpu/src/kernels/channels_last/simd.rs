//! Vectors of each instruction set under one name, so that the loops of this family are written once and use the widest
//! registers of the machine by name: what stays in a register decides how fast they are.
//!
//! Whoever makes a vector vouches for the instruction set, once; a vector that exists proves it.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

mod pair_products;

pub(super) use pair_products::PortablePairVector;
#[cfg(x86_vectors)]
pub(super) use pair_products::{Avx2PairVector, Avx512PairVector};

use self::pair_products::UnpairedFactors;
use super::bf16_rounding::bf16_bits;
use crate::isa::Isa;

/// Numbers that one instruction works on.
pub(super) trait FloatVector: Copy + 'static {
    /// How many there are.
    const LANES: usize;

    /// The same number in all lanes.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of this type. So it is for all functions without a `self`.
    unsafe fn splat(value: f32) -> Self;

    /// # Safety
    ///
    /// All lanes can be read.
    unsafe fn load(place: *const f32) -> Self;

    /// The first lanes, and 0 in the others.
    ///
    /// # Safety
    ///
    /// So many lanes can be read.
    unsafe fn load_partial(place: *const f32, count: usize) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut f32);

    /// Stores the first lanes.
    ///
    /// # Safety
    ///
    /// So many lanes can be written.
    unsafe fn store_partial(self, place: *mut f32, count: usize);

    /// `self + other`.
    fn add(self, other: Self) -> Self;

    /// `self - other`.
    fn subtract(self, other: Self) -> Self;

    /// `self * other`.
    fn multiply(self, other: Self) -> Self;

    /// `self / other`.
    fn divide(self, other: Self) -> Self;

    /// `self + left * right`, rounded once where the machine can.
    fn add_product(self, left: Self, right: Self) -> Self;

    /// The greater of the two; `self` where they do not compare.
    fn max(self, low: Self) -> Self;

    /// The smaller of the two; `self` where they do not compare.
    fn min(self, high: Self) -> Self;

    /// Whether all are numbers, and none infinite.
    fn is_finite(self) -> bool;

    /// Whether images may hold bf16 where these are used. Vectors of which it is not so need no code for it.
    const HAS_BF16: bool = false;

    /// The first lanes from numbers in bf16, and 0 in the others.
    ///
    /// # Safety
    ///
    /// So many numbers can be read.
    #[inline(always)]
    unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
        let mut numbers = [0.0; MAX_LANES];
        for (lane, number) in numbers.iter_mut().enumerate().take(count) {
            // SAFETY: the caller vouches for these numbers.
            *number = f32::from_bits(u32::from(unsafe { *place.add(lane) }) << 16);
        }
        // SAFETY: there are numbers for all lanes, and the caller vouches for the instructions.
        unsafe { Self::load(numbers.as_ptr()) }
    }

    /// Stores the first lanes rounded to bf16.
    ///
    /// # Safety
    ///
    /// So many numbers can be written, and the machine has the instructions for bf16.
    #[inline(always)]
    unsafe fn store_bf16(self, place: *mut u16, count: usize) {
        let mut numbers = [0.0; MAX_LANES];
        // SAFETY: there is room for all lanes, and the caller vouches for so many numbers.
        unsafe {
            self.store(numbers.as_mut_ptr());
            for (lane, number) in numbers.into_iter().enumerate().take(count) {
                *place.add(lane) = bf16_bits(number) as u16;
            }
        }
    }
}

/// The most lanes of a vector.
pub(super) const MAX_LANES: usize = 16;

/// Work that is compiled for each kind of vector.
pub(super) trait FloatVectorTask {
    /// Does the work. This function and what it calls in its loops must be `#[inline(always)]`, as for
    /// [`crate::isa::SimdTask`].
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    unsafe fn run_on_vectors<V: FloatVector>(self);
}

/// Does some work with the vectors of an instruction set.
pub(super) fn run_with_vectors(isa: Isa, work: impl FloatVectorTask) {
    match isa {
        // SAFETY: levels other than the lowest are only made where the machine has them.
        #[cfg(x86_vectors)]
        Isa::Avx512 | Isa::Amx => unsafe { run_avx512(work) },
        // SAFETY: as above.
        #[cfg(x86_vectors)]
        Isa::Avx2 => unsafe { run_avx2(work) },
        // SAFETY: this kind of vector needs no instructions of its own.
        _ => unsafe { work.run_on_vectors::<PortableFloatVector>() },
    }
}

/// The same with vectors that can be loaded from and stored as bf16.
pub(super) fn run_with_bf16_vectors(isa: Isa, work: impl FloatVectorTask) {
    #[cfg(x86_vectors)]
    if isa.has_bf16() {
        // SAFETY: the machine has the instructions.
        return unsafe { run_bf16(work) };
    }
    let _ = isa;
    // SAFETY: this kind of vector needs no instructions of its own.
    unsafe { work.run_on_vectors::<pair_products::PairVector<PortableFloatVector, UnpairedFactors>>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn run_bf16<W: FloatVectorTask>(work: W) {
    // SAFETY: this function is only called where the machine has the instructions.
    unsafe { work.run_on_vectors::<pair_products::PairVector<Avx512FloatVector, UnpairedFactors>>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avx512f")]
unsafe fn run_avx512<W: FloatVectorTask>(work: W) {
    // SAFETY: this function is only called where the machine has the instructions.
    unsafe { work.run_on_vectors::<Avx512FloatVector>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<W: FloatVectorTask>(work: W) {
    // SAFETY: as above.
    unsafe { work.run_on_vectors::<Avx2FloatVector>() }
}

/// Vectors of every machine.
#[derive(Clone, Copy)]
pub(super) struct PortableFloatVector([f32; 4]);

impl PortableFloatVector {
    #[inline(always)]
    fn zip_lanes(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self;
        for (a, b) in result.0.iter_mut().zip(other.0) {
            *a = function(*a, b);
        }
        result
    }
}

impl FloatVector for PortableFloatVector {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(place: *const f32) -> Self {
        // SAFETY: the caller vouches for all lanes.
        Self(unsafe { place.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_partial(place: *const f32, count: usize) -> Self {
        // SAFETY: the caller vouches for these lanes.
        Self(std::array::from_fn(|lane| if lane < count { unsafe { *place.add(lane) } } else { 0.0 }))
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut f32) {
        // SAFETY: the caller vouches for all lanes.
        unsafe { place.cast::<[f32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, place: *mut f32, count: usize) {
        for (lane, value) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller vouches for these lanes.
            unsafe { *place.add(lane) = value };
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a * b)
    }

    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a / b)
    }

    #[inline(always)]
    fn add_product(self, left: Self, right: Self) -> Self {
        self.add(left.multiply(right))
    }

    #[inline(always)]
    fn max(self, low: Self) -> Self {
        self.zip_lanes(low, |a, low| if a < low { low } else { a })
    }

    #[inline(always)]
    fn min(self, high: Self) -> Self {
        self.zip_lanes(high, |a, high| if a > high { high } else { a })
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.into_iter().all(f32::is_finite)
    }
}

/// Implements [`FloatVector`] with intrinsics.
#[cfg(x86_vectors)]
macro_rules! intrinsics {
    ($name:ident, $vector:ident, $count:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident, $mul:ident,
     $div:ident, $fused:ident, $max:ident, $min:ident, $is_zero:expr, $load_some:expr, $store_some:expr $(, $more:item)*) => {
        #[cfg(x86_vectors)]
        impl FloatVector for $name {
            const LANES: usize = $count;

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: the caller vouches for the instructions.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(place: *const f32) -> Self {
                // SAFETY: the caller vouches for the instructions and the lanes.
                Self(unsafe { $load(place) })
            }

            #[inline(always)]
            unsafe fn load_partial(place: *const f32, count: usize) -> Self {
                // SAFETY: as above.
                Self(unsafe { $load_some(place, count) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut f32) {
                // SAFETY: as above.
                unsafe { $store(place, self.0) };
            }

            #[inline(always)]
            unsafe fn store_partial(self, place: *mut f32, count: usize) {
                // SAFETY: as above.
                unsafe { $store_some(place, count, self.0) };
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: a vector exists only where the machine has the instructions.
                Self(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $sub(self.0, other.0) })
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $mul(self.0, other.0) })
            }

            #[inline(always)]
            fn divide(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $div(self.0, other.0) })
            }

            #[inline(always)]
            fn add_product(self, left: Self, right: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $fused(left.0, right.0, self.0) })
            }

            // These instructions return their second operand where the two do not compare.
            #[inline(always)]
            fn max(self, low: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $max(low.0, self.0) })
            }

            #[inline(always)]
            fn min(self, high: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $min(high.0, self.0) })
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                // What is not finite is not 0 less itself.
                // SAFETY: as above.
                unsafe { $is_zero($sub(self.0, self.0)) }
            }

            $($more)*
        }
    };
}

#[cfg(x86_vectors)]
pub(super) use x86::{Avx2FloatVector, Avx512FloatVector};

#[cfg(x86_vectors)]
mod x86 {
    use std::arch::x86_64::*;

    use super::FloatVector;

    /// Vectors of AVX2.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2FloatVector(pub(super) __m256);

    /// Vectors of AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512FloatVector(pub(super) __m512);

    /// Ones for as many lanes as are wanted, from the end on backwards.
    static LANE_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn lane_mask(count: usize) -> __m256i {
        // SAFETY: the eight numbers lie in the array, since a count is at most 8; the caller vouches for the instructions.
        unsafe { _mm256_loadu_si256(LANE_MASKS.as_ptr().add(8 - count.min(8)).cast()) }
    }

    intrinsics!(
        Avx2FloatVector,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        _mm256_min_ps,
        |vector| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(vector, _mm256_setzero_ps())) == 0,
        |place, count| _mm256_maskload_ps(place, lane_mask(count)),
        |place, count, vector| _mm256_maskstore_ps(place, lane_mask(count), vector)
    );

    intrinsics!(
        Avx512FloatVector,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_div_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        _mm512_min_ps,
        |vector| _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(vector, _mm512_setzero_ps()) == 0,
        |place, count: usize| _mm512_maskz_loadu_ps(((1u32 << count) - 1) as __mmask16, place),
        |place, count: usize, vector| {
            _mm512_mask_storeu_ps(place, ((1u32 << count) - 1) as __mmask16, vector);
        },
        #[inline(always)]
        unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
            // SAFETY: the caller vouches for the instructions and so many numbers.
            unsafe {
                let numbers = if count == 16 {
                    _mm256_loadu_si256(place.cast())
                } else {
                    _mm256_maskz_loadu_epi16(((1u32 << count) - 1) as __mmask16, place.cast())
                };
                Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(numbers))))
            }
        },
        #[inline(always)]
        unsafe fn store_bf16(self, place: *mut u16, count: usize) {
            // SAFETY: as above; both types are 32 bytes of any kind.
            unsafe {
                let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(self.0));
                if count == 16 {
                    _mm256_storeu_si256(place.cast(), rounded);
                } else {
                    _mm256_mask_storeu_epi16(place.cast(), ((1u32 << count) - 1) as __mmask16, rounded);
                }
            }
        }
    );
}

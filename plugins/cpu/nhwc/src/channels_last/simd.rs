//! SIMD vectors of each instruction set behind one trait, so that the loops of this family are written once and still name their
//! registers: what stays in a register decides how fast they are.
//!
//! Creating a vector requires the instruction set, which the caller guarantees once; a vector that exists proves it.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

mod pair_products;

use oarlock_cpu_base::isa::Isa;

use self::pair_products::UnpairedFactors;
use super::bf16_rounding::bf16_bits;
pub(super) use pair_products::PortablePairVector;
#[cfg(x86_vectors)]
pub(super) use pair_products::{Avx2PairVector, Avx512PairVector};

/// A SIMD vector of `f32`.
pub(super) trait FloatVector: Copy + 'static {
    const LANES: usize;

    /// A vector with the same number in all lanes.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of this type. This holds for all functions without `self`.
    unsafe fn splat(value: f32) -> Self;

    /// # Safety
    ///
    /// All lanes can be read.
    unsafe fn load(place: *const f32) -> Self;

    /// Loads the first lanes; the others become 0.
    ///
    /// # Safety
    ///
    /// `count` lanes can be read.
    unsafe fn load_partial(place: *const f32, count: usize) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut f32);

    /// # Safety
    ///
    /// `count` lanes can be written.
    unsafe fn store_partial(self, place: *mut f32, count: usize);

    fn add(self, other: Self) -> Self;

    fn subtract(self, other: Self) -> Self;

    fn multiply(self, other: Self) -> Self;

    fn divide(self, other: Self) -> Self;

    /// `self + left * right`, rounded once if the machine has FMA.
    fn add_product(self, left: Self, right: Self) -> Self;

    /// The greater of the two; `self` if they do not compare, so NaN stays.
    fn max(self, low: Self) -> Self;

    /// The smaller of the two; `self` if they do not compare, so NaN stays.
    fn min(self, high: Self) -> Self;

    /// True if no lane is infinite or NaN.
    fn is_finite(self) -> bool;

    /// True if images may hold bf16. Vectors without it compile no code for it.
    const HAS_BF16: bool = false;

    /// Loads the first lanes from bf16; the others become 0.
    ///
    /// # Safety
    ///
    /// `count` numbers can be read.
    #[inline(always)]
    unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
        let mut numbers = [0.0; MAX_LANES];
        for (lane, number) in numbers.iter_mut().enumerate().take(count) {
            // SAFETY: the caller guarantees these numbers.
            *number = f32::from_bits(u32::from(unsafe { *place.add(lane) }) << 16);
        }
        // SAFETY: there are numbers for all lanes, and the caller guarantees the instructions.
        unsafe { Self::load(numbers.as_ptr()) }
    }

    /// Rounds the first lanes to bf16 and stores them.
    ///
    /// # Safety
    ///
    /// `count` numbers can be written, and the machine has the instructions for bf16.
    #[inline(always)]
    unsafe fn store_bf16(self, place: *mut u16, count: usize) {
        let mut numbers = [0.0; MAX_LANES];
        // SAFETY: there is room for all lanes, and the caller guarantees `count` numbers.
        unsafe {
            self.store(numbers.as_mut_ptr());
            for (lane, number) in numbers.into_iter().enumerate().take(count) {
                *place.add(lane) = bf16_bits(number) as u16;
            }
        }
    }
}

/// Lanes of the widest vector: a zmm of `f32`.
pub(super) const MAX_LANES: usize = 16;

/// Work that is compiled once per kind of vector.
pub(super) trait FloatVectorTask {
    /// This function and what it calls in its loops must be `#[inline(always)]`, as for [`oarlock_cpu_base::isa::SimdTask`]: only then is it
    /// compiled with the instructions of `V`.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    unsafe fn run_on_vectors<V: FloatVector>(self);
}

/// Runs work with the widest vectors of an instruction set.
pub(super) fn run_with_vectors(isa: Isa, work: impl FloatVectorTask) {
    match isa {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        #[cfg(x86_vectors)]
        Isa::Avx512 | Isa::Amx => unsafe { run_avx512(work) },
        // SAFETY: as above.
        #[cfg(x86_vectors)]
        Isa::Avx2 => unsafe { run_avx2(work) },
        // SAFETY: this kind of vector needs no instructions of its own.
        _ => unsafe { work.run_on_vectors::<PortableFloatVector>() },
    }
}

/// Same as [`run_with_vectors`], with vectors that load and store bf16.
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

/// The fallback of every machine: four lanes, an xmm register on x86.
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
        // SAFETY: the caller guarantees all lanes.
        Self(unsafe { place.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_partial(place: *const f32, count: usize) -> Self {
        // SAFETY: the caller guarantees these lanes.
        Self(std::array::from_fn(|lane| if lane < count { unsafe { *place.add(lane) } } else { 0.0 }))
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut f32) {
        // SAFETY: the caller guarantees all lanes.
        unsafe { place.cast::<[f32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, place: *mut f32, count: usize) {
        for (lane, value) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller guarantees these lanes.
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
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(place: *const f32) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
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

            // `max` and `min` instructions return their second operand if the two do not compare, so `self` comes second.
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
                // `x - x` is 0 for finite `x` and NaN otherwise.
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

    #[derive(Clone, Copy)]
    pub(crate) struct Avx2FloatVector(pub(super) __m256);

    #[derive(Clone, Copy)]
    pub(crate) struct Avx512FloatVector(pub(super) __m512);

    /// A load from 8 - n on yields a mask of n lanes: AVX2 has no mask registers.
    static LANE_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn lane_mask(count: usize) -> __m256i {
        // SAFETY: the eight numbers lie in the array, since a count is at most 8; the caller guarantees the instructions.
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
            // SAFETY: the caller guarantees the instructions and `count` numbers.
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

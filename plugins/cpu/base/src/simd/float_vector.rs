//! Vectors of floats.

use crate::float_bits::bf16_bits;

/// Lanes of the widest vector: a zmm of 32-bit elements.
pub const MAX_LANES: usize = 16;

/// A SIMD vector of `T`.
pub trait FloatVector<T>: Copy + 'static {
    const LANES: usize;

    /// True if multiply-add is one instruction.
    const HAS_FMA: bool;

    /// A vector with the same number in all lanes.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of this type. This holds for all functions without `self`.
    unsafe fn splat(value: T) -> Self;

    /// # Safety
    ///
    /// All lanes can be read.
    unsafe fn load(place: *const T) -> Self;

    /// Loads the first `count` lanes; the others become 0.
    ///
    /// # Safety
    ///
    /// `count` lanes can be read.
    unsafe fn load_partial(place: *const T, count: usize) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut T);

    /// # Safety
    ///
    /// `count` lanes can be written.
    unsafe fn store_partial(self, place: *mut T, count: usize);

    fn add(self, other: Self) -> Self;

    fn subtract(self, other: Self) -> Self;

    fn multiply(self, other: Self) -> Self;

    fn divide(self, other: Self) -> Self;

    /// `self + left * right`, rounded once if the machine has FMA.
    fn add_product(self, left: Self, right: Self) -> Self;

    /// The greater of the two; `self` if they do not compare, so NaN in `self` stays.
    fn max(self, low: Self) -> Self;

    /// The smaller of the two; `self` if they do not compare, so NaN in `self` stays.
    fn min(self, high: Self) -> Self;

    /// True if no lane is infinite or NaN.
    fn is_finite(self) -> bool;
}

/// A SIMD vector of `f32` that can also be loaded from and stored as bf16.
pub trait F32Vector: FloatVector<f32> {
    /// True if memory may contain bf16. For other vectors, that code is not compiled.
    const HAS_BF16: bool = false;

    /// Loads the first `count` lanes from bf16; the others become 0.
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

    /// Rounds the first `count` lanes to bf16 and stores them.
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

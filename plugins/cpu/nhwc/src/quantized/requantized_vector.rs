//! Vectors of sums that can requantize a tile.

#![expect(unsafe_code, reason = "results are stored through pointers, with instructions a machine may lack")]

#[cfg(x86_vectors)]
mod avx2;
#[cfg(x86_vectors)]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod sse2;

use oarlock_cpu_base::simd::{IntegerVector, MAX_LANES};
use oarlock_cpu_base::unrolled;

use super::requantize::QuantizedTileEpilogue;
use super::tile::MAX_TILE_PIXELS;
#[cfg(x86_vectors)]
pub(super) use avx512::{finish_rows, store_row};

/// A vector whose sums are requantized to bytes.
pub(super) trait RequantizedVector: IntegerVector {
    /// Requantizes the sums of a tile, one or two vectors per pixel, and stores the results.
    ///
    /// # Safety
    ///
    /// There is room for the results of the pixels, which only the caller accesses; a residual, if any, has the same size.
    unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
        sums: &[[Self; 2]; MAX_TILE_PIXELS],
        epilogue: &QuantizedTileEpilogue<'_>,
    );
}

/// Implements vectors that requantize in memory.
#[cfg(any(test, x86_vectors, not(target_arch = "x86_64")))]
macro_rules! stored_and_requantized {
    ($vector:ty) => {
        impl RequantizedVector for $vector {
            #[inline(always)]
            unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
                sums: &[[Self; 2]; MAX_TILE_PIXELS],
                epilogue: &QuantizedTileEpilogue<'_>,
            ) {
                // SAFETY: guaranteed by the caller.
                unsafe { store_and_finish_tile::<Self, PIXELS, VECTORS>(sums, epilogue) };
            }
        }
    };
}

#[cfg(any(test, not(target_arch = "x86_64")))]
stored_and_requantized!(oarlock_cpu_base::simd::PortableI32Vector);
#[cfg(x86_vectors)]
stored_and_requantized!(oarlock_cpu_base::simd::Avx512WordVector);
#[cfg(x86_vectors)]
stored_and_requantized!(oarlock_cpu_base::simd::Avx512VnniWordVector);

/// Stores the sums and requantizes them in memory.
///
/// # Safety
///
/// As for [`RequantizedVector::finish_tile`].
#[inline(always)]
unsafe fn store_and_finish_tile<V: IntegerVector, const PIXELS: usize, const VECTORS: usize>(
    sums: &[[V; 2]; MAX_TILE_PIXELS],
    epilogue: &QuantizedTileEpilogue<'_>,
) {
    let mut stored = [[0; 2 * MAX_LANES]; MAX_TILE_PIXELS];
    // SAFETY: there is room for two vectors per pixel, and the caller guarantees the rest.
    unsafe {
        unrolled!(PIXEL in 0..PIXELS, at most 14 {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                sums[PIXEL][VECTOR].store(stored[PIXEL][VECTOR * V::LANES..].as_mut_ptr());
            });
        });
        epilogue.finish_pixels(&stored[..PIXELS]);
    }
}

//! Requantization of sums in NEON vectors.

use std::arch::aarch64::*;
use std::ptr;

use oarlock_cpu_base::simd::{FloatVector, NeonF32Vector};
use oarlock_cpu_base::unrolled;

use super::super::super::requantize::{InnerRounding, QuantizedTileEpilogue};
use super::{LANES, MAX_TILE_PIXELS, TileSums};

/// The results of two vectors.
const RESULTS: usize = 2 * LANES;

/// Requantizes the sums of a tile and stores the results.
///
/// # Safety
///
/// There is room for the results of the pixels, which only the caller accesses; a residual, if any, has the same size.
#[inline(always)]
pub(super) unsafe fn finish_tile<const PIXELS: usize, const VECTORS: usize>(
    sums: &TileSums,
    epilogue: &QuantizedTileEpilogue<'_>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let results = NeonRequantizeVectors::new(epilogue);
        let mut steps = [[vdupq_n_f32(0.0); 2]; MAX_TILE_PIXELS];
        unrolled!(PIXEL in 0..PIXELS, at most 14 {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                steps[PIXEL][VECTOR] = vmulq_f32(vcvtq_f32_s32(sums[PIXEL][VECTOR]), results.factors[VECTOR]);
            });
        });
        if !epilogue.residual.is_null() {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                steps[PIXEL] = results.add_residual(steps[PIXEL], epilogue, PIXEL);
            });
        }
        unrolled!(PIXEL in 0..PIXELS, at most 14 { results.store_pixel(steps[PIXEL], epilogue, PIXEL); });
    }
}

/// The constants of requantization, as vectors.
struct NeonRequantizeVectors {
    /// The channels that exist.
    channels: usize,
    factors: [float32x4_t; 2],
    low: float32x4_t,
    high: int16x8_t,
    zero: int16x8_t,
}

impl NeonRequantizeVectors {
    #[inline(always)]
    unsafe fn new(epilogue: &QuantizedTileEpilogue<'_>) -> Self {
        let channels = epilogue.factors.len();
        let factors = epilogue.factors.as_ptr();
        let [low, high] = epilogue.requantize.bounds;
        // SAFETY: only existing factors are read.
        unsafe {
            let second = channels.saturating_sub(LANES);
            Self {
                channels,
                factors: [
                    NeonF32Vector::load_partial(factors, channels.min(LANES)).0,
                    NeonF32Vector::load_partial(factors.wrapping_add(LANES), second).0,
                ],
                low: vdupq_n_f32(low),
                high: vdupq_n_s16(high as i16),
                zero: vdupq_n_s16(epilogue.requantize.zero as i16),
            }
        }
    }

    /// Adds the residual to the scaled sums, after rounding them as if they had been stored in between.
    #[inline(always)]
    unsafe fn add_residual(
        &self,
        steps: [float32x4_t; 2],
        epilogue: &QuantizedTileEpilogue<'_>,
        pixel: usize,
    ) -> [float32x4_t; 2] {
        let addition = epilogue.requantize.residual;
        // SAFETY: the caller guarantees a byte for each channel.
        unsafe {
            let mut rounded = steps;
            if let Some(InnerRounding { factor, bounds: [low, high] }) = addition.inner {
                for step in &mut rounded {
                    // This instruction returns the number if the other operand is NaN, so NaN becomes the lower bound.
                    let bounded = vminnmq_f32(vmaxnmq_f32(*step, vdupq_n_f32(low)), vdupq_n_f32(high));
                    *step = vmulq_f32(vrndnq_f32(bounded), vdupq_n_f32(factor));
                }
            }
            let place = epilogue.residual.add(pixel * epilogue.pixel);
            let bytes = if self.channels == RESULTS {
                vld1_u8(place)
            } else {
                let mut bytes = [0; RESULTS];
                ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), self.channels);
                vld1_u8(bytes.as_ptr())
            };
            let wide = vmovl_u8(veor_u8(bytes, vdup_n_u8(addition.sign_flip)));
            let addends = [vmovl_u16(vget_low_u16(wide)), vmovl_high_u16(wide)];
            for (step, addend) in rounded.iter_mut().zip(addends) {
                let moved = vsubq_f32(vcvtq_f32_u32(addend), vdupq_n_f32(addition.zero));
                *step = vaddq_f32(*step, vmulq_f32(moved, vdupq_n_f32(addition.factor)));
            }
            rounded
        }
    }

    /// Rounds the scaled sums of a pixel and stores them.
    #[inline(always)]
    unsafe fn store_pixel(
        &self,
        steps: [float32x4_t; 2],
        epilogue: &QuantizedTileEpilogue<'_>,
        pixel: usize,
    ) {
        // SAFETY: only existing bytes are written.
        unsafe {
            // NaN becomes the lower bound, as above. Conversions saturate, so the upper bound can wait until there are fewer vectors.
            let [first, second] = steps.map(|step| vcvtnq_s32_f32(vmaxnmq_f32(step, self.low)));
            let whole = vqmovn_high_s32(vqmovn_s32(first), second);
            let bytes = vmovn_s16(vaddq_s16(vminq_s16(whole, self.high), self.zero));
            let place = epilogue.output.add(pixel * epilogue.pixel);
            if self.channels == RESULTS {
                vst1_s8(place.cast(), bytes);
            } else {
                let mut results = [0; RESULTS];
                vst1_s8(results.as_mut_ptr(), bytes);
                ptr::copy_nonoverlapping(results.as_ptr().cast(), place, self.channels);
            }
        }
    }
}

//! Loops over rows, windows and blocks of 16 channels.

#![expect(
    unsafe_code,
    reason = "pixels, weights and results are reached through pointers, with instructions a machine may lack"
)]

use std::arch::aarch64::*;
use std::arch::asm;
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::simd::SIGN_BIT;

use super::{InterleavedFormat, InterleavedJob, MAX_QUADS, QUAD};
use crate::quantized::requantize::RequantizeParameters;

/// Channels of a block: bytes of a register.
const CHANNELS: usize = 16;

/// The format of an instruction set, if it has dot products.
pub(super) fn format(isa: Isa) -> Option<InterleavedFormat> {
    (isa >= Isa::DotProd).then_some(InterleavedFormat { blocks: [CHANNELS; 3], factor_bytes: 1 })
}

/// # Safety
///
/// The operands have the sizes of the convolution.
pub(super) unsafe fn compute_rows(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller; a machine has the instructions of an `Isa`, and there are jobs only for those with a format.
    unsafe {
        match (job.depthwise.isa >= Isa::I8mm && !is_signed, is_signed) {
            (true, _) => compute_unsigned(job),
            (false, true) => compute_signed::<0>(job),
            (false, false) => compute_signed::<SIGN_BIT>(job),
        }
    }
}

#[target_feature(enable = "dotprod,i8mm")]
unsafe fn compute_unsigned(job: InterleavedJob<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { run_windows::<MixedDotVectors, 0>(job) };
}

#[target_feature(enable = "dotprod")]
unsafe fn compute_signed<const FLIP: u8>(job: InterleavedJob<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { run_windows::<SignedDotVectors, FLIP>(job) };
}

/// Dot products of four bytes with four signed weights, in each 32-bit lane.
trait DotProducts {
    /// # Safety
    ///
    /// The machine has the instruction.
    unsafe fn add_products(sums: int32x4_t, inputs: uint8x16_t, weights: int8x16_t) -> int32x4_t;
}

enum SignedDotVectors {}

enum MixedDotVectors {}

/// Implements the trait with an instruction whose intrinsic is not stable yet.
macro_rules! dot_products {
    ($name:ident, $instruction:literal) => {
        impl DotProducts for $name {
            #[inline(always)]
            unsafe fn add_products(mut sums: int32x4_t, inputs: uint8x16_t, weights: int8x16_t) -> int32x4_t {
                // SAFETY: the caller guarantees the instruction, which reads and writes registers alone.
                unsafe {
                    asm!(
                        $instruction,
                        sums = inout(vreg) sums,
                        inputs = in(vreg) inputs,
                        weights = in(vreg) weights,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
                sums
            }
        }
    };
}

dot_products!(SignedDotVectors, "sdot {sums:v}.4s, {inputs:v}.16b, {weights:v}.16b");
dot_products!(MixedDotVectors, "usdot {sums:v}.4s, {inputs:v}.16b, {weights:v}.16b");

#[inline(always)]
unsafe fn run_windows<D: DotProducts, const FLIP: u8>(job: InterleavedJob<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match job.depthwise.windows {
            1 => run_rows::<D, FLIP, 1>(job),
            _ => run_rows::<D, FLIP, 2>(job),
        }
    }
}

#[inline(always)]
unsafe fn run_rows<D: DotProducts, const FLIP: u8, const WINDOWS: usize>(job: InterleavedJob<'_>) {
    let (channels, width) = (job.geometry.channels, job.geometry.horizontal.output);
    let mut pixels = [[ptr::null::<u8>(); QUAD]; MAX_QUADS];
    let pixels = &mut pixels[..job.depthwise.quads];
    let mut steps = [[0; QUAD]; MAX_QUADS];
    let steps = &mut steps[..job.depthwise.quads];
    let mut lines = [ptr::null(); MAX_QUADS];
    let lines = &mut lines[..job.geometry.vertical.kernel];
    let first = job.y.as_mut_ptr();
    // SAFETY: guaranteed by the caller: pixels lie in the image or are padding, and results lie in the rows.
    unsafe {
        let epilogue = NeonBlockRequantize::new(job.operands.requantize);
        for (line, row) in job.rows.clone().enumerate() {
            job.fill_line_pointers(row, lines);
            let mut were_inside = false;
            for column in (0..width).step_by(WINDOWS) {
                let are_inside = job.are_inside(column);
                // From one window inside the image to the next, every pointer moves by a constant, so no border checks are needed.
                if were_inside && are_inside {
                    for (pixel, step) in pixels.as_flattened_mut().iter_mut().zip(steps.as_flattened()) {
                        *pixel = pixel.wrapping_add(*step);
                    }
                } else {
                    job.fill_pixel_pointers(lines, column, pixels, steps);
                }
                were_inside = are_inside;
                let place = first.add((line * width + column) * channels);
                let count = WINDOWS.min(width - column);
                let windows = NeonWindows { job: &job, pixels, place, count };
                let whole = channels / CHANNELS * CHANNELS;
                for channel in (0..whole).step_by(CHANNELS) {
                    windows.compute_block::<D, FLIP, false, WINDOWS>(channel, epilogue);
                }
                if whole < channels {
                    windows.compute_block::<D, FLIP, true, WINDOWS>(whole, epilogue);
                }
            }
        }
    }
}

/// Adjacent windows.
struct NeonWindows<'a> {
    job: &'a InterleavedJob<'a>,
    pixels: &'a [[*const u8; QUAD]],
    /// The address of the first window's results, and the number of windows: the last window of a row may be single.
    place: *mut u8,
    count: usize,
}

impl NeonWindows<'_> {
    /// Computes a block of channels, or the last, partial one.
    #[inline(always)]
    unsafe fn compute_block<D: DotProducts, const FLIP: u8, const SOME: bool, const WINDOWS: usize>(
        &self,
        channel: usize,
        epilogue: NeonBlockRequantize,
    ) {
        let operands = self.job.operands;
        let channels = self.job.geometry.channels;
        let left = channels - channel;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let starts = operands.starts.as_ptr().add(channel);
            let start = [
                vld1q_s32(starts),
                vld1q_s32(starts.add(4)),
                vld1q_s32(starts.add(8)),
                vld1q_s32(starts.add(12)),
            ];
            let mut sums = [start; WINDOWS];
            let of_channel = self.pixels.len() * WINDOWS * QUAD;
            let mut weights = operands.weights.bytes.as_ptr().add(channel * of_channel);
            for pixels in self.pixels {
                let mut inputs = [vdupq_n_u8(FLIP); QUAD];
                for (input, pixel) in inputs.iter_mut().zip(pixels) {
                    let place = pixel.add(channel);
                    let bytes = if SOME { load_partial(place, left) } else { vld1q_u8(place) };
                    *input = if FLIP == 0 { bytes } else { veorq_u8(bytes, vdupq_n_u8(FLIP)) };
                }
                let inputs = interleave_pixels(inputs);
                for sums in &mut sums {
                    for (sum, inputs) in sums.iter_mut().zip(inputs) {
                        *sum = D::add_products(*sum, inputs, vld1q_s8(weights));
                        weights = weights.add(CHANNELS);
                    }
                }
            }
            let factors = operands.factors.as_ptr().add(channel);
            for (window, sums) in sums.into_iter().enumerate().take(self.count) {
                let results = epilogue.requantize_sums(sums, factors);
                let place = self.place.add(window * channels + channel);
                if SOME {
                    let mut bytes = [0; CHANNELS];
                    vst1q_u8(bytes.as_mut_ptr(), results);
                    ptr::copy_nonoverlapping(bytes.as_ptr(), place, left);
                } else {
                    vst1q_u8(place, results);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn load_partial(place: *const u8, count: usize) -> uint8x16_t {
    let mut bytes = [0; CHANNELS];
    // SAFETY: the caller guarantees these bytes, which are fewer than the register has.
    unsafe {
        ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), count);
        vld1q_u8(bytes.as_ptr())
    }
}

/// Transposes four pixels into the four bytes of each channel.
#[inline(always)]
fn interleave_pixels([a, b, c, d]: [uint8x16_t; QUAD]) -> [uint8x16_t; QUAD] {
    // SAFETY: every processor of the architecture has the instructions.
    unsafe {
        let pairs = |bytes: uint8x16_t| vreinterpretq_u16_u8(bytes);
        let (low, low_next) = (pairs(vzip1q_u8(a, b)), pairs(vzip1q_u8(c, d)));
        let (high, high_next) = (pairs(vzip2q_u8(a, b)), pairs(vzip2q_u8(c, d)));
        [
            vreinterpretq_u8_u16(vzip1q_u16(low, low_next)),
            vreinterpretq_u8_u16(vzip2q_u16(low, low_next)),
            vreinterpretq_u8_u16(vzip1q_u16(high, high_next)),
            vreinterpretq_u8_u16(vzip2q_u16(high, high_next)),
        ]
    }
}

/// The constants of requantization, as vectors.
#[derive(Clone, Copy)]
struct NeonBlockRequantize {
    low: float32x4_t,
    high: int16x8_t,
    zero: int16x8_t,
}

impl NeonBlockRequantize {
    #[inline(always)]
    fn new(requantize: &RequantizeParameters) -> Self {
        let [low, high] = requantize.bounds;
        // SAFETY: every processor of the architecture has the instructions.
        unsafe {
            Self {
                low: vdupq_n_f32(low),
                high: vdupq_n_s16(high as i16),
                zero: vdupq_n_s16(requantize.zero as i16),
            }
        }
    }

    /// Requantizes the sums of all channels.
    ///
    /// # Safety
    ///
    /// There is a factor for each sum.
    #[inline(always)]
    unsafe fn requantize_sums(self, sums: [int32x4_t; QUAD], factors: *const f32) -> uint8x16_t {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut whole = sums;
            for (index, whole) in whole.iter_mut().enumerate() {
                let step = vmulq_f32(vcvtq_f32_s32(*whole), vld1q_f32(factors.add(index * 4)));
                // This instruction returns the number if the other operand is NaN, so NaN becomes the lower bound. Conversions
                // saturate, so the upper bound can wait until there are fewer vectors.
                *whole = vcvtnq_s32_f32(vmaxnmq_f32(step, self.low));
            }
            let bounded = |first, second| {
                let whole = vqmovn_high_s32(vqmovn_s32(first), second);
                vaddq_s16(vminq_s16(whole, self.high), self.zero)
            };
            let (first, second) = (bounded(whole[0], whole[1]), bounded(whole[2], whole[3]));
            vreinterpretq_u8_s8(vuzp1q_s8(vreinterpretq_s8_s16(first), vreinterpretq_s8_s16(second)))
        }
    }
}

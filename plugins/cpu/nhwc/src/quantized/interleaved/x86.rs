//! Loops over rows, windows and blocks of channels, for vectors of three widths.

#![expect(
    unsafe_code,
    reason = "pixels, weights and results are reached through pointers, with instructions a machine may lack"
)]

use std::arch::x86_64::*;
use std::ptr;

use super::{BLOCK_CHANNELS, InterleavedJob, MAX_QUADS, QUAD};
use crate::quantized::requantize::RequantizeParameters;
use oarlock_cpu_base::simd::SIGN_BIT;

/// A vector of bytes: one per channel, or four per channel.
trait ByteVector: Copy {
    const COUNT: usize;

    /// The constants of requantization, broadcast to vectors.
    type Epilogue: Copy;

    /// # Safety
    ///
    /// All bytes, or `count` of them, are readable, and the machine has the instructions of this type. The instructions are a
    /// condition of all functions here.
    unsafe fn load(place: *const u8) -> Self;
    unsafe fn load_partial(place: *const u8, count: usize) -> Self;

    /// # Safety
    ///
    /// All bytes, or `count` of them, are writable.
    unsafe fn store(self, place: *mut u8);
    unsafe fn store_partial(self, place: *mut u8, count: usize);

    /// Makes signed bytes unsigned by flipping the sign bit.
    unsafe fn to_unsigned(self) -> Self;

    /// Transposes four pixels into the four bytes of each channel.
    unsafe fn interleave_pixels(pixels: [Self; QUAD]) -> [Self; QUAD];

    /// Adds the products of four bytes to each sum.
    unsafe fn add_products(self, inputs: Self, weights: Self) -> Self;

    unsafe fn load_epilogue(requantize: &RequantizeParameters) -> Self::Epilogue;

    /// Requantizes the sums of all channels.
    ///
    /// # Safety
    ///
    /// There is a factor for each sum.
    unsafe fn requantize_sums(sums: [Self; QUAD], factors: *const f32, epilogue: Self::Epilogue) -> Self;
}

macro_rules! bytes {
    (
        $name:ident, $vector:ident, $floats:ident, $count:literal, $mask:ident,
        $load:ident $load_some:ident $store:ident $store_some:ident $xor:ident $splat_bytes:ident $splat:ident
        $low:ident $high:ident $low_pairs:ident $high_pairs:ident $products:ident
        $load_floats:ident $splat_floats:ident $to_floats:ident $times:ident $least:ident $round:ident
        $pack:ident $greatest:ident $plus:ident $pack_bytes:ident
    ) => {
        #[derive(Clone, Copy)]
        struct $name($vector);

        impl ByteVector for $name {
            const COUNT: usize = $count;

            /// The upper bound, the lower bound, the zero point, and the bits to flip at the end.
            type Epilogue = ($floats, $vector, $vector, $vector);

            #[inline(always)]
            unsafe fn load(place: *const u8) -> Self {
                // SAFETY: guaranteed by the caller.
                Self(unsafe { $load(place.cast()) })
            }

            #[inline(always)]
            unsafe fn load_partial(place: *const u8, count: usize) -> Self {
                let mask = ((1u128 << count) - 1) as $mask;
                // SAFETY: the caller guarantees these bytes; masked-out bytes are not read.
                Self(unsafe { $load_some(mask, place.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut u8) {
                // SAFETY: guaranteed by the caller.
                unsafe { $store(place.cast(), self.0) };
            }

            #[inline(always)]
            unsafe fn store_partial(self, place: *mut u8, count: usize) {
                let mask = ((1u128 << count) - 1) as $mask;
                // SAFETY: the caller guarantees these bytes; masked-out bytes are not written.
                unsafe { $store_some(place.cast(), mask, self.0) };
            }

            #[inline(always)]
            unsafe fn to_unsigned(self) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $xor(self.0, $splat_bytes(SIGN_BIT.cast_signed())) })
            }

            #[inline(always)]
            unsafe fn interleave_pixels([a, b, c, d]: [Self; QUAD]) -> [Self; QUAD] {
                // SAFETY: the caller guarantees the instructions.
                unsafe {
                    let [low, low_next] = [$low(a.0, b.0), $low(c.0, d.0)];
                    let [high, high_next] = [$high(a.0, b.0), $high(c.0, d.0)];
                    [
                        Self($low_pairs(low, low_next)),
                        Self($high_pairs(low, low_next)),
                        Self($low_pairs(high, high_next)),
                        Self($high_pairs(high, high_next)),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn add_products(self, inputs: Self, weights: Self) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $products(self.0, inputs.0, weights.0) })
            }

            #[inline(always)]
            unsafe fn load_epilogue(requantize: &RequantizeParameters) -> Self::Epilogue {
                let [low, high] = requantize.bounds;
                // Packing saturates to unsigned bytes, so signed results are shifted into that range and flipped back.
                let is_signed = low + (requantize.zero as f32) < 0.0;
                let sign_flip = if is_signed { i32::from(SIGN_BIT) } else { 0 };
                // SAFETY: the caller guarantees the instructions.
                unsafe {
                    (
                        $splat_floats(high),
                        $splat(low as i16),
                        $splat((requantize.zero + sign_flip) as i16),
                        $splat_bytes(sign_flip as i8),
                    )
                }
            }

            #[inline(always)]
            unsafe fn requantize_sums(
                sums: [Self; QUAD],
                factors: *const f32,
                (high, low, zero, sign_flip): Self::Epilogue,
            ) -> Self {
                // SAFETY: the caller guarantees the instructions and the factors.
                unsafe {
                    // A loop instead of `map`, because the closure would not be compiled for the instruction set.
                    let mut whole = [low; QUAD];
                    for (index, (whole, sum)) in whole.iter_mut().zip(sums).enumerate() {
                        let factors = $load_floats(factors.add(index * ($count / 4)));
                        // `min` returns its second operand for NaN, and the conversion turns NaN into the least integer.
                        *whole = $round($least(high, $times($to_floats(sum.0), factors)));
                    }
                    let [first, second] = [$pack(whole[0], whole[1]), $pack(whole[2], whole[3])];
                    let first = $plus($greatest(first, low), zero);
                    let second = $plus($greatest(second, low), zero);
                    Self($xor($pack_bytes(first, second), sign_flip))
                }
            }
        }
    };
}

bytes!(
    Zmm, __m512i, __m512, 64, __mmask64,
    _mm512_loadu_si512 _mm512_maskz_loadu_epi8 _mm512_storeu_si512 _mm512_mask_storeu_epi8
    _mm512_xor_si512 _mm512_set1_epi8 _mm512_set1_epi16
    _mm512_unpacklo_epi8 _mm512_unpackhi_epi8 _mm512_unpacklo_epi16 _mm512_unpackhi_epi16 _mm512_dpbusd_epi32
    _mm512_loadu_ps _mm512_set1_ps _mm512_cvtepi32_ps _mm512_mul_ps _mm512_min_ps _mm512_cvtps_epi32
    _mm512_packs_epi32 _mm512_max_epi16 _mm512_add_epi16 _mm512_packus_epi16
);
bytes!(
    Ymm, __m256i, __m256, 32, __mmask32,
    _mm256_loadu_si256 _mm256_maskz_loadu_epi8 _mm256_storeu_si256 _mm256_mask_storeu_epi8
    _mm256_xor_si256 _mm256_set1_epi8 _mm256_set1_epi16
    _mm256_unpacklo_epi8 _mm256_unpackhi_epi8 _mm256_unpacklo_epi16 _mm256_unpackhi_epi16 _mm256_dpbusd_epi32
    _mm256_loadu_ps _mm256_set1_ps _mm256_cvtepi32_ps _mm256_mul_ps _mm256_min_ps _mm256_cvtps_epi32
    _mm256_packs_epi32 _mm256_max_epi16 _mm256_add_epi16 _mm256_packus_epi16
);
bytes!(
    Xmm, __m128i, __m128, 16, __mmask16,
    _mm_loadu_si128 _mm_maskz_loadu_epi8 _mm_storeu_si128 _mm_mask_storeu_epi8
    _mm_xor_si128 _mm_set1_epi8 _mm_set1_epi16
    _mm_unpacklo_epi8 _mm_unpackhi_epi8 _mm_unpacklo_epi16 _mm_unpackhi_epi16 _mm_dpbusd_epi32
    _mm_loadu_ps _mm_set1_ps _mm_cvtepi32_ps _mm_mul_ps _mm_min_ps _mm_cvtps_epi32
    _mm_packs_epi32 _mm_max_epi16 _mm_add_epi16 _mm_packus_epi16
);

/// # Safety
///
/// The machine has AVX-512 with VNNI, and the operands have the sizes of the convolution.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn compute_rows(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (is_signed, job.depthwise.windows) {
            (false, 1) => run_rows::<false, 1>(job),
            (false, _) => run_rows::<false, 2>(job),
            (true, 1) => run_rows::<true, 1>(job),
            (true, _) => run_rows::<true, 2>(job),
        }
    }
}

#[inline(always)]
unsafe fn run_rows<const SIGNED: bool, const WINDOWS: usize>(job: InterleavedJob<'_>) {
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
        let endings = (
            Zmm::load_epilogue(job.operands.requantize),
            Ymm::load_epilogue(job.operands.requantize),
            Xmm::load_epilogue(job.operands.requantize),
        );
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
                let windows = InterleavedWindows { job: &job, pixels, place, count };
                let mut channel = 0;
                while channel + BLOCK_CHANNELS[0] <= channels {
                    windows.compute_block::<Zmm, SIGNED, false, WINDOWS>(channel, endings.0);
                    channel += BLOCK_CHANNELS[0];
                }
                if channel + BLOCK_CHANNELS[1] <= channels {
                    windows.compute_block::<Ymm, SIGNED, false, WINDOWS>(channel, endings.1);
                    channel += BLOCK_CHANNELS[1];
                }
                if channel + BLOCK_CHANNELS[2] <= channels {
                    windows.compute_block::<Xmm, SIGNED, false, WINDOWS>(channel, endings.2);
                    channel += BLOCK_CHANNELS[2];
                }
                if channel < channels {
                    windows.compute_block::<Xmm, SIGNED, true, WINDOWS>(channel, endings.2);
                }
            }
        }
    }
}

/// Adjacent windows.
struct InterleavedWindows<'a> {
    job: &'a InterleavedJob<'a>,
    pixels: &'a [[*const u8; QUAD]],
    /// The address of the first window's results, and the number of windows: the last window of a row may be single.
    place: *mut u8,
    count: usize,
}

impl InterleavedWindows<'_> {
    /// Computes a block of channels, or the last, partial one.
    #[inline(always)]
    unsafe fn compute_block<V: ByteVector, const SIGNED: bool, const SOME: bool, const WINDOWS: usize>(
        &self,
        channel: usize,
        epilogue: V::Epilogue,
    ) {
        let operands = self.job.operands;
        let channels = self.job.geometry.channels;
        let left = channels - channel;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let starts = operands.starts.as_ptr().add(channel);
            let mut start = [V::load(starts.cast()); QUAD];
            for (index, start) in start.iter_mut().enumerate() {
                *start = V::load(starts.add(index * (V::COUNT / QUAD)).cast());
            }
            let mut sums = [start; WINDOWS];
            let of_channel = self.pixels.len() * WINDOWS * QUAD;
            let mut weights = operands.weights.bytes.as_ptr().add(channel * of_channel);
            for pixels in self.pixels {
                let mut inputs = [start[0]; QUAD];
                for (input, pixel) in inputs.iter_mut().zip(pixels) {
                    let place = pixel.add(channel);
                    *input = if SOME { V::load_partial(place, left) } else { V::load(place) };
                    if SIGNED {
                        *input = input.to_unsigned();
                    }
                }
                let inputs = V::interleave_pixels(inputs);
                for sums in &mut sums {
                    for (sum, inputs) in sums.iter_mut().zip(inputs) {
                        *sum = sum.add_products(inputs, V::load(weights.cast()));
                        weights = weights.add(V::COUNT);
                    }
                }
            }
            let factors = operands.factors.as_ptr().add(channel);
            for (window, sums) in sums.into_iter().enumerate().take(self.count) {
                let results = V::requantize_sums(sums, factors, epilogue);
                let place = self.place.add(window * channels + channel);
                if SOME {
                    results.store_partial(place, left);
                } else {
                    results.store(place);
                }
            }
        }
    }
}

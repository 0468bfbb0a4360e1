//! Micro-kernels of ARM. Dot products of bytes take four inputs from a lane of a register, so one load provides the inputs of a pixel
//! for four steps. Processors without them widen the products of bytes to 16 bits and add them in pairs to 32-bit sums.
//!
//! Only the newest level multiplies unsigned with signed bytes; below it, unsigned inputs become signed by flipping their sign bit.

mod requantize;

use std::arch::aarch64::*;
use std::arch::asm;
use std::ptr;

use oarlock_cpu_base::simd::{QUAD, SIGN_BIT};
use oarlock_cpu_base::unrolled;

use super::{
    MAX_TILE_PIXELS, PanelFormat, QuantizedMicroKernel, QuantizedMicroKernels, QuantizedTile, TileOutcome,
};

/// Sums of a vector, and the bytes of its weights for four inputs.
const LANES: usize = 4;
const VECTOR_BYTES: usize = 16;

/// The sums of a tile.
type TileSums = [[int32x4_t; 2]; MAX_TILE_PIXELS];

/// Products of an instruction set.
trait ByteProducts {
    /// True if unsigned inputs are flipped to signed ones.
    const FLIPS_UNSIGNED: bool;

    /// The sums of each pixel and vector while they are computed.
    type Sums: Copy;

    /// # Safety
    ///
    /// The machine has the instructions of this type. This is a condition of all functions here.
    unsafe fn from_start(start: int32x4_t) -> Self::Sums;

    /// Adds the products of the weights with the four inputs in a lane. The lane has to be a constant for the compiler.
    unsafe fn add_products<const SIGNED: bool>(
        sums: Self::Sums,
        weights: int8x16_t,
        inputs: int8x16_t,
        lane: usize,
    ) -> Self::Sums;

    unsafe fn finish(sums: Self::Sums) -> int32x4_t;
}

/// Adds with an instruction whose intrinsic is not stable yet.
macro_rules! add_dot {
    ($instruction:literal, $sums:ident, $weights:ident, $inputs:ident, $lane:ident: $($number:literal)*) => {
        match $lane {
            $($number => asm!(
                concat!($instruction, " {sums:v}.4s, {weights:v}.16b, {inputs:v}.4b[", $number, "]"),
                sums = inout(vreg) $sums,
                weights = in(vreg) $weights,
                inputs = in(vreg) $inputs,
                options(pure, nomem, nostack, preserves_flags),
            ),)*
            _ => unreachable!("a register has four lanes"),
        }
    };
}

/// Dot products of signed bytes.
enum SignedDots {}

impl ByteProducts for SignedDots {
    const FLIPS_UNSIGNED: bool = true;

    type Sums = int32x4_t;

    #[inline(always)]
    unsafe fn from_start(start: int32x4_t) -> Self::Sums {
        start
    }

    #[inline(always)]
    unsafe fn add_products<const SIGNED: bool>(
        mut sums: int32x4_t,
        weights: int8x16_t,
        inputs: int8x16_t,
        lane: usize,
    ) -> int32x4_t {
        // SAFETY: the caller guarantees the instruction, which reads and writes registers alone.
        unsafe { add_dot!("sdot", sums, weights, inputs, lane: 0 1 2 3) };
        sums
    }

    #[inline(always)]
    unsafe fn finish(sums: int32x4_t) -> int32x4_t {
        sums
    }
}

/// Dot products of signed weights with bytes of either kind.
enum MixedDots {}

impl ByteProducts for MixedDots {
    const FLIPS_UNSIGNED: bool = false;

    type Sums = int32x4_t;

    #[inline(always)]
    unsafe fn from_start(start: int32x4_t) -> Self::Sums {
        start
    }

    #[inline(always)]
    unsafe fn add_products<const SIGNED: bool>(
        mut sums: int32x4_t,
        weights: int8x16_t,
        inputs: int8x16_t,
        lane: usize,
    ) -> int32x4_t {
        // SAFETY: as above.
        unsafe {
            if SIGNED {
                add_dot!("sdot", sums, weights, inputs, lane: 0 1 2 3);
            } else {
                add_dot!("sudot", sums, weights, inputs, lane: 0 1 2 3);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn finish(sums: int32x4_t) -> int32x4_t {
        sums
    }
}

/// Products of bytes in 16 bits. The sums of a vector are spread over twice as many lanes, which are added at the end.
enum WidenedProducts {}

impl ByteProducts for WidenedProducts {
    const FLIPS_UNSIGNED: bool = true;

    type Sums = [int32x4_t; 2];

    #[inline(always)]
    unsafe fn from_start(start: int32x4_t) -> Self::Sums {
        // SAFETY: every processor of the architecture has the instructions, here and below.
        unsafe {
            let zero = vdupq_n_s32(0);
            [vzip1q_s32(start, zero), vzip2q_s32(start, zero)]
        }
    }

    #[inline(always)]
    unsafe fn add_products<const SIGNED: bool>(
        [low, high]: Self::Sums,
        weights: int8x16_t,
        inputs: int8x16_t,
        lane: usize,
    ) -> Self::Sums {
        // SAFETY: as above.
        unsafe {
            let quads = vreinterpretq_s32_s8(inputs);
            let quad = vreinterpretq_s8_s32(match lane {
                0 => vdupq_laneq_s32::<0>(quads),
                1 => vdupq_laneq_s32::<1>(quads),
                2 => vdupq_laneq_s32::<2>(quads),
                _ => vdupq_laneq_s32::<3>(quads),
            });
            [
                vpadalq_s16(low, vmull_s8(vget_low_s8(weights), vget_low_s8(quad))),
                vpadalq_s16(high, vmull_high_s8(weights, quad)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn finish([low, high]: Self::Sums) -> int32x4_t {
        // SAFETY: as above.
        unsafe { vpaddq_s32(low, high) }
    }
}

/// # Safety
///
/// As for [`QuantizedMicroKernel`].
#[inline(always)]
unsafe fn compute_tile<P: ByteProducts, const SIGNED: bool, const PIXELS: usize, const VECTORS: usize>(
    tile: &QuantizedTile<'_>,
) {
    // SAFETY: the caller guarantees all operands and the instructions.
    unsafe {
        let flip = if P::FLIPS_UNSIGNED && !SIGNED { SIGN_BIT } else { 0 };
        let as_read = |bytes: uint8x16_t| vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(flip)));
        let mut sums = [[P::from_start(vld1q_s32(tile.start)); 2]; MAX_TILE_PIXELS];
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let start = P::from_start(vld1q_s32(tile.start.add(VECTOR * LANES)));
            unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = start; });
        });
        let (mut weights, mut pointers) = (tile.weights, tile.inputs);
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            let whole = tile.steps / LANES * LANES;
            // In bytes, so that one addition counts and advances all pointers.
            let mut offset = 0;
            while offset < whole * QUAD {
                let mut factors = [vdupq_n_s8(0); MAX_TILE_PIXELS];
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    factors[PIXEL] = as_read(vld1q_u8(inputs[PIXEL].add(offset)));
                });
                unrolled!(LANE in 0..4, at most 4 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        let weights = vld1q_s8(weights.add((LANE * VECTORS + VECTOR) * VECTOR_BYTES));
                        unrolled!(PIXEL in 0..PIXELS, at most 14 {
                            sums[PIXEL][VECTOR] =
                                P::add_products::<SIGNED>(sums[PIXEL][VECTOR], weights, factors[PIXEL], LANE);
                        });
                    });
                });
                weights = weights.add(LANES * VECTORS * VECTOR_BYTES);
                offset += LANES * QUAD;
            }
            for quad in whole..tile.steps {
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    let factors = inputs[PIXEL].add(QUAD * quad).cast::<u32>().read_unaligned();
                    let factors = as_read(vreinterpretq_u8_u32(vdupq_n_u32(factors)));
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        let weights = vld1q_s8(weights.add(VECTOR * VECTOR_BYTES));
                        sums[PIXEL][VECTOR] = P::add_products::<SIGNED>(sums[PIXEL][VECTOR], weights, factors, 0);
                    });
                });
                weights = weights.add(VECTORS * VECTOR_BYTES);
            }
            pointers = pointers.add(PIXELS);
        }
        let mut finished = [[vdupq_n_s32(0); 2]; MAX_TILE_PIXELS];
        unrolled!(PIXEL in 0..PIXELS, at most 14 {
            unrolled!(VECTOR in 0..VECTORS, at most 2 { finished[PIXEL][VECTOR] = P::finish(sums[PIXEL][VECTOR]); });
        });
        store_outcome::<PIXELS, VECTORS>(tile.outcome, &finished);
    }
}

/// # Safety
///
/// As for [`QuantizedMicroKernel`].
#[inline(always)]
unsafe fn store_outcome<const PIXELS: usize, const VECTORS: usize>(
    outcome: &TileOutcome<'_>,
    sums: &TileSums,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match outcome {
            TileOutcome::Bytes(epilogue) => requantize::finish_tile::<PIXELS, VECTORS>(sums, epilogue),
            TileOutcome::Sums(place) => {
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    let output = place.output.add(PIXEL * place.pixel);
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        let count = place.channels - VECTOR * LANES;
                        let output = output.add(VECTOR * LANES);
                        if count >= LANES {
                            vst1q_s32(output, sums[PIXEL][VECTOR]);
                        } else {
                            let mut lanes = [0; LANES];
                            vst1q_s32(lanes.as_mut_ptr(), sums[PIXEL][VECTOR]);
                            ptr::copy_nonoverlapping(lanes.as_ptr(), output, count);
                        }
                    });
                });
            }
        }
    }
}

/// Generates the module of an instruction set: its micro-kernels for each number of pixels.
macro_rules! kernels {
    ($module:ident, $products:ident, $(#[$attribute:meta])* [$($pixels:literal)*]) => {
        pub(super) mod $module {
            use super::{ByteProducts, LANES, PanelFormat, QuantizedMicroKernel, QuantizedMicroKernels, QuantizedTile, SIGN_BIT};

            pub(crate) static KERNELS: QuantizedMicroKernels = QuantizedMicroKernels {
                panel_format: PanelFormat { lanes: LANES, factor_bytes: 1 },
                input_offsets: [if super::$products::FLIPS_UNSIGNED { -(SIGN_BIT as i32) } else { 0 }, 0],
                by_vectors: [[&UNSIGNED_ONE, &UNSIGNED_TWO], [&SIGNED_ONE, &SIGNED_TWO]],
            };

            static UNSIGNED_ONE: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<false, $pixels, 1>),*];
            static UNSIGNED_TWO: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<false, $pixels, 2>),*];
            static SIGNED_ONE: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<true, $pixels, 1>),*];
            static SIGNED_TWO: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<true, $pixels, 2>),*];

            $(#[$attribute])*
            unsafe fn run_tile<const SIGNED: bool, const PIXELS: usize, const VECTORS: usize>(tile: &QuantizedTile<'_>) {
                // SAFETY: the caller guarantees the tile and the instructions.
                unsafe { super::compute_tile::<super::$products, SIGNED, PIXELS, VECTORS>(tile) };
            }
        }
    };
}

// 8 pixels by 2 vectors are 16 accumulators; with 8 vectors of inputs and 2 of weights, 26 of the 32 registers are in use.
kernels!(mixed, MixedDots, #[target_feature(enable = "dotprod,i8mm")] [1 2 3 4 5 6 7 8]);
kernels!(signed, SignedDots, #[target_feature(enable = "dotprod")] [1 2 3 4 5 6 7 8]);
// Sums take twice as many registers here.
kernels!(widened, WidenedProducts, [1 2 3 4]);

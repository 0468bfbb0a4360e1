//! Micro-kernels of NEON. Its multiply-add can take one factor from a lane of a register, so one load provides the inputs of a pixel
//! for several steps.

use std::ptr;

use oarlock_cpu_base::simd::{FloatVector, LaneProducts, NeonF32Vector};
use oarlock_cpu_base::unrolled;

use super::{ConvMicroKernel, ConvMicroKernels, ConvTile, MAX_TILE_PIXELS, finish_pixels};

/// 8 pixels by 2 vectors take 16 accumulators; with 8 vectors of inputs and 2 of weights, 26 of the 32 registers are in use.
pub(super) static KERNELS: ConvMicroKernels =
    ConvMicroKernels { lanes: NeonF32Vector::LANES, by_vectors: [&tiles::<1>(), &tiles::<2>()] };

const fn tiles<const VECTORS: usize>() -> [ConvMicroKernel; 8] {
    [
        compute_tile::<1, VECTORS>,
        compute_tile::<2, VECTORS>,
        compute_tile::<3, VECTORS>,
        compute_tile::<4, VECTORS>,
        compute_tile::<5, VECTORS>,
        compute_tile::<6, VECTORS>,
        compute_tile::<7, VECTORS>,
        compute_tile::<8, VECTORS>,
    ]
}

/// # Safety
///
/// As for [`ConvMicroKernel`].
unsafe fn compute_tile<const PIXELS: usize, const VECTORS: usize>(tile: &ConvTile) {
    type Vector = NeonF32Vector;
    const LANES: usize = Vector::LANES;
    // SAFETY: the caller guarantees all operands; partial vectors are loaded and stored as such.
    unsafe {
        let zero = Vector::splat(0.0);
        let mut sums = [[zero; 2]; MAX_TILE_PIXELS];
        if !tile.epilogue.bias.is_null() {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let bias = tile.epilogue.load_channels::<Vector>(tile.epilogue.bias, VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = bias; });
            });
        }
        let (mut weights, mut pointers) = (tile.weights, tile.inputs);
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            let whole = tile.depth / LANES * LANES;
            // In bytes, so that one addition counts and advances all pointers.
            let mut offset = 0;
            while offset < whole * size_of::<f32>() {
                let mut factors = [zero; MAX_TILE_PIXELS];
                unrolled!(PIXEL in 0..PIXELS, at most 14 { factors[PIXEL] = Vector::load(inputs[PIXEL].byte_add(offset)); });
                unrolled!(LANE in 0..4, at most 4 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        let weights = Vector::load(weights.add((LANE * VECTORS + VECTOR) * LANES));
                        unrolled!(PIXEL in 0..PIXELS, at most 14 {
                            sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add_product_of_lane(weights, factors[PIXEL], LANE);
                        });
                    });
                });
                weights = weights.add(LANES * VECTORS * LANES);
                offset += LANES * size_of::<f32>();
            }
            for step in whole..tile.depth {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let weights = Vector::load(weights.add(VECTOR * LANES));
                    unrolled!(PIXEL in 0..PIXELS, at most 14 {
                        let input = Vector::splat(*inputs[PIXEL].add(step));
                        sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add_product(weights, input);
                    });
                });
                weights = weights.add(VECTORS * LANES);
            }
            pointers = pointers.add(PIXELS);
        }
        finish_pixels::<Vector, PIXELS, VECTORS>(&tile.epilogue, 0, sums);
    }
}

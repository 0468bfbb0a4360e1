//! Micro-kernels of convolutions: each computes one tile of outputs, some pixels by one or two vectors of channels, over all taps
//! and input channels. All sums stay in registers until the epilogue has run. AMX tiles can only multiply, so there the epilogue
//! reads the sums from L1.

#![expect(unsafe_code, reason = "inputs, weights and outputs are reached through pointers")]

#[cfg(arm_vectors)]
mod neon;

use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::prefetch::prefetch_l1;
use oarlock_cpu_base::tile_block::BlockOperands;

use super::bf16_images::Bf16Images;
use oarlock_cpu_base::simd::F32Vector;
#[cfg(x86_vectors)]
use oarlock_cpu_base::tile_block::TILE_ROWS;
use oarlock_cpu_base::unrolled;

/// The maximum number of pixels of a tile. With AVX-512, 14 pixels by 2 vectors take 28 accumulators; with 2 vectors of weights and
/// 1 broadcast input, 31 of the 32 zmm registers are in use. The tables for AVX2 stop at 6 pixels: 12 + 2 + 1 of 16 ymm registers.
pub(crate) const MAX_TILE_PIXELS: usize = 14;

/// The distance, in steps, at which weights are prefetched. They come from L2, L3 or memory and are read once per tile, faster than
/// the hardware prefetcher follows. A step of a full tile is 28 FMAs, or 14 cycles at two per cycle, so 24 steps are about 336
/// cycles.
const PREFETCH_STEPS: usize = 24;

/// The arguments of a micro-kernel.
pub(super) struct ConvTile {
    /// For each tap and each pixel, the address of the input channels under it.
    pub(super) inputs: *const *const f32,
    pub(super) taps: usize,
    /// The number of inputs to read at each tap, and the number to skip after the pointer.
    pub(super) depth: usize,
    pub(super) skip: usize,
    /// Whole vectors of weights for each tap and step.
    pub(super) weights: *const f32,
    pub(super) epilogue: TileEpilogue,
}

/// The epilogue of a tile, and the destination of its results.
pub(super) struct TileEpilogue {
    /// Initial values of the sums, one per channel; null for 0.
    pub(super) bias: *const f32,
    /// The first output, and the distance between pixels in numbers.
    pub(super) output: *mut f32,
    pub(super) pixel: usize,
    /// Added to the sums, with the layout of the output; null for nothing.
    pub(super) residual: *const f32,
    pub(super) channels: usize,
    /// The bounds, if the activation is a clamp.
    pub(super) bounds: Option<[f32; 2]>,
    /// The images that are pairs of bf16. Only set if the factors are pairs as well.
    pub(super) paired: Bf16Images,
}

/// # Safety
///
/// Operands are readable and outputs writable as [`ConvTile`] describes, for the function's number of pixels and whole vectors of
/// weights. Nothing else accesses the output meanwhile, and the machine has the instruction set of the function's table.
pub(super) type ConvMicroKernel = unsafe fn(&ConvTile);

/// Computes a block of rows and columns with AMX.
///
/// # Safety
///
/// The block and the operands of [`TileEpilogue`] are readable and the output is writable, for the rows of the block as pixels and
/// its columns as channels. Nothing else accesses the output meanwhile, and the AMX registers are configured.
pub(super) type ConvBlockKernel = unsafe fn(&BlockOperands, &TileEpilogue);

/// The function for blocks of pairs with this many channels. It requires AMX, which the existence of an
/// [`oarlock_cpu_base::row_blocks::RowBlocks`] proves.
pub(super) fn block_kernel(channels: usize) -> ConvBlockKernel {
    #[cfg(x86_vectors)]
    return blocks::BLOCK_KERNELS[channels.div_ceil(TILE_ROWS) - 1];
    #[cfg(not(x86_vectors))]
    unreachable!("no machine of this kind has stripes of {channels} channels");
}

/// The micro-kernels of an instruction set.
pub(super) struct ConvMicroKernels {
    /// The number of lanes of a vector.
    pub(super) lanes: usize,
    /// The functions for one vector of channels and for two, indexed by the number of pixels minus one.
    by_vectors: [&'static [ConvMicroKernel]; 2],
}

impl ConvMicroKernels {
    pub(super) fn for_isa(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx => &avx512::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx2 | Isa::AvxVnni => &avx2::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => &sse41::KERNELS,
            #[cfg(arm_vectors)]
            Isa::Neon | Isa::DotProd | Isa::I8mm => &neon::KERNELS,
            _ => &plain::KERNELS,
        }
    }

    /// The micro-kernels for inputs and weights that are pairs of bf16 (see [`super::bf16_rounding`]).
    pub(super) fn for_pairs(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx if isa.has_bf16() => &joined::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx | Isa::Avx2 | Isa::AvxVnni => &widened::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => &widened_sse41::KERNELS,
            #[cfg(arm_vectors)]
            Isa::I8mm => &bfdot::KERNELS,
            #[cfg(arm_vectors)]
            Isa::Neon | Isa::DotProd => &widened_neon::KERNELS,
            _ => &plain_pairs::KERNELS,
        }
    }

    pub(super) fn max_pixels(&self) -> usize {
        self.by_vectors[0].len()
    }

    pub(super) fn max_channels(&self) -> usize {
        2 * self.lanes
    }

    pub(super) fn micro_kernel(&self, pixels: usize, channels: usize) -> ConvMicroKernel {
        self.by_vectors[channels.div_ceil(self.lanes) - 1][pixels - 1]
    }
}

/// The pixels per tile if `pixels` are divided evenly into tiles of at most `most`, so that no tile is left with only a few.
pub(super) fn even_tile_size(pixels: usize, most: usize) -> usize {
    pixels.div_ceil(pixels.div_ceil(most).max(1)).max(1)
}

impl TileEpilogue {
    /// The number of lanes of a vector that are channels; the rest is padding.
    #[inline(always)]
    fn vector_lanes<V: F32Vector>(&self, vector: usize) -> usize {
        (self.channels - vector * V::LANES).min(V::LANES)
    }

    /// Loads a vector of channels from an array with one number per channel.
    ///
    /// # Safety
    ///
    /// There is a number for each channel, and the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn load_channels<V: F32Vector>(&self, place: *const f32, vector: usize) -> V {
        let lanes = self.vector_lanes::<V>(vector);
        // SAFETY: the caller guarantees the instructions and one number per channel.
        unsafe {
            let place = place.add(vector * V::LANES);
            if lanes == V::LANES { V::load(place) } else { V::load_partial(place, lanes) }
        }
    }
}

/// # Safety
///
/// As for [`ConvMicroKernel`].
#[inline(always)]
unsafe fn compute_tile<V: F32Vector, const PIXELS: usize, const VECTORS: usize>(tile: &ConvTile) {
    // SAFETY: the caller guarantees all operands; partial vectors are loaded and stored as such.
    unsafe {
        let zero = V::splat(0.0);
        let mut sums = [[zero; 2]; MAX_TILE_PIXELS];
        if !tile.epilogue.bias.is_null() {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let bias = tile.epilogue.load_channels::<V>(tile.epilogue.bias, VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = bias; });
            });
        }
        let mut weights = tile.weights;
        let mut pointers = tile.inputs;
        // Pointers are loaded once per tap, so the inner loop over channels only increments them.
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            for step in 0..tile.depth {
                let mut factors = [zero; 2];
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    factors[VECTOR] = V::load(weights.add(VECTOR * V::LANES));
                    // One cache line has four vectors of four lanes, so one prefetch for each step is enough.
                    if VECTOR == 0 || V::LANES > 4 {
                        prefetch_l1(weights.wrapping_add((PREFETCH_STEPS * VECTORS + VECTOR) * V::LANES));
                    }
                });
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    // Each broadcast input is used for both vectors: with 16 loads for 28 FMAs, the FMA ports are the bottleneck
                    // instead of the load ports.
                    let input = V::splat(*inputs[PIXEL].add(step));
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add_product(input, factors[VECTOR]);
                    });
                });
                weights = weights.add(VECTORS * V::LANES);
            }
            pointers = pointers.add(PIXELS);
        }
        finish_pixels::<V, PIXELS, VECTORS>(&tile.epilogue, 0, sums);
    }
}

/// Runs the epilogue on the sums of some pixels, from pixel `first` on, and stores them.
///
/// # Safety
///
/// As for [`ConvMicroKernel`].
#[inline(always)]
unsafe fn finish_pixels<V: F32Vector, const PIXELS: usize, const VECTORS: usize>(
    epilogue: &TileEpilogue,
    first: usize,
    mut sums: [[V; 2]; MAX_TILE_PIXELS],
) {
    let begin = first * epilogue.pixel;
    // SAFETY: the caller guarantees all operands; partial vectors are loaded and stored as such.
    unsafe {
        if V::HAS_BF16 && epilogue.paired.residual && !epilogue.residual.is_null() {
            let residual = epilogue.residual.cast::<u16>().add(begin);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let place = residual.add(PIXEL * epilogue.pixel + VECTOR * V::LANES);
                    let residual = V::load_bf16(place, epilogue.vector_lanes::<V>(VECTOR));
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add(residual);
                });
            });
        } else if !epilogue.residual.is_null() {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let residual = epilogue.load_channels::<V>(epilogue.residual.add(begin + PIXEL * epilogue.pixel), VECTOR);
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add(residual);
                });
            });
        }
        if let Some([low, high]) = epilogue.bounds {
            let (low, high) = (V::splat(low), V::splat(high));
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].max(low).min(high);
                });
            });
        }
        if V::HAS_BF16 && epilogue.paired.output {
            let output = epilogue.output.cast::<u16>().add(begin);
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let count = epilogue.vector_lanes::<V>(VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    sums[PIXEL][VECTOR]
                        .store_bf16(output.add(PIXEL * epilogue.pixel + VECTOR * V::LANES), count);
                });
            });
            return;
        }
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let count = epilogue.vector_lanes::<V>(VECTOR);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let place = epilogue.output.add(begin + PIXEL * epilogue.pixel + VECTOR * V::LANES);
                if count == V::LANES {
                    sums[PIXEL][VECTOR].store(place);
                } else {
                    sums[PIXEL][VECTOR].store_partial(place, count);
                }
            });
        });
    }
}

/// Generates the module of an instruction set: its micro-kernels for each number of pixels.
macro_rules! kernels {
    ($module:ident, $lanes:ident, $(#[$attribute:meta])* [$($pixels:literal)*]) => {
        mod $module {
            use oarlock_cpu_base::simd::{FloatVector, $lanes};
            use super::{ConvMicroKernel, ConvMicroKernels, ConvTile};

            pub(super) static KERNELS: ConvMicroKernels = ConvMicroKernels { lanes: $lanes::LANES, by_vectors: [&ONE_VECTOR_TILES, &TWO_VECTOR_TILES] };

            static ONE_VECTOR_TILES: [ConvMicroKernel; [$($pixels),*].len()] = [$(run_tile::<$pixels, 1>),*];
            static TWO_VECTOR_TILES: [ConvMicroKernel; [$($pixels),*].len()] = [$(run_tile::<$pixels, 2>),*];

            $(#[$attribute])*
            unsafe fn run_tile<const PIXELS: usize, const VECTORS: usize>(tile: &ConvTile) {
                // SAFETY: the caller guarantees the tile and the instructions.
                unsafe { super::compute_tile::<$lanes, PIXELS, VECTORS>(tile) };
            }
        }
    };
}

#[cfg(x86_vectors)]
kernels!(avx512, Avx512F32Vector, #[target_feature(enable = "avx2,fma,avx512f")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(avx2, Avx2F32Vector, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
// 6 pixels by 2 vectors take 12 accumulators; 2 vectors of weights, 1 broadcast input and 1 product are the other xmm registers.
#[cfg(target_arch = "x86_64")]
kernels!(sse41, Sse41F32Vector, #[target_feature(enable = "sse4.1,ssse3")] [1 2 3 4 5 6]);
kernels!(plain, PortableF32Vector, [1 2 3 4 5 6]);

#[cfg(x86_vectors)]
kernels!(joined, Avx512PairVector, #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(widened, Avx2PairVector, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
// 4 pixels by 2 vectors take 8 accumulators; both halves of the factors, of an input, and 1 product are up to 7 more.
#[cfg(target_arch = "x86_64")]
kernels!(widened_sse41, Sse41PairVector, #[target_feature(enable = "sse4.1,ssse3")] [1 2 3 4]);
kernels!(plain_pairs, PortablePairVector, [1 2 3 4 5 6]);
// 8 pixels by 2 vectors take 16 accumulators; both halves of the factors and an input fit into the other 16 registers.
#[cfg(arm_vectors)]
kernels!(bfdot, NeonBf16PairVector, #[target_feature(enable = "bf16")] [1 2 3 4 5 6 7 8]);
#[cfg(arm_vectors)]
kernels!(widened_neon, NeonPairVector, [1 2 3 4 5 6 7 8]);

/// The AMX kernels for blocks of pairs.
#[cfg(x86_vectors)]
mod blocks {
    use std::mem::MaybeUninit;

    use super::{ConvBlockKernel, MAX_TILE_PIXELS, TileEpilogue, finish_pixels};
    use oarlock_cpu_base::amx::{Bf16Pairs, TileAccumulators, TileProduct};
    use oarlock_cpu_base::simd::{Avx512PairVector, FloatVector};
    use oarlock_cpu_base::tile_block::{BLOCK_ROWS, BlockOperands};
    use oarlock_cpu_base::unrolled;

    pub(super) static BLOCK_KERNELS: [ConvBlockKernel; 2] = [compute_block::<1>, compute_block::<2>];

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn compute_block<const VECTORS: usize>(block: &BlockOperands, epilogue: &TileEpilogue) {
        let mut sums = MaybeUninit::<TileAccumulators<f32>>::uninit();
        let sums = sums.as_mut_ptr();
        // SAFETY: the caller guarantees the block and the instructions. Sums are written before they are read.
        unsafe {
            let first = (&raw mut (*sums).0[0]).cast::<f32>();
            let mut start = [Avx512PairVector::splat(0.0); 2];
            if !epilogue.bias.is_null() {
                unrolled!(VECTOR in 0..VECTORS, at most 2 { start[VECTOR] = epilogue.load_channels(epilogue.bias, VECTOR); });
            }
            start[0].store(first);
            start[1].store(first.add(Avx512PairVector::LANES));
            Bf16Pairs::multiply_block(block, sums);
            let whole = block.rows / ROWS_AT_ONCE * ROWS_AT_ONCE;
            for row in (0..whole).step_by(ROWS_AT_ONCE) {
                finish_rows::<ROWS_AT_ONCE, VECTORS>(first, row, epilogue);
            }
            for row in whole..block.rows {
                finish_rows::<1, VECTORS>(first, row, epilogue);
            }
        }
    }

    /// Rows that are finished at a time: 8 by 2 vectors use 16 of 32 zmm registers, which leaves room for residual and bounds.
    const ROWS_AT_ONCE: usize = 8;

    /// Runs the epilogue on some rows of a block, whose sums begin at `first`.
    ///
    /// # Safety
    ///
    /// As for [`ConvBlockKernel`], and the sums are readable.
    #[inline(always)]
    unsafe fn finish_rows<const ROWS: usize, const VECTORS: usize>(
        first: *const f32,
        row: usize,
        epilogue: &TileEpilogue,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = [[Avx512PairVector::splat(0.0); 2]; MAX_TILE_PIXELS];
            unrolled!(ROW in 0..ROWS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] = Avx512PairVector::load(first.add((row + ROW) * BLOCK_ROWS + VECTOR * Avx512PairVector::LANES));
                });
            });
            finish_pixels::<Avx512PairVector, ROWS, VECTORS>(epilogue, row, sums);
        }
    }
}

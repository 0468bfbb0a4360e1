//! The micro-kernels: each computes one tile of outputs, some pixels by one or two vectors of channels, whose sums all
//! stay in registers, over all taps and input channels. What follows a convolution is done before the sums leave the registers,
//! or with AMX, whose registers are good for nothing else, while they are in the nearest cache.

#![expect(unsafe_code, reason = "inputs, weights and outputs are reached through pointers")]

use std::ptr;

use super::dense::Bf16Images;
use super::simd::FloatVector;
use crate::isa::{Isa, prefetch};
use crate::row_blocks::BlockOperands;
#[cfg(x86_vectors)]
use crate::row_blocks::TILE_LINES;
use crate::unrolled::unrolled;

/// The most pixels of a tile whose sums stay in vectors.
pub(in crate::kernels) const MAX_TILE_PIXELS: usize = 14;

/// How many steps ahead weights are fetched. They are read once from a far cache or from memory, faster than a processor
/// would foresee.
const PREFETCH_STEPS: usize = 24;

/// What a micro-kernel works on.
pub(super) struct ConvTile {
    /// For each tap, for each pixel, where the input channels under it begin.
    pub(super) inputs: *const *const f32,
    /// How many taps there are.
    pub(super) taps: usize,
    /// How many numbers are read at each tap, and how many after the first that the pointers point to.
    pub(super) depth: usize,
    pub(super) skip: usize,
    /// Whole vectors of weights for each tap and step.
    pub(super) weights: *const f32,
    /// What becomes of the sums.
    pub(super) ending: TileEpilogue,
}

/// What follows a tile of sums, and where it goes.
pub(super) struct TileEpilogue {
    /// Where the sums begin for each channel; null for 0.
    pub(super) bias: *const f32,
    /// The first output, and how many numbers the pixels are apart.
    pub(super) output: *mut f32,
    pub(super) pixel: usize,
    /// What is added, and lies as the output does; null for nothing.
    pub(super) residual: *const f32,
    /// How many channels there are.
    pub(super) channels: usize,
    /// Where the results are cut off.
    pub(super) bounds: Option<[f32; 2]>,
    /// Which images hold pairs of bf16. That is only so where inputs and weights are pairs as well.
    pub(super) paired: Bf16Images,
}

/// Computes one tile.
///
/// # Safety
///
/// Everything can be read and written as [`ConvTile`] says, for as many pixels as the function is for and for as many whole
/// vectors of weights as it has; nothing else touches the output meanwhile; and the machine has the instruction set of the
/// table that the function is from.
pub(super) type ConvMicroKernel = unsafe fn(&ConvTile);

/// Computes a block of rows and columns.
///
/// # Safety
///
/// The block can be read, the output written and what else there is in [`TileEpilogue`] read, for as many pixels as the block has rows
/// and for as many channels as are columns; nothing else touches the output meanwhile; and the registers of a block are ready.
pub(super) type ConvBlockKernel = unsafe fn(&BlockOperands, &TileEpilogue);

/// The function for blocks of pairs, of so many channels, on machines with [`crate::row_blocks::RowBlocks`].
pub(super) fn block_kernel(channels: usize) -> ConvBlockKernel {
    #[cfg(x86_vectors)]
    return blocks::BLOCK_KERNELS[channels.div_ceil(TILE_LINES) - 1];
    #[cfg(not(x86_vectors))]
    unreachable!("no machine of this kind has strips of {channels} channels");
}

/// The micro-kernels of an instruction set.
pub(super) struct ConvMicroKernels {
    /// How many numbers a vector has.
    pub(super) lanes: usize,
    /// The functions for one vector of channels and for two, by the number of pixels less one.
    by_vectors: [&'static [ConvMicroKernel]; 2],
}

impl ConvMicroKernels {
    /// Those of an instruction set that the machine has.
    pub(super) fn for_isa(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx => &avx512::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx2 => &avx2::KERNELS,
            _ => &plain::KERNELS,
        }
    }

    /// Those whose inputs and weights are pairs of bf16, as [`super::rounded`] has them.
    pub(super) fn for_pairs(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx if isa.has_bf16() => &joined::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx | Isa::Avx2 => &widened::KERNELS,
            _ => &plain_pairs::KERNELS,
        }
    }

    /// The most pixels of a tile.
    pub(super) fn max_pixels(&self) -> usize {
        self.by_vectors[0].len()
    }

    /// The most channels of a tile.
    pub(super) fn max_channels(&self) -> usize {
        2 * self.lanes
    }

    /// The function for so many pixels and channels.
    pub(super) fn micro_kernel(&self, pixels: usize, channels: usize) -> ConvMicroKernel {
        self.by_vectors[channels.div_ceil(self.lanes) - 1][pixels - 1]
    }
}

/// The pixels of each tile but the last, when so many pixels are divided into tiles: such that none is left with few.
pub(super) fn even_tile_size(pixels: usize, most: usize) -> usize {
    pixels.div_ceil(pixels.div_ceil(most).max(1)).max(1)
}

impl TileEpilogue {
    /// How many lanes of a vector are channels.
    #[inline(always)]
    fn vector_lanes<V: FloatVector>(&self, vector: usize) -> usize {
        (self.channels - vector * V::LANES).min(V::LANES)
    }

    /// The numbers of a vector of channels, from where those of all begin.
    ///
    /// # Safety
    ///
    /// There is one for each channel, and the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn load_channels<V: FloatVector>(&self, place: *const f32, vector: usize) -> V {
        let lanes = self.vector_lanes::<V>(vector);
        // SAFETY: the caller vouches for the instructions and as many numbers.
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
unsafe fn compute_tile<V: FloatVector, const PIXELS: usize, const VECTORS: usize>(tile: &ConvTile) {
    // SAFETY: everything is there as the caller vouches; vectors of which only some lanes exist are treated as such.
    unsafe {
        let zero = V::splat(0.0);
        let mut sums = [[zero; 2]; MAX_TILE_PIXELS];
        if !tile.ending.bias.is_null() {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let bias = tile.ending.load_channels::<V>(tile.ending.bias, VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = bias; });
            });
        }
        let mut weights = tile.weights;
        let mut pointers = tile.inputs;
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            for step in 0..tile.depth {
                let mut factors = [zero; 2];
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    factors[VECTOR] = V::load(weights.add(VECTOR * V::LANES));
                    prefetch(weights.wrapping_add((PREFETCH_STEPS * VECTORS + VECTOR) * V::LANES));
                });
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    let input = V::splat(*inputs[PIXEL].add(step));
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add_product(input, factors[VECTOR]);
                    });
                });
                weights = weights.add(VECTORS * V::LANES);
            }
            pointers = pointers.add(PIXELS);
        }
        finish_pixels::<V, PIXELS, VECTORS>(&tile.ending, 0, sums);
    }
}

/// Does what follows to the sums of some pixels, from one on, and stores them.
///
/// # Safety
///
/// As for [`ConvMicroKernel`].
#[inline(always)]
unsafe fn finish_pixels<V: FloatVector, const PIXELS: usize, const VECTORS: usize>(
    ending: &TileEpilogue,
    first: usize,
    mut sums: [[V; 2]; MAX_TILE_PIXELS],
) {
    let begin = first * ending.pixel;
    // SAFETY: everything is there as the caller vouches; vectors of which only some lanes exist are treated as such.
    unsafe {
        if V::HAS_BF16 && ending.paired.residual && !ending.residual.is_null() {
            let residual = ending.residual.cast::<u16>().add(begin);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let place = residual.add(PIXEL * ending.pixel + VECTOR * V::LANES);
                    let residual = V::load_bf16(place, ending.vector_lanes::<V>(VECTOR));
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add(residual);
                });
            });
        } else if !ending.residual.is_null() {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let residual = ending.load_channels::<V>(ending.residual.add(begin + PIXEL * ending.pixel), VECTOR);
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add(residual);
                });
            });
        }
        if let Some([low, high]) = ending.bounds {
            let (low, high) = (V::splat(low), V::splat(high));
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].max(low).min(high);
                });
            });
        }
        if V::HAS_BF16 && ending.paired.output {
            let output = ending.output.cast::<u16>().add(begin);
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let count = ending.vector_lanes::<V>(VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    sums[PIXEL][VECTOR]
                        .store_bf16(output.add(PIXEL * ending.pixel + VECTOR * V::LANES), count);
                });
            });
            return;
        }
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let count = ending.vector_lanes::<V>(VECTOR);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let place = ending.output.add(begin + PIXEL * ending.pixel + VECTOR * V::LANES);
                if count == V::LANES {
                    sums[PIXEL][VECTOR].store(place);
                } else {
                    sums[PIXEL][VECTOR].store_partial(place, count);
                }
            });
        });
    }
}

/// The module of an instruction set: its micro-kernels, compiled for it, for each number of pixels.
macro_rules! kernels {
    ($module:ident, $lanes:ident, $(#[$attribute:meta])* [$($pixels:literal)*]) => {
        mod $module {
            use super::super::simd::{FloatVector, $lanes};
            use super::{ConvMicroKernel, ConvMicroKernels, ConvTile};

            pub(super) static KERNELS: ConvMicroKernels = ConvMicroKernels { lanes: $lanes::LANES, by_vectors: [&ONE_VECTOR_TILES, &TWO_VECTOR_TILES] };

            static ONE_VECTOR_TILES: [ConvMicroKernel; [$($pixels),*].len()] = [$(run_tile::<$pixels, 1>),*];
            static TWO_VECTOR_TILES: [ConvMicroKernel; [$($pixels),*].len()] = [$(run_tile::<$pixels, 2>),*];

            $(#[$attribute])*
            unsafe fn run_tile<const PIXELS: usize, const VECTORS: usize>(tile: &ConvTile) {
                // SAFETY: the caller vouches for the tile and the instructions.
                unsafe { super::compute_tile::<$lanes, PIXELS, VECTORS>(tile) };
            }
        }
    };
}

#[cfg(x86_vectors)]
kernels!(avx512, Avx512FloatVector, #[target_feature(enable = "avx2,fma,avx512f")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(avx2, Avx2FloatVector, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain, PortableFloatVector, [1 2 3 4 5 6]);

#[cfg(x86_vectors)]
kernels!(joined, Avx512PairVector, #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(widened, Avx2PairVector, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain_pairs, PortablePairVector, [1 2 3 4 5 6]);

/// Those for blocks of pairs, with AMX.
#[cfg(x86_vectors)]
mod blocks {
    use std::mem::MaybeUninit;

    use super::super::simd::{Avx512PairVector, FloatVector};
    use super::{ConvBlockKernel, MAX_TILE_PIXELS, TileEpilogue, finish_pixels};
    use crate::amx::{Bf16Pairs, TileAccumulators, TileProduct};
    use crate::row_blocks::{BLOCK_LINES, BlockOperands};
    use crate::unrolled::unrolled;

    pub(super) static BLOCK_KERNELS: [ConvBlockKernel; 2] = [compute_block::<1>, compute_block::<2>];

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn compute_block<const VECTORS: usize>(block: &BlockOperands, ending: &TileEpilogue) {
        let mut sums = MaybeUninit::<TileAccumulators<f32>>::uninit();
        let sums = sums.as_mut_ptr();
        // SAFETY: the caller vouches for the block and the instructions. All sums that are read are written before.
        unsafe {
            let first = (&raw mut (*sums).0[0]).cast::<f32>();
            let mut start = [Avx512PairVector::splat(0.0); 2];
            if !ending.bias.is_null() {
                unrolled!(VECTOR in 0..VECTORS, at most 2 { start[VECTOR] = ending.load_channels(ending.bias, VECTOR); });
            }
            start[0].store(first);
            start[1].store(first.add(Avx512PairVector::LANES));
            Bf16Pairs::multiply_block(block, sums);
            let whole = block.rows / ROWS_AT_ONCE * ROWS_AT_ONCE;
            for row in (0..whole).step_by(ROWS_AT_ONCE) {
                finish_rows::<ROWS_AT_ONCE, VECTORS>(first, row, ending);
            }
            for row in whole..block.rows {
                finish_rows::<1, VECTORS>(first, row, ending);
            }
        }
    }

    /// Rows whose sums are finished at a time.
    const ROWS_AT_ONCE: usize = 8;

    /// Finishes the sums of some rows from one on, of those that begin at a place.
    ///
    /// # Safety
    ///
    /// As for [`ConvBlockKernel`], and the sums are there.
    #[inline(always)]
    unsafe fn finish_rows<const ROWS: usize, const VECTORS: usize>(
        first: *const f32,
        row: usize,
        ending: &TileEpilogue,
    ) {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut sums = [[Avx512PairVector::splat(0.0); 2]; MAX_TILE_PIXELS];
            unrolled!(ROW in 0..ROWS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] = Avx512PairVector::load(first.add((row + ROW) * BLOCK_LINES + VECTOR * Avx512PairVector::LANES));
                });
            });
            finish_pixels::<Avx512PairVector, ROWS, VECTORS>(ending, row, sums);
        }
    }
}

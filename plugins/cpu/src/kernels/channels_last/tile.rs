//! The micro-kernels: each computes one tile of outputs, some pixels by one or two vectors of channels, whose sums all
//! stay in registers, over all taps and input channels. What follows a convolution is done before the sums leave the registers,
//! or with AMX, whose registers are good for nothing else, while they are in the nearest cache.

#![expect(unsafe_code, reason = "inputs, weights and outputs are reached through pointers")]

use std::ptr;

use super::dense::Paired;
use super::lanes::Lanes;
use crate::isa::{Isa, prefetch};
use crate::strips::Block;
#[cfg(x86_vectors)]
use crate::strips::LINES;
use crate::unrolled::unrolled;

/// The most pixels of a tile whose sums stay in vectors.
pub(in crate::kernels) const MOST_PIXELS: usize = 14;

/// How many steps ahead weights are fetched. They are read once from a far cache or from memory, faster than a processor
/// would foresee.
const AHEAD: usize = 24;

/// What a micro-kernel works on.
pub(super) struct Tile {
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
    pub(super) ending: Ending,
}

/// What follows a tile of sums, and where it goes.
pub(super) struct Ending {
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
    pub(super) paired: Paired,
}

/// Computes one tile.
///
/// # Safety
///
/// Everything can be read and written as [`Tile`] says, for as many pixels as the function is for and for as many whole
/// vectors of weights as it has; nothing else touches the output meanwhile; and the machine has the instruction set of the
/// table that the function is from.
pub(super) type Kernel = unsafe fn(&Tile);

/// Computes a block of rows and columns.
///
/// # Safety
///
/// The block can be read, the output written and what else there is in [`Ending`] read, for as many pixels as the block has rows
/// and for as many channels as are columns; nothing else touches the output meanwhile; and the registers of a block are ready.
pub(super) type BlockKernel = unsafe fn(&Block, &Ending);

/// The function for blocks of pairs, of so many channels, on machines with [`crate::strips::Strips`].
pub(super) fn of_blocks(channels: usize) -> BlockKernel {
    #[cfg(x86_vectors)]
    return blocks::KERNELS[channels.div_ceil(LINES) - 1];
    #[cfg(not(x86_vectors))]
    unreachable!("no machine of this kind has strips of {channels} channels");
}

/// The micro-kernels of an instruction set.
pub(super) struct Kernels {
    /// How many numbers a vector has.
    pub(super) lanes: usize,
    /// The functions for one vector of channels and for two, by the number of pixels less one.
    by_vectors: [&'static [Kernel]; 2],
}

impl Kernels {
    /// Those of an instruction set that the machine has.
    pub(super) fn of(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx => &avx512::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx2 => &avx2::KERNELS,
            _ => &plain::KERNELS,
        }
    }

    /// Those whose inputs and weights are pairs of bf16, as [`super::rounded`] has them.
    pub(super) fn of_pairs(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx if isa.has_bf16() => &joined::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx | Isa::Avx2 => &widened::KERNELS,
            _ => &plain_pairs::KERNELS,
        }
    }

    /// The most pixels of a tile.
    pub(super) fn pixels(&self) -> usize {
        self.by_vectors[0].len()
    }

    /// The most channels of a tile.
    pub(super) fn channels(&self) -> usize {
        2 * self.lanes
    }

    /// The function for so many pixels and channels.
    pub(super) fn get(&self, pixels: usize, channels: usize) -> Kernel {
        self.by_vectors[channels.div_ceil(self.lanes) - 1][pixels - 1]
    }
}

/// The pixels of each tile but the last, when so many pixels are divided into tiles: such that none is left with few.
pub(super) fn even_share(pixels: usize, most: usize) -> usize {
    pixels.div_ceil(pixels.div_ceil(most).max(1)).max(1)
}

impl Ending {
    /// How many lanes of a vector are channels.
    #[inline(always)]
    fn lanes_of<V: Lanes>(&self, vector: usize) -> usize {
        (self.channels - vector * V::COUNT).min(V::COUNT)
    }

    /// The numbers of a vector of channels, from where those of all begin.
    ///
    /// # Safety
    ///
    /// There is one for each channel, and the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn load<V: Lanes>(&self, place: *const f32, vector: usize) -> V {
        let lanes = self.lanes_of::<V>(vector);
        // SAFETY: the caller vouches for the instructions and as many numbers.
        unsafe {
            let place = place.add(vector * V::COUNT);
            if lanes == V::COUNT { V::load(place) } else { V::load_some(place, lanes) }
        }
    }
}

/// # Safety
///
/// As for [`Kernel`].
#[inline(always)]
unsafe fn compute<V: Lanes, const PIXELS: usize, const VECTORS: usize>(tile: &Tile) {
    // SAFETY: everything is there as the caller vouches; vectors of which only some lanes exist are treated as such.
    unsafe {
        let zero = V::splat(0.0);
        let mut sums = [[zero; 2]; MOST_PIXELS];
        if !tile.ending.bias.is_null() {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let bias = tile.ending.load::<V>(tile.ending.bias, VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = bias; });
            });
        }
        let mut weights = tile.weights;
        let mut pointers = tile.inputs;
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MOST_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            for step in 0..tile.depth {
                let mut factors = [zero; 2];
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    factors[VECTOR] = V::load(weights.add(VECTOR * V::COUNT));
                    prefetch(weights.wrapping_add((AHEAD * VECTORS + VECTOR) * V::COUNT));
                });
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    let input = V::splat(*inputs[PIXEL].add(step));
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].plus_product(input, factors[VECTOR]);
                    });
                });
                weights = weights.add(VECTORS * V::COUNT);
            }
            pointers = pointers.add(PIXELS);
        }
        finish::<V, PIXELS, VECTORS>(&tile.ending, 0, sums);
    }
}

/// Does what follows to the sums of some pixels, from one on, and stores them.
///
/// # Safety
///
/// As for [`Kernel`].
#[inline(always)]
unsafe fn finish<V: Lanes, const PIXELS: usize, const VECTORS: usize>(
    ending: &Ending,
    first: usize,
    mut sums: [[V; 2]; MOST_PIXELS],
) {
    let begin = first * ending.pixel;
    // SAFETY: everything is there as the caller vouches; vectors of which only some lanes exist are treated as such.
    unsafe {
        if V::ROUNDS && ending.paired.residual && !ending.residual.is_null() {
            let residual = ending.residual.cast::<u16>().add(begin);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let place = residual.add(PIXEL * ending.pixel + VECTOR * V::COUNT);
                    let residual = V::load_rounded(place, ending.lanes_of::<V>(VECTOR));
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].plus(residual);
                });
            });
        } else if !ending.residual.is_null() {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let residual = ending.load::<V>(ending.residual.add(begin + PIXEL * ending.pixel), VECTOR);
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].plus(residual);
                });
            });
        }
        if let Some([low, high]) = ending.bounds {
            let (low, high) = (V::splat(low), V::splat(high));
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].at_least(low).at_most(high);
                });
            });
        }
        if V::ROUNDS && ending.paired.output {
            let output = ending.output.cast::<u16>().add(begin);
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let count = ending.lanes_of::<V>(VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    sums[PIXEL][VECTOR]
                        .store_rounded(output.add(PIXEL * ending.pixel + VECTOR * V::COUNT), count);
                });
            });
            return;
        }
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let count = ending.lanes_of::<V>(VECTOR);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let place = ending.output.add(begin + PIXEL * ending.pixel + VECTOR * V::COUNT);
                if count == V::COUNT {
                    sums[PIXEL][VECTOR].store(place);
                } else {
                    sums[PIXEL][VECTOR].store_some(place, count);
                }
            });
        });
    }
}

/// The module of an instruction set: its micro-kernels, compiled for it, for each number of pixels.
macro_rules! kernels {
    ($module:ident, $lanes:ident, $(#[$attribute:meta])* [$($pixels:literal)*]) => {
        mod $module {
            use super::super::lanes::{Lanes, $lanes};
            use super::{Kernel, Kernels, Tile};

            pub(super) static KERNELS: Kernels = Kernels { lanes: $lanes::COUNT, by_vectors: [&ONE, &TWO] };

            static ONE: [Kernel; [$($pixels),*].len()] = [$(tile::<$pixels, 1>),*];
            static TWO: [Kernel; [$($pixels),*].len()] = [$(tile::<$pixels, 2>),*];

            $(#[$attribute])*
            unsafe fn tile<const PIXELS: usize, const VECTORS: usize>(tile: &Tile) {
                // SAFETY: the caller vouches for the tile and the instructions.
                unsafe { super::compute::<$lanes, PIXELS, VECTORS>(tile) };
            }
        }
    };
}

#[cfg(x86_vectors)]
kernels!(avx512, Zmm, #[target_feature(enable = "avx2,fma,avx512f")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(avx2, Ymm, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain, Plain, [1 2 3 4 5 6]);

#[cfg(x86_vectors)]
kernels!(joined, ZmmPairs, #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(widened, YmmPairs, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain_pairs, PlainPairs, [1 2 3 4 5 6]);

/// Those for blocks of pairs, with AMX.
#[cfg(x86_vectors)]
mod blocks {
    use std::mem::MaybeUninit;

    use super::super::lanes::{Lanes, ZmmPairs};
    use super::{BlockKernel, Ending, MOST_PIXELS, finish};
    use crate::amx::{Pairs, Product, Sums};
    use crate::strips::{BLOCK, Block};
    use crate::unrolled::unrolled;

    pub(super) static KERNELS: [BlockKernel; 2] = [block::<1>, block::<2>];

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn block<const VECTORS: usize>(block: &Block, ending: &Ending) {
        let mut sums = MaybeUninit::<Sums<f32>>::uninit();
        let sums = sums.as_mut_ptr();
        // SAFETY: the caller vouches for the block and the instructions. All sums that are read are written before.
        unsafe {
            let first = (&raw mut (*sums).0[0]).cast::<f32>();
            let mut start = [ZmmPairs::splat(0.0); 2];
            if !ending.bias.is_null() {
                unrolled!(VECTOR in 0..VECTORS, at most 2 { start[VECTOR] = ending.load(ending.bias, VECTOR); });
            }
            start[0].store(first);
            start[1].store(first.add(ZmmPairs::COUNT));
            Pairs::multiply(block, sums);
            let whole = block.rows / TOGETHER * TOGETHER;
            for row in (0..whole).step_by(TOGETHER) {
                finish_rows::<TOGETHER, VECTORS>(first, row, ending);
            }
            for row in whole..block.rows {
                finish_rows::<1, VECTORS>(first, row, ending);
            }
        }
    }

    /// Rows whose sums are finished at a time.
    const TOGETHER: usize = 8;

    /// Finishes the sums of some rows from one on, of those that begin at a place.
    ///
    /// # Safety
    ///
    /// As for [`BlockKernel`], and the sums are there.
    #[inline(always)]
    unsafe fn finish_rows<const ROWS: usize, const VECTORS: usize>(
        first: *const f32,
        row: usize,
        ending: &Ending,
    ) {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut sums = [[ZmmPairs::splat(0.0); 2]; MOST_PIXELS];
            unrolled!(ROW in 0..ROWS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] = ZmmPairs::load(first.add((row + ROW) * BLOCK + VECTOR * ZmmPairs::COUNT));
                });
            });
            finish::<ZmmPairs, ROWS, VECTORS>(ending, row, sums);
        }
    }
}

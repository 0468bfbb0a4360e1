//! The micro-kernels: each computes one tile of outputs, some pixels by one or two vectors of channels, whose sums all
//! stay in registers, over all taps and input channels. What follows a convolution is done before the sums leave the registers,
//! or with AMX, whose registers are good for nothing else, while they are in the nearest cache.

#![expect(unsafe_code, reason = "inputs, weights and outputs are reached through pointers")]

use std::ptr;

use super::dense::Paired;
use super::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::amx::{self, Tiles};
use crate::isa::{Isa, prefetch};
use crate::unrolled::unrolled;

/// The most pixels of a tile whose sums stay in vectors.
pub(in crate::kernels) const MOST_PIXELS: usize = 14;

/// Numbers of a line of memory. Micro-kernels that want rows read whole lines of them.
pub(in crate::kernels) const LINE: usize = 16;

/// How many steps ahead weights are fetched. They are read once from a far cache or from memory, faster than a processor
/// would foresee.
const AHEAD: usize = 24;

/// What a micro-kernel works on.
pub(super) struct Tile {
    /// How many pixels there are.
    pub(super) pixels: usize,
    /// For each tap, for each pixel, where the input channels under it begin.
    pub(super) inputs: *const *const f32,
    /// How many taps there are.
    pub(super) taps: usize,
    /// How many numbers are read at each tap, and how many after the first that the pointers point to.
    pub(super) depth: usize,
    pub(super) skip: usize,
    /// Whole vectors of weights for each tap and step.
    pub(super) weights: *const f32,
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

/// The micro-kernels of an instruction set.
pub(super) struct Kernels {
    /// How many numbers a vector has.
    pub(super) lanes: usize,
    /// Whether the inputs of a tile have to be rows: of one tap, filled up to whole lines with 0, and as far apart as
    /// [`row_stride`] says.
    pub(super) wants_rows: bool,
    /// The functions for one vector of channels and for two, by the number of pixels less one.
    by_vectors: [&'static [Kernel]; 2],
}

impl Kernels {
    /// Those of an instruction set that the machine has.
    pub(super) fn of(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => &avx512::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::KERNELS,
            _ => &plain::KERNELS,
        }
    }

    /// Those for so many pixels, and steps of a sum, whose inputs and weights are pairs of bf16, as [`super::rounded`] has them.
    /// Weights are the same for any number of pixels.
    pub(super) fn of_pairs(isa: Isa, pixels: usize, steps: usize) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx if amx::pays(pixels, steps) => &tiles::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx if isa.has_bf16() => &joined::KERNELS,
            #[cfg(target_arch = "x86_64")]
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

    /// Makes the registers of this thread ready for the micro-kernels, as long as the result lives.
    pub(super) fn begin(&self) -> Option<impl Sized> {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the micro-kernels that want rows are those of AMX, and are only had where it is permitted.
            self.wants_rows.then(|| unsafe { Tiles::new() })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None::<()>
    }

    /// The function for so many pixels and channels.
    pub(super) fn get(&self, pixels: usize, channels: usize) -> Kernel {
        self.by_vectors[channels.div_ceil(self.lanes) - 1][pixels - 1]
    }
}

/// From one row of so many numbers to the next: whole lines and one more, as rows that are pages apart would fight for the same
/// lines of the nearest cache.
pub(in crate::kernels) fn row_stride(numbers: usize) -> usize {
    numbers.next_multiple_of(LINE) + LINE
}

/// The pixels of each tile but the last, when so many pixels are divided into tiles: such that none is left with few.
pub(super) fn even_share(pixels: usize, most: usize) -> usize {
    pixels.div_ceil(pixels.div_ceil(most).max(1)).max(1)
}

impl Tile {
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
        if !tile.bias.is_null() {
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let bias = tile.load::<V>(tile.bias, VECTOR);
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
        finish::<V, PIXELS, VECTORS>(tile, 0, sums);
    }
}

/// Does what follows to the sums of some pixels of a tile, from one on, and stores them.
///
/// # Safety
///
/// As for [`Kernel`].
#[inline(always)]
unsafe fn finish<V: Lanes, const PIXELS: usize, const VECTORS: usize>(
    tile: &Tile,
    first: usize,
    mut sums: [[V; 2]; MOST_PIXELS],
) {
    let begin = first * tile.pixel;
    // SAFETY: everything is there as the caller vouches; vectors of which only some lanes exist are treated as such.
    unsafe {
        if V::ROUNDS && tile.paired.residual && !tile.residual.is_null() {
            let residual = tile.residual.cast::<u16>().add(begin);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let place = residual.add(PIXEL * tile.pixel + VECTOR * V::COUNT);
                    let residual = V::load_rounded(place, tile.lanes_of::<V>(VECTOR));
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].plus(residual);
                });
            });
        } else if !tile.residual.is_null() {
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let residual = tile.load::<V>(tile.residual.add(begin + PIXEL * tile.pixel), VECTOR);
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].plus(residual);
                });
            });
        }
        if let Some([low, high]) = tile.bounds {
            let (low, high) = (V::splat(low), V::splat(high));
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].at_least(low).at_most(high);
                });
            });
        }
        if V::ROUNDS && tile.paired.output {
            let output = tile.output.cast::<u16>().add(begin);
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                let count = tile.lanes_of::<V>(VECTOR);
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    sums[PIXEL][VECTOR]
                        .store_rounded(output.add(PIXEL * tile.pixel + VECTOR * V::COUNT), count);
                });
            });
            return;
        }
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let count = tile.lanes_of::<V>(VECTOR);
            unrolled!(PIXEL in 0..PIXELS, at most 14 {
                let place = tile.output.add(begin + PIXEL * tile.pixel + VECTOR * V::COUNT);
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

            pub(super) static KERNELS: Kernels =
                Kernels { lanes: $lanes::COUNT, wants_rows: false, by_vectors: [&ONE, &TWO] };

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

#[cfg(target_arch = "x86_64")]
kernels!(avx512, Zmm, #[target_feature(enable = "avx2,fma,avx512f")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(target_arch = "x86_64")]
kernels!(avx2, Ymm, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain, Plain, [1 2 3 4 5 6]);

#[cfg(target_arch = "x86_64")]
kernels!(joined, ZmmPairs, #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")] [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(target_arch = "x86_64")]
kernels!(widened, YmmPairs, #[target_feature(enable = "avx2,fma")] [1 2 3 4 5 6]);
kernels!(plain_pairs, PlainPairs, [1 2 3 4 5 6]);

/// Those of AMX.
#[cfg(target_arch = "x86_64")]
mod tiles {
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::super::lanes::{Lanes, ZmmPairs};
    use super::{Kernel, Kernels, LINE, MOST_PIXELS, Tile, finish, row_stride};
    use crate::amx::{Factors, MOST, Pairs, Product, Sums};

    pub(super) static KERNELS: Kernels = Kernels {
        lanes: ZmmPairs::COUNT,
        wants_rows: true,
        by_vectors: [&[tile::<1> as Kernel; MOST], &[tile::<2> as Kernel; MOST]],
    };

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn tile<const VECTORS: usize>(tile: &Tile) {
        let mut sums = MaybeUninit::<Sums<f32>>::uninit();
        let sums = sums.as_mut_ptr();
        // SAFETY: the caller vouches for the tile and the instructions, and for rows of whole lines. All sums of the pixels that
        // are read are written before.
        unsafe {
            let mut bias = [0.0; MOST];
            if !tile.bias.is_null() {
                ptr::copy_nonoverlapping(tile.bias, bias.as_mut_ptr(), tile.channels);
            }
            let factors = Factors {
                left: (*tile.inputs).add(tile.skip).cast(),
                rows: tile.pixels,
                stride: row_stride(tile.depth) * size_of::<f32>(),
                right: tile.weights.cast(),
                tiles: VECTORS,
                lines: tile.depth / LINE,
                start: bias.as_ptr().cast(),
            };
            Pairs::multiply(&factors, sums);
            let zero = ZmmPairs::splat(0.0);
            for pixel in 0..tile.pixels {
                let sums = (&raw const (*sums).0[pixel]).cast::<f32>();
                let mut vectors = [[zero; 2]; MOST_PIXELS];
                for (vector, sum) in vectors[0].iter_mut().enumerate().take(VECTORS) {
                    *sum = ZmmPairs::load(sums.add(vector * ZmmPairs::COUNT));
                }
                finish::<ZmmPairs, 1, VECTORS>(tile, pixel, vectors);
            }
        }
    }
}

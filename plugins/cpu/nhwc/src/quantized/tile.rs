//! Micro-kernels of quantized convolutions: each computes one tile, some pixels by one or two vectors of channels, over all taps
//! and input channels. All sums stay in registers and, if the instruction set permits, are also requantized there. AMX tiles can
//! only multiply, so there the sums are read back from L1.

#![expect(unsafe_code, reason = "inputs, weights and results are reached through pointers")]

#[cfg(arm_vectors)]
mod neon;

use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::prefetch::prefetch_l1;
use oarlock_cpu_base::tile_block::BlockOperands;

use super::requantize::QuantizedTileEpilogue;
use super::requantized_vector::RequantizedVector;
pub(super) use crate::channels_last::tile::MAX_TILE_PIXELS;
use oarlock_cpu_base::simd::{MAX_LANES, QUAD};
#[cfg(x86_vectors)]
use oarlock_cpu_base::tile_block::TILE_ROWS;
use oarlock_cpu_base::unrolled;

/// The distance, in steps, at which weights are prefetched. They come from L2, L3 or memory and are read once per tile, faster than
/// the hardware prefetcher follows. A step of a full tile is 28 VNNI instructions, or 14 cycles at two per cycle, so 16 steps are
/// about 224 cycles.
const PREFETCH_STEPS: usize = 16;
const ZEROS: [i32; MAX_LANES] = [0; MAX_LANES];

/// Consecutive steps that a tile of few pixels adds to sums of their own. VNNI adds to a sum every 5 cycles, and 2 sums in all would
/// read weights at half the speed of L2.
const fn steps_abreast(pixels: usize) -> usize {
    match pixels {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// The arguments of a micro-kernel.
pub(super) struct QuantizedTile<'a> {
    /// For each tap and each pixel, the address of the inputs under it.
    pub(super) inputs: *const *const u8,
    pub(super) taps: usize,
    /// The number of steps at each tap, and the number of bytes to skip after the pointer.
    pub(super) steps: usize,
    pub(super) skip: usize,
    /// Whole vectors of weights for each tap and step.
    pub(super) weights: *const i8,
    /// Initial values of the sums, in whole vectors.
    pub(super) start: *const i32,
    pub(super) outcome: &'a TileOutcome<'a>,
}

pub(super) enum TileOutcome<'a> {
    /// Requantized to 8 bits.
    Bytes(QuantizedTileEpilogue<'a>),
    /// Stored as 32-bit integers.
    Sums(SumsTarget),
}

impl TileOutcome<'_> {
    /// Moves on to the tile after some pixels.
    pub(super) fn skip_pixels(&mut self, count: usize) {
        match self {
            Self::Bytes(epilogue) => {
                let size = count * epilogue.pixel;
                epilogue.output = epilogue.output.wrapping_add(size);
                if !epilogue.residual.is_null() {
                    epilogue.residual = epilogue.residual.wrapping_add(size);
                }
            }
            Self::Sums(target) => target.output = target.output.wrapping_add(count * target.pixel),
        }
    }
}

pub(super) struct SumsTarget {
    /// The address for the sums of the first pixel, and the distance between pixels.
    pub(super) output: *mut i32,
    pub(super) pixel: usize,
    pub(super) channels: usize,
}

/// # Safety
///
/// Operands are readable and results writable as [`QuantizedTile`] and [`TileOutcome`] describe, for the function's number of
/// pixels and whole vectors of weights. Nothing else accesses the results meanwhile, and the machine has the instruction set of the
/// function's table.
pub(super) type QuantizedMicroKernel = unsafe fn(&QuantizedTile<'_>);

/// Computes a block of rows and columns with AMX. The sums start from the given values, in whole vectors.
///
/// # Safety
///
/// The block is readable, and the results are writable as [`TileOutcome`] describes. Nothing else accesses the results meanwhile,
/// and the AMX registers are configured.
pub(super) type QuantizedBlockKernel = unsafe fn(&BlockOperands, *const i32, &TileOutcome<'_>);

/// The function for blocks of this many channels. It requires AMX, which the existence of an
/// [`oarlock_cpu_base::row_blocks::RowBlocks`] proves.
pub(super) fn block_kernel(channels: usize) -> QuantizedBlockKernel {
    #[cfg(x86_vectors)]
    return blocks::BLOCK_KERNELS[channels.div_ceil(TILE_ROWS) - 1];
    #[cfg(not(x86_vectors))]
    unreachable!("no machine of this kind has stripes of {channels} channels");
}

/// What the layout of packed weights depends on.
#[derive(Clone, Copy)]
pub(super) struct PanelFormat {
    /// The number of sums per vector.
    pub(super) lanes: usize,
    /// Bytes of a weight, and of an input: see [`IntegerVector::FACTOR_BYTES`].
    pub(super) factor_bytes: usize,
}

/// The micro-kernels of an instruction set.
pub(super) struct QuantizedMicroKernels {
    pub(super) panel_format: PanelFormat,
    /// What kernels add to unsigned and to signed inputs as they read them, to get the kind of bytes that they multiply.
    input_offsets: [i32; 2],
    /// The functions for unsigned and for signed inputs, for one vector of channels and for two, indexed by the number of pixels
    /// minus one.
    by_vectors: [[&'static [QuantizedMicroKernel]; 2]; 2],
}

impl QuantizedMicroKernels {
    /// The best kernels of an instruction set: not every machine with AVX-512 has VNNI.
    pub(super) fn for_isa(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx if is_x86_feature_detected!("avx512vnni") => &vnni::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx => &avx512_words::KERNELS,
            #[cfg(x86_vectors)]
            Isa::AvxVnni => &avx_vnni::KERNELS,
            #[cfg(x86_vectors)]
            Isa::Avx2 => &avx2::KERNELS,
            #[cfg(arm_vectors)]
            Isa::I8mm => &neon::mixed::KERNELS,
            #[cfg(arm_vectors)]
            Isa::DotProd => &neon::signed::KERNELS,
            #[cfg(arm_vectors)]
            Isa::Neon => &neon::widened::KERNELS,
            #[cfg(target_arch = "x86_64")]
            _ => &sse2::KERNELS,
            #[cfg(not(target_arch = "x86_64"))]
            _ => &plain::KERNELS,
        }
    }

    /// Kernels that multiply signed numbers of 16 bits, unless bytes are multiplied many times faster, as by AMX.
    pub(super) fn of_words(isa: Isa) -> Option<&'static Self> {
        match isa {
            #[cfg(x86_vectors)]
            Isa::Amx => None,
            #[cfg(x86_vectors)]
            Isa::Avx512 if is_x86_feature_detected!("avx512vnni") => Some(&vnni_words::KERNELS),
            #[cfg(x86_vectors)]
            Isa::AvxVnni => Some(&avx_vnni_words::KERNELS),
            _ => Some(Self::for_isa(isa))
                .filter(|kernels| kernels.panel_format.factor_bytes == size_of::<i16>()),
        }
    }

    /// The zero point of inputs as the kernels read them, given the one of their dtype.
    pub(super) fn zero_as_read(&self, zero: i32, is_signed: bool) -> i32 {
        zero.wrapping_add(self.input_offsets[usize::from(is_signed)])
    }

    pub(super) fn max_pixels(&self) -> usize {
        self.by_vectors[0][0].len()
    }

    pub(super) fn max_channels(&self) -> usize {
        2 * self.panel_format.lanes
    }

    pub(super) fn micro_kernel(
        &self,
        is_signed: bool,
        pixels: usize,
        channels: usize,
    ) -> QuantizedMicroKernel {
        self.by_vectors[usize::from(is_signed)][usize::from(channels > self.panel_format.lanes)][pixels - 1]
    }
}

/// # Safety
///
/// As for [`QuantizedMicroKernel`].
#[inline(always)]
unsafe fn compute_tile<
    V: RequantizedVector,
    const SIGNED: bool,
    const PIXELS: usize,
    const VECTORS: usize,
>(
    tile: &QuantizedTile<'_>,
) {
    let size = VECTORS * QUAD * V::LANES;
    // SAFETY: the caller guarantees all operands.
    unsafe {
        let first = V::load(tile.start);
        let mut sums = [[first; 2]; MAX_TILE_PIXELS];
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            let start = V::load(tile.start.add(VECTOR * V::LANES));
            unrolled!(PIXEL in 0..PIXELS, at most 14 { sums[PIXEL][VECTOR] = start; });
        });
        let abreast = const { steps_abreast(PIXELS) };
        let mut others = [[[V::load(ZEROS.as_ptr()); 2]; MAX_TILE_PIXELS]; 3];
        let (mut weights, mut pointers) = (tile.weights, tile.inputs);
        for _ in 0..tile.taps {
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            unrolled!(PIXEL in 0..PIXELS, at most 14 { inputs[PIXEL] = (*pointers.add(PIXEL)).add(tile.skip); });
            let whole = tile.steps - tile.steps % abreast;
            for step in (0..whole).step_by(abreast) {
                add_step::<V, SIGNED, PIXELS, VECTORS>(&mut sums, &inputs, step, weights);
                unrolled!(OTHER in 0..3, at most 3 {
                    if const { OTHER + 1 < steps_abreast(PIXELS) } {
                        let weights = weights.add((OTHER + 1) * size);
                        add_step::<V, SIGNED, PIXELS, VECTORS>(&mut others[OTHER], &inputs, step + OTHER + 1, weights);
                    }
                });
                weights = weights.add(abreast * size);
            }
            for step in whole..tile.steps {
                add_step::<V, SIGNED, PIXELS, VECTORS>(&mut sums, &inputs, step, weights);
                weights = weights.add(size);
            }
            pointers = pointers.add(PIXELS);
        }
        unrolled!(OTHER in 0..3, at most 3 {
            if const { OTHER + 1 < steps_abreast(PIXELS) } {
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add(others[OTHER][PIXEL][VECTOR]);
                    });
                });
            }
        });
        match tile.outcome {
            TileOutcome::Bytes(epilogue) => V::finish_tile::<PIXELS, VECTORS>(&sums, epilogue),
            // Whole vectors of channels are stored directly; only a ragged tile goes through a buffer.
            TileOutcome::Sums(place) if place.channels == VECTORS * V::LANES => {
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR].store(place.output.add(PIXEL * place.pixel + VECTOR * V::LANES));
                    });
                });
            }
            TileOutcome::Sums(place) => {
                let mut stored = [[0; 2 * MAX_LANES]; MAX_TILE_PIXELS];
                unrolled!(PIXEL in 0..PIXELS, at most 14 {
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        sums[PIXEL][VECTOR].store(stored[PIXEL][VECTOR * V::LANES..].as_mut_ptr());
                    });
                });
                for (pixel, sums) in stored[..PIXELS].iter().enumerate() {
                    ptr::copy_nonoverlapping(
                        sums.as_ptr(),
                        place.output.add(pixel * place.pixel),
                        place.channels,
                    );
                }
            }
        }
    }
}

/// Adds the products of one step.
///
/// # Safety
///
/// As for [`QuantizedMicroKernel`].
#[inline(always)]
unsafe fn add_step<V: RequantizedVector, const SIGNED: bool, const PIXELS: usize, const VECTORS: usize>(
    sums: &mut [[V; 2]; MAX_TILE_PIXELS],
    inputs: &[*const u8; MAX_TILE_PIXELS],
    step: usize,
    weights: *const i8,
) {
    let size = QUAD * V::LANES;
    // SAFETY: the caller guarantees all operands.
    unsafe {
        let mut factors = [V::load_weights(weights); 2];
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            factors[VECTOR] = V::load_weights(weights.add(VECTOR * size));
            prefetch_l1(weights.wrapping_add((PREFETCH_STEPS * VECTORS + VECTOR) * size));
        });
        unrolled!(PIXEL in 0..PIXELS, at most 14 {
            let input = V::load_inputs::<SIGNED>(inputs[PIXEL].add(QUAD * step));
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                sums[PIXEL][VECTOR] = sums[PIXEL][VECTOR].add_products(input, factors[VECTOR]);
            });
        });
    }
}

/// Generates the module of an instruction set: its micro-kernels for each number of pixels.
macro_rules! kernels {
    ($module:ident, $vector:ident, $(#[$attribute:meta])* [$($pixels:literal)*]) => {
        mod $module {
            use oarlock_cpu_base::simd::{IntegerVector, SIGN_BIT, $vector};
            use super::{PanelFormat, QuantizedMicroKernel, QuantizedMicroKernels, QuantizedTile};

            pub(super) static KERNELS: QuantizedMicroKernels = QuantizedMicroKernels {
                panel_format: PanelFormat { lanes: $vector::LANES, factor_bytes: $vector::FACTOR_BYTES },
                input_offsets: [0, SIGN_BIT as i32],
                by_vectors: [[&UNSIGNED_ONE, &UNSIGNED_TWO], [&SIGNED_ONE, &SIGNED_TWO]],
            };

            static UNSIGNED_ONE: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<false, $pixels, 1>),*];
            static UNSIGNED_TWO: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<false, $pixels, 2>),*];
            static SIGNED_ONE: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<READS_SIGNED, $pixels, 1>),*];
            static SIGNED_TWO: [QuantizedMicroKernel; [$($pixels),*].len()] = [$(run_tile::<READS_SIGNED, $pixels, 2>),*];

            /// Widened inputs are unsigned.
            const READS_SIGNED: bool = $vector::FACTOR_BYTES == 1;

            $(#[$attribute])*
            unsafe fn run_tile<const SIGNED: bool, const PIXELS: usize, const VECTORS: usize>(tile: &QuantizedTile<'_>) {
                // SAFETY: the caller guarantees the tile and the instructions.
                unsafe { super::compute_tile::<$vector, SIGNED, PIXELS, VECTORS>(tile) };
            }
        }
    };
}

// 14 pixels by 2 vectors are 28 accumulators; with 2 vectors of weights and 1 of inputs, 31 of 32 zmm registers are in use.
#[cfg(x86_vectors)]
kernels!(
    vnni,
    Avx512VnniVector,
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
);
#[cfg(x86_vectors)]
kernels!(
    vnni_words,
    Avx512VnniWordVector,
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14]
);
// As above, with 1 product: 14 pixels would need all 32 registers.
#[cfg(x86_vectors)]
kernels!(
    avx512_words,
    Avx512WordVector,
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl")]
    [1 2 3 4 5 6 7 8 9 10 11 12]
);
// 6 x 2 accumulators, 2 weights and 1 input use 15 of 16 ymm registers.
#[cfg(x86_vectors)]
kernels!(avx_vnni_words, AvxVnniWordVector, #[target_feature(enable = "avx2,avxvnni")] [1 2 3 4 5 6]);
#[cfg(x86_vectors)]
kernels!(avx_vnni, AvxVnniVector, #[target_feature(enable = "avx2,avxvnni")] [1 2 3 4 5 6]);
// 6 x 2 accumulators, 2 weights, 1 input and 1 product use all 16 ymm registers.
#[cfg(x86_vectors)]
kernels!(avx2, Avx2I32Vector, #[target_feature(enable = "avx2")] [1 2 3 4 5 6]);
// 4 x 2 accumulators, 2 weights, 1 input and 1 product use 12 of 16 xmm registers.
#[cfg(target_arch = "x86_64")]
kernels!(sse2, Sse2I32Vector, [1 2 3 4]);
#[cfg(any(test, not(target_arch = "x86_64")))]
kernels!(plain, PortableI32Vector, [1 2 3 4]);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Computes a tile of four pixels by five channels, with one weight of 1 to 127 for each step.
    fn tile_sums(kernels: &QuantizedMicroKernels, inputs: [&[u8]; 4], weights: &[i8]) -> [[i32; 5]; 4] {
        let (start, mut sums) = ([7; 8], [[0; 5]; 4]);
        let steps = inputs[0].len() / QUAD;
        let inputs = inputs.map(<[u8]>::as_ptr);
        let outcome =
            TileOutcome::Sums(SumsTarget { output: sums.as_mut_ptr().cast(), pixel: 5, channels: 5 });
        let tile = QuantizedTile {
            inputs: inputs.as_ptr(),
            taps: 1,
            steps,
            skip: 0,
            weights: weights.as_ptr(),
            start: start.as_ptr(),
            outcome: &outcome,
        };
        // SAFETY: there are inputs and weights for all steps, and room for all sums.
        unsafe { kernels.micro_kernel(false, 4, 5)(&tile) };
        sums
    }

    #[test]
    fn portable_sums_are_those_of_sse2() {
        let inputs: [Vec<u8>; 4] =
            std::array::from_fn(|pixel| (0..12).map(|step| (step * 37 + pixel * 91) as u8).collect());
        // Three steps of eight channels, four weights each.
        let narrow: Vec<i8> = (0..96).map(|index: i32| (index * 53 % 251 - 125) as i8).collect();
        // Widened, the first two weights of each channel come before the other two.
        let widen = |pairs: usize, row: &[i8]| -> Vec<i8> {
            row.chunks(4)
                .flat_map(|quad| &quad[pairs..pairs + 2])
                .flat_map(|weight| i16::from(*weight).to_ne_bytes())
                .map(|byte| byte as i8)
                .collect()
        };
        let wide: Vec<i8> =
            narrow.chunks(32).flat_map(|row| [widen(0, row), widen(2, row)].concat()).collect();
        let wide_inputs: [Vec<u8>; 4] = inputs
            .each_ref()
            .map(|row| row.iter().flat_map(|input| u16::from(*input).to_ne_bytes()).collect());
        let expected = tile_sums(&plain::KERNELS, inputs.each_ref().map(|row| &row[..]), &narrow);
        assert_eq!(tile_sums(&sse2::KERNELS, wide_inputs.each_ref().map(|row| &row[..]), &wide), expected);
        let sum: i32 = (0..12)
            .map(|step| i32::from(inputs[3][step]) * i32::from(narrow[step / 4 * 32 + 4 * 4 + step % 4]))
            .sum();
        assert_eq!(expected[3][4], sum + 7);
    }
}

/// The AMX kernels.
#[cfg(x86_vectors)]
mod blocks {
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::super::requantized_vector::{finish_rows, store_row};
    use super::{QuantizedBlockKernel, TileOutcome};
    use oarlock_cpu_base::amx::{TileAccumulators, TileProduct, UnsignedSignedBytes};
    use oarlock_cpu_base::simd::{Avx512VnniVector, IntegerVector};
    use oarlock_cpu_base::tile_block::{BLOCK_ROWS, BlockOperands};

    pub(super) static BLOCK_KERNELS: [QuantizedBlockKernel; 2] = [compute_block::<1>, compute_block::<2>];

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn compute_block<const VECTORS: usize>(
        block: &BlockOperands,
        start: *const i32,
        outcome: &TileOutcome<'_>,
    ) {
        let mut sums = MaybeUninit::<TileAccumulators<i32>>::uninit();
        let sums = sums.as_mut_ptr();
        // SAFETY: the caller guarantees the block and the instructions. Sums are written before they are read.
        unsafe {
            let first = sums.cast::<i32>();
            first.write_bytes(0, BLOCK_ROWS);
            ptr::copy_nonoverlapping(start, first, VECTORS * Avx512VnniVector::LANES);
            UnsignedSignedBytes::multiply_block(block, sums);
            let rows = std::slice::from_raw_parts(sums.cast::<[Avx512VnniVector; 2]>(), block.rows);
            match outcome {
                TileOutcome::Bytes(epilogue) => finish_rows::<VECTORS>(rows, epilogue),
                TileOutcome::Sums(place) => {
                    for (pixel, sums) in rows.iter().enumerate() {
                        let output = place.output.wrapping_add(pixel * place.pixel);
                        store_row(*sums, output, place.channels);
                    }
                }
            }
        }
    }
}

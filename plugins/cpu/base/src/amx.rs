//! AMX, the matrix unit: eight tile registers of sixteen rows of 64 bytes each. Stable Rust has no intrinsics for them, so this
//! module uses inline assembly.
//!
//! The accumulators of a block are four tiles. A step multiplies two tiles of the left operand with two of the right and adds all
//! four products, so 4 + 2 + 2 tiles use all eight registers, and each loaded tile is used twice.

#![expect(unsafe_code, reason = "the registers are only reached by instructions that a machine may lack")]

mod gather;

use std::arch::asm;
use std::marker::PhantomData;

use crate::tile_block::{BLOCK_ROWS, BlockOperands, TILE_ROW_BYTES, TILE_ROWS};
pub use gather::GatheredRows;

/// The configured tile registers of this thread. Dropping it releases them.
pub struct TileRegisters(PhantomData<*const ()>);

/// The operand of `ldtilecfg`, in the layout that the processor requires.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    first_line: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    lines: [u8; 16],
}

impl TileRegisters {
    /// Configures all eight registers as full tiles: 16 rows of 64 bytes.
    ///
    /// # Safety
    ///
    /// The process may use the registers: that is, `is_amx_available` returned true.
    pub unsafe fn new() -> Self {
        let all = |value: u8| std::array::from_fn(|register| if register < 8 { value } else { 0 });
        let (bytes, lines) = (all(TILE_ROW_BYTES as u8).map(u16::from), all(TILE_ROWS as u8));
        let shape = TileConfig { palette: 1, first_line: 0, reserved: [0; 14], bytes, lines };
        // SAFETY: the caller vouches that AMX may be used, and every AMX unit supports palette 1 with full tiles.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shape, options(nostack, readonly)) };
        Self(PhantomData)
    }
}

impl Drop for TileRegisters {
    fn drop(&mut self) {
        // SAFETY: AMX is available, since `new` ran. Released registers need not be saved on a context switch.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The 32x32 sums of a block in row-major order: 128 bytes per row, so the lower two tiles begin at byte 16 · 128 = 2048.
#[repr(C, align(64))]
pub struct TileAccumulators<T>(pub [[T; BLOCK_ROWS]; BLOCK_ROWS]);

/// A pair of operand formats that one AMX instruction multiplies.
pub trait TileProduct {
    type Accumulator;

    /// Computes the sums of a block. Every row of sums starts from row 0 of `sums`, such as a bias.
    ///
    /// # Safety
    ///
    /// [`TileRegisters`] has configured the registers of this thread, the block has at least one line, its rows and columns are
    /// readable, and the sums are writable.
    unsafe fn multiply_block(block: &BlockOperands, sums: *mut TileAccumulators<Self::Accumulator>);
}

/// bf16 factors, summed in f32.
pub struct Bf16Pairs;

/// Unsigned bytes on the left times signed bytes on the right, summed in i32.
pub struct UnsignedSignedBytes;

/// Implements [`TileProduct`] with one AMX instruction.
macro_rules! product {
    ($product:ident, $sum:ty, $instruction:literal) => {
        impl TileProduct for $product {
            type Accumulator = $sum;

            #[inline]
            unsafe fn multiply_block(block: &BlockOperands, sums: *mut TileAccumulators<$sum>) {
                let BlockOperands { left, rows, stride, right, tiles, lines, soon, share } = *block;
                // With a single tile of rows, that tile is loaded twice: the redundant products take no longer than waiting for the
                // loads.
                let below = if rows > TILE_ROWS { left.wrapping_add(TILE_ROWS * stride) } else { left };
                let beside = right.wrapping_add((tiles - 1) * TILE_ROW_BYTES);
                // SAFETY: the caller vouches for the registers, the operands and the sums. A prefetched address need not be valid.
                unsafe {
                    asm!(
                        "xor {end:e}, {end:e}",
                        // A stride of 0 loads row 0 of the sums into all sixteen rows of a tile.
                        "tileloadd tmm0, [{sums} + {end}]",
                        "tileloadd tmm1, [{sums} + {end} + 64]",
                        "tileloadd tmm2, [{sums} + {end}]",
                        "tileloadd tmm3, [{sums} + {end} + 64]",
                        "mov {end}, {soon}",
                        "2:",
                        // Loads and products alternate, so that the load of the next tile overlaps the product before it.
                        "tileloadd tmm6, [{right} + {across}]",
                        "tileloadd tmm4, [{left} + {stride}]",
                        concat!($instruction, " tmm0, tmm4, tmm6"),
                        "tileloadd tmm7, [{beside} + {across}]",
                        concat!($instruction, " tmm1, tmm4, tmm7"),
                        "tileloadd tmm5, [{below} + {stride}]",
                        concat!($instruction, " tmm2, tmm5, tmm6"),
                        concat!($instruction, " tmm3, tmm5, tmm7"),
                        "add {left}, 64",
                        "add {below}, 64",
                        "add {right}, {step}",
                        "add {beside}, {step}",
                        "add {end}, {share}",
                        "cmp {soon}, {end}",
                        "jae 4f",
                        "3:",
                        // Into L2 only: in L1, the next panel could evict the current one, which the other blocks of the stripe
                        // still need.
                        "prefetcht1 [{soon}]",
                        "add {soon}, 64",
                        "cmp {soon}, {end}",
                        "jb 3b",
                        "4:",
                        "dec {lines}",
                        "jnz 2b",
                        "mov {across:e}, 128",
                        "tilestored [{sums} + {across}], tmm0",
                        "tilestored [{sums} + {across} + 64], tmm1",
                        "tilestored [{sums} + {across} + 2048], tmm2",
                        "tilestored [{sums} + {across} + 2112], tmm3",
                        left = inout(reg) left => _,
                        below = inout(reg) below => _,
                        right = inout(reg) right => _,
                        beside = inout(reg) beside => _,
                        lines = inout(reg) lines => _,
                        stride = in(reg) stride,
                        across = inout(reg) tiles * TILE_ROW_BYTES => _,
                        step = in(reg) tiles * TILE_ROWS * TILE_ROW_BYTES,
                        soon = inout(reg) soon => _,
                        share = in(reg) share,
                        end = out(reg) _,
                        sums = in(reg) sums,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    );
                }
            }
        }
    };
}

product!(Bf16Pairs, f32, "tdpbf16ps");
product!(UnsignedSignedBytes, i32, "tdpbusd");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amx_permission::is_amx_available;

    /// A cache line of an operand; operands are aligned to lines.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    struct AlignedLines([u8; TILE_ROW_BYTES]);

    /// Multiplies a block of test data and compares it with `sum`, which receives the bytes of a row and those of a column, in
    /// groups of four.
    fn check_block_product<P: TileProduct>(
        (rows, tiles, lines): (usize, usize, usize),
        byte: impl Fn(usize) -> u8,
        start: [P::Accumulator; BLOCK_ROWS],
        sum: impl Fn(P::Accumulator, &[u8], &[u8]) -> P::Accumulator,
    ) where
        P::Accumulator: Copy + PartialEq + std::fmt::Debug,
    {
        if !is_amx_available() {
            return;
        }
        let fill = |lines: usize, seed: usize| -> Vec<AlignedLines> {
            (0..lines)
                .map(|line| {
                    AlignedLines(std::array::from_fn(|place| byte(seed + line * TILE_ROW_BYTES + place)))
                })
                .collect()
        };
        // One extra line between rows, so that code that ignores the stride fails.
        let stride = lines + 1;
        let (left, right) = (fill(BLOCK_ROWS * stride, 0), fill(lines * TILE_ROWS * tiles, 70_000));
        let mut sums = TileAccumulators([start; BLOCK_ROWS]);
        let block = BlockOperands {
            left: left.as_ptr().cast(),
            rows,
            stride: stride * TILE_ROW_BYTES,
            right: right.as_ptr().cast(),
            tiles,
            lines,
            soon: right.as_ptr().cast(),
            share: 100 * (rows % 2),
        };
        // SAFETY: AMX is permitted, and the operands have as many lines as the block states.
        unsafe {
            let _registers = TileRegisters::new();
            P::multiply_block(&block, &raw mut sums);
        }
        let bytes = |lines: &[AlignedLines]| lines.iter().flat_map(|line| line.0).collect::<Vec<_>>();
        let right = bytes(&right);
        for (row, sums) in sums.0.iter().enumerate().take(rows) {
            let left = bytes(&left[row * stride..][..lines]);
            for (column, found) in sums.iter().enumerate().take(tiles * TILE_ROWS) {
                let quads = right.chunks_exact(tiles * TILE_ROW_BYTES);
                let of_column: Vec<u8> = quads.flat_map(|quad| quad[4 * column..][..4].to_vec()).collect();
                let expected = sum(start[column], &left, &of_column);
                assert_eq!(*found, expected, "row {row}, column {column} of {rows}, {tiles}, {lines}");
            }
        }
    }

    const SIZES: [(usize, usize, usize); 7] =
        [(1, 1, 1), (5, 2, 3), (16, 1, 2), (17, 2, 1), (31, 1, 5), (32, 2, 1), (32, 2, 9)];

    #[test]
    fn unsigned_bytes_are_multiplied_with_signed_ones() {
        for sizes in SIZES {
            let byte = |place: usize| (place * 167 + place / 251) as u8;
            let start = std::array::from_fn(|column| column as i32 * 1_000_003 - 7);
            check_block_product::<UnsignedSignedBytes>(sizes, byte, start, |start, left, right| {
                let products = left
                    .iter()
                    .zip(right)
                    .map(|(left, right)| i32::from(*left) * i32::from(right.cast_signed()));
                start + products.sum::<i32>()
            });
        }
    }

    #[test]
    fn pairs_of_bf16_are_multiplied() {
        for sizes in SIZES {
            // Integers of at most 7, whose sums are exact in any order.
            let number = |place: usize| ((place * 29 + place / 61) % 15) as f32 - 7.0;
            let byte = |place: usize| (number(place / 2).to_bits() >> 16).to_le_bytes()[place % 2];
            let start = std::array::from_fn(|column| column as f32 - 20.0);
            let numbers = |bytes: &[u8]| -> Vec<f32> {
                let halves =
                    bytes.chunks_exact(2).map(|half| u32::from(half[0]) << 16 | u32::from(half[1]) << 24);
                halves.map(f32::from_bits).collect()
            };
            check_block_product::<Bf16Pairs>(sizes, byte, start, |start, left, right| {
                let products =
                    numbers(left).into_iter().zip(numbers(right)).map(|(left, right)| left * right);
                start + products.sum::<f32>()
            });
        }
    }
}
